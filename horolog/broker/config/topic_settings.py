"""A topic's settings: one table of Kafka's own names, and the values that the log works with.

A topic's value is its own override, else what the broker's settings say under the names in the last column, else the default.
Where one rule has several names, the narrower and later one counts first: `message.timestamp.before.max.ms`, then
`message.timestamp.difference.max.ms`, then `max.message.time.difference.ms`; any of a topic's own before any of the broker's.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from horolog.broker.config.setting_types import (
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
from horolog.broker.config.settings import SPECS, Settings, magic_of_release

MINUTE_MS = 60_000
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """A topic's settings as the log needs them, read and checked."""

    delete: bool
    compact: bool
    compression: str
    log_append_time: bool
    before_max_ms: int
    after_max_ms: int
    max_message_bytes: int
    stored_magic: int | None  # none: as it came, and v0 becomes v1
    index_interval_bytes: int
    segment_bytes: int
    segment_index_bytes: int
    segment_ms: int
    segment_jitter_ms: int
    preallocate: bool
    flush_messages: int
    flush_ms: int
    retention_bytes: int
    retention_ms: int
    future_timestamp_max_ms: int  # -1: off
    delete_retention_ms: int
    file_delete_delay_ms: int
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    min_insync_replicas: int
    down_conversion: bool
    up_conversion: bool


@dataclass(frozen=True, slots=True)
class TopicSetting:
    """One topic setting: what it may be, its older names, and the broker settings behind it with the unit of each."""

    spec: Spec
    older: tuple[str, ...] = ()
    broker: tuple[tuple[str, int], ...] = ()

    @property
    def default(self) -> Value:
        for key, unit in self.broker:
            if (value := SPECS[key].default) is not None:
                return _in_unit(value, unit)
        return self.spec.default


def _in_unit(value: Value, unit: int) -> Value:
    if unit == 1 or not isinstance(value, int):
        return value
    return value * unit if value >= 0 else -1


def _behind(name: str, *broker: str | tuple[str, int], older: tuple[str, ...] = (), **changes: Any) -> TopicSetting:
    """A setting with the type, bounds and sentence of the broker's setting behind it, but for the changes.

    Where several of the broker's settings are behind it, the first decides. A unit may stand beside a key.
    """
    keys = tuple(one if isinstance(one, tuple) else (one, 1) for one in broker)
    spec = SPECS[keys[0][0]]
    unset: Value = () if spec.type is ConfigType.LIST else None
    own = {"default": unset, "dynamic": False, "nullable": False, **changes}
    return TopicSetting(replace(spec, name=name, **own), older, keys)


def _of_topics(name: str, type_: ConfigType, default: Value, sentence: str, **bounds: Any) -> TopicSetting:
    """A setting that the broker has none for."""
    return TopicSetting(Spec(name, type_, default, sentence, **bounds))


_DIFFERENCE = "message.timestamp.difference.max.ms"
_FIRST_DIFFERENCE = "max.message.time.difference.ms"
_BROKER_DIFFERENCES = ("log.message.timestamp.difference.max.ms", _FIRST_DIFFERENCE)
NOT_IN_KAFKA_4 = frozenset(
    {
        _FIRST_DIFFERENCE,
        _DIFFERENCE,
        "message.format.version",
        "message.downconversion.enable",
        "horolog.settings.unknown",
    }
)
"""Left out where a topic that was just made is shown with its settings, unless it was given them."""
SETTINGS_UNKNOWN = "horolog.settings.unknown"
"""True among a topic's own settings: it was found without them, and nothing of it may go until its owner has given them."""

DECIDING = ("cleanup.policy", "retention.ms", "retention.bytes")
"""Setting one of these decides over deletion and compaction."""

_UNUSED = "Accepted for compatibility with Kafka, but not used."
_TIERED = "Accepted for compatibility with Kafka, but not used: segments stay on this machine."
_REPLICAS = "Accepted for compatibility with Kafka, but not used: there is one replica."


_ROWS = (
    _behind("cleanup.policy", "log.cleanup.policy"),
    _of_topics("compression.gzip.level", ConfigType.INT, -1, _UNUSED, low=1, high=9, also=-1),
    _of_topics("compression.lz4.level", ConfigType.INT, 9, _UNUSED, low=1, high=17),
    _behind("compression.type", "compression.type"),
    _of_topics("compression.zstd.level", ConfigType.INT, 3, _UNUSED, low=-131072, high=22),
    _behind("delete.retention.ms", "log.cleaner.delete.retention.ms"),
    _behind("file.delete.delay.ms", "log.segment.delete.delay.ms"),
    _behind("flush.messages", "log.flush.interval.messages"),
    _behind("flush.ms", "log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    _of_topics("follower.replication.throttled.replicas", ConfigType.LIST, (), _REPLICAS),
    _behind(
        "horolog.future.timestamp.max.ms",
        "horolog.log.future.timestamp.max.ms",
        sentence="A segment whose largest timestamp is more than this ahead of the clock is as old as its file. -1: never.",
    ),
    _behind("horolog.message.upconversion.enable", "horolog.log.message.upconversion.enable"),
    _of_topics(
        SETTINGS_UNKNOWN,
        ConfigType.BOOLEAN,
        False,
        "True for a topic that was found without its settings. Nothing in it is deleted or compacted until you set them.",
    ),
    _behind("index.interval.bytes", "log.index.interval.bytes"),
    _of_topics("leader.replication.throttled.replicas", ConfigType.LIST, (), _REPLICAS),
    _of_topics("local.retention.bytes", ConfigType.LONG, -2, _TIERED, low=-2),
    _of_topics("local.retention.ms", ConfigType.LONG, -2, _TIERED, low=-2),
    _behind("max.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
    _behind("max.message.bytes", "message.max.bytes"),
    _behind(
        _FIRST_DIFFERENCE,
        *_BROKER_DIFFERENCES[1:],
        sentence=f"The oldest name of {_DIFFERENCE}; used if that is not set.",
    ),
    _behind("message.downconversion.enable", "log.message.downconversion.enable"),
    _behind("message.format.version", "log.message.format.version", nullable=True),
    _behind(
        "message.timestamp.after.max.ms",
        "log.message.timestamp.after.max.ms",
        *_BROKER_DIFFERENCES,
        older=(_DIFFERENCE, _FIRST_DIFFERENCE),
    ),
    _behind(
        "message.timestamp.before.max.ms",
        "log.message.timestamp.before.max.ms",
        *_BROKER_DIFFERENCES,
        older=(_DIFFERENCE, _FIRST_DIFFERENCE),
    ),
    _behind(
        _DIFFERENCE,
        *_BROKER_DIFFERENCES,
        older=(_FIRST_DIFFERENCE,),
        sentence="Both of these limits; used if message.timestamp.before.max.ms and message.timestamp.after.max.ms are not set.",
    ),
    _behind("message.timestamp.type", "log.message.timestamp.type"),
    _behind("min.cleanable.dirty.ratio", "log.cleaner.min.cleanable.ratio"),
    _behind("min.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms"),
    _behind("min.insync.replicas", "min.insync.replicas"),
    _behind("preallocate", "log.preallocate"),
    _of_topics("remote.log.copy.disable", ConfigType.BOOLEAN, False, _TIERED),
    _of_topics("remote.log.delete.on.disable", ConfigType.BOOLEAN, False, _TIERED),
    _of_topics("remote.storage.enable", ConfigType.BOOLEAN, False, _TIERED),
    _behind(
        "retention.bytes",
        "log.retention.bytes",
        low=None,
        sentence="Size of a partition above which retention deletes its oldest segments. -1: no limit.",
    ),
    _behind("retention.ms", "log.retention.ms", ("log.retention.minutes", MINUTE_MS), ("log.retention.hours", HOUR_MS)),
    _behind("segment.bytes", "log.segment.bytes"),
    _behind(
        "segment.index.bytes",
        "log.index.size.max.bytes",
        sentence="Space reserved for each index of the active segment.",
    ),
    _behind(
        "segment.jitter.ms",
        "log.roll.jitter.ms",
        ("log.roll.jitter.hours", HOUR_MS),
        sentence="Maximum random time that is subtracted from segment.ms for each segment.",
    ),
    _behind("segment.ms", "log.roll.ms", ("log.roll.hours", HOUR_MS)),
    _of_topics("unclean.leader.election.enable", ConfigType.BOOLEAN, False, _REPLICAS),
)

ROWS: dict[str, TopicSetting] = {row.spec.name: row for row in _ROWS}
_DEFAULTS: dict[str, Value] = {name: row.default for name, row in ROWS.items()}


def resolve(overrides: Mapping[str, str], settings: Settings) -> TopicConfig:
    """The effective values; raises SettingsError for an override that is not allowed."""
    parsed = {key: _row_of(key).spec.parse(text) for key, text in overrides.items()}
    v = {name: _value(row, parsed, settings) for name, row in ROWS.items()}
    policy = () if v[SETTINGS_UNKNOWN] else _words(v["cleanup.policy"])
    config = TopicConfig(
        delete="delete" in policy,
        compact="compact" in policy,
        compression=str(v["compression.type"]),
        log_append_time=v["message.timestamp.type"] == "LogAppendTime",
        before_max_ms=_whole(v["message.timestamp.before.max.ms"]),
        after_max_ms=_whole(v["message.timestamp.after.max.ms"]),
        max_message_bytes=_whole(v["max.message.bytes"]),
        stored_magic=magic_of_release(str(v["message.format.version"])) if v["message.format.version"] else None,
        index_interval_bytes=_whole(v["index.interval.bytes"]),
        segment_bytes=_whole(v["segment.bytes"]),
        segment_index_bytes=_whole(v["segment.index.bytes"]),
        segment_ms=_whole(v["segment.ms"]),
        segment_jitter_ms=_whole(v["segment.jitter.ms"]),
        preallocate=bool(v["preallocate"]),
        flush_messages=_whole(v["flush.messages"]),
        flush_ms=_whole(v["flush.ms"]),
        retention_bytes=_whole(v["retention.bytes"]),
        retention_ms=_whole(v["retention.ms"]),
        future_timestamp_max_ms=_whole(v["horolog.future.timestamp.max.ms"]),
        delete_retention_ms=_whole(v["delete.retention.ms"]),
        file_delete_delay_ms=_whole(v["file.delete.delay.ms"]),
        min_cleanable_dirty_ratio=_real(v["min.cleanable.dirty.ratio"]),
        min_compaction_lag_ms=_whole(v["min.compaction.lag.ms"]),
        max_compaction_lag_ms=_whole(v["max.compaction.lag.ms"]),
        min_insync_replicas=_whole(v["min.insync.replicas"]),
        down_conversion=bool(v["message.downconversion.enable"]),
        up_conversion=bool(v["horolog.message.upconversion.enable"]),
    )
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        reason = f"cannot be more than max.compaction.lag.ms, which is {config.max_compaction_lag_ms}"
        raise SettingsError("min.compaction.lag.ms", str(config.min_compaction_lag_ms), reason)
    return config


def is_unknown(overrides: Mapping[str, str]) -> bool:
    """Whether the topic was found without its settings, and they have not been given since."""
    return overrides.get(SETTINGS_UNKNOWN, "").strip().lower() == "true"


def as_unknown(overrides: Mapping[str, str]) -> dict[str, str]:
    """The known settings, marked as incomplete."""
    return {**overrides, SETTINGS_UNKNOWN: "true"}


def settled(overrides: Mapping[str, str], said: Iterable[str]) -> dict[str, str]:
    """The settings after their owner has spoken of the keys in `said`: what decides over deletion makes them known."""
    if SETTINGS_UNKNOWN in said or not any(key in DECIDING for key in said):
        return dict(overrides)
    return {key: value for key, value in overrides.items() if key != SETTINGS_UNKNOWN}


def usable(overrides: Mapping[str, str], settings: Settings) -> tuple[dict[str, str], list[SettingsError]]:
    """The overrides that this release takes, and the faults of the others: one must not cost the topic the rest.

    Where one of those that decide over deletion is left out, the settings are no longer known.
    """
    kept, left_out = dict(overrides), list[SettingsError]()
    for _ in overrides:
        try:
            resolve(kept, settings)
            break
        except SettingsError as error:
            left_out.append(error)
            if kept.pop(error.key, None) is None:
                kept.clear()  # one of the broker's own values is in the way of these
    lost = overrides.keys() - kept.keys()
    return (as_unknown(kept) if lost.intersection(DECIDING) else kept), left_out


def _value(row: TopicSetting, overrides: Mapping[str, Value], settings: Settings) -> Value:
    for name in (row.spec.name, *row.older):
        if name in overrides:
            return overrides[name]
    for key, unit in row.broker:
        if settings.is_set(key) and (value := settings.value(key)) is not None:
            return _in_unit(value, unit)
    return _DEFAULTS[row.spec.name]


def _words(value: Value) -> tuple[str, ...]:
    assert isinstance(value, tuple)
    return value


def _whole(value: Value) -> int:
    assert isinstance(value, int)
    return value


def _real(value: Value) -> float:
    assert isinstance(value, float | int)
    return float(value)


def _row_of(key: str) -> TopicSetting:
    row = ROWS.get(key)
    if row is None:
        near = nearest(key, ROWS)
        raise SettingsError(key, None, "is not a topic setting" + (f"; did you mean {near}?" if near else ""))
    return row


def describe(overrides: Mapping[str, str], settings: Settings, keys: Iterable[str] | None = None) -> list[ConfigEntry]:
    """The keys asked for, or all, as DescribeConfigs answers them; an unknown key is left out, as Kafka does."""
    return [_entry(ROWS[key], overrides, settings) for key in (ROWS if keys is None else keys) if key in ROWS]


def _entry(row: TopicSetting, overrides: Mapping[str, str], settings: Settings) -> ConfigEntry:
    name = row.spec.name
    synonyms = [Synonym(key, overrides[key], ConfigSource.TOPIC) for key in (name, *row.older) if key in overrides]
    for key, _ in row.broker:
        synonyms.extend(settings.synonyms(key))
    given = [synonym for synonym in synonyms if synonym.source is not ConfigSource.DEFAULT]
    defaults = [synonym for synonym in synonyms if synonym.source is ConfigSource.DEFAULT]
    parsed = {key: _row_of(key).spec.parse(text) for key, text in overrides.items() if key in (name, *row.older)}
    value = _value(row, parsed, settings)
    return ConfigEntry(
        name=name,
        value=None if value is None else render(value),
        source=given[0].source if given else ConfigSource.DEFAULT,
        type=row.spec.type,
        read_only=False,
        sensitive=False,
        documentation=row.spec.sentence,
        synonyms=(*given, *defaults),
    )
