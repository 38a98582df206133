"""Make the animated pictures of the documentation: ``python docs/make_gifs.py``.

They show the scripted policies at work, with the local causal graph of every step drawn over the picture. Steps
in which bodies act on each other are held for a moment. Chance is seeded: the same versions make the same files.
"""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import gymnasium
import numpy as np
from PIL import Image

from counterpoint.adapters.gymnasium import IDS
from counterpoint.core.arrays import Bools
from counterpoint.worlds.place import Place, place_policy
from counterpoint.worlds.pong import pong_policy
from counterpoint.worlds.sprites import Sprites
from counterpoint.worlds.world import Policy

FOLDER = Path(__file__).parent / "images"
COLOURS = 256  # of a film, as many as the format allows
HOLD, LAST = 450, 1500  # milliseconds for which a contact and the last picture stay


class Film(NamedTuple):
    """Pictures, and whether bodies act on each other in the step that each of them shows."""

    pictures: list[Image.Image]
    contacts: list[bool]


def play(task: str, policy: Policy, *, seed: int, length: int) -> Film:
    """Return the film of one episode of at most ``length`` steps."""
    env = gymnasium.make(IDS[task], render_mode="rgb_array", with_mask=True, draw_graph=True, size=320, length=length)
    rng, film, over = np.random.default_rng(seed), Film([], []), False
    state, _ = env.reset(seed=seed)
    while not over:
        state, _, _, over, info = env.step(policy(state[None], rng)[0])
        film.pictures.append(Image.fromarray(env.render()))
        film.contacts.append(_touch(info["mask"]))
    return film


def save(name: str, film: Film, *, milliseconds: int) -> None:
    """Write an endless film whose pictures share one set of colours."""
    palette, path = _palette(film.pictures), FOLDER / name
    first, *others = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in film.pictures]
    times = [HOLD if contact else milliseconds for contact in film.contacts[:-1]] + [LAST]
    path.parent.mkdir(exist_ok=True)
    first.save(path, save_all=True, append_images=others, duration=times, loop=0, optimize=True)
    print(f"{path}: {len(times)} pictures of {first.width} x {first.height}, {path.stat().st_size / 1024:.0f} KB")


def _touch(mask: Bools) -> bool:
    """Tell whether a graph (N, n) has an edge between two bodies."""
    n = mask.shape[1]
    return bool((mask[:n] & ~np.eye(n, dtype=bool)).any())


def _palette(pictures: list[Image.Image]) -> Image.Image:
    """Return the colours that a film uses most; pale surfaces stay as they are, and edges are near enough."""
    used: Counter[tuple[int, ...]] = Counter()
    for picture in pictures:
        used.update({colour: count for count, colour in picture.getcolors(picture.width * picture.height)})
    palette = Image.new("P", (1, 1))
    palette.putpalette([value for colour, _ in used.most_common(COLOURS) for value in colour])
    return palette


if __name__ == "__main__":
    save("sprites.gif", play("place-4", place_policy(Sprites(), Place(4)), seed=2, length=80), milliseconds=120)
    save("pong.gif", play("pong", pong_policy, seed=840, length=150), milliseconds=50)
