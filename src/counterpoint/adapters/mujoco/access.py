"""The way to the simulator inside an environment: a small table of the paths that are in use.

Whoever writes an environment of their own needs three attributes: ``model`` and ``data``, and a method ``_get_obs()``
that returns what a step would show now.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import mujoco


@dataclass(frozen=True, eq=False)
class Access:
    """The simulator of an environment."""

    model: Any  # mujoco.MjModel
    data: Any  # mujoco.MjData
    observe: Callable[[], Any]  # what the environment would show now
    remember: Callable[[], None] | None = None  # what to do after a state was put in, if a step uses the last one shown

    def refresh(self) -> None:
        """Compute everything that follows from positions and velocities, so that nothing is one substep old."""
        mujoco.mj_forward(self.model, self.data)


def _plain(inner: Any) -> Access:
    return Access(inner.model, inner.data, inner._get_obs)


def _kitchen(inner: Any) -> Access:
    robot = inner.robot_env

    def remember() -> None:  # positions that the next step starts from; to show all would do the same, and take long
        robot._last_robot_qpos = robot.data.qpos[: len(robot._last_robot_qpos)].copy()

    return Access(robot.model, robot.data, lambda: inner._get_obs(robot._get_obs()), remember)


def _dm_control(inner: Any) -> Access:
    suite = getattr(inner, "_env", inner)
    physics, task = suite.physics, suite.task
    return Access(physics.model.ptr, physics.data.ptr, lambda: task.get_observation(physics))


def _robosuite(inner: Any) -> Access:
    sim = inner.sim
    return Access(sim.model._model, sim.data._data, lambda: inner._get_observations(force_update=True))


ROUTES: dict[str, Callable[[Any], Access]] = {
    "robot_env.model, robot_env.data, _get_obs(robot_env._get_obs())": _kitchen,
    "model, data, _get_obs()": _plain,
    "physics.model.ptr, physics.data.ptr, task.get_observation(physics)": _dm_control,
    "sim.model._model, sim.data._data, _get_observations()": _robosuite,
}


def access(env: Any) -> Access:
    """Find the simulator of an environment.

    Raises:
        TypeError: if it has none, or none that the table knows.
    """
    if not isinstance(env, gymnasium.Env):
        raise TypeError(f"env: expected a Gymnasium environment, got {type(env).__name__}.")
    inner = env.unwrapped
    for route in ROUTES.values():
        try:
            found = route(inner)
        except AttributeError:
            continue
        if isinstance(found.model, mujoco.MjModel) and isinstance(found.data, mujoco.MjData):
            return Access(found.model, found.data, _through_wrappers(env, found.observe), found.remember)
    raise TypeError(
        f"env: {type(inner).__name__} has no MuJoCo simulator that can be found. The paths tried are "
        f"{'; '.join(ROUTES)}. Give your environment the attributes model and data, and a method _get_obs()."
    )


def _through_wrappers(env: Any, observe: Callable[[], Any]) -> Callable[[], Any]:
    """Pass what the inner environment shows through the wrappers that change observations."""
    layers: list[Callable[[Any], Any]] = []
    inner = env.unwrapped
    while env is not inner and hasattr(env, "env"):
        if isinstance(env, gymnasium.ObservationWrapper):
            layers.append(env.observation)
        elif hasattr(env, "_flatten_obs"):  # robosuite's wrapper, which is none of Gymnasium's
            layers.append(env._flatten_obs if env.flatten_obs else env._filter_obs)
        env = env.env

    def shown() -> Any:
        seen = observe()
        for layer in reversed(layers):
            seen = layer(seen)
        return seen

    return shown if layers else observe
