"""Random worlds with exact masks, to develop methods on and to test them on strangers."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from counterpoint.core.arrays import Bools, Floats, Ints, listed
from counterpoint.core.factors import Factorization
from counterpoint.core.require import require_count
from counterpoint.worlds.world import Policy, check_draw, check_inputs, float_dtype
from counterpoint.worlds.zoo.draft import Blueprint
from counterpoint.worlds.zoo.kinds import FOREIGN, KINDS, NOVEL, STRANGE, draw
from counterpoint.worlds.zoo.scene import Change, Scene


@dataclass(frozen=True)
class Zoo:
    """A random world: agents, bodies and things, with one to three kinds of influence between them.

    Bodies move on the unit square. What they have and show differs from world to world: friction, walls,
    noise of several sizes and shapes, hidden velocities, columns that never change, flags of 0 and 1,
    positions relative to an agent (derived columns: see ``derive``), goals, types that are declared or
    not, and one to four action factors. The kinds of influence:

    ============  ==========================================================================
    push          an agent shoves what it touches, sometimes with its action in the same step
    elastic       bodies bounce off each other
    soft          a repulsion of finite range
    weak          the same, of the size of the noise
    drag          what is near a closed grip goes with it
    fan           wind on what is in a strip, while one column of the fan is high
    carrier       what is on a platform moves with it
    arm           a hand on an arm, which pushes only while the arm is stretched
    inelastic     bodies that touch go on together
    spring        a spring that comes off at a distance
    magnet        an attraction while a flag is set
    latch         what a grip has latched moves with it, however far away
    switch        a fan that blows only while a button elsewhere is pressed
    support       a block that lies on another does not fall
    delayed       a touch that shows only some steps later
    click         an action that names a point, and blows away what is near it
    tank          levels that even out while a valve is open; nothing is anywhere
    rope          a body is pulled while its rope is taut, which is far away and not near
    wake          what is close behind a moving body is drawn into its speed
    stir          a body that spins drags others sideways, either way round
    heat          the levels of bodies that touch even out
    bell          crossing a wire rings a bell that is nowhere
    shadow        light pushes what it falls on, unless a screen stands between
    herd          sheep run from the nearest of those that they see
    portal        what comes to a door goes on from another one
    conveyor      what lies on a belt is carried while the belt runs, either way
    turnstile     a gate holds up what goes through it the wrong way
    charger       the nearest robot at a charger fills its battery, the others wait
    catapult      what is within reach is thrown, in the one step in which it fires
    contagion     a flag spreads between cells that are near each other
    scanner       a reading tells how near the nearest thing in a beam is
    hinge         what touches a bar swings it, more so further out
    heavy         a box moves only while two or more are at it
    suction       what is below a cup goes with it, while an action asks for it and the pump has pressure
    queue         a cart stops behind the nearest in its lane and before a red light
    badge         a door drives back whoever has a badge of another colour than its own
    sweep         an arm that turns hits what is in the sector that it sweeps over in a step
    circuit       a motor turns faster while something is on each of two contacts
    budget        all machines are slower while together they want more power than there is
    pulley        a band over a peg pulls weakly while its two parts are together too long
    friction      a crate moves only if it is hit faster than a limit
    ============  ==========================================================================

    The first eight are ``DEVELOPMENT``, the next nine ``HELD_OUT``: develop on the former, report on the latter.
    The next eight are ``STRANGE``, written after the method, by somebody who had not read it, the next eight
    ``FOREIGN``, written later still in the same way, and the last eight ``NOVEL``, written after these. Worlds have
    them only if ``kinds`` names them.

    Hidden velocities are columns of the noise, owned by their factor, so that a step remains a function of
    state, action and noise; ``collect`` carries them on from step to step. No condition of an influence
    depends on noise, so the mask is the same with and without it (with hidden velocities, a touch counts
    as an edge even if the bodies part).

    Attributes:
        seed: which world.
        kinds: the kinds of influence that it is drawn from.
        dtype: dtype of states and noise. Rules are computed in float64.

    Example:
        >>> import numpy as np
        >>> world = Zoo(3, kinds=("drag",))
        >>> world.factors.names
        ('grip0', 'grip1', 'puck0', 'puck1', 'move0', 'move1')
        >>> from counterpoint.worlds import collect
        >>> data = collect(world, world.policy, 100, np.random.default_rng(0))
        >>> world.mask(data.state, data.action).shape
        (100, 6, 4)
    """

    seed: int
    kinds: tuple[str, ...] = KINDS
    dtype: Any = np.float32

    noise_per_episode: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", float_dtype(self.dtype))
        if isinstance(self.kinds, str):
            raise TypeError(f"kinds: expected names such as ('push', 'fan'), got the string {self.kinds!r}.")
        object.__setattr__(self, "kinds", tuple(self.kinds))
        known = (*KINDS, *STRANGE, *FOREIGN, *NOVEL)
        unknown = [kind for kind in self.kinds if kind not in known]
        if unknown or not self.kinds:
            raise ValueError(f"kinds: expected some of {listed(known, 40)}, got {listed(unknown) or 'none'}.")
        require_count("seed", self.seed, 0)

    @cached_property
    def blueprint(self) -> Blueprint:
        """What the world is made of."""
        return draw(int(self.seed), self.kinds)

    @property
    def drawn(self) -> tuple[str, ...]:
        """The kinds of influence in this world."""
        return self.blueprint.kinds

    @property
    def policy(self) -> Policy:
        """The policy that belongs to this world: random, skilful, or one that hardly ever touches anything."""
        return self.blueprint.behaviour

    @property
    def factors(self) -> Factorization:
        """How states, actions and noise split into factors."""
        return self.blueprint.observation.factors

    @property
    def noise_owner(self) -> Ints:
        """The factor that owns each noise column, (U,)."""
        return self.factors.noise_owner

    def derive(self, state: Floats) -> Floats:
        """Return the derived columns, (B, derived): positions relative to the first agent."""
        return self.blueprint.observation.derive(np.asarray(state))

    def reset(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw initial states, (B, S)."""
        check_draw(size, rng)
        empty = rng.uniform(-1.0, 1.0, (size, self.factors.state_width)).astype(self.dtype)
        return self.blueprint.observation.show(self._begin(size, rng), empty)

    def noise(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw noise and hidden fields, (B, U)."""
        check_draw(size, rng)
        observation = self.blueprint.observation
        noise = np.zeros((size, self.factors.noise_width), self.dtype)
        for name, part in zip(observation.names, observation.cast.parts, strict=True):
            columns = list(observation.noise_columns.get(name, ()))
            noise[:, columns[: len(part.noisy)]] = part.draw(size, rng)
        return observation.hide(self._begin(size, rng), noise)

    def step(self, state: Floats, action: Floats, noise: Floats | None = None) -> Floats:
        """Return the next states, (B, S), in the dtype of ``state``."""
        state, action, noise = check_inputs(state, action, noise, self.factors)
        scene, random = self.blueprint.observation.scene(state, action, noise)
        after = self.blueprint.observation.cast.advance(scene, self._change(scene), random)
        return self.blueprint.observation.show(after, state)

    def mask(self, state: Floats, action: Floats, noise: Floats | None = None) -> Bools:
        """Return the local causal graphs, (B, N, n)."""
        scene, _ = self.blueprint.observation.scene(*check_inputs(state, action, noise, self.factors))
        return self._change(scene).mask

    def carry(self, state: Floats, action: Floats, noise: Floats, fresh: Floats) -> Floats:
        """Return the noise of the next step, (B, U): fresh noise, with the hidden fields that a step leads to."""
        observation = self.blueprint.observation
        scene, random = observation.scene(*check_inputs(state, action, noise, self.factors))
        return observation.hide(observation.cast.advance(scene, self._change(scene), random), fresh)

    def _begin(self, size: int, rng: np.random.Generator) -> Floats:
        return np.stack([part.begin(size, rng) for part in self.blueprint.observation.cast.parts], axis=1)

    def _change(self, scene: Scene) -> Change:
        change = Change.none(len(scene.body), self.factors.n, self.factors.m)
        for node, actions in enumerate(self.blueprint.movers):
            change.mask[:, [self.factors.n + ~action for action in actions], node] = True
        for effect in self.blueprint.effects:
            effect(scene, change)
        return change
