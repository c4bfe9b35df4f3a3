"""What one broker over a store shows of it: the figures behind its metrics and `/ready`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from horolog.base.readable import counted
from horolog.broker.base.store_figures import TAKEOVERS, StoreFigures
from horolog.broker.bucket.metered_requests import Prices

if TYPE_CHECKING:
    from horolog.broker.bucket.followed_partitions import FollowedPartitions
    from horolog.broker.bucket.lease import Lease
    from horolog.broker.bucket.log_side import BucketLog
    from horolog.broker.bucket.metered_requests import MeteredRequests
    from horolog.broker.bucket.shipped_safety import ShippedSafety
    from horolog.broker.bucket.store_access import StoreAccess
    from horolog.broker.bucket.store_cluster import StoreCluster
    from horolog.broker.config.settings import Settings

log = logging.getLogger(__name__)


class Reported(NamedTuple):
    """The parts of a broker that have the figures."""

    settings: Callable[[], Settings]
    safety: ShippedSafety
    cluster: StoreCluster
    log_side: BucketLog


class StoreReport:
    """`fenced_count` is how often the process was fenced."""

    def __init__(
        self, requests: MeteredRequests, access: StoreAccess, lease: Lease, offset_ms: Callable[[], int]
    ) -> None:
        self.fenced_count = 0
        self.followed: FollowedPartitions | None = None
        """The partitions of other leaders that are served here, if any are."""
        self._is_member = True
        self._requests = requests
        self._access = access
        self._lease = lease
        self._offset_ms = offset_ms
        self._journal_read_s = lease.now()
        self._parts: Reported

    def __repr__(self) -> str:
        return f"<StoreReport of {self._requests!r}, fenced {self.fenced_count} times>"

    def begin(self, parts: Reported) -> None:
        """The broker is built; before it starts."""
        self._parts = parts

    def fenced(self) -> None:
        self._is_member = False
        self.fenced_count += 1

    def reading(self, journal_read: Callable[[float], None]) -> Callable[[float], None]:
        """The same callback of the journal, noted here."""

        def noted(began_s: float) -> None:
            self._journal_read_s = began_s
            journal_read(began_s)

        return noted

    def all_served(self, count: int, seconds: float) -> None:
        """All partitions that this broker has begun to lead are served."""
        log.info("serving %s, %.1f s after this broker became their leader", counted(count, "more partition"), seconds)
        self._requests.metrics.histogram(TAKEOVERS).observe(seconds)

    def figures(self) -> StoreFigures:
        settings, safety, cluster, log_side = self._parts
        prices = Prices(settings().horolog_store_price_writes, settings().horolog_store_price_reads)
        merger = log_side.merger
        return StoreFigures(
            fault=self._access.fault,
            is_member=self._is_member,
            lease_left_s=self._lease.left_s(),
            journal_lag_s=self._lease.now() - self._journal_read_s,
            opening_count=cluster.opening_count,
            unsafe_bytes=safety.unsafe_bytes,
            unmerged_bytes=0 if merger is None else merger.unmerged_bytes,
            unmerged_objects=0 if merger is None else merger.unmerged_count,
            fenced_count=self.fenced_count,
            clock_offset_s=self._offset_ms() / 1000,
            dollars_per_day=self._requests.dollars_per_day(prices),
            member_count=len(cluster.state.nodes),
            followed_bytes=0 if self.followed is None else self.followed.served_bytes,
            counted=self._requests.metrics,
            uploads=log_side.of_bucket.uploader.figures(),
            unreadable=tuple(log_side.losses.lines().values()),
            given_up_objects=len(self._access.given_up),
            undeleted=self._access.deletes.reason,
        )
