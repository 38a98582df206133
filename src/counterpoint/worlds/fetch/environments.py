"""FetchPush without entangled columns, and Slide2, as Gymnasium goal environments."""

from typing import Any

import mujoco
import numpy as np
from gymnasium.utils.ezpickle import EzPickle
from gymnasium_robotics.envs.fetch import MujocoFetchEnv
from gymnasium_robotics.envs.fetch.push import MujocoFetchPushEnv
from gymnasium_robotics.utils import rotations

from counterpoint.core.arrays import Array, Floats
from counterpoint.worlds.fetch.pictures import Pictures
from counterpoint.worlds.fetch.slide_scene import (
    CENTRE,
    HEIGHT,
    PUCK_HALF_HEIGHT,
    PUCK_SITE,
    ROBOT,
    SLIPPERY,
    slide_scene,
)
from counterpoint.worlds.fetch.tasks import PUSH, SLIDE2, FetchTask, sparse_reward

RESTING = HEIGHT + PUCK_HALF_HEIGHT + PUCK_SITE  # height of a puck's observed point while it lies on the table
START_RANGE, GOAL_RANGE, APART = 0.15, 0.30, 0.08  # metres


class FetchPushDisentangled(MujocoFetchPushEnv):  # type: ignore[misc]
    """FetchPush (version 4) with an observation in which every column belongs to gripper or object alone.

    22 columns, as in ``PUSH``: the position of the object relative to the gripper is left out, and the object's
    velocity is absolute.

    Args:
        relative_velocity: subtract the gripper's velocity from the object's, as the original environment does and
            the paper's did. A swap then makes velocities that no simulator would show.
        **settings: of ``MujocoFetchPushEnv``, such as ``render_mode``.
    """

    task: FetchTask = PUSH

    def __init__(self, *, relative_velocity: bool = False, **settings: Any) -> None:
        self.relative_velocity = relative_velocity
        super().__init__(**settings)
        EzPickle.__init__(self, relative_velocity=relative_velocity, **settings)
        self.pictures = Pictures(self)

    def _get_obs(self) -> dict[str, Floats]:
        gripper = _gripper(self)
        thing = _thing(self, "object0")
        if self.relative_velocity:
            thing[6:9] -= gripper[5:8]
        return _shown([gripper, thing], thing[:3], self.goal)

    def render(self) -> Array | None:
        """Return a picture, (H, W, 3) uint8, in mode ``rgb_array``."""
        return self.pictures.render(super().render)


class Slide2(MujocoFetchEnv, EzPickle):  # type: ignore[misc]
    """Slide two pucks onto their goals, on a slippery table with rails (paper, section 5). 34 columns and 6 of goals.

    Args:
        distance_threshold: metres within which both pucks must lie: 0.05 to train, and 0.075 to test as in the paper.
        friction: of pucks and table, 0.03 in the paper; where it is larger, a puck stays where it was pushed.
        settled: the number of a puck that lies on its goal at the start, if any; then the other is to be moved.
        **settings: of ``MujocoRobotEnv``, such as ``render_mode``.
    """

    task: FetchTask = SLIDE2

    def __init__(
        self,
        *,
        distance_threshold: float = SLIDE2.threshold,
        friction: float = SLIPPERY,
        settled: int | None = None,
        **settings: Any,
    ) -> None:
        if not distance_threshold > 0:
            raise ValueError(f"distance_threshold: expected a positive distance in metres, got {distance_threshold!r}.")
        if not 0 <= friction < np.inf:
            raise ValueError(f"friction: expected a coefficient that is not negative, got {friction!r}.")
        if settled not in (None, 0, 1):
            raise ValueError(f"settled: expected the number of a puck, 0 or 1, or None, got {settled!r}.")
        self.friction, self.settled = friction, settled
        super().__init__(
            model_path=str(ROBOT),
            has_object=True,
            block_gripper=True,
            n_substeps=20,
            gripper_extra_height=0.0,
            target_in_the_air=False,
            target_offset=0.0,
            obj_range=START_RANGE,
            target_range=GOAL_RANGE,
            distance_threshold=distance_threshold,
            initial_qpos={"robot0:slide0": 0.05, "robot0:slide1": 0.48, "robot0:slide2": 0.0},
            reward_type="sparse",
            **settings,
        )
        own = {"distance_threshold": distance_threshold, "friction": friction, "settled": settled}
        EzPickle.__init__(self, **own, **settings)
        self.pictures = Pictures(self)

    def compute_reward(self, achieved_goal: Floats, desired_goal: Floats, info: Any) -> Any:  # noqa: ARG002
        """Return 0 where both pucks are within the threshold, else -1; for one pair of goals or a batch of them."""
        return sparse_reward(achieved_goal, desired_goal, self.distance_threshold)

    def render(self) -> Array | None:
        """Return a picture, (H, W, 3) uint8, in mode ``rgb_array``."""
        return self.pictures.render(super().render)

    def _initialize_simulation(self) -> None:
        self.model = slide_scene(self.friction)
        self.data = mujoco.MjData(self.model)
        self._model_names = self._utils.MujocoModelNames(self.model)
        self.model.vis.global_.offwidth, self.model.vis.global_.offheight = self.width, self.height
        self._env_setup(initial_qpos=self.initial_qpos)
        self.initial_time = self.data.time
        self.initial_qpos: Any = self.data.qpos.copy()
        self.initial_qvel: Any = self.data.qvel.copy()

    def _env_setup(self, initial_qpos: dict[str, float]) -> None:
        for name, value in initial_qpos.items():
            self.data.joint(name).qpos[:] = value
        for index, side in enumerate((-0.2, 0.2)):  # out of the way of the gripper
            self._place(index, np.add(CENTRE, (0.0, side)))
        self._utils.reset_mocap_welds(self.model, self.data)
        mujoco.mj_forward(self.model, self.data)
        self.data.mocap_pos[0] = np.add(self.data.site("robot0:grip").xpos, (-0.548, 0.005, -0.431))
        self.data.mocap_quat[0] = (1.0, 0.0, 1.0, 0.0)
        for _ in range(10):
            mujoco.mj_step(self.model, self.data, nstep=self.n_substeps)
        self.initial_gripper_xpos = self.data.site("robot0:grip").xpos.copy()
        self.height_offset = RESTING

    def _reset_sim(self) -> bool:
        mujoco.mj_resetData(self.model, self.data)
        self.data.time = self.initial_time
        self.data.qpos[:], self.data.qvel[:] = self.initial_qpos, self.initial_qvel
        for index, place in enumerate(self._places(START_RANGE, [self.initial_gripper_xpos[:2]])):
            self._place(index, place)
        mujoco.mj_forward(self.model, self.data)
        return True

    def _sample_goal(self) -> Floats:
        if self.settled is None:
            places = self._places(GOAL_RANGE, [])
        else:
            here = self.data.site(f"object{self.settled}").xpos[:2].copy()
            places = self._places(GOAL_RANGE, [here])
            places[self.settled] = here
        return np.concatenate([[*place, RESTING] for place in places])

    def _is_success(self, achieved_goal: Floats, desired_goal: Floats) -> Any:
        return np.float32(sparse_reward(achieved_goal, desired_goal, self.distance_threshold) + 1)

    def _places(self, reach: float, taken: list[Floats]) -> list[Floats]:
        """Draw a place for each puck around the gripper's start, none too near to another or to those taken."""
        places: list[Floats] = []
        while len(places) < len(self.task.objects):
            place = self.initial_gripper_xpos[:2] + self.np_random.uniform(-reach, reach, size=2)
            if all(np.linalg.norm(place - other) >= APART for other in (*taken, *places)):
                places.append(place)
        return places

    def _place(self, index: int, place: Floats) -> None:
        joint = self.data.joint(f"object{index}:joint")
        joint.qpos[:] = [*place, HEIGHT + PUCK_HALF_HEIGHT, 1.0, 0.0, 0.0, 0.0]
        joint.qvel[:] = 0.0

    def _get_obs(self) -> dict[str, Floats]:
        things = [_thing(self, f"object{index}") for index in range(len(self.task.objects))]
        for thing in things:
            thing[2] = max(thing[2], RESTING)
        return _shown([_gripper(self), *things], np.concatenate([thing[:3] for thing in things]), self.goal)

    def _render_callback(self) -> None:
        for index in range(len(self.task.objects)):
            self.model.site(f"target{index}").pos[:] = self.goal[3 * index : 3 * index + 3]
        mujoco.mj_forward(self.model, self.data)


def _shown(parts: list[Floats], achieved: Floats, desired: Floats) -> dict[str, Floats]:
    return {
        "observation": np.concatenate(parts),
        "achieved_goal": np.array(achieved),
        "desired_goal": np.array(desired),
    }


def _gripper(env: Any) -> Floats:
    """Return position, fingers, velocity and finger velocities of the gripper, (10,)."""
    fingers = [env.data.joint(f"robot0:{side}_gripper_finger_joint") for side in ("r", "l")]
    place = env.data.site("robot0:grip").xpos
    velocity = env._utils.get_site_xvelp(env.model, env.data, "robot0:grip") * env.dt
    return np.concatenate(
        [place, *(finger.qpos for finger in fingers), velocity, *(finger.qvel * env.dt for finger in fingers)]
    )


def _thing(env: Any, site: str) -> Floats:
    """Return position, Euler angles, velocity and angular velocity of an object, (12,)."""
    found = env.data.site(site)
    velocity = env._utils.get_site_xvelp(env.model, env.data, site) * env.dt
    spin = env._utils.get_site_xvelr(env.model, env.data, site) * env.dt
    return np.concatenate([found.xpos, rotations.mat2euler(found.xmat.reshape(3, 3)), velocity, spin])
