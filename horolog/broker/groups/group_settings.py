"""A group's settings: Kafka's names, types and bounds, and the values that the coordinator works with.

A group's value is its own override, else the broker's setting of the same name behind `group.`, else the default. Overrides are kept
as rules of the cluster, for existing and future groups; they may be set before a group has members, and stay when it has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from horolog.broker.config.setting_types import (
    INT32_MAX,
    ConfigEntry,
    ConfigSource,
    ConfigType,
    SettingsError,
    Spec,
    Synonym,
    Value,
    nearest,
    render,
)
from horolog.broker.config.settings import SPECS, Settings
from horolog.broker.on_record.stored_rules import GROUP, Rules, StoredRule

_BROKERS: Final = "group."
_RESETS: Final = ("earliest", "latest")
_BY_DURATION: Final = "by_duration:"


@dataclass(frozen=True, slots=True)
class GroupSetting:
    """One setting; `lowest` and `highest` are the keys of the broker's bounds, where those are settings."""

    spec: Spec
    lowest: str = ""
    highest: str = ""


def _wrong_reset(text: str) -> str | None:
    """The fault of a value of `share.auto.offset.reset`, if it has one."""
    from horolog.broker.groups.iso_durations import is_duration

    if text in _RESETS or (text.startswith(_BY_DURATION) and is_duration(text.removeprefix(_BY_DURATION))):
        return None
    return "expected earliest, latest or by_duration:PnDTnHnMn.nS"


def _number(
    name: str, default: int, sentence: str, low: int = 0, high: int = INT32_MAX, bounds: tuple[str, str] = ("", "")
) -> GroupSetting:
    return GroupSetting(Spec(name, ConfigType.INT, default, sentence, low, high), *bounds)


_ROWS: Final = (
    _number(
        "consumer.assignment.interval.ms", 1_000, "Accepted for compatibility: assignments are made at once.", 0, 15_000
    ),
    _number(
        "consumer.heartbeat.interval.ms",
        5_000,
        "Heartbeat interval of members.",
        1,
        bounds=("group.consumer.min.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"),
    ),
    _number(
        "consumer.session.timeout.ms",
        45_000,
        "Time without a heartbeat after which a member is removed.",
        1,
        bounds=("group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    ),
    _number(
        "share.assignment.interval.ms", 1_000, "Accepted for compatibility: assignments are made at once.", 0, 15_000
    ),
    GroupSetting(
        Spec(
            "share.auto.offset.reset",
            ConfigType.STRING,
            "latest",
            "Where a partition begins that the share group has not read: earliest, latest, or a duration before the present.",
            check=_wrong_reset,
        )
    ),
    _number(
        "share.delivery.count.limit",
        5,
        "Attempts to deliver a record; after the last one it is archived.",
        2,
        bounds=("group.share.min.delivery.count.limit", "group.share.max.delivery.count.limit"),
    ),
    _number(
        "share.heartbeat.interval.ms",
        5_000,
        "Heartbeat interval of members.",
        1,
        bounds=("group.share.min.heartbeat.interval.ms", "group.share.max.heartbeat.interval.ms"),
    ),
    GroupSetting(
        Spec(
            "share.isolation.level",
            ConfigType.STRING,
            "read_uncommitted",
            "Whether records of open and aborted transactions are delivered.",
            choices=("read_committed", "read_uncommitted"),
        )
    ),
    _number(
        "share.partition.max.record.locks",
        2_000,
        "Records of one partition that may be locked at a time.",
        100,
        bounds=("group.share.min.partition.max.record.locks", "group.share.max.partition.max.record.locks"),
    ),
    _number(
        "share.record.lock.duration.ms",
        30_000,
        "Time for which a delivered record is locked for its consumer.",
        1_000,
        bounds=("group.share.min.record.lock.duration.ms", "group.share.max.record.lock.duration.ms"),
    ),
    GroupSetting(
        Spec(
            "share.renew.acknowledge.enable",
            ConfigType.BOOLEAN,
            True,
            "Whether consumers may renew the lock of a record.",
        )
    ),
    _number(
        "share.session.timeout.ms",
        45_000,
        "Time without a heartbeat after which a member is removed.",
        1,
        bounds=("group.share.min.session.timeout.ms", "group.share.max.session.timeout.ms"),
    ),
    _number(
        "streams.assignment.interval.ms",
        1_000,
        "Accepted for compatibility: assignments are made at once.",
        bounds=("group.streams.min.assignment.interval.ms", "group.streams.max.assignment.interval.ms"),
    ),
    _number(
        "streams.heartbeat.interval.ms",
        5_000,
        "Heartbeat interval of members.",
        1,
        bounds=("group.streams.min.heartbeat.interval.ms", "group.streams.max.heartbeat.interval.ms"),
    ),
    _number(
        "streams.initial.rebalance.delay.ms",
        3_000,
        "Time for which the first member of a group waits for more members before it gets tasks.",
    ),
    _number(
        "streams.num.standby.replicas",
        0,
        "Copies of the state of each task, on other processes than its own.",
        bounds=("", "group.streams.max.standby.replicas"),
    ),
    _number(
        "streams.session.timeout.ms",
        45_000,
        "Time without a heartbeat after which a member is removed.",
        1,
        bounds=("group.streams.min.session.timeout.ms", "group.streams.max.session.timeout.ms"),
    ),
)
ROWS: Final[Mapping[str, GroupSetting]] = {row.spec.name: row for row in _ROWS}
NO_OVERRIDES: Final[Mapping[str, str]] = MappingProxyType({})
SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "consumer.heartbeat.interval.ms"
SHARE_SESSION_TIMEOUT: Final = "share.session.timeout.ms"
SHARE_HEARTBEAT_INTERVAL: Final = "share.heartbeat.interval.ms"
STREAMS_SESSION_TIMEOUT: Final = "streams.session.timeout.ms"
STREAMS_HEARTBEAT_INTERVAL: Final = "streams.heartbeat.interval.ms"
STREAMS_INITIAL_DELAY: Final = "streams.initial.rebalance.delay.ms"
STREAMS_STANDBYS: Final = "streams.num.standby.replicas"


def check(overrides: Mapping[str, str], settings: Settings) -> None:
    """Raises SettingsError for a key or a value that a group may not have."""
    for key, text in overrides.items():
        row = ROWS.get(key)
        if row is None:
            near = nearest(key, ROWS)
            raise SettingsError(key, None, "is not a setting of groups" + (f"; did you mean {near}?" if near else ""))
        value = row.spec.parse(text)
        for bound, is_lowest in ((row.lowest, True), (row.highest, False)):
            limit = settings.value(bound) if bound else value
            assert isinstance(limit, (int, float, str))
            if bound and _is_beyond(value, limit, is_lowest=is_lowest):
                more = "greater" if is_lowest else "less"
                raise SettingsError(key, text, f"must be {more} than or equal to {bound}, {limit}")


def _is_beyond(value: Value, limit: Value, *, is_lowest: bool) -> bool:
    assert isinstance(value, int)
    assert isinstance(limit, int)
    return value < limit if is_lowest else value > limit


def number(overrides: Mapping[str, str], key: str, settings: Settings) -> int:
    """The effective value of a key that is a number."""
    value = setting(overrides, key, settings)
    assert isinstance(value, int)
    return value


def setting(overrides: Mapping[str, str], key: str, settings: Settings) -> Value:
    """The effective value of a key."""
    text = overrides.get(key)
    return _of_broker(ROWS[key], settings) if text is None else ROWS[key].spec.parse(text)


def _of_broker(row: GroupSetting, settings: Settings) -> Value:
    key = _BROKERS + row.spec.name
    return settings.value(key) if key in SPECS else row.spec.default


def describe(overrides: Mapping[str, str], settings: Settings, keys: Iterable[str] | None = None) -> list[ConfigEntry]:
    """The keys asked for, or all, as DescribeConfigs answers them; a key that is no setting of groups is left out, as Kafka does."""
    return [_entry(ROWS[key], overrides, settings) for key in (ROWS if keys is None else keys) if key in ROWS]


def _entry(row: GroupSetting, overrides: Mapping[str, str], settings: Settings) -> ConfigEntry:
    name, brokers = row.spec.name, _BROKERS + row.spec.name
    own = [Synonym(name, overrides[name], ConfigSource.GROUP)] if name in overrides else []
    if brokers in SPECS:
        others = list(settings.synonyms(brokers))
    else:  # Kafka's brokers have no such setting either
        others = [Synonym(name, render(row.spec.default), ConfigSource.DEFAULT)]
    first = [*own, *others][0]
    return ConfigEntry(
        name=name,
        value=first.value,
        source=first.source,
        type=row.spec.type,
        read_only=False,
        sensitive=False,
        documentation=row.spec.sentence,
        synonyms=(*own, *others),
    )


def overrides_of(rules: Rules, group: str) -> Mapping[str, str]:
    """The overrides of a group."""
    rule = rules.get((GROUP, group))
    return NO_OVERRIDES if rule is None else rule.content


def rule_of(group: str, overrides: Mapping[str, str]) -> StoredRule:
    return StoredRule(GROUP, group, dict(overrides))
