"""Random worlds with exact masks, built from parts and influences."""

from counterpoint.worlds.zoo.kinds import DEVELOPMENT, FOREIGN, HELD_OUT, KINDS, NOVEL, STRANGE
from counterpoint.worlds.zoo.world import Zoo

__all__ = ["DEVELOPMENT", "FOREIGN", "HELD_OUT", "KINDS", "NOVEL", "STRANGE", "Zoo"]
