"""Two worlds with a real robot, for MuJoCo; importing this module registers them with Gymnasium.

``counterpoint/FetchPushDisentangled-v0`` and ``counterpoint/Slide2-v0`` are goal environments: observations are dicts
with ``achieved_goal`` and ``desired_goal``, and ``compute_reward`` takes batches. ``PUSH`` and ``SLIDE2`` say how their
columns split into factors, and hold the paper's mask ready made.

Example:
    >>> import gymnasium
    >>> from counterpoint.worlds.fetch import SLIDE2
    >>> env = gymnasium.make("counterpoint/Slide2-v0")
    >>> shown, _ = env.reset(seed=0)
    >>> state = SLIDE2.goals.flatten({key: value[None] for key, value in shown.items()})
    >>> state.shape, SLIDE2.near()(state, env.action_space.sample()[None]).shape
    ((1, 40), (1, 5, 4))
"""

from contextlib import redirect_stderr
from io import StringIO

try:
    import gymnasium
    import mujoco  # noqa: F401

    with redirect_stderr(StringIO()):  # a notice about Adroit's hands, which are none of ours
        import gymnasium_robotics
except ImportError as error:
    raise ImportError("The Fetch worlds need MuJoCo: pip install counterpoint-rl[mujoco]") from error

from counterpoint.worlds.fetch.tasks import NEAR, PUSH, REACH, SLIDE2, SLIDE2_TEST_THRESHOLD, TABLE, Fallen, FetchTask

__all__ = ["IDS", "NEAR", "PUSH", "REACH", "SLIDE2", "SLIDE2_TEST_THRESHOLD", "TABLE", "Fallen", "FetchTask"]

IDS = {"counterpoint/FetchPushDisentangled-v0": 50, "counterpoint/Slide2-v0": 75}  # steps in an episode


def _register() -> None:
    gymnasium.register_envs(gymnasium_robotics)
    for identifier, steps in IDS.items():
        name = identifier.removeprefix("counterpoint/").removesuffix("-v0")
        if identifier not in gymnasium.registry:
            place = f"counterpoint.worlds.fetch.environments:{name}"
            gymnasium.register(identifier, entry_point=place, max_episode_steps=steps)


_register()
