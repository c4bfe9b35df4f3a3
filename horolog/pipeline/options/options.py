"""The options of reading and writing, under the names that Spark's own Kafka connector gives them, each checked.

What only tunes the Java clients (`java_settings`) is accepted and has no effect; what the connector refuses is refused; a name that
is unknown is refused too, because a misspelt `startingTimestamp` would otherwise read everything. So are options that
contradict each other, and those of streams in a batch and the reverse: none is ignored silently.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from horolog.client.security import Security, SecurityError
from horolog.client.security.options import NAMES as SECURITY_NAMES
from horolog.client.security.options import is_of_security
from horolog.client.values.types import TopicPartition
from horolog.pipeline.base.positions import (
    EARLIEST,
    LATEST,
    OptionError,
    Position,
    Positions,
    number_in,
    parse_assign,
    parse_moment,
    parse_offsets,
    parse_times,
    show_position,
)
from horolog.pipeline.options import java_settings
from horolog.pipeline.options.brokers import BOOTSTRAP, CLIENTS, CONFIG_FILE
from horolog.pipeline.options.target_topics import CREATE as CREATE_TOPICS
from horolog.pipeline.stores.object_stores import OPTIONS as STORE_OPTIONS
from horolog.pipeline.stores.object_stores import Place, is_url
from horolog.pipeline.typed.options import DEAD_LETTERS, TypedOptions, parse_typed
from horolog.pipeline.typed.options import NAMES as TYPED_NAMES
from horolog.stores.faults import StoreError

if TYPE_CHECKING:
    from horolog.pipeline.typed.decoding import Decoding

ISOLATION_LEVELS = ("read_uncommitted", "read_committed")
DEFAULT_FETCH_BYTES = 4 << 20
DEFAULT_TASK_BYTES = 32 << 20
_LARGEST_FETCH_BYTES = 256 << 20
_PROTOCOL = f"{CLIENTS}security.protocol"
_SECURITY = {f"{CLIENTS}{name}" for name in SECURITY_NAMES}

_SELECTIONS = ("subscribe", "subscribePattern", "assign")
_STARTS = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
_ENDS = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
_STRATEGIES = ("onNoMatch", "startingOffsetsByTimestampStrategy")
_STREAM_ONLY = (
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "maxBytesPerTrigger",
    "maxTimePerTrigger",
)
_BOTH = {
    *_SELECTIONS,
    *_STARTS,
    *_ENDS,
    *_STRATEGIES,
    "minPartitions",
    "maxRecordsPerPartition",
    "maxBytesPerTask",
    "failOnDataLoss",
    "includeHeaders",
    "kafka.isolation.level",
    *TYPED_NAMES,
    "maxLateness",
}
_BROKER_ONLY = {
    BOOTSTRAP,
    CONFIG_FILE,
    *_STREAM_ONLY,
    "kafka.fetch.max.bytes",
    "kafka.max.partition.fetch.bytes",
    "kafka.request.timeout.ms",
    "kafka.default.api.timeout.ms",
    "kafka.client.id",
    DEAD_LETTERS,
}
_OF_LETTERS = {
    BOOTSTRAP,
    CONFIG_FILE,
    DEAD_LETTERS,
    "kafka.request.timeout.ms",
    "kafka.default.api.timeout.ms",
    "kafka.client.id",
    *_SECURITY,
}
"""For the broker that gets the broken records of files."""
_READ = _BOTH | _BROKER_ONLY | {"path"}
_NO_EFFECT = {
    *java_settings.NAMES,
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
}
_REFUSED = {
    "kafka.auto.offset.reset": "use startingOffsets to set where to begin",
    "kafka.key.deserializer": "keys are bytes; use key.format to decode them",
    "kafka.value.deserializer": "values are bytes; use value.format to decode them",
    "kafka.enable.auto.commit": "offsets are kept in Spark's checkpoint and never committed to the broker",
    "kafka.interceptor.classes": "this source does not use a Java consumer",
}
_OF_TRANSACTIONS = ("transactionalId", "batchId", "notesTopic")
_TRANSACTION_TIMEOUT = "kafka.transaction.timeout.ms"
_LONGEST_NAME = 200
_TRANSACTION_TIMEOUT_MS = 900_000
"""As much as a broker allows by default (transaction.max.timeout.ms): a transaction waits until all tasks are done."""
_WRITE = {
    BOOTSTRAP,
    CONFIG_FILE,
    "topic",
    "rejectedTopic",
    CREATE_TOPICS,
    "includeHeaders",
    "kafka.acks",
    "kafka.compression.type",
    "kafka.batch.size",
    "kafka.request.timeout.ms",
    "kafka.max.block.ms",
    "kafka.delivery.timeout.ms",
    "kafka.client.id",
    "transactional",
    *_OF_TRANSACTIONS,
    _TRANSACTION_TIMEOUT,
}
_WRITE_NO_EFFECT = {*java_settings.NAMES, "path", "checkpointLocation", "outputMode", "queryName", "mode"}
_WRITE_REFUSED = {
    "kafka.key.serializer": "keys are written as the bytes or text of the column",
    "kafka.value.serializer": "values are written as the bytes or text of the column",
    "kafka.enable.idempotence": "it is always on, so that retries do not duplicate records",
    "kafka.transactional.id": "each task has its own; use transactional=true and transactionalId to name them",
    "kafka.partitioner.class": "the column `partition` sets the partition of a record, or else its key, as with Kafka's clients",
    "kafka.interceptor.classes": "this source does not use a Java producer",
}


@dataclass(frozen=True, slots=True)
class Selection:
    """Which partitions: of topics by name, of topics whose whole name matches, these, or all that exist (files only)."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()

    @property
    def is_everything(self) -> bool:
        return not self.topics and self.pattern is None and not self.partitions

    @property
    def names(self) -> list[str]:
        """The topics that are named."""
        return sorted({*self.topics, *(one.topic for one in self.partitions)})

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
    max_bytes_per_trigger: int | None = None
    max_time_per_trigger_ms: int | None = None
    fetch_bytes: int = DEFAULT_FETCH_BYTES
    task_bytes: int = DEFAULT_TASK_BYTES
    request_timeout_ms: int = 30_000
    client_id: str = "horolog-spark"
    reach_ms: int = 30_000
    reach_option: str = "kafka.request.timeout.ms"
    security: Security | None = None
    place: Place | None = None
    """Where the path is, if it is a URL."""
    typed: TypedOptions | None = None
    decoding: "Decoding | None" = None
    """What `typed` resolves to, once schemas are found."""
    transaction_timeout_ms: int = _TRANSACTION_TIMEOUT_MS
    """Of dead letters."""
    max_lateness_ms: int | None = None
    """How late records are at most; None if unknown."""

    @property
    def reads_headers(self) -> bool:
        return self.include_headers or (self.decoding is not None and self.decoding.reads_headers)


@dataclass(frozen=True, slots=True)
class Transactional:
    """Rows in transactions. A repeated write is recognised by `name`; empty for a data frame that is never repeated."""

    name: str
    batch: int | None
    notes_topic: str | None
    timeout_ms: int


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
    reach_ms: int = 30_000
    reach_option: str = "kafka.request.timeout.ms"
    security: Security | None = None
    transactional: Transactional | None = None
    create_topics: bool = False
    """Whether a missing topic is created; otherwise the write is refused."""


class _GivenOptions:
    """The options as given: names in any case, as Spark has it."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = {str(name).lower(): (str(name), str(value)) for name, value in options.items()}

    def check(self, known: set[str], no_effect: set[str], refused: Mapping[str, str]) -> None:
        """Raise for a name that is none of these, or is refused."""
        names = {name.lower(): name for name in (*known, *no_effect, *refused, *_SECURITY)}
        why_refused = {name.lower(): why for name, why in refused.items()}
        for lower, (name, _) in self._options.items():
            if lower in why_refused:
                raise OptionError(f"{name} cannot be set: {why_refused[lower]}")
            if lower not in names and not _of_stores(lower):
                raise OptionError(_unknown(name, names))

    def one_of(self, names: tuple[str, ...]) -> str | None:
        """The given one of these, if any; several contradict each other."""
        given = [name for name in names if self.text(name) is not None]
        if len(given) > 1:
            raise OptionError(f"{' and '.join(given)} are both given; give only one of them")
        return given[0] if given else None

    def refuse(self, names: Iterable[str], why: str) -> None:
        for name in names:
            if self.text(name) is not None:
                raise OptionError(f"{name} {why}")

    def text(self, name: str) -> str | None:
        found = self._options.get(name.lower())
        return None if found is None else found[1]

    def whole(self, name: str, default: Any, least: int = 1, most: int = 2**63 - 1) -> Any:
        text = self.text(name)
        if text is None:
            return default
        number = number_in(text, most)
        if number is None or number < least:
            raise OptionError(f"{name}: {text!r} is not a whole number from {least} to {most}")
        return number

    def flag(self, name: str, *, default: bool) -> bool:
        return self.choice(name, "true" if default else "false", ("true", "false")) == "true"

    def choice(self, name: str, default: str, choices: tuple[str, ...]) -> str:
        text = self.text(name)
        word = default if text is None else text.strip().lower()
        if word not in choices:
            raise OptionError(f"{name}: {text!r} is not one of {', '.join(choices)}")
        return word

    def security(self) -> Security | None:
        """How to authenticate at the broker's listener; None for an open one."""
        try:
            security = Security.of({name: value for name, value in self._of_clients() if is_of_security(name)})
        except SecurityError as error:
            raise OptionError(f"{CLIENTS}{error}") from error
        return None if security.protocol == "PLAINTEXT" else security

    def _of_clients(self) -> Iterator[tuple[str, str]]:
        for lower, (_, value) in self._options.items():
            if lower.startswith(CLIENTS):
                yield lower.removeprefix(CLIENTS), value

    def place(self) -> Place | None:
        """Where the path is, if that is in an object store: with the credentials that options, the environment or a profile have."""
        path = self.text("path")
        stores = {_of_stores(lower): value for lower, (_, value) in self._options.items() if _of_stores(lower)}
        if path is None or not is_url(path):
            self.refuse((name for lower, (name, _) in self._options.items() if _of_stores(lower)), "is only for URLs")
            return None
        try:
            return Place.of(path, stores)
        except StoreError as error:
            raise OptionError(str(error)) from error

    def first_of(self, names: tuple[str, ...]) -> str | None:
        return next((name for name in names if self.text(name) is not None), None)


def _is_of_client(name: str) -> bool:
    """Settings of Java clients: one table of them often serves reading and writing, and each ignores the other's."""
    return name.startswith(CLIENTS)


def _of_stores(lower: str) -> str:
    """The name that an option of object stores has in Hadoop's configuration; empty for others."""
    name = lower.removeprefix("spark.hadoop.")
    return name if name.startswith(STORE_OPTIONS) else ""


def _unknown(name: str, names: Mapping[str, str]) -> str:
    """The fault of a name that is no option, and the option that may be meant."""
    lower = name.lower()
    tails = {each.removeprefix(CLIENTS): full for each, full in names.items()}  # their common prefix is no likeness
    close = get_close_matches(lower.removeprefix(CLIENTS), tails, 1)
    return f"there is no option {name}{f'; do you mean {tails[close[0]]}?' if close else ''}"


def with_config_file(options: Mapping[str, str]) -> Mapping[str, str]:
    """The options, with the security settings of the file that they may name; options win."""
    path = next((value for name, value in options.items() if name.lower() == CONFIG_FILE), None)
    if path is None:
        return options
    from horolog.base.properties_file import PropertiesError, parse

    try:
        settings = parse(Path(path).read_bytes())
    except (OSError, PropertiesError) as error:
        raise OptionError(f"{CONFIG_FILE}: {path}: {error}") from error
    there = {name.lower() for name in options}
    own = {f"{CLIENTS}{name}": value for name, value in settings.items() if is_of_security(name)}
    return {**{name: value for name, value in own.items() if name.lower() not in there}, **options}


def parse_read(
    options: Mapping[str, str], now_ms: int, *, streaming: bool = False, limited: bool = True
) -> ReadOptions:
    """Check and read the options of a read; raises OptionError with the fault and the values that would do.

    Streams are `limited` if this Spark takes limits on a batch.
    """
    given = _GivenOptions(with_config_file(options))
    if streaming and not limited:
        given.refuse(
            _STREAM_ONLY,
            "needs Spark 4.2: in earlier versions, each batch of a stream has everything that is available",
        )
    given.refuse(sorted(each for each in _WRITE - _READ if not _is_of_client(each)), "is for writing")
    given.check(_READ, _NO_EFFECT, _REFUSED)
    bootstrap, path = given.text(BOOTSTRAP), given.text("path")
    if path is not None and given.text(DEAD_LETTERS) is not None:
        if bootstrap is None:
            raise OptionError(f"{DEAD_LETTERS} of files needs {BOOTSTRAP}, the broker that has the topic")
    elif (bootstrap is None) == (path is None):
        raise OptionError(f"set exactly one of {BOOTSTRAP} and a path, load(path), to choose where to read")
    _check_kind(given, streaming=streaming)
    start_option, start = _start(given, now_ms, streaming=streaming)
    end_option, end = _end(given, now_ms)
    _check_order(start_option, start, end_option, end)
    strategy = given.one_of(_STRATEGIES) or _STRATEGIES[0]
    typed = parse_typed(given.text)
    return ReadOptions(
        bootstrap,
        path,
        _selection(given, needed=path is None),
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
        given.whole("maxBytesPerTrigger", None),
        _duration(given, "maxTimePerTrigger", None, least_ms=1),
        _fetch_bytes(given),
        given.whole("maxBytesPerTask", DEFAULT_TASK_BYTES),
        given.whole("kafka.request.timeout.ms", 30_000),
        given.text("kafka.client.id") or "horolog-spark",
        *_reach(given, "kafka.default.api.timeout.ms"),
        given.security(),
        given.place(),
        typed,
        transaction_timeout_ms=given.whole(_TRANSACTION_TIMEOUT, _TRANSACTION_TIMEOUT_MS, most=2**31 - 1),
        max_lateness_ms=_duration(given, "maxLateness", None),
    )


def _reach(given: _GivenOptions, own: str) -> tuple[int, str]:
    """How long to try to reach a broker, and which option says so: the Java clients' own, else that of a request."""
    name = own if given.text(own) is not None else "kafka.request.timeout.ms"
    return given.whole(name, 30_000), name


def _fetch_bytes(given: _GivenOptions) -> int:
    name = given.first_of(("kafka.max.partition.fetch.bytes", "kafka.fetch.max.bytes"))
    return DEFAULT_FETCH_BYTES if name is None else int(given.whole(name, 0, most=_LARGEST_FETCH_BYTES))


def _duration(given: _GivenOptions, name: str, default: Any, least_ms: int = 0) -> Any:
    from horolog.client.values.times import TimeTextError, parse_duration

    text = given.text(name)
    if text is None:
        return default
    try:
        number = number_in(text)
        duration_ms = parse_duration(text) if number is None else number
    except TimeTextError as error:
        raise OptionError(f"{name}: {error}") from error
    if duration_ms < least_ms:
        raise OptionError(f"{name}: {text!r} is below {least_ms} ms")
    return duration_ms


def _check_kind(given: _GivenOptions, *, streaming: bool) -> None:
    """A batch or a stream, of a broker or of files: each has options that the others cannot have."""
    if given.text("path") is not None:
        if streaming:
            raise OptionError("segment files are read in batches; a stream reads from a broker")
        of_letters = set() if given.text(DEAD_LETTERS) is None else _OF_LETTERS
        given.refuse(sorted((_BROKER_ONLY | _SECURITY - {_PROTOCOL}) - of_letters), "is for reading from a broker")
    if streaming:
        given.refuse(("maxLateness",), "is for batches, because Spark passes no filters to a stream")
    else:
        given.refuse(_STREAM_ONLY, "is for streams, because a batch reads all of its range")
        return
    given.refuse(_ENDS, "is for batch reads, because a stream has no end")
    least, most = (given.whole(name, None) for name in ("minOffsetsPerTrigger", "maxOffsetsPerTrigger"))
    if least is not None and most is not None and least > most:
        raise OptionError(f"minOffsetsPerTrigger {least} is more than maxOffsetsPerTrigger {most}")


def _check_order(start_option: str, start: Positions, end_option: str, end: Positions) -> None:
    """Refuse a start after the end, in offsets or in times, which would read nothing."""
    partitions = {*(() if isinstance(start, Position) else start), *(() if isinstance(end, Position) else end)}
    for partition in sorted(partitions) or [None]:
        first, last = (
            each if isinstance(each, Position) else partition and each.get(partition) for each in (start, end)
        )
        if first and last and first.is_time == last.is_time and first.value > last.value >= 0:
            where = "" if partition is None else f" for {partition}"
            raise OptionError(
                f"{start_option} {show_position(first)} is after {end_option} {show_position(last)}{where}"
            )


def _selection(given: _GivenOptions, *, needed: bool) -> Selection:
    named = [name for name in _SELECTIONS if given.text(name) is not None]
    if len(named) > 1 or (needed and not named):
        raise OptionError(f"set exactly one of {', '.join(_SELECTIONS)}, to choose what to read")
    if not named:
        return Selection()
    text = given.text(named[0]) or ""
    if named[0] == "assign":
        partitions = tuple(parse_assign("assign", text))
        if not partitions:
            raise OptionError(f"assign: {text!r} has no partition")
        return Selection(partitions=partitions)
    if named[0] == "subscribePattern":
        if not text.strip():
            raise OptionError(f"subscribePattern: {text!r} is empty; .* takes every topic")
        try:
            re.compile(text)
        except re.error as error:
            raise OptionError(f"subscribePattern: {text!r} is not a pattern: {error}") from error
        return Selection(pattern=text)
    topics = tuple(topic.strip() for topic in text.split(",") if topic.strip())
    if not topics:
        raise OptionError(f"subscribe: {text!r} has no topic")
    return Selection(topics=topics)


def _start(given: _GivenOptions, now_ms: int, *, streaming: bool) -> tuple[str, Positions]:
    name = given.one_of(_STARTS)
    if name is None:
        return "startingOffsets", Position(LATEST if streaming else EARLIEST)
    readers: dict[str, Callable[[str], Positions]] = {
        "startingTimestamp": lambda text: parse_moment(name, text, now_ms),
        "startingOffsetsByTimestamp": lambda text: parse_times(name, text, now_ms),
        "startingOffsets": lambda text: parse_offsets(name, text, unwanted="" if streaming else "latest"),
    }
    return name, readers[name](given.text(name) or "")


def _end(given: _GivenOptions, now_ms: int) -> tuple[str, Positions]:
    name = given.one_of(_ENDS)
    if name is None:
        return "endingOffsets", Position(LATEST)
    readers: dict[str, Callable[[str], Positions]] = {
        "endingTimestamp": lambda text: parse_moment(name, text, now_ms),
        "endingOffsetsByTimestamp": lambda text: parse_times(name, text, now_ms),
        "endingOffsets": lambda text: parse_offsets(name, text, unwanted="earliest"),
    }
    return name, readers[name](given.text(name) or "")


def parse_columns(options: Mapping[str, str]) -> tuple[TypedOptions | None, Selection, bool]:
    """What decides the columns of a read, before it is known to be a batch or a stream: types, the topics, and headers."""
    given = _GivenOptions(options)
    known = _READ | _WRITE | {*_REFUSED, *_WRITE_REFUSED}  # each kind refuses more
    given.check(known, _NO_EFFECT | _WRITE_NO_EFFECT, {})
    typed = parse_typed(given.text)
    selection = Selection() if typed is None else _selection(given, needed=False)
    return typed, selection, (given.text("includeHeaders") or "").strip().lower() == "true"


def parse_write(options: Mapping[str, str], *, streaming: bool = False) -> WriteOptions:
    """Check and read the options of a write."""
    given = _GivenOptions(with_config_file(options))
    reading = _READ - _WRITE - _WRITE_NO_EFFECT
    given.refuse(sorted(each for each in reading if not _is_of_client(each)), "is for reading")
    given.check(_WRITE, _WRITE_NO_EFFECT, _WRITE_REFUSED)
    bootstrap = given.text(BOOTSTRAP)
    if bootstrap is None:
        raise OptionError(f"set {BOOTSTRAP}, to choose where to write")
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
        *_reach(given, "kafka.max.block.ms"),
        given.security(),
        _transactional(given, streaming=streaming),
        given.flag(CREATE_TOPICS, default=False),
    )


def _transactional(given: _GivenOptions, *, streaming: bool) -> Transactional | None:
    if not given.flag("transactional", default=False):
        given.refuse(_OF_TRANSACTIONS, "needs transactional=true")
        return None
    name, batch = given.text("transactionalId"), given.whole("batchId", None, least=0)
    topic, notes_topic = given.text("topic"), given.text("notesTopic")
    if name is not None and (not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable()):
        raise OptionError(f"transactionalId: {name!r} is not a name of 1 to {_LONGEST_NAME} characters")
    if streaming:
        given.refuse(("batchId",), "is for data frames, because Spark numbers the batches of a stream")
        if name is None:
            raise OptionError(
                "a stream with transactional=true needs a transactionalId, the same at every start:"
                " a sink cannot identify its stream before the first rows arrive"
            )
    elif (name is None) != (batch is None):
        raise OptionError(
            "transactionalId and batchId go together: a repeated write is recognised by the name and a number that"
            " increases with each write; without both, a write is all or nothing, and a repetition is not recognised"
        )
    if name is None:
        given.refuse(("notesTopic",), "needs a transactionalId")
    elif topic is None and notes_topic is None:
        raise OptionError(
            "set notesTopic, because a column names the topics: written batches are noted under its first partition"
        )
    timeout_ms = given.whole(_TRANSACTION_TIMEOUT, _TRANSACTION_TIMEOUT_MS, most=2**31 - 1)
    return Transactional(name or "", batch, notes_topic or topic if name else None, timeout_ms)
