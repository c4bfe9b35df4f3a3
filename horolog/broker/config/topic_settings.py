"""A topic's settings: one table of Kafka's own names, and the values that the log works with.

A topic's value is its own override, else what the broker's settings say under the names in the last column, else the default.
Where one rule has several names, the narrower and later one counts first: `message.timestamp.before.max.ms`, then
`message.timestamp.difference.max.ms`, then `max.message.time.difference.ms`; any of a topic's own before any of the broker's.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

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
from horolog.broker.config.settings import CODECS, RELEASES_ALLOWED, SPECS, TIMESTAMP_TYPES, Settings, magic_of_release

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


_long = partial(Spec, type=ConfigType.LONG, default=None)
_int = partial(Spec, type=ConfigType.INT, default=None)
_boolean = partial(Spec, type=ConfigType.BOOLEAN, default=None)
_string = partial(Spec, type=ConfigType.STRING, default=None)
_list = partial(Spec, type=ConfigType.LIST, default=())

_DIFFERENCE = "message.timestamp.difference.max.ms"
_FIRST_DIFFERENCE = "max.message.time.difference.ms"
_BROKER_DIFFERENCES = (("log.message.timestamp.difference.max.ms", 1), (_FIRST_DIFFERENCE, 1))
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

_TIERED = "Taken for Kafka's sake and not used: segments stay on this machine."
_REPLICAS = "Taken for Kafka's sake and not used: there is one replica."


def _check_release(text: str) -> str | None:
    return None if magic_of_release(text) is not None else RELEASES_ALLOWED


_ROWS = (
    TopicSetting(
        _list(
            name="cleanup.policy",
            choices=("compact", "delete"),
            sentence="What happens to old data: delete, compact or both.",
        ),
        broker=(("log.cleanup.policy", 1),),
    ),
    TopicSetting(
        _int(
            name="compression.gzip.level",
            default=-1,
            low=1,
            high=9,
            also=-1,
            sentence="Taken for Kafka's sake and not used.",
        ),
    ),
    TopicSetting(
        _int(name="compression.lz4.level", default=9, low=1, high=17, sentence="Taken for Kafka's sake and not used.")
    ),
    TopicSetting(
        _string(
            name="compression.type",
            choices=CODECS,
            sentence="The codec in which records are kept; producer: the one they came with.",
        ),
        broker=(("compression.type", 1),),
    ),
    TopicSetting(
        _int(
            name="compression.zstd.level",
            default=3,
            low=-131072,
            high=22,
            sentence="Taken for Kafka's sake and not used.",
        )
    ),
    TopicSetting(
        _long(name="delete.retention.ms", low=0, sentence="Time that a compacted topic still shows its tombstones."),
        broker=(("log.cleaner.delete.retention.ms", 1),),
    ),
    TopicSetting(
        _long(
            name="file.delete.delay.ms",
            low=0,
            sentence="Time between a segment's removal from the log and that of its files.",
        ),
        broker=(("log.segment.delete.delay.ms", 1),),
    ),
    TopicSetting(
        _long(
            name="flush.messages", low=1, sentence="Records of a partition after which its file is synced to the disk."
        ),
        broker=(("log.flush.interval.messages", 1),),
    ),
    TopicSetting(
        _long(name="flush.ms", low=0, sentence="Time that a record may stay unsynced, where nothing else syncs it."),
        broker=(("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    ),
    TopicSetting(_list(name="follower.replication.throttled.replicas", sentence=_REPLICAS)),
    TopicSetting(
        _long(
            name="horolog.future.timestamp.max.ms",
            low=-1,
            sentence="A segment whose largest time is ahead of the clock by more than this is as old as its file; -1: never.",
        ),
        broker=(("horolog.log.future.timestamp.max.ms", 1),),
    ),
    TopicSetting(
        _boolean(
            name="horolog.message.upconversion.enable",
            sentence="Whether current clients get older records in the newest format; false: as they are stored.",
        ),
        broker=(("horolog.log.message.upconversion.enable", 1),),
    ),
    TopicSetting(
        _boolean(
            name=SETTINGS_UNKNOWN,
            default=False,
            sentence="True for a topic that was found without its settings: nothing of it is deleted or compacted until they are given.",
        )
    ),
    TopicSetting(
        _int(name="index.interval.bytes", low=0, sentence="Bytes of log between two index entries."),
        broker=(("log.index.interval.bytes", 1),),
    ),
    TopicSetting(_list(name="leader.replication.throttled.replicas", sentence=_REPLICAS)),
    TopicSetting(_long(name="local.retention.bytes", default=-2, low=-2, sentence=_TIERED)),
    TopicSetting(_long(name="local.retention.ms", default=-2, low=-2, sentence=_TIERED)),
    TopicSetting(
        _long(
            name="max.compaction.lag.ms", low=1, sentence="Time after which a record makes its log due for compaction."
        ),
        broker=(("log.cleaner.max.compaction.lag.ms", 1),),
    ),
    TopicSetting(
        _int(name="max.message.bytes", low=0, sentence="The largest batch, or old message, that is taken."),
        broker=(("message.max.bytes", 1),),
    ),
    TopicSetting(
        _long(name=_FIRST_DIFFERENCE, low=0, sentence=f"The first name of {_DIFFERENCE}, where that is not given."),
        broker=_BROKER_DIFFERENCES[1:],
    ),
    TopicSetting(
        _boolean(
            name="message.downconversion.enable",
            sentence="Whether old clients get newer records in the format that they can read.",
        ),
        broker=(("log.message.downconversion.enable", 1),),
    ),
    TopicSetting(
        _string(
            name="message.format.version",
            check=_check_release,
            nullable=True,
            sentence="The Kafka release in whose record format records are kept; none: as they come, and those without a time with one.",
        ),
        broker=(("log.message.format.version", 1),),
    ),
    TopicSetting(
        _long(
            name="message.timestamp.after.max.ms",
            low=0,
            sentence="How far ahead of the broker's clock a record's time may be.",
        ),
        older=(_DIFFERENCE, _FIRST_DIFFERENCE),
        broker=(("log.message.timestamp.after.max.ms", 1), *_BROKER_DIFFERENCES),
    ),
    TopicSetting(
        _long(
            name="message.timestamp.before.max.ms",
            low=0,
            sentence="How far behind the broker's clock a record's time may be.",
        ),
        older=(_DIFFERENCE, _FIRST_DIFFERENCE),
        broker=(("log.message.timestamp.before.max.ms", 1), *_BROKER_DIFFERENCES),
    ),
    TopicSetting(
        _long(name=_DIFFERENCE, low=0, sentence="Both bounds at once, where the two narrower ones are not given."),
        older=(_FIRST_DIFFERENCE,),
        broker=_BROKER_DIFFERENCES,
    ),
    TopicSetting(
        _string(
            name="message.timestamp.type",
            choices=TIMESTAMP_TYPES,
            sentence="Whether a record keeps its producer's time or gets the broker's.",
        ),
        broker=(("log.message.timestamp.type", 1),),
    ),
    TopicSetting(
        Spec(
            "min.cleanable.dirty.ratio",
            ConfigType.DOUBLE,
            None,
            "Share of a log that has to be uncompacted before it is compacted.",
            low=0,
            high=1,
        ),
        broker=(("log.cleaner.min.cleanable.ratio", 1),),
    ),
    TopicSetting(
        _long(name="min.compaction.lag.ms", low=0, sentence="Time for which a record is safe from compaction."),
        broker=(("log.cleaner.min.compaction.lag.ms", 1),),
    ),
    TopicSetting(
        _int(name="min.insync.replicas", low=1, sentence="Copies that acks=all waits for; one broker has one."),
        broker=(("min.insync.replicas", 1),),
    ),
    TopicSetting(
        _boolean(name="preallocate", sentence="Whether a new segment's whole size is set aside on the disk."),
        broker=(("log.preallocate", 1),),
    ),
    TopicSetting(_boolean(name="remote.log.copy.disable", default=False, sentence=_TIERED)),
    TopicSetting(_boolean(name="remote.log.delete.on.disable", default=False, sentence=_TIERED)),
    TopicSetting(_boolean(name="remote.storage.enable", default=False, sentence=_TIERED)),
    TopicSetting(
        _long(
            name="retention.bytes",
            sentence="The oldest segments go while the partition is larger than this; -1: never.",
        ),
        broker=(("log.retention.bytes", 1),),
    ),
    TopicSetting(
        _long(name="retention.ms", low=-1, sentence="A segment whose latest record is older goes; -1: never."),
        broker=(("log.retention.ms", 1), ("log.retention.minutes", MINUTE_MS), ("log.retention.hours", HOUR_MS)),
    ),
    TopicSetting(
        _int(name="segment.bytes", low=14, sentence="A segment is closed when the next append would pass this size."),
        broker=(("log.segment.bytes", 1),),
    ),
    TopicSetting(
        _int(name="segment.index.bytes", low=4, sentence="Room set aside for each index of the active segment."),
        broker=(("log.index.size.max.bytes", 1),),
    ),
    TopicSetting(
        _long(
            name="segment.jitter.ms",
            low=0,
            sentence="Up to so much is taken off segment.ms, by chance, for each segment.",
        ),
        broker=(("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR_MS)),
    ),
    TopicSetting(
        _long(
            name="segment.ms",
            low=1,
            sentence="A segment is closed when a record is later than its first one by more than this.",
        ),
        broker=(("log.roll.ms", 1), ("log.roll.hours", HOUR_MS)),
    ),
    TopicSetting(_boolean(name="unclean.leader.election.enable", default=False, sentence=_REPLICAS)),
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
        reason = f"may not be more than max.compaction.lag.ms, which is {config.max_compaction_lag_ms}"
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
