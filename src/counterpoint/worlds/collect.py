"""Recording transitions in a world, many environments at a time."""

from dataclasses import dataclass

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, read_only
from counterpoint.core.protocols import RewardFn, TerminalFn, call_reward, call_terminal
from counterpoint.core.require import require_counts, require_share
from counterpoint.core.transitions import Transitions
from counterpoint.worlds.world import ACTION_LIMIT, Policy, World, check_draw


@dataclass(frozen=True)
class _Schedule:
    """When episodes end, and how many run at once."""

    episode_length: int
    reset_probability: float
    environments: int
    points: int | None

    def __post_init__(self) -> None:
        require_counts(self, "episode_length", "environments", *([] if self.points is None else ["points"]))
        require_share("reset_probability", self.reset_probability)


def uniform_policy(world: World) -> Policy:
    """Return the policy that draws actions uniformly from [-1, 1], (B, A), whatever the state."""
    width = world.factors.action_width

    def policy(state: Floats, rng: np.random.Generator) -> Floats:
        return rng.uniform(-ACTION_LIMIT, ACTION_LIMIT, (len(state), width)).astype(state.dtype)

    return policy


def collect(  # noqa: PLR0913
    world: World,
    policy: Policy,
    size: int,
    rng: np.random.Generator,
    *,
    reward_fn: RewardFn | None = None,
    terminal_fn: TerminalFn | None = None,
    episode_length: int = 5000,
    reset_probability: float = 0.05,
    environments: int = 64,
    points: int | None = None,
) -> Transitions:
    """Record exactly ``size`` transitions of ``policy`` in ``world``, with episode, step and noise.

    Environments run side by side, all advanced by one call of policy and world per time step. An
    episode ends where ``terminal_fn`` says so (``terminated``), or is cut off: after
    ``episode_length`` steps, by chance, or because enough rows are recorded. Rows are sorted: an
    episode's rows follow each other in time, episodes are numbered 0, 1, 2 ... in row order. Same
    arguments and same state of ``rng``, same bits.

    Args:
        world: where to act. Worlds with ``noise_per_episode`` keep their noise until the episode ends;
            one with a method ``carry(state, action, noise, fresh) -> (B, U)`` makes part of the next noise
            itself, such as hidden velocities.
        policy: ``(state (B, S), rng) -> action (B, A)``.
        size: number of rows, 1 or more.
        rng: drives resets, noise, policy and random cut-offs.
        reward_fn: ``(state, action, next_state) -> (B,)``; without it rewards are 0.
        terminal_fn: ``(state, action, next_state) -> (B,) bool``; without it nothing terminates.
        episode_length: steps after which an episode is cut off; 1 makes every state a fresh one. Its default and
            that of ``reset_probability`` are the paper's for mask data; the paper's agents use 50 and 0.
        reset_probability: chance that an episode is cut off after any step.
        environments: how many episodes run side by side.
        points: number of steps with a reward after which an episode is cut off, as in Pong.

    Example:
        >>> import numpy as np
        >>> from counterpoint.worlds.sprites import Sprites
        >>> world = Sprites()
        >>> collect(world, uniform_policy(world), 1000, np.random.default_rng(0), episode_length=50)[:3].step
        array([0, 1, 2])
    """
    check_draw(size, rng)
    if size < 1:
        raise ValueError(f"size: expected at least one row, got {size}.")
    schedule = _Schedule(episode_length, reset_probability, environments, points)
    count = min(schedule.environments, size)
    table: dict[str, list[Array]] = {}
    state, noise = world.reset(count, rng), world.noise(count, rng)
    age, scored = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for _ in range(-(-size // count)):
        action = np.array(policy(read_only(state), rng))
        row = Transitions.trusted(
            state=state, action=action, next_state=world.step(state, action, noise), noise=noise, step=age
        )
        terminated = np.zeros(count, bool) if terminal_fn is None else call_terminal(terminal_fn, row)
        for name, column in row.replace(terminated=terminated).columns():
            table.setdefault(name, []).append(column)
        over = terminated | (age + 1 >= schedule.episode_length) | (rng.random(count) < schedule.reset_probability)
        if schedule.points is not None:
            scored += call_reward(reward_fn, row) != 0 if reward_fn is not None else False
            over |= scored >= schedule.points
            scored[over] = 0
        noise = _next_noise(world, row, noise, over, world.noise(count, rng))
        age = np.where(over, 0, age + 1)
        state = row.next_state.copy()
        state[over] = world.reset(int(over.sum()), rng)
    columns = {name: _by_environment(parts)[:size] for name, parts in table.items()}
    made = Transitions.trusted(**columns, episode=np.cumsum(columns["step"] == 0) - 1)
    reward = np.zeros(size, state.dtype) if reward_fn is None else call_reward(reward_fn, made)
    return Transitions(**dict(made.replace(reward=reward).columns()))


def _next_noise(world: World, row: Transitions, noise: Floats, over: Bools, fresh: Floats) -> Floats:
    """Return the noise of the next step: fresh where an episode is over, otherwise what the world carries on."""
    carry = getattr(world, "carry", None)
    if carry is not None:
        fresh = np.where(over[:, None], fresh, carry(row.state, row.action, noise, fresh))
    return np.where(over[:, None], fresh, noise) if world.noise_per_episode else fresh


def _by_environment(parts: list[Array]) -> Array:
    """Join one array per time step, (count, ...), so that the rows of an environment follow each other."""
    stacked = np.stack(parts, axis=1)
    environments, times, *width = stacked.shape
    return stacked.reshape(environments * times, *width)
