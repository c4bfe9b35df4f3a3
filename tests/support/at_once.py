"""Calls of methods that tell `done`, in a broker alone: the outcome is there when the method returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from horolog.broker.cluster import Cluster
from horolog.broker.cluster_errors import ClusterError
from horolog.broker.new_topics import unknown_topic


def at_once(method: Callable[..., None], *arguments: Any, **fields: Any) -> Any:
    """What `done` was told, once; raises the error that it was told instead."""
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
    for error in at_once(cluster.delete_topics, [name]).values():
        raise error
