"""The broker as metrics and health checks see it."""

from typing import Protocol

from horolog.broker.base.backup_figures import BackupFigures
from horolog.broker.base.store_figures import StoreFigures
from horolog.broker.handlers.context import BrokerView
from horolog.broker.network.limits import ConnectionLimits
from horolog.broker.network.listener import Listener
from horolog.broker.observability.phase import Phase
from horolog.broker.security.tls_listeners import TlsListeners


class Watched(BrokerView, Protocol):
    """`broker.server.app.Broker`, seen from here."""

    phase: Phase
    listeners: list[Listener]
    limits: ConnectionLimits
    tls: TlsListeners
    started_ms: int

    def backup_figures(self) -> BackupFigures | None:
        """What the broker shows of its backup; None without one."""
        ...

    def store_figures(self) -> StoreFigures | None:
        """What the broker shows of its store; None without one."""
        ...
