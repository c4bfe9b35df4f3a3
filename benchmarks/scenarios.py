"""The loads that are compared, in one table with their targets beside a Kafka release."""

from dataclasses import dataclass

ALL_KAFKA = ("4.3.1", "3.9.2", "0.10.2.2")
OLD_KAFKA = ("3.9.2", "0.10.2.2")  # Kafka 4 no longer serves Produce v2
NEWEST = "4.3.1"
LARGE_BATCH_BYTES = 1_000_000
CONSUMED_RECORDS = 3_000_000
GROWTH = (250_000, 1_000_000, 4_000_000)


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
    kafka: tuple[str, ...] = ALL_KAFKA
    kafka_topic: tuple[str, ...] = ()
    quick: bool = True
    stretch: float = 1.0  # of the time of a load: rare latencies need many samples


def _faster(ratio: float, against: str = NEWEST) -> Target:
    return Target("rate", against, ratio)


def _small(connections: int) -> Scenario:
    return Scenario(
        f"small-{connections}",
        f"one-record requests, {connections} connection{'s' if connections > 1 else ''}",
        ("smallreq", "--connections", str(connections)),
        (_faster(1.5),),
    )


def _fsync(connections: int) -> Scenario:
    return Scenario(
        f"fsync-{connections}",
        f"acks=all on the disk, one-record requests, {connections} connections",
        ("smallreq", "--acks", "-1", "--connections", str(connections)),
        (_faster(1.0),),
        kafka_topic=("--set", "flush.messages=1"),
        quick=connections == 16,
    )


def _lookup(name: str, title: str, records: int, batch_bytes: int, *extra: str) -> tuple[str, str, tuple[str, ...]]:
    return name, title, ("timelookup", "--fill-records", str(records), "--batch-bytes", str(batch_bytes), *extra)


def _consume(mode: str, batch_bytes: int) -> tuple[str, ...]:
    return (mode, "--fill-records", str(CONSUMED_RECORDS), "--batch-bytes", str(batch_bytes))


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
        made.append(Scenario(named[0], named[1], named[2] + extra, targets, kafka=(NEWEST,), quick=quick))
    return made


OLD_TARGETS = (_faster(1.5, "3.9.2"), _faster(1.0, "0.10.2.2"))

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "raw",
        "1000 x 100 B batches, 2 connections x 4 in flight",
        ("raw", "--records", "1000", "--connections", "2", "--in-flight", "4"),
        (_faster(1.5), Target("cpu_s_per_million", NEWEST, 0.6, at_least=False)),
    ),
    _small(1),
    _small(16),
    _small(64),
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
        kafka=OLD_KAFKA,
        quick=False,
    ),
    Scenario(
        "paced", "1,000 records/s, acknowledgement", ("paced",), (Target("p999_ms", NEWEST, 1 / 3, at_least=False),)
    ),
    Scenario("endtoend", "1,000 records/s, produce to consume", ("endtoend",), quick=False, stretch=2.5),
    Scenario(
        "consume-1mb", "consume 100 B records, 1 MB batches", _consume("consume", LARGE_BATCH_BYTES), (_faster(1.0),)
    ),
    Scenario("consume-16kb", "consume 100 B records, 16 KB batches", _consume("consume", 16384), (_faster(1.0),)),
    Scenario(
        *_lookup("lookup-16kb", "look-up by time, 16 KB batches, 1 connection", 1_000_000, 16384), (_faster(1.5),)
    ),
    Scenario(
        *_lookup("lookup-1mb", "look-up by time, 1 MB batches, 1 connection", 1_000_000, LARGE_BATCH_BYTES),
        (_faster(1.0),),
    ),
    *_growing(),
    _fsync(1),
    _fsync(16),
    Scenario("client-produce", "confluent-kafka producer, 100 B records", ("clientproduce",), kafka=(NEWEST,)),
    Scenario(
        "client-consume",
        "confluent-kafka consumer, 16 KB batches",
        _consume("clientconsume", 16384),
        (_faster(1.0),),
        kafka=(NEWEST,),
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
)
