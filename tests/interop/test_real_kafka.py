"""A data folder goes from a real Kafka to horolog and back: records, lookups and index files stay what they are.

Each test runs brokers of both kinds one after the other over one folder. Needs Java and the jars of real releases
(`python -m benchmarks.kafka fetch VERSION`).
"""

import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks import kafka
from horolog.broker.log.integrity import set_aside
from horolog.broker.log.integrity.set_aside import Range
from horolog.protocol.records.entries import iter_records
from horolog.protocol.records.record import Record
from tests.support.broker_process import BrokerProcess
from tests.vendor.wire_prober.core import Case, Ctx, Target
from tests.vendor.wire_prober.wire import batch, msg, wrap

pytestmark = [pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.timeout(300)]

OLD, NEW = "0.10.2.2", "3.9.2"
SEGMENT_BYTES, INTERVAL_BYTES = 4000, 300
LOG_SETTINGS = {"log.segment.bytes": SEGMENT_BYTES, "log.index.interval.bytes": INTERVAL_BYTES, "log.retention.ms": -1}
THEIRS, OURS = "begun-by-kafka", "begun-by-horolog"
BASE_MS = 1_600_000_000_000


@pytest.fixture(params=[OLD, NEW])
def release(request: pytest.FixtureRequest) -> str:
    try:
        kafka.libs(request.param)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {request.param}: {error}")
    return str(request.param)


@contextmanager
def context(address: str) -> Iterator[Ctx]:
    host, _, port = address.rpartition(":")
    made = Ctx(Target(host, int(port)), Case("real", "", None, {}, "", False))
    try:
        yield made
    finally:
        made.close()


@contextmanager
def real(release: str, data: Path) -> Iterator[Ctx]:
    with kafka.running(release, data=data, **LOG_SETTINGS) as node, context(node.address) as wire:
        yield wire


@contextmanager
def horolog(release: str, data: Path) -> Iterator[Ctx]:
    node_id = {"node.id": 0 if release == OLD else 1}  # who it is says the folder's meta.properties
    broker = BrokerProcess(data, {key: str(value) for key, value in (LOG_SETTINGS | node_id).items()}).start()
    try:
        with context(broker.address) as wire:
            yield wire
    finally:
        assert broker.stop() == 0
        assert "Traceback" not in broker.log()


def old_sets(rng: random.Random, count: int) -> Iterator[bytes]:
    """v1 sets with times in any order, plain and compressed, and now and then a v0 message."""
    for number in range(count):
        times = [BASE_MS + rng.randrange(100_000) for _ in range(rng.randrange(1, 7))]
        inner = b"".join(msg(b"value %d" % number * 4, b"key", index, 1, ts=time) for index, time in enumerate(times))
        codec = rng.choice([None, "gzip", "snappy", "lz4"])
        yield wrap(codec, inner, 1, max(times), len(times) - 1) if codec else inner


def new_batches(rng: random.Random, count: int) -> Iterator[bytes]:
    """Batches with times in any order, headers, every codec; the first come from an idempotent producer."""
    for number in range(count):
        values = [
            {"value": b"value %d" % number * 4, "ts": BASE_MS + rng.randrange(100_000), "headers": [(b"h", b"1")]}
            for _ in range(rng.randrange(1, 7))
        ]
        yield batch(values, codec=rng.choice([None, "gzip", "snappy", "lz4", "zstd"]))


def produce(wire: Ctx, release: str, topic: str, seed: int, count: int) -> None:
    rng = random.Random(seed)
    version, sets = (2, old_sets(rng, count)) if release == OLD else (9, new_batches(rng, count))
    connection = wire.conn()
    for records in sets:
        assert wire.produce(version, topic, records, acks=-1, conn=connection)["error_code"] == 0


def produce_idempotent(wire: Ctx, topic: str, sequences: range) -> None:
    """One producer whose sequences go on over all brokers of a folder."""
    for sequence in sequences:
        records = batch([b"idempotent"], ts=BASE_MS, pid=4711, epoch=0, seq=sequence)
        assert wire.produce(9, topic, records, acks=-1)["error_code"] == 0, sequence


def end_offset(wire: Ctx, topic: str) -> int:
    """A Kafka that has just started says for a while that it does not lead the partition, or knows no topic."""
    deadline = time.monotonic() + 60
    while (answer := wire.list_offsets(1, topic, -1))["error_code"] != 0:
        assert time.monotonic() < deadline, answer
        time.sleep(0.1)
    return int(answer["offset"])


def ask_one(wire: Ctx) -> None:
    """Of several workers the one that is asked is to lead both topics."""
    if wire.t.asked is not None:
        for topic in (THEIRS, OURS):
            wire.lead_here(wire.conn(), topic, 1)
            end_offset(wire, topic)


def read(wire: Ctx, release: str, topic: str) -> list[Record]:
    version = 3 if release == OLD else 10
    end = end_offset(wire, topic)
    connection = wire.conn()
    records: list[Record] = []
    offset = 0
    while offset < end:
        asked = {
            "topics": [{"topic": topic, "partitions": [{"partition": 0, "fetch_offset": offset}]}],
            "max_wait_ms": 0,
        }
        answer = connection.call("Fetch", version, asked)["responses"][0]["partitions"][0]
        assert answer["error_code"] == 0
        found = [record for record in iter_records(answer["records"]) if record.offset >= offset]
        assert found, offset
        records += found
        offset = found[-1].offset + 1
    return records


def check_look_ups(wire: Ctx, topic: str, records: list[Record]) -> None:
    connection = wire.conn()
    for target in sorted(
        {record.timestamp + step for record in records[::7] for step in (0, 1)} | {0, BASE_MS + 200_000}
    ):
        expected = next(((one.offset, one.timestamp) for one in records if one.timestamp >= target), (-1, -1))
        found = wire.list_offsets(1, topic, target, conn=connection)
        assert (found["error_code"], found["offset"], found["timestamp"]) == (0, *expected), target


def create(wire: Ctx, name: str) -> None:
    assert wire.create(name, 1) == 0
    wire.wait_topic(name)


def dump(release: str, *arguments: str) -> str:
    command = [
        "java",
        "-Xmx256m",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{kafka.libs(release)}/*",
        "kafka.tools.DumpLogSegments",
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr  # what it finds wrong goes to the latter


def check_index_files(release: str, folder: Path) -> None:
    """Kafka's own tool finds nothing wrong with any index file."""
    segments = sorted(path.stem for path in folder.glob("*.log"))
    assert len(segments) > 3, "several segments"
    indexes = ",".join(str(folder / f"{stem}{kind}") for stem in segments for kind in (".index", ".timeindex"))
    sane = dump(release, "--files", indexes, "--index-sanity-check")
    assert sane.count("passed sanity check") == 2 * len(segments)
    verified = dump(release, "--files", indexes, "--verify-index-only")
    for complaint in ("Mismatches in", "Non-secutive", "mismatch", "out of order"):
        assert complaint not in verified, verified[-3000:]


@pytest.mark.long
def test_a_folder_goes_from_kafka_to_horolog_and_back(release: str, tmp_path: Path) -> None:
    node = tmp_path / "node"
    with real(release, node) as wire:
        create(wire, THEIRS)
        create(wire, OURS)
        produce(wire, release, THEIRS, 1, 60)
        if release == NEW:
            produce_idempotent(wire, THEIRS, range(3))
        begun = read(wire, release, THEIRS)
    with horolog(release, node / "logs") as wire:
        ask_one(wire)
        assert read(wire, release, THEIRS) == begun
        check_look_ups(wire, THEIRS, begun)
        produce(wire, release, THEIRS, 2, 60)
        produce(wire, release, OURS, 3, 120)
        if release == NEW:
            produce_idempotent(wire, THEIRS, range(3, 6))
        theirs, ours = read(wire, release, THEIRS), read(wire, release, OURS)
        assert theirs[: len(begun)] == begun
        check_look_ups(wire, THEIRS, theirs)
        check_look_ups(wire, OURS, ours)
    kept = []
    for topic in (THEIRS, OURS):
        folder = node / "logs" / f"{topic}-0"
        check_index_files(release, folder)
        kept += [folder / set_aside.file_name(Range(0, 5, 9, 3, last), 7) for last in (4, None)]
    for path in kept:
        path.write_bytes(b"kept")
    with real(release, node) as wire:
        assert read(wire, release, THEIRS) == theirs
        assert read(wire, release, OURS) == ours
        check_look_ups(wire, THEIRS, theirs)
        check_look_ups(wire, OURS, ours)
        produce(wire, release, OURS, 4, 10)
        if release == NEW:
            produce_idempotent(wire, THEIRS, range(6, 8))
        last = read(wire, release, OURS)
    assert all(path.read_bytes() == b"kept" for path in kept), "what was set aside is nothing to Kafka"
    with horolog(release, node / "logs") as wire:
        ask_one(wire)
        assert read(wire, release, OURS) == last
