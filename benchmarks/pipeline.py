"""Compares the pipeline's data source with Spark's own Kafka connector and with Parquet: rows per second and per CPU second.

    python -m benchmarks.pipeline [--records 4000000] [--rounds 3] [--write-docs]

One broker, one Spark (`local[2]`), one run: each way in reads all of one topic into a sink that keeps nothing, in turn, in the reverse
order in every second round, after one round that is not counted. Each codec has a topic of one partition and one of twelve, of records
of varied sizes: four million are two gigabytes of them. CPU seconds are those of Spark, its Python workers and the broker.
Needs the extra `pipeline`, Java, and Maven for the connector's jars.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from benchmarks import pipeline_jars, report
from tests.support.broker_process import BrokerProcess

PARTITIONS = (1, 12)
CODECS = ("none", "lz4")
BASE_MS = 1_700_000_000_000
VALUE_BYTES = (20, 180)
WRITTEN = 500_000
SETTINGS = {"log.retention.ms": "-1", "log.segment.bytes": str(16 << 20)}
Way = Callable[[], Any]


class Subject(NamedTuple):
    """One topic, and one way to read it."""

    codec: str
    partitions: int
    way: str

    @property
    def topic(self) -> str:
        return topic_of(self.codec, self.partitions)


def topic_of(codec: str, partitions: int) -> str:
    return f"{codec}-{partitions}"


CONNECTOR = {"connector, 500 records a poll": 500, "connector, 50,000 a poll": 50_000}
ONLINE, OFFLINE, PARQUET = "horolog from the broker", "horolog from segment files", "Parquet"


def make_topic(broker: BrokerProcess, topic: str, partitions: int) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": broker.address})  # has to be there until the answer is
    admin.create_topics([NewTopic(topic, partitions)])[topic].result(30)


def fill(broker: BrokerProcess, codec: str, partitions: int, records: int) -> None:
    """One record a millisecond, values of varied sizes, half random."""
    from confluent_kafka import Producer

    topic = topic_of(codec, partitions)
    make_topic(broker, topic, partitions)
    producer = Producer(
        {
            "bootstrap.servers": broker.address,
            "linger.ms": 5,
            "compression.type": codec,
            "queue.buffering.max.messages": 500_000,
        }
    )
    seeded = random.Random(7)
    low, high = VALUE_BYTES
    values = [seeded.randbytes(seeded.randint(low, high) // 2).hex().encode() for _ in range(1000)]
    for n in range(records):
        while True:
            try:
                producer.produce(
                    topic, values[n % 1000], b"key-%06d" % (n % 100_000), n % partitions, timestamp=BASE_MS + n
                )
                break
            except BufferError:
                producer.poll(0.05)
        if not n % 10_000:
            producer.poll(0)
    assert producer.flush(60) == 0


def ways(spark: Any, broker: BrokerProcess, scratch: Path) -> dict[Subject, Way]:
    """Each way in as a data frame of its own, made anew every time."""
    broker_option = {"kafka.bootstrap.servers": broker.address}

    def connector(topic: str, poll_records: int) -> Way:
        polls = {"kafka.max.poll.records": str(poll_records), "kafka.max.partition.fetch.bytes": str(8 << 20)}
        return lambda: spark.read.format("kafka").options(**broker_option, subscribe=topic, **polls).load()

    def online(topic: str) -> Way:
        return lambda: spark.read.format("horolog").options(**broker_option, subscribe=topic).load()

    def offline(topic: str) -> Way:
        return lambda: spark.read.format("horolog").option("subscribe", topic).load(str(broker.data))

    found = {Subject("none", PARTITIONS[0], PARQUET): lambda: spark.read.parquet(str(scratch / "parquet"))}
    for partitions in PARTITIONS:
        for codec in CODECS:
            topic = topic_of(codec, partitions)
            for name, poll_records in CONNECTOR.items():
                found[Subject(codec, partitions, name)] = connector(topic, poll_records)
            found[Subject(codec, partitions, ONLINE)] = online(topic)
            found[Subject(codec, partitions, OFFLINE)] = offline(topic)
    return found


class Clock:
    """Wall and CPU seconds of some processes with all that they have started."""

    def __init__(self, *pids: int) -> None:
        self._pids = pids

    def read(self) -> tuple[float, float]:
        return time.perf_counter(), sum(self._cpu(pid) for pid in self._pids)

    @staticmethod
    def _cpu(pid: int) -> float:
        total = 0.0
        root = psutil.Process(pid)
        for process in [root, *root.children(recursive=True)]:
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system
            # What ended children have used is in their parent's account, which for Spark's worker daemon is most of it.
            total += times.children_user + times.children_system
        return total


def read_all(way: Way) -> None:
    way().write.format("noop").mode("overwrite").save()


def run(records: int, rounds: int) -> tuple[dict[Subject, list[tuple[float, float]]], list[str]]:
    from horolog.pipeline import session

    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        broker = BrokerProcess(scratch / "data", SETTINGS).start()
        try:
            for partitions in PARTITIONS:
                for codec in CODECS:
                    fill(broker, codec, partitions, records)
            jars = ",".join(map(str, pipeline_jars.jars()))
            spark = session("local[2]", "horolog benchmark", **{"spark.jars": jars, "spark.driver.memory": "2g"})
            found = measure(spark, broker, scratch, records, rounds)
            lines = [*writing(spark, broker, scratch, rounds), "", *pruning(broker)]
            spark.stop()
        finally:
            broker.kill()
    return found, lines


def measure(
    spark: Any, broker: BrokerProcess, scratch: Path, records: int, rounds: int
) -> dict[Subject, list[tuple[float, float]]]:
    plain = topic_of("none", PARTITIONS[-1])
    source = spark.read.format("horolog").option("subscribe", plain).load(str(broker.data))
    source.write.parquet(str(scratch / "parquet"))
    there = ways(spark, broker, scratch)
    for subject, way in there.items():
        assert way().count() == records, subject
        read_all(way)
    gateway = spark.sparkContext._gateway.proc.pid  # noqa: SLF001 - nothing else names the process that Spark runs in
    clock = Clock(gateway, broker.pid)
    found: dict[Subject, list[tuple[float, float]]] = {subject: [] for subject in there}
    for number in range(rounds):
        for subject in sorted(there, key=list(there).index, reverse=bool(number % 2)):
            wall, cpu = clock.read()
            read_all(there[subject])
            wall_after, cpu_after = clock.read()
            found[subject].append((wall_after - wall, cpu_after - cpu))
            print(f"{subject}: {records / found[subject][-1][0] / 1e3:.0f} k rows/s", flush=True)
    return found


def writing(spark: Any, broker: BrokerProcess, scratch: Path, rounds: int) -> list[str]:
    """Parquet to a topic, with either sink in turn."""
    frame = (
        spark.read.parquet(str(scratch / "parquet")).select("key", "value", "timestamp").limit(WRITTEN).repartition(2)
    )
    frame = frame.persist()
    count = frame.count()
    clock = Clock(spark.sparkContext._gateway.proc.pid, broker.pid)  # noqa: SLF001 - see `measure`
    found: dict[str, list[tuple[float, float]]] = {"kafka": [], "horolog": []}
    for number in range(rounds + 1):
        for kind, runs in found.items():
            wall, cpu = clock.read()
            options = {"kafka.bootstrap.servers": broker.address, "topic": f"written-{kind}", "createTopics": "true"}
            frame.write.format(kind).options(**options).mode("append").save()
            wall_after, cpu_after = clock.read()
            if number:
                runs.append((wall_after - wall, cpu_after - cpu))
    names = {"kafka": "connector (times are lost)", "horolog": "horolog (times are kept)"}
    rows = []
    for kind, runs in found.items():
        rates = [count / statistics.median(one[column] for one in runs) / 1e3 for column in (0, 1)]
        rows.append([names[kind], *(f"{rate:.0f}" for rate in rates)])
    return report.table([f"writing {count:,} rows", "k rows/s", "k rows per CPU s"], rows)


def pruning(broker: BrokerProcess) -> list[str]:
    """What a range of 1 % of the time reads of what a full scan reads."""
    from horolog.pipeline import plan

    plain = topic_of("none", 1)
    whole = plan(str(broker.data), subscribe=plain)
    records = sum(one.size for one in whole.ranges)
    since = BASE_MS + records // 2
    part = plan(str(broker.data), since, since + records // 100, subscribe=plain)
    share = (part.bytes_read + part.looked_at_bytes) / (whole.bytes_read + whole.looked_at_bytes)
    read, looked_at = f"{part.bytes_read / 1e6:.1f} of {whole.bytes_read / 1e6:.0f} MB", part.looked_at_bytes / 1e6
    line = (
        f"A range of 1 % of the time: {part.segments_read} of {whole.segments_read} segments, {read} read and"
        f" {looked_at:.1f} MB looked at to plan: {share:.1%} of a full scan (at most 5 % was the aim)."
    )
    return [line]


def lines_of(found: dict[Subject, list[tuple[float, float]]], records: int, more: list[str]) -> list[str]:
    rates = {
        subject: [records / statistics.median(run[column] for run in runs) / 1e3 for column in (0, 1)]
        for subject, runs in found.items()
    }
    rows = []
    for subject, (rate, per_cpu) in rates.items():
        best = [
            max(rates[Subject(subject.codec, subject.partitions, name)][column] for name in CONNECTOR)
            for column in (0, 1)
        ]
        against = f"{rate / best[0]:.2f}", f"{per_cpu / best[1]:.2f}"
        rows.append([subject.way, subject.codec, str(subject.partitions), f"{rate:.0f}", f"{per_cpu:.0f}", *against])
    head = ["way in", "codec", "partitions", "k rows/s", "k rows per CPU s", "rate over the connector's best"]
    head.append("rows per CPU s over its best")
    low, high = VALUE_BYTES
    rounds = len(next(iter(found.values())))
    about = (
        f"{report.machine()}; {records:,} records with values of {low} to {high} B in each topic,"
        f" medians of {rounds} rounds."
    )
    return [about, "", *report.table(head, rows), "", *more]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write-docs", action="store_true")
    chosen = parser.parse_args()
    try:
        found, more = run(chosen.records, chosen.rounds)
    except pipeline_jars.NoJarsError as fault:
        print(fault, file=sys.stderr)
        return 1
    lines = lines_of(found, chosen.records, more)
    print("\n".join(lines))
    if chosen.write_docs:
        report.replace(report.PAGE, "pipeline", lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
