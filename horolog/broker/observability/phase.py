"""The phases in the life of a broker."""

from enum import Enum


class Phase(Enum):
    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"
