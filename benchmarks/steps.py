"""The cost of each step on the way of a request, one thread, no sockets: decode, validate, append, read, look up, encode, and the whole.

    python -m benchmarks.steps [--json FILE] [--write-docs]

Figures are microseconds a call, the best of several stretches: what the code costs when nobody else uses the core.
"""

import argparse
import gc
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path

from benchmarks import fill, frames, report
from benchmarks.inside import CASES, inside
from horolog.base.clock import ManualClock
from horolog.broker.config.settings import Settings, load
from horolog.broker.config.topic_settings import TopicConfig, resolve
from horolog.broker.log.manager import LogManager
from horolog.broker.log.partition import Partition, lookups
from horolog.broker.log.storage import RealStorage
from horolog.broker.log.validation import validate
from horolog.protocol import compile as codecs
from horolog.protocol import framing
from horolog.protocol.messages import produce
from horolog.protocol.messages.fetch import FetchRequest
from horolog.protocol.messages.list_offsets import ListOffsetsRequest
from horolog.protocol.messages.produce import ProduceRequest

Step = Callable[[], object]
STRETCHES, STRETCH_SECONDS = 5, 0.08
NOW_MS = 1_700_000_000_000
TOPIC = "topic"
TOPIC_ID = bytes(range(16))
RECORDS = 200_000
SMALL_BATCH, LARGE_BATCH = 16_384, 1_000_000
DEFAULT_JSON = Path("build/benchmarks/steps.json")


def cost_us(step: Step) -> float:
    """Microseconds a call in the best stretch, the loop's own cost taken off."""
    step()
    calls = 1
    while (took := _time(step, calls)) < STRETCH_SECONDS / 4:
        calls *= 2
    calls = max(1, int(calls * STRETCH_SECONDS / took))
    best = min(_time(step, calls) for _ in range(STRETCHES)) - min(_time(_nothing, calls) for _ in range(STRETCHES))
    return max(0.0, best / calls * 1e6)


def _nothing() -> None:
    pass


def _time(step: Step, calls: int) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        step()
    return time.perf_counter() - began


def values(count: int, size_bytes: int = 100) -> list[bytes]:
    return frames.payloads(size_bytes, count)


def wire_steps() -> Iterator[tuple[str, Step]]:
    """Frames to messages and back; the versions that clients of today send, and the oldest with batches."""
    answer = _produce_response()
    for version in (3, 9):
        body = codecs.encode(_produce_request(), version)
        yield f"decode ProduceRequest v{version}, one record", partial(codecs.decode, ProduceRequest, version, body)
        yield f"encode ProduceResponse v{version}", partial(codecs.encode, answer, version)
    fetch, lookup = (memoryview(frame)[4:] for frame in (frames.fetch(4, TOPIC, 0), frames.list_offsets(TOPIC, NOW_MS)))
    start = framing.read_request_header(fetch).body_start
    yield "decode FetchRequest v4", partial(codecs.decode, FetchRequest, 4, fetch, start)
    yield "decode ListOffsetsRequest v1", partial(codecs.decode, ListOffsetsRequest, 1, lookup, start)
    reader = framing.FrameReader(100 << 20)
    small = frames.produce(3, TOPIC, frames.batch(values(1), NOW_MS))
    yield "cut one frame and read its header", lambda: framing.read_request_header(reader.feed(small)[0])


def _produce_request() -> ProduceRequest:
    partition = produce.PartitionProduceData(index=0, records=frames.batch(values(1), NOW_MS))
    topic = produce.TopicProduceData(name=TOPIC, partition_data=[partition])
    return ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[topic])


def _produce_response() -> produce.ProduceResponse:
    partition = produce.PartitionProduceResponse(index=0, error_code=0, base_offset=5)
    topic = produce.TopicProduceResponse(name=TOPIC, partition_responses=[partition])
    return produce.ProduceResponse(responses=[topic])


RECORD_SETS: tuple[tuple[str, int, Callable[[], bytes]], ...] = (
    ("v2, 1 record of 100 B", 3, lambda: frames.batch(values(1), NOW_MS)),
    ("v2, 1000 x 100 B", 3, lambda: frames.batch(values(1000), NOW_MS)),
    ("v2, 1000 x 100 B, a time each", 3, lambda: frames.batch(values(1000), NOW_MS, 3)),
    ("magic 1, 1 message of 100 B", 2, lambda: frames.message_set(values(1), NOW_MS)),
    ("magic 1, 100 x 100 B", 2, lambda: frames.message_set(values(100), NOW_MS)),
)


def validate_steps(config: TopicConfig) -> Iterator[tuple[str, Step]]:
    for name, version, make in RECORD_SETS:
        data = memoryview(make())
        check = partial(validate.check, data, 1_000_000, config, NOW_MS, produce_version=version, leader_epoch=0)
        yield f"validate {name}", check


def log_steps(logs: LogManager, config: TopicConfig) -> Iterator[tuple[str, Step]]:
    """What a partition costs: appends with their write, reads, look-ups."""
    for number, (name, version, make) in enumerate(RECORD_SETS):
        partition = logs.create("append", number, config, TOPIC_ID)
        yield f"append and write {name}", _append(partition, make(), version)
    small = filled(logs, "small", config, SMALL_BATCH)
    large = filled(logs, "large", config, LARGE_BATCH)
    places = [number * 7919 % RECORDS for number in range(997)]
    yield "read 16 KB", _each(places, lambda offset: small.read(offset, SMALL_BATCH))
    yield "read 1 MB from 16 KB batches", _each(places, lambda offset: small.read(offset, 1 << 20))
    yield "read 1 MB from 1 MB batches", _each(places, lambda offset: large.read(offset, 1 << 20))
    for name, partition in (("16 KB", small), ("1 MB", large)):
        # What a look-up finds is remembered: without this the figure would be now of one, now of the other.
        for offset in places:
            _look_up(partition, offset)
        look_up = partial(_look_up, partition)
        yield f"look up a time in {name} batches that are remembered", _each(places, look_up)


def _look_up(partition: Partition, offset: int) -> object:
    return lookups.first_at_or_after(partition, fill.FIRST_TIMESTAMP + offset)


def _append(partition: Partition, records: bytes, version: int) -> Step:
    def step() -> None:
        partition.append(records, NOW_MS, produce_version=version)
        partition.flush()

    return step


def _each(places: list[int], action: Callable[[int], object]) -> Step:
    """The action on one place after the other, round and round."""
    turns = cycle(places)
    return lambda: action(next(turns))


def filled(logs: LogManager, topic: str, config: TopicConfig, batch_bytes: int) -> Partition:
    partition = logs.create(topic, 0, config, TOPIC_ID)
    per_batch = batch_bytes // (100 + fill.RECORD_OVERHEAD)
    chosen = (values(4096) * (per_batch // 4096 + 1))[:per_batch]
    for first in range(0, RECORDS, per_batch):
        count = min(per_batch, RECORDS - first)
        partition.append(frames.batch(chosen[:count], fill.FIRST_TIMESTAMP + first, 1), NOW_MS, produce_version=3)
        partition.flush()
    return partition


@contextmanager
def scratch_logs() -> Iterator[tuple[LogManager, TopicConfig]]:
    """An empty data folder that is gone afterwards."""
    root = tempfile.mkdtemp(prefix="horolog-steps-")
    settings = default_settings()
    logs = LogManager([root], RealStorage(), ManualClock(NOW_MS), settings)
    config = resolve({"retention.ms": "-1"}, settings)
    try:
        logs.open(lambda _topic: config)
        yield logs, config
        logs.close()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def default_settings() -> Settings:
    return load(None, {}, {})[0]


def measure() -> list[tuple[str, float]]:
    found = []
    with scratch_logs() as (logs, config):
        for source in (wire_steps(), validate_steps(config), log_steps(logs, config)):
            for name, step in source:
                found.append((name, cost_us(step)))
                print(f"{found[-1][1]:10.2f} us  {name}", flush=True)
    for title, requests, prepare in CASES.values():
        with inside() as at:
            found.append((f"whole request: {title}", cost_us(prepare(at)) / requests))
        print(f"{found[-1][1]:10.2f} us  {found[-1][0]}", flush=True)
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.steps", description="The cost of each step.")
    parser.add_argument("--json", type=Path, default=DEFAULT_JSON)
    parser.add_argument("--write-docs", action="store_true", help="rewrite the table of docs/measurements.md")
    chosen = parser.parse_args(arguments)
    gc.freeze()
    found = measure()
    report.save(chosen.json, {"machine": report.machine(), "us": dict(found)})
    if chosen.write_docs:
        rows = report.table(["step", "us"], [[name, f"{cost:.2f}"] for name, cost in found])
        report.replace(report.PAGE, "steps", [f"{report.machine()}.", "", *rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
