"""The scene of Slide2, built on the robot that comes with Gymnasium-Robotics.

Two pucks on a slippery square table with rails, in reach of the gripper. The numbers are those of the paper's scene.
One contact is left out: MuJoCo's planes are endless, so the table top would cut through the robot's base and press
against it in every step. The base is held by its joints anyway.
"""

from pathlib import Path
from typing import Any

import gymnasium_robotics
import mujoco

ROBOT = Path(gymnasium_robotics.__file__).parent / "envs" / "assets" / "fetch" / "slide.xml"
CENTRE, HEIGHT, HALF = (1.0, 0.75), 0.4, 0.35  # of the table top, metres
SLIPPERY = 0.03  # friction of pucks and table
SPIN_AND_ROLL = [0.0025, 0.0001]  # the other two coefficients of friction
RAILS = {  # centre and half sizes
    "rail0": ([0.66, 0.75, 0.45], [0.01, 0.35, 0.05]),
    "rail1": ([1.34, 0.75, 0.45], [0.01, 0.35, 0.05]),
    "rail2": ([1.0, 0.41, 0.45], [0.33, 0.01, 0.05]),
    "rail3": ([1.0, 1.09, 0.45], [0.33, 0.01, 0.05]),
}
PUCK_RADIUS, PUCK_HALF_HEIGHT, PUCK_MASS, PUCK_DAMPING = 0.025, 0.02, 5.0, 0.01
PUCK_SITE = 0.023  # the observed point, above the middle of the puck
COLOURS = ([0.2, 0.35, 0.9, 1.0], [0.9, 0.25, 0.2, 1.0])
GOAL_RADIUS = 0.075
FORWARD = 0.05  # the torso stands this much further forward than in the stock robot, metres
BEHIND_TABLE = ("base_link", "torso_lift_link", "torso_fixed_link", "estop_link", "laser_link")


def slide_scene(friction: float = SLIPPERY) -> Any:
    """Return the compiled model of Slide2 (a ``mujoco.MjModel``)."""
    spec = mujoco.MjSpec.from_file(str(ROBOT))
    for link in ("robot0:torso_lift_link", "robot0:torso_fixed_link"):
        spec.body(link).pos[0] += FORWARD
    _table(spec, friction)
    spec.delete(spec.body("object0"))
    spec.delete(spec.site("target0"))
    for index, colour in enumerate(COLOURS):
        _puck(spec, index, colour, friction)
    model = spec.compile()
    model.dof_damping[-6 * len(COLOURS) :] = PUCK_DAMPING  # set here: its form in a spec varies between versions
    return model


def _table(spec: Any, friction: float) -> None:
    """Replace the long table by a square one with rails."""
    table = spec.body("table0")
    table.pos = [*CENTRE, HEIGHT]
    (top,) = table.geoms
    top.type, top.size, top.friction = mujoco.mjtGeom.mjGEOM_PLANE, [HALF, HALF, 0.01], [friction, *SPIN_AND_ROLL]
    for link in BEHIND_TABLE:
        spec.add_exclude(bodyname1="table0", bodyname2=f"robot0:{link}")
    for name, (centre, half) in RAILS.items():
        rail = spec.worldbody.add_body(name=name, pos=centre)
        rail.add_geom(name=name, type=mujoco.mjtGeom.mjGEOM_BOX, size=half, rgba=[0, 0, 0, 0.3])


def _puck(spec: Any, index: int, colour: list[float], friction: float) -> None:
    """Add a puck, the site on its top that is observed, and the mark of its goal."""
    name = f"object{index}"
    puck = spec.worldbody.add_body(name=name, pos=[*CENTRE, HEIGHT + PUCK_HALF_HEIGHT])
    puck.add_freejoint(name=f"{name}:joint")
    puck.add_geom(
        name=name,
        type=mujoco.mjtGeom.mjGEOM_CYLINDER,
        size=[PUCK_RADIUS, PUCK_HALF_HEIGHT, 0],
        condim=3,
        friction=[friction, *SPIN_AND_ROLL],
        mass=PUCK_MASS,
        rgba=[0.2, 0.2, 0.2, 1.0],
    )
    cylinder = mujoco.mjtGeom.mjGEOM_CYLINDER
    puck.add_site(name=name, pos=[0, 0, PUCK_SITE], type=cylinder, size=[PUCK_RADIUS, 0.003, 0], rgba=colour)
    spec.worldbody.add_site(
        name=f"target{index}", pos=[*CENTRE, HEIGHT], size=[GOAL_RADIUS] * 3, rgba=[*colour[:3], 0.2]
    )
