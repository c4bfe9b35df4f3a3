"""The role of a broker in its cluster, and the parts that depend on it: here for a broker that is the whole cluster.

`workers.worker_role` has the role of one worker among several; a broker alone does not import it.
"""

# ruff: noqa: ARG002 - a broker alone needs less for its parts than a worker

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from horolog.base.clock import Clock
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.company import Alone
from horolog.broker.cluster.peers import NO_PEERS, Peers
from horolog.broker.cluster.placement import Endpoints, Members, Placement
from horolog.broker.config.listeners import Address
from horolog.broker.config.settings import Settings
from horolog.broker.log.manager import LogManager, Share, whole
from horolog.broker.network.dispatch import Dispatcher
from horolog.broker.network.limits import ConnectionLimits
from horolog.broker.network.listener import Listener
from horolog.broker.on_record.cluster_file import ClusterFile

if TYPE_CHECKING:
    from horolog.broker.network.conversation import HandshakeFactory
    from horolog.broker.observability.http import MetricsServer
    from horolog.broker.security.tls_wire import TlsDoor


class Role:
    """The role of a broker alone: it leads everything and sends no requests."""

    @property
    def labels(self) -> Mapping[str, object]:
        """What lines of the log and of the audit trail say of this process."""
        return {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def share(self, settings: Settings) -> Share:
        """The part of the data folders that it opens."""
        return whole(settings.node_id)

    def part_of(self, settings: Settings) -> Settings:
        """The settings that apply to it."""
        return settings

    @property
    def parts(self) -> int:
        """How many brokers share what quotas allow."""
        return 1

    @property
    def ports(self) -> Mapping[str, Mapping[int, int]]:
        """The advertised port of each node, by the listener; nodes that are not there have the listener's."""
        return {}

    def cluster(
        self, settings: Settings, logs: LogManager, file: ClusterFile, endpoints: Endpoints
    ) -> tuple[Cluster, Placement]:
        """The cluster as far as it is led here, and the placement of leaders."""
        cluster = Cluster(logs.cluster_id, settings, logs, file, Alone(settings.node_id, file))
        return cluster, Placement(cluster, endpoints, Members.alone(settings.node_id))

    @property
    def peers(self) -> Peers:
        """The other brokers, as far as this one sends them requests."""
        return NO_PEERS

    def listener(
        self,
        address: Address,
        dispatcher: Dispatcher,
        clock: Clock,
        limits: ConnectionLimits,
        new_handshake: HandshakeFactory | None,
        door: TlsDoor | None,
    ) -> Listener:
        """A listener for clients."""
        name, host, port = address.name, address.host, address.port
        return Listener(name, host, port, dispatcher, clock, limits, new_handshake=new_handshake, door=door)

    def peer_listeners(self, dispatcher: Dispatcher, clock: Clock, limits: ConnectionLimits) -> Sequence[Listener]:
        """Listeners for requests of other brokers."""
        return ()

    async def begin_http(self, server: MetricsServer, address: tuple[str, int]) -> None:
        await server.start(*address)
