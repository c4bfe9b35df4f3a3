"""What a broker does for share groups: it keeps states, finds those that others keep, and leads share partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from horolog.base.clock import Clock
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.peers import Peers
from horolog.broker.cluster.placement import Placement
from horolog.broker.commit.committer import Committer
from horolog.broker.commit.waiting import WaitingRequests
from horolog.broker.coordination.timers import Timers
from horolog.broker.share.journal import StateJournal
from horolog.broker.share.leader import GroupTerms, ShareLeader
from horolog.broker.share.persister import SharePersister
from horolog.broker.share.state_keeper import StateKeeper


class ShareHost(Protocol):
    """The parts of a broker that share groups are built on."""

    clock: Clock
    cluster: Cluster
    placement: Placement
    committer: Committer
    waiting: WaitingRequests


class Shares:
    """The parts, put together."""

    def __init__(self, host: ShareHost, peers: Peers, timers: Timers, terms_of: Callable[[str], GroupTerms]) -> None:
        cluster, clock = host.cluster, host.clock
        journal = StateJournal(cluster, host.committer, clock)
        self.states = StateKeeper(cluster, journal, clock, timers)
        self.persister = SharePersister(cluster, host.placement, peers, journal, self.states)
        self.leader = ShareLeader(cluster, self.persister, host.waiting, timers, clock, terms_of)

    def __repr__(self) -> str:
        return f"<Shares {self.states!r}, {self.leader!r}>"
