"""Make the picture of a swap for the documentation: ``python docs/make_picture.py``.

Two recorded transitions of bouncing sprites and the third one made of them, each drawn with its local causal graph.
Chance is seeded: the same versions make the same file.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np

from counterpoint import Augmenter, Counterfactuals, Transitions
from counterpoint.worlds import Place, Sprites, collect, uniform_policy
from counterpoint.worlds.draw import draw_sprites

mpl.use("Agg")
import matplotlib.pyplot as plt

PATH = Path(__file__).parent / "images" / "swap.png"
WORLD = Sprites(noise_std=0.0)


def example() -> tuple[Transitions, Counterfactuals, int]:
    """Return data, counterfactuals, and one in which two touching sprites were swapped together."""
    data = collect(WORLD, uniform_policy(WORLD), 2000, np.random.default_rng(0))
    made = Augmenter(WORLD.factors, WORLD.mask, Place(4)).fill(data, 2000, rng=np.random.default_rng(1))
    touching = WORLD.mask(made.transitions.state, made.transitions.action)[:, :4].sum(axis=(1, 2)) > WORLD.n
    together = made.swapped[:, : WORLD.n].sum(axis=1) == 2
    return data, made, int(np.flatnonzero(touching & together)[0])


def main() -> None:
    """Draw the three transitions side by side."""
    data, made, row = example()
    base, donor = data[made.base[row]], data[made.donor[row]]
    figure, panels = plt.subplots(1, 3, figsize=(10.5, 4.0), layout="constrained")
    names = [name for name, swapped in zip(WORLD.factors.names, made.swapped[row], strict=True) if swapped]
    titles = ("recorded: base", "recorded: donor", "never happened, and true")
    below = ("keeps the rest", f"gives {', '.join(names)}", "each factor bit for bit from one parent")
    for panel, part, title, words in zip(panels, (base, donor, made.transitions[row]), titles, below, strict=True):
        mask = WORLD.mask(part.state, part.action)[0]
        panel.imshow(draw_sprites(part.state[0], action=part.action[0], mask=mask, size=320))
        panel.set(title=title, xlabel=words, xticks=[], yticks=[])
    figure.text(0.335, 0.52, "+", fontsize=26, ha="center")
    figure.text(0.668, 0.52, "=", fontsize=26, ha="center")
    figure.savefig(PATH, dpi=100)
    print(f"{PATH}: {PATH.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
