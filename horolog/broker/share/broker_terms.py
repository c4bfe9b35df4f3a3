"""The settings of a share group that has none of its own."""

from __future__ import annotations

from typing import NamedTuple

from horolog.broker.config.settings import Settings


class Reset(NamedTuple):
    kind: str = "latest"
    before_ms: int = 0


class BrokerTerms(NamedTuple):
    record_lock_ms: int
    delivery_count_limit: int
    max_record_locks: int
    read_committed: bool = False
    reset: Reset = Reset()
    renews: bool = True


def terms_of_broker(settings: Settings) -> BrokerTerms:
    return BrokerTerms(
        settings.group_share_record_lock_duration_ms,
        settings.group_share_delivery_count_limit,
        settings.group_share_partition_max_record_locks,
    )
