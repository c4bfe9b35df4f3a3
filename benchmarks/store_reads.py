"""What it takes to read old data from a store: a topic that is much larger than the cache, and look-ups by time with an empty disk.

    python -m benchmarks.store_reads [--mebibytes 340] [--segments 2000] [--look-ups 10000] [--json FILE] [--write-docs]

Topics are written through one broker and imported into a prefix of a real S3 server on this machine. Another broker with an empty disk then
serves them, behind a proxy that counts the requests and makes each GET take 10 ms for look-ups. Every byte that consumers get is compared,
and so is the answer of every look-up: record n has the time of the first one plus n milliseconds.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import crc32c

from benchmarks import fill, frames, process, report
from benchmarks.consume import BATCH, Reader
from benchmarks.peer import BrokerError, Peer
from tests.support import s3_server, store_proxy
from tests.support.broker_process import BrokerProcess
from tests.support.store_proxy import StoreProxy, Weather
from tests.support.style import PROJECT

LARGE, MANY = "large", "many"
CONSUMERS = 4
TIMES_THE_CACHE = 20
MIB = 1 << 20
RECORD_BYTES = 1_000
LARGE_SEGMENT_BYTES = 32 * MIB
BATCHES_IN_SEGMENT = 4
SMALL_BATCH_BYTES, SMALL_RECORD_BYTES = 4_000, 100
GET_S = 0.010
WITHIN_S = 300.0
RETRY_S = 0.05
URL = "s3://lake/reads"
DEFAULT_JSON = Path("build/benchmarks/store_reads.json")

Row = tuple[str, str]


class Walk(NamedTuple):
    """What one consumer got of a topic from its start to its end."""

    size_bytes: int
    crc: int
    seconds: float
    refused: int
    """Answers that clients retry by themselves."""


def walk(address: str, topic: str) -> Walk:
    reader = Reader(address, topic, 4, RECORD_BYTES)
    began, offset, size_bytes, crc, refused = time.perf_counter(), 0, 0, 0, 0
    while offset < reader.end:
        try:
            answered = reader.fetch(offset)
        except BrokerError:
            refused += 1
            time.sleep(RETRY_S)
            answered = 0
        end, following = whole_batches(reader, answered)
        if following:
            crc = crc32c.crc32c(reader.view[reader.records_at : end], crc)
            size_bytes += end - reader.records_at
        offset = following or offset
        if time.perf_counter() - began > WITHIN_S:
            raise BrokerError(f"{topic} is read up to {offset} only after {WITHIN_S} s")
    reader.close()
    return Walk(size_bytes, crc, time.perf_counter() - began, refused)


def whole_batches(reader: Reader, answered: int) -> tuple[int, int]:
    """Where the last whole batch of an answer ends, and the offset behind it; 0 for an answer without one."""
    at, following = reader.records_at, 0
    while at + frames.BATCH_HEADER_SIZE <= answered:
        base, length, _, delta = BATCH.unpack_from(reader.buffer, at)
        if at + 12 + length > answered:
            break
        at += 12 + length
        following = base + delta + 1
    return at, following


def walks(address: str, topic: str) -> list[Walk]:
    """Several consumers at the same time."""
    with ThreadPoolExecutor(CONSUMERS) as pool:
        return list(pool.map(lambda _: walk(address, topic), range(CONSUMERS)))


def rate_of(found: Sequence[Walk]) -> float:
    """MiB a second of all together."""
    return sum(one.size_bytes for one in found) / max(one.seconds for one in found) / MIB


def look_ups(address: str, topic: str, numbers: Sequence[int]) -> list[float]:
    """The seconds of look-ups for the times of records, one after the other. Raises BrokerError for a wrong answer."""
    took = []
    with Peer(address) as asker:
        for number in numbers:
            began = time.perf_counter()
            offset = asker.offset_at(topic, fill.FIRST_TIMESTAMP + number)
            took.append(time.perf_counter() - began)
            if offset != number:
                raise BrokerError(f"the look-up for record {number} found {offset}")
    return took


def in_ms(took: Sequence[float]) -> str:
    ranked = sorted(took)
    p99 = ranked[min(len(ranked) - 1, int(len(ranked) * 0.99))]
    return f"p50 {statistics.median(ranked) * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms"


class Serving(NamedTuple):
    """A broker that serves."""

    address: str
    pid: int


@contextmanager
def over_store(
    endpoint: str, environment: dict[str, str], folder: Path, cache_bytes: int, topics: Sequence[str] = (LARGE, MANY)
) -> Iterator[Serving]:
    """A broker with an empty disk over the prefix."""
    (port,) = process.free_ports(1)
    folder.mkdir()
    command = [sys.executable, "-m", "tests.support.store_broker", URL, "1", str(port), str(folder)]
    with subprocess.Popen(
        [*command, f"horolog.store.cache.bytes={cache_bytes}"],
        cwd=PROJECT,
        env=os.environ | environment | {"AWS_ENDPOINT_URL": endpoint, "HOME": "/nonexistent"},
        stdout=subprocess.PIPE,
        text=True,
    ) as broker:
        try:
            assert broker.stdout is not None
            if broker.stdout.readline() != "ready\n":
                raise BrokerError("the broker does not start")
            address = f"127.0.0.1:{port}"
            wait_until_served(address, topics)
            yield Serving(address, broker.pid)
        finally:
            broker.terminate()


def fill_large(address: str, mebibytes: int) -> None:
    records = mebibytes * MIB // (RECORD_BYTES + fill.RECORD_OVERHEAD)
    in_file = {"segment.bytes": str(LARGE_SEGMENT_BYTES)}
    fill.ensure(address, LARGE, records, size_bytes=RECORD_BYTES, batch_bytes=100_000, settings=in_file)


def import_data(folder: Path, endpoint: str, environment: dict[str, str]) -> None:
    """Put the topics of a broker that has stopped into the prefix."""
    command = [sys.executable, "-m", "horolog", "store", "import", str(folder), URL, "--endpoint", endpoint]
    at = os.environ | environment | {"HOME": "/nonexistent"}
    subprocess.run(command, cwd=PROJECT, env=at, check=True, stdout=sys.stderr)


def wait_until_served(address: str, topics: Sequence[str]) -> None:
    """The broker takes the topics over."""
    until = time.monotonic() + WITHIN_S
    with Peer(address) as asker:
        for topic in topics:
            while time.monotonic() < until:
                with suppress(BrokerError):
                    asker.offset_at(topic, -1)
                    break
                time.sleep(0.1)


def same_bytes(found: Sequence[Walk]) -> None:
    sums = {(one.size_bytes, one.crc) for one in found}
    if len(sums) != 1:
        raise BrokerError(f"consumers got different bytes: {sums}")


WHAT = f"{CONSUMERS} consumers from the start, {TIMES_THE_CACHE} times the cache"


def read_large(broker: Serving, local: Sequence[Walk]) -> Iterator[Row]:
    """With nothing between the broker and the store."""
    used_s = process.cpu_seconds(broker.pid)
    found = walks(broker.address, LARGE)
    used_s = process.cpu_seconds(broker.pid) - used_s
    same_bytes([*found, *local])
    own, other = rate_of(found), rate_of(local)
    yield WHAT, f"{own:.0f} MiB/s, {own / other:.2f} of the rate from local files ({other:.0f} MiB/s); sums equal"
    read_bytes = sum(one.size_bytes for one in found)
    yield f"{WHAT}: processor time of the broker for a GiB", f"{used_s / read_bytes * MIB * 1024:.2f} s"
    yield f"{WHAT}: answers that clients retry", str(sum(one.refused for one in found))


def count_large(address: str, local: Sequence[Walk], proxy: StoreProxy) -> Iterator[Row]:
    before = proxy.requests["GET"]
    same_bytes([*walks(address, LARGE), *local])
    blocks = -(-local[0].size_bytes // MIB)
    gets = proxy.requests["GET"] - before
    yield f"{WHAT}: GETs", f"{gets} for {blocks} blocks, each wanted by {CONSUMERS} consumers"


def look_up_many(
    address: str, proxy: StoreProxy, segments: int, in_segment: int, count: int, chance: random.Random
) -> Iterator[Row]:
    """The first look-up in each segment, then in the same segments at other places, then the same ones again."""
    order = list(range(segments))
    chance.shuffle(order)
    first = [number * in_segment + chance.randrange(in_segment) for number in order]
    rest = [chance.choice(order) * in_segment + chance.randrange(in_segment) for _ in range(max(0, count - segments))]
    what = f"look-ups over {segments} segments, a GET takes {GET_S * 1000:.0f} ms"
    for name, numbers in (("the first in each", first), ("others", rest), ("the same again", first[:1_000])):
        if not numbers:
            continue
        before = proxy.requests["GET"]
        took = look_ups(address, MANY, numbers)
        gets = (proxy.requests["GET"] - before) / len(numbers)
        yield f"{what}: {name}", f"{in_ms(took)}; {gets:.2f} GETs each, all {len(numbers)} exact"


def rows(mebibytes: int, segments: int, count: int) -> Iterator[Row]:
    of_batch = SMALL_BATCH_BYTES // (SMALL_RECORD_BYTES + fill.RECORD_OVERHEAD)
    in_segment = of_batch * BATCHES_IN_SEGMENT
    with tempfile.TemporaryDirectory() as name, s3_server.running(Path(name)) as server:
        folder, environment = Path(name), server.environment
        local = BrokerProcess(folder / "data").start()
        fill_large(local.address, mebibytes)
        in_file = {"segment.bytes": str(BATCHES_IN_SEGMENT * SMALL_BATCH_BYTES)}
        many = {"size_bytes": SMALL_RECORD_BYTES, "batch_bytes": SMALL_BATCH_BYTES, "settings": in_file}
        fill.ensure(local.address, MANY, segments * in_segment, **many)  # type: ignore[arg-type]
        beside = walks(local.address, LARGE)
        local.stop()
        import_data(folder / "data", server.endpoint, environment)
        cache_bytes = beside[0].size_bytes // TIMES_THE_CACHE
        with over_store(server.endpoint, environment, folder / "small", cache_bytes) as broker:
            yield from read_large(broker, beside)
        with store_proxy.running(int(server.endpoint.rpartition(":")[2])) as proxy:
            with over_store(proxy.endpoint, environment, folder / "counted", cache_bytes) as broker:
                yield from count_large(broker.address, beside, proxy)
            with over_store(proxy.endpoint, environment, folder / "empty", 10 << 30) as broker:
                proxy.weather = Weather(get_s=GET_S)
                yield from look_up_many(broker.address, proxy, segments, in_segment, count, random.Random(1))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.store_reads", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--mebibytes",
        type=int,
        default=340,
        help="the size of the large topic; the cache takes a twentieth, and at least 16 MiB",
    )
    parser.add_argument("--segments", type=int, default=2_000)
    parser.add_argument("--look-ups", type=int, default=10_000)
    parser.add_argument("--json", type=Path, default=DEFAULT_JSON)
    parser.add_argument("--write-docs", action="store_true", help="rewrite the table of docs/measurements.md")
    chosen = parser.parse_args(arguments)
    found = report.load(chosen.json)
    for row in rows(chosen.mebibytes, chosen.segments, chosen.look_ups):
        print(*row, sep="  ", flush=True)
        found[row[0]] = row[1]
    report.save(chosen.json, found)
    if chosen.write_docs:
        report.replace(report.PAGE, "store-reads", table(found))
    return 0


def table(found: dict[str, str]) -> list[str]:
    return [f"{report.machine()}.", "", *report.table(["", "horolog"], [[*one] for one in found.items()])]


if __name__ == "__main__":
    sys.exit(main())
