"""Who belongs to a cluster in tests: others besides the broker that was started, or nobody."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.cluster_state import Lead
from horolog.broker.cluster.membership import Members
from horolog.broker.cluster.peers import NO_PEERS
from horolog.broker.cluster.placement import Placement
from horolog.broker.transactions.other_brokers import OtherBrokers


def among(cluster: Cluster, *others: int) -> None:
    """Other brokers belong to the cluster; what this one has led it leads as before."""
    me, state = cluster.settings.node_id, cluster.state
    leads = {
        (topic.id, index): Lead(me, 0) for topic in state.topics.values() for index in range(topic.partition_count)
    }
    cluster.nodes = (me, *others)
    cluster._membership.is_shared = True
    cluster.changes.begin(replace(state, nodes=cluster.nodes, leads={**leads, **state.leads}), is_news=False)


def nobody_else(cluster: Cluster) -> OtherBrokers:
    """The other brokers of a broker alone."""
    endpoints = SimpleNamespace(advertised=lambda _listener, _node: ("here", 9092))
    placement = Placement(cluster, endpoints, Members.of_one(cluster.settings.node_id))
    return OtherBrokers(cluster, placement, NO_PEERS)
