"""The process of one worker among several: a part of the folders, ports of its own and shared ones, and the others as its peers.

A worker over a store is a broker like any other of its cluster, `at_its_ports`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from horolog.broker.base.own_thread import OwnThread
from horolog.broker.cluster.peers import SocketPeers, socket_path
from horolog.broker.cluster.worker_folder_checkpoints import share_of
from horolog.broker.cluster.worker_membership import WorkerMembership
from horolog.broker.network.peer_listener import PeerListener
from horolog.broker.server.process import BrokerProcess
from horolog.broker.workers.shared_listener import SharedListener

if TYPE_CHECKING:
    from horolog.base.clock import Clock
    from horolog.broker.cluster.link import Link
    from horolog.broker.cluster.worker_context import WorkerContext
    from horolog.broker.config.listeners import Address
    from horolog.broker.network.conversation import HandshakeFactory
    from horolog.broker.network.dispatch import Dispatcher
    from horolog.broker.network.limits import ConnectionLimits
    from horolog.broker.network.listener import Listener
    from horolog.broker.observability.http import MetricsServer
    from horolog.broker.security.tls_wire import TlsDoor
    from horolog.broker.server.process import BeginHttp, NewListener


def of_worker(context: WorkerContext, link: Link, loop: asyncio.AbstractEventLoop) -> BrokerProcess:
    """Workers connect to each other over Unix sockets."""

    def new_peer_listeners(dispatcher: Dispatcher, clock: Clock, limits: ConnectionLimits) -> Sequence[Listener]:
        return (PeerListener(socket_path(context.sockets, context.node), dispatcher, clock, limits),)

    return BrokerProcess(
        share_of(context.node, context.nodes[0], is_first=context.is_first),
        len(context.nodes),
        lambda logs, file: WorkerMembership(context, link, logs, file, OwnThread(loop, "journal")),
        SocketPeers(context.sockets, loop),
        _listeners_of(context),
        new_peer_listeners,
        _http_of(context),
        context.ports,
        context.labels,
    )


def at_its_ports(process: BrokerProcess, context: WorkerContext) -> BrokerProcess:
    """A broker that answers where this worker does, and has its part of the machine's limits."""
    return replace(
        process,
        brokers=len(context.nodes),
        new_listener=_listeners_of(context),
        begin_http=_http_of(context),
        ports=context.ports,
        labels=context.labels,
    )


def _listeners_of(context: WorkerContext) -> NewListener:
    def new_listener(
        address: Address,
        dispatcher: Dispatcher,
        clock: Clock,
        limits: ConnectionLimits,
        new_handshake: HandshakeFactory | None,
        door: TlsDoor | None,
    ) -> Listener:
        return SharedListener(address, context, dispatcher, clock, limits, new_handshake=new_handshake, door=door)

    return new_listener


def _http_of(context: WorkerContext) -> BeginHttp:
    async def begin_http(server: MetricsServer, _address: tuple[str, int]) -> None:
        """The supervisor answers at the address, and asks each worker."""
        await server.start_unix(context.http_socket)

    return begin_http
