"""A cluster that has more members than it was started with."""

from __future__ import annotations

from dataclasses import replace

from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.cluster_state import Lead


def among(cluster: Cluster, *others: int) -> None:
    """Other brokers belong to the cluster; what this one has led it leads as before."""
    me, state = cluster.settings.node_id, cluster.state
    leads = {
        (topic.id, index): Lead(me, 0) for topic in state.topics.values() for index in range(topic.partition_count)
    }
    cluster.nodes = (me, *others)
    cluster.changes.state = replace(state, nodes=cluster.nodes, leads={**leads, **state.leads})
