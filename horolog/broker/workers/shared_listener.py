"""A listener of one worker among several: on the port that all of them share, and on one of its own, which is advertised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from horolog.broker.network.listener import Listener

if TYPE_CHECKING:
    from horolog.base.clock import Clock
    from horolog.broker.cluster.worker_context import WorkerContext
    from horolog.broker.config.listeners import Address
    from horolog.broker.network.conversation import HandshakeFactory
    from horolog.broker.network.dispatch import Dispatcher
    from horolog.broker.network.limits import ConnectionLimits
    from horolog.broker.security.tls_wire import TlsDoor


class SharedListener(Listener):
    """`port` is the worker's own port. Connections of both ports are counted together."""

    def __init__(
        self,
        address: Address,
        worker: WorkerContext,
        dispatcher: Dispatcher,
        clock: Clock,
        limits: ConnectionLimits,
        *,
        new_handshake: HandshakeFactory | None = None,
        door: TlsDoor | None = None,
    ) -> None:
        own_port = worker.own_ports[address.name]
        super().__init__(
            address.name, address.host, own_port, dispatcher, clock, limits, new_handshake=new_handshake, door=door
        )
        self._shared_port = worker.shared_ports[address.name]

    async def _bind(self) -> None:
        """The supervisor has reserved both ports, and shares them with its workers only."""
        for port in {self.port, self._shared_port}:
            self._servers.append(await self._accept_at(port, shares_port=True))
