"""The role of one worker among several: a part of the folders, of the cluster and of the limits, its own ports, and its peers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.peers import Peers, SocketPeers, socket_path
from horolog.broker.cluster.placement import Members, Placement
from horolog.broker.cluster.worker_company import Workers
from horolog.broker.cluster.worker_folder_checkpoints import share_of
from horolog.broker.network.peer_listener import PeerListener
from horolog.broker.server.role import Role
from horolog.broker.workers.divided_settings import divided
from horolog.broker.workers.shared_listener import SharedListener

if TYPE_CHECKING:
    from horolog.base.clock import Clock
    from horolog.broker.cluster.link import Link
    from horolog.broker.cluster.placement import Endpoints
    from horolog.broker.cluster.worker_context import WorkerContext
    from horolog.broker.config.listeners import Address
    from horolog.broker.config.settings import Settings
    from horolog.broker.log.manager import LogManager, Share
    from horolog.broker.network.conversation import HandshakeFactory
    from horolog.broker.network.dispatch import Dispatcher
    from horolog.broker.network.limits import ConnectionLimits
    from horolog.broker.network.listener import Listener
    from horolog.broker.observability.http import MetricsServer
    from horolog.broker.on_record.cluster_file import ClusterFile
    from horolog.broker.security.tls_wire import TlsDoor


class WorkerRole(Role):
    """The parts of `Role` for a worker."""

    def __init__(
        self, context: WorkerContext, link: Link, loop: asyncio.AbstractEventLoop, peers: Peers | None = None
    ) -> None:
        """With `peers` given, other workers do not connect over sockets."""
        self._context = context
        self._link = link
        self._loop = loop
        self._is_asked_by_socket = peers is None
        self._peers = SocketPeers(context.sockets, loop) if peers is None else peers

    def __repr__(self) -> str:
        return f"<WorkerRole of {self._context}>"

    def share(self, settings: Settings) -> Share:  # noqa: ARG002
        context = self._context
        return share_of(context.node, context.nodes[0], is_first=context.is_first)

    def part_of(self, settings: Settings) -> Settings:
        """Settings with this worker's part of what all workers share."""
        return divided(settings, len(self._context.nodes))

    @property
    def labels(self) -> Mapping[str, object]:
        return self._context.labels

    @property
    def parts(self) -> int:
        return len(self._context.nodes)

    @property
    def ports(self) -> Mapping[str, Mapping[int, int]]:
        """Never the shared port, where any worker answers."""
        return self._context.ports

    def cluster(
        self, settings: Settings, logs: LogManager, file: ClusterFile, endpoints: Endpoints
    ) -> tuple[Cluster, Placement]:
        context, link = self._context, self._link
        cluster = Cluster(logs.cluster_id, settings, logs, file, Workers(context, link, logs, file))
        placement = Placement(cluster, endpoints, Members(context.node, context.nodes, link.live | {context.node}))
        link.on_live_changed = placement.live_are
        return cluster, placement

    @property
    def peers(self) -> Peers:
        return self._peers

    def listener(
        self,
        address: Address,
        dispatcher: Dispatcher,
        clock: Clock,
        limits: ConnectionLimits,
        new_handshake: HandshakeFactory | None,
        door: TlsDoor | None,
    ) -> Listener:
        return SharedListener(address, self._context, dispatcher, clock, limits, new_handshake=new_handshake, door=door)

    def peer_listeners(self, dispatcher: Dispatcher, clock: Clock, limits: ConnectionLimits) -> Sequence[Listener]:
        if not self._is_asked_by_socket:
            return ()
        path = socket_path(self._context.sockets, self._context.node)
        return (PeerListener(path, dispatcher, clock, limits),)

    async def begin_http(self, server: MetricsServer, address: tuple[str, int]) -> None:  # noqa: ARG002
        """The supervisor answers at the address, and asks each worker."""
        await server.start_unix(self._context.http_socket)
