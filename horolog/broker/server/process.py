"""One process of a cluster: which part of folders, limits and ports is its own, and how others reach it.

`sole` is the process of a broker without others. `workers.of_worker` has that of one worker among several.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from horolog.base.clock import Clock
from horolog.broker.base.backup_figures import BackupFigures
from horolog.broker.base.own_thread import Beside
from horolog.broker.base.store_figures import StoreFigures
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.hand_over import HandOvers
from horolog.broker.cluster.membership import Membership, SoleMember
from horolog.broker.cluster.peers import NO_PEERS, Peers
from horolog.broker.commit.safety import LocalSafety
from horolog.broker.config.listeners import Address
from horolog.broker.config.settings import Settings
from horolog.broker.handlers import HANDLERS, Handler
from horolog.broker.log.manager import LogManager, Share, whole
from horolog.broker.log.partition import Partition
from horolog.broker.network.dispatch import Dispatcher
from horolog.broker.network.limits import ConnectionLimits
from horolog.broker.network.listener import Listener
from horolog.broker.on_record.cluster_file import ClusterFile
from horolog.protocol.apis import ApiKey

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Executor

    from horolog.broker.base.metrics import Metrics
    from horolog.broker.commit.safety import Safety
    from horolog.broker.network.conversation import HandshakeFactory
    from horolog.broker.observability.http import MetricsServer
    from horolog.broker.security.tls_wire import TlsDoor

    NewListener = Callable[
        [Address, Dispatcher, Clock, ConnectionLimits, HandshakeFactory | None, TlsDoor | None], Listener
    ]
    NewPeerListeners = Callable[[Dispatcher, Clock, ConnectionLimits], Sequence[Listener]]
    NewSafety = Callable[
        [asyncio.AbstractEventLoop, Executor, Metrics, Clock, Callable[[Iterable[Partition]], None]], Safety
    ]
    NewCluster = Callable[[str, Settings, LogManager, ClusterFile, Membership], Cluster]
    BeginHttp = Callable[[MetricsServer, tuple[str, int]], Awaitable[None]]


def local_safety(
    loop: asyncio.AbstractEventLoop,
    disk: Executor,
    metrics: Metrics,
    clock: Clock,
    shown: Callable[[Iterable[Partition]], None],  # noqa: ARG001 - records count when they are written
) -> Safety:
    """Records are safe once the disk has them."""
    return LocalSafety(loop, disk, metrics, clock.monotonic)


@dataclass(frozen=True)
class BrokerProcess:
    """What a broker is made of where processes of a cluster differ."""

    share: Share
    """The part of the data folders that it opens."""
    brokers: int
    """How many brokers share the limits of the settings."""
    membership: Callable[[LogManager, ClusterFile], Membership]
    peers: Peers
    """The other brokers, as far as this one sends them requests."""
    new_listener: NewListener
    """Makes a listener for clients."""
    new_peer_listeners: NewPeerListeners
    """Makes the listeners for requests of other brokers."""
    begin_http: BeginHttp
    ports: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """The advertised port of each node, by the listener; nodes that are not there have the listener's."""
    labels: Mapping[str, object] = field(default_factory=dict)
    """What lines of the log and of the audit trail say of this process."""
    new_safety: NewSafety = local_safety
    """Makes what says when records are safe; it gets the function that wakes readers, if it holds all commits."""
    partitions: type[Partition] = Partition
    """The class of the broker's partitions."""
    new_cluster: NewCluster = Cluster
    """Makes the cluster as this broker serves it."""
    hand_overs: type[HandOvers] = HandOvers
    """The class of the moves of partitions to other brokers."""
    handlers: Mapping[ApiKey, Handler] = field(default_factory=lambda: HANDLERS)
    """The APIs that are served."""
    address_of: Callable[[str, int], tuple[str, int] | None] = lambda _listener, _node: None
    """Where clients of a listener find another broker, if it does not have this broker's host."""
    rack_of: Callable[[int, str | None], str | None] = lambda _node, mine: mine
    """The rack of a broker; it gets that of this one."""
    drains: Callable[[], bool] = lambda: True
    """Whether what was taken may still become safe when the broker stops."""
    ages: Callable[[Clock], Clock] = lambda clock: clock
    """The clock by which things are deleted for their age."""
    store_figures: Callable[[], StoreFigures | None] = lambda: None
    """What this broker shows of its store, if it has one."""
    backup_figures: Callable[[], BackupFigures | None] = lambda: None
    """What this broker shows of its backup, if it has one."""


def sole(settings: Settings, beside: Beside) -> BrokerProcess:
    """The process of a broker that is the whole cluster; the journal is read and written `beside` its loop."""

    async def begin_http(server: MetricsServer, address: tuple[str, int]) -> None:
        await server.start(*address)

    return BrokerProcess(
        whole(settings.node_id),
        1,
        lambda logs, file: SoleMember(settings.node_id, logs, file, beside),
        NO_PEERS,
        new_listener,
        lambda *_: (),
        begin_http,
    )


def new_listener(
    address: Address,
    dispatcher: Dispatcher,
    clock: Clock,
    limits: ConnectionLimits,
    new_handshake: HandshakeFactory | None,
    door: TlsDoor | None,
) -> Listener:
    name, host, port = address.name, address.host, address.port
    return Listener(name, host, port, dispatcher, clock, limits, new_handshake=new_handshake, door=door)
