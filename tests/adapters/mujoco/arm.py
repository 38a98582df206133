"""A robot arm with two cubes, as others build them: position servos, elliptic friction, an implicit integrator."""

import gymnasium
import mujoco
import numpy as np

LINKS = (("base", (0, 0, 1), 0.1), ("shoulder", (0, 1, 0), 0.25), ("elbow", (0, 1, 0), 0.22), ("wrist", (0, 1, 0), 0.1))
HOME = (0.0, 1.1, 1.3, 0.74)
REACH = (0.6, 0.2, 0.2, 0.2)  # how far the servos may go from there


def arm_model(integrator="implicitfast", **options):
    """Return an arm of four joints with two fingers, beside a table with two cubes."""
    spec = mujoco.MjSpec()
    spec.option.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.impratio = 10
    for name, value in options.items():
        setattr(spec.option, name, value)
    world = spec.worldbody
    world.add_geom(name="table", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[1, 1, 0.1])
    body, at = world, [0, 0, 0.1]
    for name, axis, length in LINKS:
        body = body.add_body(name=name, pos=at)
        body.add_joint(name=name, type=mujoco.mjtJoint.mjJNT_HINGE, axis=axis, damping=2, armature=0.05)
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_CAPSULE, fromto=[0, 0, 0, 0, 0, length - 0.03], size=[0.02], mass=0.5)
        spec.add_actuator(**_servo(name, 120, 12))
        at = [0, 0, length]
    for side, way in (("left", 1), ("right", -1)):
        finger = body.add_body(name=side, pos=[0, 0.03 * way, 0.1])
        finger.add_joint(name=side, type=mujoco.mjtJoint.mjJNT_SLIDE, axis=[0, way, 0], damping=5, range=[0, 0.03])
        finger.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.01, 0.005, 0.03], mass=0.05, friction=[1, 0.05, 0.01])
        spec.add_actuator(**_servo(side, 200, 5))
    for index, y in enumerate((-0.08, 0.08)):
        cube = world.add_body(name=f"cube{index}", pos=[0.37, y, 0.025])
        cube.add_freejoint(name=f"cube{index}")
        cube.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.025] * 3, mass=0.1, condim=4, friction=[0.6, 0.01, 0.001])
    return spec.compile()


def _servo(joint, stiffness, damping):
    """Return what makes a position servo with damping, which implicit integrators take into their derivatives."""
    gain, bias = np.zeros(10), np.zeros(10)
    gain[0], bias[1], bias[2] = stiffness, -stiffness, -damping
    return {
        "name": joint,
        "target": joint,
        "trntype": mujoco.mjtTrn.mjTRN_JOINT,
        "biastype": mujoco.mjtBias.mjBIAS_AFFINE,
        "gainprm": gain,
        "biasprm": bias,
    }


class Arm(gymnasium.Env):
    """Moves the servos' targets; shows all positions and velocities. Nothing of it knows Counterpoint."""

    def __init__(self, integrator="implicitfast", **options):
        self.model = arm_model(integrator, **options)
        self.data = mujoco.MjData(self.model)
        self.clock = 0
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (5,), np.float64)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, self._get_obs().shape, np.float64)

    def _get_obs(self):
        return np.concatenate([self.data.qpos, self.data.qvel])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:4] = self.data.ctrl[:4] = HOME
        for index in range(2):
            place = self.data.joint(f"cube{index}").qpos
            place[:2] += self.np_random.uniform(-0.05, 0.05, 2)
            place[2] += self.np_random.uniform(0, 0.05)  # falls first
        self.clock = 0
        mujoco.mj_forward(self.model, self.data)
        return self._get_obs(), {}

    def step(self, action):
        self.data.ctrl[:4] += 0.1 * action[:4]
        self.data.ctrl[:4] = np.clip(self.data.ctrl[:4], np.subtract(HOME, REACH), np.add(HOME, REACH))
        self.data.ctrl[4:] = 0.015 * (action[4] + 1)
        mujoco.mj_step(self.model, self.data, nstep=10)
        self.clock += 1
        return self._get_obs(), 0.0, False, self.clock >= 40, {}
