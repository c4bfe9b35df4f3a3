"""The loads that are compared, in one table with their targets beside a Kafka release."""

from dataclasses import dataclass, replace

ALL_KAFKA = ("4.3.1", "3.9.2", "0.10.2.2")
OLD_KAFKA = ("3.9.2", "0.10.2.2")  # Kafka 4 no longer serves Produce v2
NEWEST = "4.3.1"
LARGE_BATCH_BYTES = 1_000_000
CONSUMED_RECORDS = 3_000_000
STORED_BYTES = 112  # of a record of 100 bytes in a batch that fills a topic
GROWTH = (250_000, 1_000_000, 4_000_000)
SYNCED = ("--set", "flush.messages=1")
"""Has Kafka sync before it answers, as horolog does where a client asks for acks=all: idempotent producers and Java's do by default."""


@dataclass(frozen=True, slots=True)
class Target:
    """horolog's `metric` divided by that of `against` (a Kafka release, or another scenario of its own) must keep to `ratio`."""

    metric: str
    against: str
    ratio: float
    at_least: bool = True

    def says(self) -> str:
        return f"{SHORT[self.metric]} {'>=' if self.at_least else '<='} {self.ratio:.2f} x {self.against}"


SHORT = {"rate": "rate", "cpu_s_per_million": "CPU", "p999_ms": "p99.9"}


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    title: str
    arguments: tuple[str, ...]
    targets: tuple[Target, ...] = ()
    kafka: tuple[str, ...] = (NEWEST,)
    kafka_topic: tuple[str, ...] = ()
    quick: bool = True
    stretch: float = 1.0  # of the time of a load: rare latencies need many samples


def _beside(rate: float, cpu: float, against: str = NEWEST) -> tuple[Target, Target]:
    """So much of a Kafka's rate at the least, so much of its CPU at the most."""
    return Target("rate", against, rate), Target("cpu_s_per_million", against, cpu, at_least=False)


def _small(connections: int, rate: float, cpu: float) -> Scenario:
    return Scenario(
        f"small-{connections}",
        f"one-record requests, {connections} connection{'s' if connections > 1 else ''}",
        ("smallreq", "--connections", str(connections)),
        _beside(rate, cpu),
    )


def _batches(name: str, title: str, *extra: str) -> Scenario:
    arguments = ("raw", "--records", "1000", "--connections", "2", "--in-flight", "4", *extra)
    return Scenario(name, f"{title}, 2 connections x 4 in flight", arguments, _beside(1.5, 0.4))


def _compressed(codec: str, size_bytes: int) -> Scenario:
    records = 102_400 // size_bytes
    return Scenario(
        f"{codec}-{size_bytes}",
        f"{codec}, {records} x {size_bytes} B batches, 2 connections x 4 in flight",
        (
            *("raw", "--codec", codec, "--records", str(records), "--size-bytes", str(size_bytes)),
            *("--connections", "2", "--in-flight", "4"),
        ),
        _beside(1.0, 0.9),
        quick=codec == "lz4",
    )


def _fsync(connections: int) -> Scenario:
    return Scenario(
        f"fsync-{connections}",
        f"acks=all on the disk, one-record requests, {connections} connection{'s' if connections > 1 else ''}",
        ("smallreq", "--acks", "-1", "--connections", str(connections)),
        (Target("rate", NEWEST, 1.0),),
        kafka_topic=SYNCED,
        quick=connections == 16,
    )


def _spread(partitions: int) -> Scenario:
    """What a request costs where there is more of everything; beside horolog alone."""
    return Scenario(
        f"spread-{partitions}",
        f"one-record requests over {partitions:,} partition{'s' if partitions > 1 else ''}, 16 connections",
        ("smallreq", "--connections", "16", "--partitions", str(partitions)),
        (Target("cpu_s_per_million", "spread-1", 1.25, at_least=False),) if partitions > 1 else (),
        kafka=(),
        quick=False,
    )


def _lookup(name: str, title: str, records: int, batch_bytes: int, *extra: str) -> tuple[str, str, tuple[str, ...]]:
    return name, title, ("timelookup", "--fill-records", str(records), "--batch-bytes", str(batch_bytes), *extra)


def _consume(mode: str, batch_bytes: int) -> tuple[str, ...]:
    return (mode, "--fill-records", str(CONSUMED_RECORDS), "--batch-bytes", str(batch_bytes))


def _share(members: int, records: int) -> Scenario:
    """The topic's batches have as many records as a member asks for, and a member holds one of them at a time."""
    readers = f"{members} members" if members > 1 else "1 member"
    asked = ("--connections", str(members), "--records", str(records))
    filled = ("--fill-records", str(CONSUMED_RECORDS), "--batch-bytes", str(records * STORED_BYTES))
    title = f"share group, {records:,} records acquired and accepted at a time, {readers} of 1 partition"
    return Scenario(f"share-{members}", title, ("share", *asked, *filled), _beside(1.5, 0.5), quick=False)


def _growing() -> list[Scenario]:
    made = []
    for records in GROWTH:
        topic = f"bench-growing-{records}"
        base = f"growth-{GROWTH[0]}"
        named = _lookup(
            f"growth-{records}",
            f"look-up by time, 16 KB batches, {records:,} records in 16 MiB segments",
            records,
            16384,
        )
        extra = ("--topic", topic, "--set", "segment.bytes=16777216")
        targets = (Target("rate", base, 0.8),) if records == GROWTH[-1] else ()
        quick = records != GROWTH[1]
        made.append(Scenario(named[0], named[1], named[2] + extra, targets, quick=quick))
    return made


OLD_TARGETS = (*_beside(1.5, 0.7, "3.9.2"), *_beside(1.1, 0.7, "0.10.2.2"))

SCENARIOS: tuple[Scenario, ...] = (
    _batches("raw", "1000 x 100 B batches"),
    _batches("raw-mixed", "1000 records of 20 to 600 B, times and keys that vary", "--mixed"),
    _small(1, 1.4, 0.5),
    _small(16, 1.3, 0.45),
    _small(64, 1.3, 0.45),
    *(_compressed(codec, size) for codec in ("lz4", "zstd", "snappy", "gzip") for size in (100, 1024)),
    Scenario(
        "old-100",
        "old format: Produce v2, 100 x 100 B magic 1, 2 connections x 4 in flight",
        ("oldproduce", "--records", "100", "--connections", "2", "--in-flight", "4"),
        OLD_TARGETS,
        kafka=OLD_KAFKA,
    ),
    Scenario(
        "old-1",
        "old format, one message a request, 16 connections",
        ("oldproduce", "--records", "1", "--connections", "16"),
        OLD_TARGETS,
        kafka=OLD_KAFKA,
        quick=False,
    ),
    Scenario(
        "paced",
        "1,000 records/s, acknowledgement",
        ("paced",),
        (
            Target("p999_ms", NEWEST, 0.3, at_least=False),
            Target("cpu_s_per_million", NEWEST, 0.6, at_least=False),
        ),
    ),
    Scenario(
        "paced-all",
        "1,000 records/s, acks=all on the disk, acknowledgement",
        ("paced", "--acks", "-1"),
        (Target("p999_ms", NEWEST, 0.7, at_least=False), Target("cpu_s_per_million", NEWEST, 0.6, at_least=False)),
        kafka_topic=SYNCED,
        quick=False,
    ),
    Scenario("endtoend", "1,000 records/s, produce to consume", ("endtoend",), quick=False, stretch=2.5),
    Scenario(
        "consume-1mb",
        "consume 100 B records, 1 MB batches",
        _consume("consume", LARGE_BATCH_BYTES),
        _beside(1.0, 0.8),
    ),
    Scenario("consume-16kb", "consume 100 B records, 16 KB batches", _consume("consume", 16384), _beside(1.0, 0.8)),
    _share(1, 1000),
    _share(16, 100),
    Scenario(
        *_lookup("lookup-16kb", "look-up by time, 16 KB batches, 1 connection", 1_000_000, 16384), _beside(1.5, 0.5)
    ),
    Scenario(
        *_lookup("lookup-1mb", "look-up by time, 1 MB batches, 1 connection", 1_000_000, LARGE_BATCH_BYTES),
        _beside(4.0, 0.5),
    ),
    Scenario(
        "lookup-max",
        "look-up of the largest time, 16 KB batches, 1 connection",
        ("maxlookup", "--fill-records", "1000000"),
        _beside(1.5, 0.5),
        quick=False,
    ),
    Scenario(
        "lookup-v0",
        "ListOffsets v0, 1 connection",
        ("oldlookup", "--fill-records", "1000000"),
        _beside(1.5, 0.5, "3.9.2"),
        kafka=OLD_KAFKA,
        quick=False,
    ),
    *_growing(),
    *map(_fsync, (1, 16, 256)),
    *map(_spread, (1, 64, 512, 4096)),
    Scenario(
        "small-1024",
        "one-record requests, 1,024 connections",
        ("smallreq", "--connections", "1024"),
        (Target("cpu_s_per_million", "small-1", 1.25, at_least=False),),
        quick=False,
    ),
    Scenario(
        "lookup-1000",
        "look-ups by time of 1,000 partitions in one request, 1 connection",
        ("manylookups", "--partitions", "1000"),
        _beside(1.5, 0.5),
        quick=False,
    ),
    Scenario(
        "client-producers-50",
        "acks=all on the disk, 50 idempotent confluent-kafka producers, linger.ms=1, 12 partitions",
        ("clientproducers", "--connections", "50", "--partitions", "12"),
        (Target("cpu_s_per_million", NEWEST, 0.5, at_least=False),),
        kafka_topic=SYNCED,
        quick=False,
    ),
    Scenario(
        "session-500",
        "a fetch session of 500 partitions, one record at a time to any of them",
        ("session", "--partitions", "500"),
        (Target("cpu_s_per_million", NEWEST, 0.5, at_least=False),),
        quick=False,
    ),
    Scenario(
        "group-8",
        "a group of 8 confluent-kafka consumers joins and reads 24 partitions of 20,000 records of 100 B",
        ("groupconsume", "--connections", "8", "--partitions", "24", "--records", "20000"),
        (Target("rate", NEWEST, 1.0),),
        quick=False,
    ),
    Scenario(
        "java-zstd",
        "acks=all on the disk, Java's producer at its defaults with zstd, 1,000,000 records of 100 B over 12 partitions",
        ("javaproduce", "--partitions", "12", "--records", "1000000", "--codec", "zstd"),
        (Target("cpu_s_per_million", NEWEST, 0.5, at_least=False),),
        kafka_topic=SYNCED,
        quick=False,
    ),
    replace(_batches("raw-headers", "1000 x 100 B batches with 3 headers a record", "--headers", "3"), quick=False),
    Scenario(
        "half-load",
        "500 batches/s of 1000 x 100 B while 2 consumers read 3,000,000 records from their start",
        (
            *("halfload", "--rate", "500", "--records", "1000", "--connections", "2"),
            *("--fill-records", str(CONSUMED_RECORDS), "--batch-bytes", str(LARGE_BATCH_BYTES)),
        ),
        (Target("p999_ms", NEWEST, 1.0, at_least=False),),
        quick=False,
    ),
    Scenario("client-produce", "confluent-kafka producer, 100 B records", ("clientproduce",)),
    Scenario(
        "client-consume",
        "confluent-kafka consumer, 16 KB batches",
        _consume("clientconsume", 16384),
        (Target("rate", NEWEST, 1.0),),
    ),
)


@dataclass(frozen=True, slots=True)
class Limit:
    """An absolute figure of horolog that must not be passed."""

    metric: str
    title: str
    unit: str
    most: float


LIMITS = (
    Limit("ready_s", "start to ready", "s", 0.4),
    Limit("idle_mib", "resident when idle", "MiB", 45),
    Limit("idle_cpu_percent", "CPU of one core when idle", "%", 0.3),
    Limit("kib_per_connection", "memory per idle connection", "KiB", 12),
    Limit("open_s", "start with 3,500 empty partitions", "s", 2.0),
    Limit("open_mib", "resident with 3,500 empty partitions", "MiB", 150),
    Limit("loaded_mib", "resident right after all loads", "MiB", 150),
    Limit("rested_mib", "resident a minute later", "MiB", 150),
)
