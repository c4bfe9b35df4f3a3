"""A listener of one worker among several: on the port that all of them share, and on one of its own, which is advertised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from horolog.broker.network.acceptor import accept_at
from horolog.broker.network.listener import Listener

if TYPE_CHECKING:
    from horolog.base.clock import Clock
    from horolog.broker.cluster.worker_context import WorkerContext
    from horolog.broker.config.listeners import Address
    from horolog.broker.network.acceptor import Acceptor
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
        self._shared: Acceptor | None = None

    async def _bind(self) -> Acceptor:
        """The supervisor has reserved both ports, and shares them with its workers only."""
        own = await self._accept_at(self.port)
        if self._shared_port != self.port:
            self._shared = await self._accept_at(self._shared_port)
        return own

    async def _accept_at(self, port: int) -> Acceptor:
        return await accept_at(self._connect, self.host, port, self._limits.backlog, shares_port=True)

    async def stop_accepting(self) -> None:
        if self._shared is not None:
            self._shared.close()
            self._shared = None
        await super().stop_accepting()
