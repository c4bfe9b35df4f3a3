"""The broker as metrics and health checks see it."""

from enum import Enum
from typing import Protocol

from horolog.broker.handlers.context import BrokerView
from horolog.broker.network.limits import ConnectionLimits
from horolog.broker.network.listener import Listener


class Phase(Enum):
    """The life of a broker."""

    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"


class Watched(BrokerView, Protocol):
    """`broker.app.Broker`, seen from here."""

    phase: Phase
    listeners: list[Listener]
    limits: ConnectionLimits
    started_ms: int
