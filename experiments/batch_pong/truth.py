"""What the world says of rows, whoever made them."""

import numpy as np

from counterpoint import Transitions
from counterpoint.checks import audit
from counterpoint.worlds import Pong
from counterpoint.worlds.pong_physics import LIMIT

AIM = 0.9  # metres; the opponent's hidden aim lies within ± this
NEAR = 0.1  # of a usual change: a row so close to the world's answer counts as near
SAME = 1e-6  # what the world gives is as stored but for rounding
OPPONENT = ((4, 6), (5, 7))  # columns of the opponent by axis: place and velocity
OFFSETS = (-2.0, -0.04, -0.03, -0.02, -0.015, -0.01, -0.005, 0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 2.0)  # metres


def with_best_aim(made: Transitions, world: Pong) -> Transitions:
    """Give rows that have no noise the aim of the opponent that explains them best: the most lenient reading.

    A model knows nothing of the aim that the opponent has in a game. What it lets the opponent do is called right if
    there is any aim with which the world would do it.
    """
    inside = made.replace(state=within_reach(made.state), action=made.action.clip(-1.0, 1.0))
    place = inside.state[:, 4:6] * LIMIT[1]
    best = np.zeros_like(place)
    least = np.full(place.shape, np.inf)
    for offset in OFFSETS:
        aim = np.clip(place + offset, -AIM, AIM).astype(made.state.dtype)
        off = np.abs(world.step(inside.state, inside.action, aim) - made.next_state)
        for axis, columns in enumerate(OPPONENT):
            error = off[:, columns].sum(axis=1)
            better = error < least[:, axis]
            best[better, axis] = aim[better, axis]
            least[better, axis] = error[better]
    return made.replace(noise=best.astype(made.state.dtype))


def within_reach(state: np.ndarray) -> np.ndarray:
    """Return states that the world accepts: positions beyond a joint's limit are moved to it."""
    bodies = state.reshape(-1, 3, 4).copy()
    bodies[:, :, :2] = bodies[:, :, :2].clip(-1.0, 1.0)
    return bodies.reshape(state.shape)


def judged(made: Transitions, world: Pong, usual: np.ndarray) -> dict[str, float | None]:
    """Return figures of rows with their noise.

    ``confirmed`` is the share that the world gives bit for bit. ``distance`` is the median of the largest difference in
    any column, in usual changes of that column, ``near`` the share within a tenth of one. ``reward_right`` is the share
    whose reward is the true one of its states. ``touched`` is the share in which the agent's paddle touches the ball,
    and ``touched_right`` how much of that the world gives, to 1e-6; None if there is nothing.

    Args:
        made: the rows, with noise.
        world: which is asked.
        usual: (S,) the standard deviation of the change of each column in the real rows.
    """
    inside = made.replace(state=within_reach(made.state), action=made.action.clip(-1.0, 1.0))
    apart = np.abs(world.step(inside.state, inside.action, inside.noise).astype(np.float64) - made.next_state)
    distance = (apart / usual).max(axis=1)
    right = world.reward(made.state, made.action, made.next_state) == made.reward
    agent, ball = (list(world.factors.state).index(name) for name in ("agent", "ball"))
    touched = world.mask(inside.state, inside.action)[:, agent, ball]
    return {
        "confirmed": audit(inside, world.step, atol=0.0).confirmed,
        "distance": float(np.median(distance)),
        "near": float((distance <= NEAR).mean()),
        "reward_right": float(right.mean()),
        "touched": float(touched.mean()),
        "touched_right": float((apart[touched] < SAME).all(axis=1).mean()) if touched.any() else None,
    }
