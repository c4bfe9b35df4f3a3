"""What a share group has set for the delivery of its records: the leaders of its partitions work with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from horolog.broker.config.settings import Settings
from horolog.broker.groups import group_settings
from horolog.broker.groups.iso_durations import duration_ms

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
BY_DURATION: Final = "by_duration"


class ShareReset(NamedTuple):
    """Where a partition begins that the group has not read: `kind` is one of the three names above."""

    kind: str
    before_ms: int = 0
    """For `by_duration`: how long before the present."""


class ShareSettings(NamedTuple):
    """The effective values."""

    record_lock_ms: int
    delivery_count_limit: int
    max_record_locks: int
    read_committed: bool
    reset: ShareReset
    renews: bool
    """Whether consumers may renew the lock of a record."""


class EffectiveSettings:
    """The values of each group, until its overrides or the broker's settings are others: every request to a share partition asks for them."""

    MOST = 1_000
    """The number of groups at which all are forgotten."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, tuple[Mapping[str, str], Settings, ShareSettings]] = {}

    def __repr__(self) -> str:
        return f"<EffectiveSettings of {len(self._known)} share groups>"

    def of(self, group: str, overrides: Mapping[str, str], settings: Settings) -> ShareSettings:
        known = self._known.get(group)
        if known is None or known[0] is not overrides or known[1] is not settings:
            if len(self._known) >= self.MOST:
                self._known.clear()
            known = self._known[group] = overrides, settings, share_settings(overrides, settings)
        return known[2]


def share_settings(overrides: Mapping[str, str], settings: Settings) -> ShareSettings:
    """A group's own values, else the broker's, else the defaults."""

    def value(key: str) -> object:
        return group_settings.setting(overrides, key, settings)

    def number(key: str) -> int:
        return group_settings.number(overrides, key, settings)

    return ShareSettings(
        record_lock_ms=number("share.record.lock.duration.ms"),
        delivery_count_limit=number("share.delivery.count.limit"),
        max_record_locks=number("share.partition.max.record.locks"),
        read_committed=value("share.isolation.level") == "read_committed",
        reset=_reset(str(value("share.auto.offset.reset"))),
        renews=bool(value("share.renew.acknowledge.enable")),
    )


def _reset(text: str) -> ShareReset:
    kind, _, duration = text.partition(":")
    return ShareReset(kind, duration_ms(duration) if duration else 0)
