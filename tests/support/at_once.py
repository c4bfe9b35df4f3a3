"""Calls methods that report to `done`, in a lone broker: the outcome is known when the method returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.new_topics import unknown_topic
from horolog.broker.on_record.cluster_errors import ClusterError


def at_once(method: Callable[..., None], *arguments: Any, **fields: Any) -> Any:
    """The outcome passed to `done`, once; raises it if it is an error."""
    told: list[Any] = []
    method(*arguments, told.append, **fields)
    (outcome,) = told
    if isinstance(outcome, ClusterError):
        raise outcome
    return outcome


def delete_topic(cluster: Cluster, name: str) -> None:
    """Delete one topic; raises ClusterError."""
    if name not in cluster.topics:
        raise unknown_topic(name)
    for error in at_once(cluster.delete_topics, {name: cluster.topics[name].id}).values():
        raise error
