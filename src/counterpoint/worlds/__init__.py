"""Testbeds whose dynamics, noise and local causal graphs are known exactly."""

from counterpoint.worlds.causal_model import as_scm
from counterpoint.worlds.collect import collect, uniform_policy
from counterpoint.worlds.place import Place, place_policy
from counterpoint.worlds.pong import Pong, pong_policy
from counterpoint.worlds.processes import NonstationaryMP, StationaryMP
from counterpoint.worlds.room import Room
from counterpoint.worlds.sprites import Sprites
from counterpoint.worlds.two_arms import TwoArms
from counterpoint.worlds.world import Policy, World, check_world
from counterpoint.worlds.zoo import Zoo

__all__ = [
    "NonstationaryMP",
    "Place",
    "Policy",
    "Pong",
    "Room",
    "Sprites",
    "StationaryMP",
    "TwoArms",
    "World",
    "Zoo",
    "as_scm",
    "check_world",
    "collect",
    "place_policy",
    "pong_policy",
    "uniform_policy",
]
