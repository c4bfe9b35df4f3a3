"""How late a stream's rows are at 50,000 a second, and how quickly topics are archived by one core and by two.

    python -m benchmarks.pipeline_live [--rate 50000] [--seconds 40] [--records 2000000] [--write-docs]

A process sends records at that rate with the time of each. A query of Spark (`local[2]`) reads them as they come, with horolog's source
and with Spark's connector in turn, and notes for each row how old it is when a task has it. `horolog pipeline archive` writes a topic
of twelve partitions to tables. Needs the extra `pipeline`, Java, and Maven for the connector's jars.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import pipeline, pipeline_jars, report
from tests.support.broker_process import PROJECT, BrokerProcess

if TYPE_CHECKING:
    import pyarrow as pa

PARTITIONS = 4
WARM_UP_SECONDS = 10
"""Rows sent in this time are not counted: the JVM compiles its code meanwhile."""
VALUE_BYTES = 100
KINDS = {"kafka": "connector", "horolog": "horolog"}
TABLES = ("parquet", "delta", "iceberg")


def send(address: str, topic: str, rate: int, seconds: float) -> None:
    """So many records a second, evenly, each with the time at which it was due."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "linger.ms": 5, "queue.buffering.max.messages": 1_000_000})
    value = b"v" * VALUE_BYTES
    began = time.time()
    sent = 0
    while (passed := time.time() - began) < seconds:
        due = int(passed * rate)
        for number in range(sent, due):
            at_ms = int((began + number / rate) * 1000)
            producer.produce(topic, value, partition=number % PARTITIONS, timestamp=at_ms)
        sent = max(sent, due)
        producer.poll(0)
        time.sleep(0.002)
    producer.flush(60)


def ages(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """Per millisecond of the sending second, how old rows are and how many are that old."""
    import time

    import pyarrow as pa

    for batch in batches:
        sent = pa.Table.from_batches([batch])
        now_ms = time.time_ns() // 1_000_000
        counted = sent.group_by("sent_ms").aggregate([("sent_ms", "count")])
        old = pa.array([now_ms - each for each in counted["sent_ms"].to_pylist()], pa.int64())
        columns = [counted["sent_ms"].combine_chunks(), old, counted["sent_ms_count"].combine_chunks()]
        yield pa.RecordBatch.from_arrays(columns, names=["sent_ms", "age_ms", "rows"])


def streamed(spark: Any, broker: BrokerProcess, kind: str, rate: int, seconds: float, scratch: Path) -> dict[str, Any]:
    topic = f"live-{kind}"
    pipeline.make_topic(broker, topic, PARTITIONS)
    options = {"kafka.bootstrap.servers": broker.address, "subscribe": topic, "startingOffsets": "earliest"}
    rows = spark.readStream.format(kind).options(**options).load().selectExpr("unix_millis(timestamp) as sent_ms")
    found = rows.mapInArrow(ages, "sent_ms long, age_ms long, rows long")
    checkpoint = str(scratch / f"checkpoint-{kind}")
    query = found.writeStream.format("memory").queryName(kind).option("checkpointLocation", checkpoint).start()
    clock = pipeline.Clock(spark.sparkContext._gateway.proc.pid)  # noqa: SLF001 - nothing else names the process that Spark runs in
    began_ms = time.time_ns() // 1_000_000
    _, cpu = clock.read()
    command = [sys.executable, "-m", "benchmarks.pipeline_live", "--send", broker.address, topic]
    subprocess.run([*command, "--rate", str(rate), "--seconds", str(seconds)], check=True, cwd=PROJECT)
    query.processAllAvailable()
    cpu = clock.read()[1] - cpu
    query.stop()
    counted = [(row.age_ms, row.rows) for row in spark.table(kind).collect()]
    assert sum(count for _, count in counted) >= rate * seconds * 0.95, "the sender did not keep its rate"
    warm = began_ms + WARM_UP_SECONDS * 1000
    steady = spark.table(kind).where(f"sent_ms >= {warm}").groupBy("age_ms").sum("rows").orderBy("age_ms").collect()
    return {"cpu": cpu / seconds, **{f"p{share}": percentile(steady, share) for share in (50, 99, 99.9)}}


def percentile(counted: list[Any], share: float) -> int:
    """Of ages with how many rows have them, in order."""
    left = sum(count for _, count in counted) * share / 100
    for age, count in counted:
        left -= count
        if left <= 0:
            return int(age)
    raise AssertionError("no row came")


def archived(broker: BrokerProcess, topic: str, kind: str, cores: int, scratch: Path) -> float:
    """Rows a second, Spark's start not counted."""
    command = [sys.executable, "-m", "horolog", "pipeline", "archive", "--bootstrap", broker.address, "--topic", topic]
    command += ["--to", str(scratch / f"{kind}-{cores}"), "--format", kind, "--master", f"local[{cores}]", "-o", "json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=PROJECT)
    said = json.loads(done.stdout.strip().splitlines()[-1])
    return float(said["records"] / said["seconds"])


def run(rate: int, seconds: float, records: int) -> list[str]:
    from horolog.pipeline import session

    lines = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        broker = BrokerProcess(scratch / "data", pipeline.SETTINGS).start()
        try:
            jars = ",".join(map(str, pipeline_jars.jars()))
            spark = session("local[2]", "horolog benchmark", **{"spark.jars": jars, "spark.driver.memory": "2g"})
            rows = []
            for kind, name in KINDS.items():
                told = streamed(spark, broker, kind, rate, seconds, scratch)
                ages_told = [f"{told[share]:,}" for share in ("p50", "p99", "p99.9")]
                rows.append([name, *ages_told, f"{told['cpu']:.2f}"])
                print(rows[-1], flush=True)
            spark.stop()
            head = [f"{rate:,} rows a second", "p50 ms", "p99 ms", "p99.9 ms", "cores used by Spark"]
            lines += [*report.table(head, rows), ""]
            pipeline.fill(broker, "none", 12, records)
            rows = []
            for kind in TABLES:
                rates = [archived(broker, pipeline.topic_of("none", 12), kind, cores, scratch) for cores in (1, 2)]
                rows.append([kind, *(f"{each / 1e3:.0f}" for each in rates), f"{rates[1] / rates[0]:.2f}"])
                print(rows[-1], flush=True)
            head = [f"archive of {records:,} rows", "k rows/s, 1 core", "2 cores", "growth"]
            lines += report.table(head, rows)
        finally:
            broker.kill()
    return [f"{report.machine()}.", "", *lines]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--send", nargs=2, metavar=("ADDRESS", "TOPIC"), help=argparse.SUPPRESS)
    parser.add_argument("--write-docs", action="store_true")
    chosen = parser.parse_args()
    if chosen.send:
        send(*chosen.send, chosen.rate, chosen.seconds)
        return 0
    lines = run(chosen.rate, chosen.seconds, chosen.records)
    print("\n".join(lines))
    if chosen.write_docs:
        report.replace(report.PAGE, "pipeline-live", lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
