"""The options of reading and writing, under the names that Spark's own Kafka connector gives them, each checked.

What only tunes the Java consumer is accepted and has no effect; what the connector refuses is refused; a name that nobody knows
is refused too, because a misspelt `startingTimestamp` would otherwise read everything.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from client.types import TopicPartition
from pipeline.positions import (
    EARLIEST,
    LATEST,
    OptionError,
    Position,
    Positions,
    parse_assign,
    parse_moment,
    parse_offsets,
    parse_times,
)

BOOTSTRAP = "kafka.bootstrap.servers"
ISOLATION_LEVELS = ("read_uncommitted", "read_committed")
DEFAULT_FETCH_BYTES = 8 << 20
DEFAULT_TASK_BYTES = 32 << 20
_LARGEST_FETCH_BYTES = 256 << 20

_SELECTIONS = ("subscribe", "subscribePattern", "assign")
_STARTS = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
_ENDS = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
_BOTH = {
    *_SELECTIONS,
    *_STARTS,
    *_ENDS,
    "startingOffsetsByTimestampStrategy",
    "onNoMatch",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "kafka.isolation.level",
}
_BROKER_ONLY = {
    BOOTSTRAP,
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "kafka.fetch.max.bytes",
    "kafka.max.partition.fetch.bytes",
    "kafka.request.timeout.ms",
    "kafka.client.id",
}
_FILES_ONLY = {"path", "maxBytesPerTask"}
_NO_EFFECT = {
    "groupIdPrefix",
    "kafka.group.id",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
}
_REFUSED = {
    "kafka.auto.offset.reset": "startingOffsets says where to begin",
    "kafka.key.deserializer": "keys come as bytes; cast them with Spark",
    "kafka.value.deserializer": "values come as bytes; cast them with Spark",
    "kafka.enable.auto.commit": "offsets are kept in Spark's checkpoint and never committed to the broker",
    "kafka.interceptor.classes": "there is no Java consumer here",
}
_WRITE = {
    BOOTSTRAP,
    "topic",
    "rejectedTopic",
    "includeHeaders",
    "kafka.acks",
    "kafka.compression.type",
    "kafka.batch.size",
    "kafka.request.timeout.ms",
    "kafka.delivery.timeout.ms",
    "kafka.client.id",
}
_WRITE_NO_EFFECT = {"path", "checkpointLocation", "outputMode", "queryName", "mode"}
_WRITE_REFUSED = {
    "kafka.key.serializer": "keys go as the bytes or text that the column holds",
    "kafka.value.serializer": "values go as the bytes or text that the column holds",
    "kafka.enable.idempotence": "it is always on: a retry must not duplicate",
    "kafka.transactional.id": "tasks write without transactions, as Spark's own connector does",
}


@dataclass(frozen=True, slots=True)
class Selection:
    """Which partitions: of topics by name, of topics whose whole name matches, these, or all that are there (files only)."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()

    @property
    def is_everything(self) -> bool:
        return not self.topics and self.pattern is None and not self.partitions

    def takes(self, partition: TopicPartition) -> bool:
        if self.partitions:
            return partition in self.partitions
        if self.pattern is not None:
            return re.fullmatch(self.pattern, partition.topic) is not None
        return not self.topics or partition.topic in self.topics


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What to read, and how."""

    bootstrap: str | None
    path: str | None
    selection: Selection
    start: Positions
    end: Positions
    start_option: str
    end_option: str
    no_match_is_error: bool
    min_partitions: int
    max_records_per_partition: int | None
    fail_on_data_loss: bool
    include_headers: bool
    isolation: str
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 900_000
    fetch_bytes: int = DEFAULT_FETCH_BYTES
    task_bytes: int = DEFAULT_TASK_BYTES
    request_timeout_ms: int = 30_000
    client_id: str = "horolog-spark"


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Where to write, and how."""

    bootstrap: str
    topic: str | None
    rejected_topic: str | None
    compression: str
    batch_bytes: int
    request_timeout_ms: int
    delivery_timeout_ms: int
    client_id: str


class _Given:
    """The options as given: names in any case, as Spark has it."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = {str(name).lower(): (str(name), str(value)) for name, value in options.items()}

    def check(self, known: set[str], no_effect: set[str], refused: Mapping[str, str]) -> None:
        names = {name.lower(): name for name in (*known, *no_effect, *refused)}
        why_refused = {name.lower(): why for name, why in refused.items()}
        for lower, (name, _) in self._options.items():
            if lower in why_refused:
                raise OptionError(f"{name} cannot be set: {why_refused[lower]}")
            if lower in names or self._is_tuning(lower):
                continue
            close = get_close_matches(lower, names, 1)
            hint = f"; {names[close[0]]} is an option" if close else ""
            raise OptionError(f"{name} is no option here{hint}")

    def _is_tuning(self, lower: str) -> bool:
        """Settings of Kafka's Java clients that have no counterpart here. Those about security are not such."""
        if lower == "kafka.security.protocol":
            if self._options[lower][1].upper() != "PLAINTEXT":
                raise OptionError("kafka.security.protocol: only PLAINTEXT is there")
            return True
        return lower.startswith("kafka.") and not lower.startswith(("kafka.sasl.", "kafka.ssl.", "kafka.security."))

    def text(self, name: str) -> str | None:
        found = self._options.get(name.lower())
        return None if found is None else found[1]

    def whole(self, name: str, default: Any, least: int = 1, most: int = 2**63 - 1) -> Any:
        text = self.text(name)
        if text is None:
            return default
        digits = text.strip()
        if not digits.isascii() or not digits.isdigit() or not least <= int(digits) <= most:
            raise OptionError(f"{name}: {text!r} is no whole number from {least} to {most}")
        return int(digits)

    def flag(self, name: str, *, default: bool) -> bool:
        return self.choice(name, "true" if default else "false", ("true", "false")) == "true"

    def choice(self, name: str, default: str, choices: tuple[str, ...]) -> str:
        text = self.text(name)
        word = default if text is None else text.strip().lower()
        if word not in choices:
            raise OptionError(f"{name}: {text!r} is none of {', '.join(choices)}")
        return word

    def first_of(self, names: tuple[str, ...]) -> str | None:
        return next((name for name in names if self.text(name) is not None), None)


def parse_read(options: Mapping[str, str], now_ms: int, *, streaming: bool = False) -> ReadOptions:
    """Check and read the options of a read; raises OptionError with what is wrong and what would do."""
    given = _Given(options)
    given.check(_BOTH | _BROKER_ONLY | _FILES_ONLY, _NO_EFFECT, _REFUSED)
    bootstrap, path = given.text(BOOTSTRAP), given.text("path")
    if (bootstrap is None) == (path is None):
        raise OptionError(f"exactly one of {BOOTSTRAP} and a path, load(path), says where to read from")
    if streaming:
        _check_streaming(given)
    start_option, start = _start(given, now_ms, streaming=streaming)
    end_option, end = _end(given, now_ms)
    strategy = "onNoMatch" if given.text("onNoMatch") is not None else "startingOffsetsByTimestampStrategy"
    return ReadOptions(
        bootstrap,
        path,
        _selection(given, needed=bootstrap is not None),
        start,
        end,
        start_option,
        end_option,
        given.choice(strategy, "latest", ("latest", "error")) == "error",
        given.whole("minPartitions", 0),
        given.whole("maxRecordsPerPartition", None),
        given.flag("failOnDataLoss", default=True),
        given.flag("includeHeaders", default=False),
        given.choice("kafka.isolation.level", ISOLATION_LEVELS[0], ISOLATION_LEVELS),
        given.whole("maxOffsetsPerTrigger", None),
        given.whole("minOffsetsPerTrigger", None),
        _duration(given, "maxTriggerDelay", 900_000),
        _fetch_bytes(given),
        given.whole("maxBytesPerTask", DEFAULT_TASK_BYTES),
        given.whole("kafka.request.timeout.ms", 30_000),
        given.text("kafka.client.id") or "horolog-spark",
    )


def _fetch_bytes(given: _Given) -> int:
    name = given.first_of(("kafka.max.partition.fetch.bytes", "kafka.fetch.max.bytes"))
    return DEFAULT_FETCH_BYTES if name is None else int(given.whole(name, 0, most=_LARGEST_FETCH_BYTES))


def _duration(given: _Given, name: str, default: int) -> int:
    from client.times import TimeTextError, parse_duration

    text = given.text(name)
    if text is None:
        return default
    try:
        return int(text) if text.strip().isdigit() else parse_duration(text)
    except TimeTextError as error:
        raise OptionError(f"{name}: {error}") from error


def _check_streaming(given: _Given) -> None:
    if given.text("path") is not None:
        raise OptionError("segment files are read in batches; a stream reads from a broker")
    named = given.first_of(_ENDS)
    if named is not None:
        raise OptionError(f"{named} is for batch reads: a stream has no end")
    least, most = (given.whole(name, None) for name in ("minOffsetsPerTrigger", "maxOffsetsPerTrigger"))
    if least is not None and most is not None and least > most:
        raise OptionError(f"minOffsetsPerTrigger {least} is more than maxOffsetsPerTrigger {most}")


def _selection(given: _Given, *, needed: bool) -> Selection:
    named = [name for name in _SELECTIONS if given.text(name) is not None]
    if len(named) > 1 or (needed and not named):
        raise OptionError(f"exactly one of {', '.join(_SELECTIONS)} says what to read")
    if not named:
        return Selection()
    text = given.text(named[0]) or ""
    if named[0] == "assign":
        return Selection(partitions=tuple(parse_assign("assign", text)))
    if named[0] == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            raise OptionError(f"subscribePattern: {text!r} is no pattern: {error}") from error
        return Selection(pattern=text)
    topics = tuple(topic.strip() for topic in text.split(",") if topic.strip())
    if not topics:
        raise OptionError(f"subscribe: {text!r} names no topic")
    return Selection(topics=topics)


def _start(given: _Given, now_ms: int, *, streaming: bool) -> tuple[str, Positions]:
    name = given.first_of(_STARTS)
    if name is None:
        return "startingOffsets", Position(LATEST if streaming else EARLIEST)
    readers: dict[str, Callable[[str], Positions]] = {
        "startingTimestamp": lambda text: parse_moment(name, text, now_ms),
        "startingOffsetsByTimestamp": lambda text: parse_times(name, text, now_ms),
        "startingOffsets": lambda text: parse_offsets(name, text, unwanted="" if streaming else "latest"),
    }
    return name, readers[name](given.text(name) or "")


def _end(given: _Given, now_ms: int) -> tuple[str, Positions]:
    name = given.first_of(_ENDS)
    if name is None:
        return "endingOffsets", Position(LATEST)
    readers: dict[str, Callable[[str], Positions]] = {
        "endingTimestamp": lambda text: parse_moment(name, text, now_ms),
        "endingOffsetsByTimestamp": lambda text: parse_times(name, text, now_ms),
        "endingOffsets": lambda text: parse_offsets(name, text, unwanted="earliest"),
    }
    return name, readers[name](given.text(name) or "")


def parse_write(options: Mapping[str, str]) -> WriteOptions:
    """Check and read the options of a write."""
    given = _Given(options)
    given.check(_WRITE, _WRITE_NO_EFFECT, _WRITE_REFUSED)
    bootstrap = given.text(BOOTSTRAP)
    if bootstrap is None:
        raise OptionError(f"{BOOTSTRAP} says where to write to")
    given.choice("kafka.acks", "all", ("all", "-1"))  # what idempotence takes
    return WriteOptions(
        bootstrap,
        given.text("topic"),
        given.text("rejectedTopic"),
        given.choice("kafka.compression.type", "none", ("none", "gzip", "snappy", "lz4", "zstd")),
        given.whole("kafka.batch.size", 256 << 10),
        given.whole("kafka.request.timeout.ms", 30_000),
        given.whole("kafka.delivery.timeout.ms", 120_000),
        given.text("kafka.client.id") or "horolog-spark",
    )
