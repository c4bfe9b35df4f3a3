"""What durability costs: syncs in a second and records that share one, and starts after a clean stop and after SIGKILL.

    python -m benchmarks.trust [--quick] [--json FILE] [--write-docs]
    python -m benchmarks.trust --workers 1 2 3      # stops and starts with many partitions alone, of so many workers each
    python -m benchmarks.trust --workers 10 --partitions 10000 --connections 5000    # and memory, with so many clients

Producers of `acks=all` send one record each and wait; the broker's own metrics say how many syncs there were. Starts run from the
start of the process to the first answer that names every partition. After SIGKILL a start is measured on logs of two sizes, none
of it synced by the producer (`acks=1`); what 1 and 10 GB would take is the line through both.
"""

import argparse
import resource
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks import brokers, fill, frames, process, pump, report
from benchmarks.brokers import HOROLOG, Running
from benchmarks.peer import BrokerError, Peer

TOPIC = "topic"
RECORD_BYTES, BATCH_BYTES = 100, 100_000
ACKS_ALL = -1
CLEAN_STOP = ".kafka_cleanshutdown"
SEALS = "horolog-seals"
STARTS_EACH = 5
LONGEST_STOP_SECONDS = 600.0
MEBIBYTE, GIGABYTE = 1 << 20, 10**9
MANY_PARTITIONS = 3_500
SETTINGS = {"log.retention.ms": "-1"}
DEFAULT_JSON = Path("build/benchmarks/trust.json")

Row = tuple[str, str]
Plan = tuple[float, list[int], int, int]  # seconds a load, producers, partitions, bytes of the smaller log
FULL: Plan = (5.0, [1, 8, 64, 256], MANY_PARTITIONS, 512 * MEBIBYTE)
QUICK: Plan = (2.0, [1, 64], 350, 32 * MEBIBYTE)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trust", description="What durability costs.")
    parser.add_argument("--quick", action="store_true", help="under a minute: smaller logs, fewer partitions")
    parser.add_argument("--json", type=Path, default=DEFAULT_JSON)
    parser.add_argument("--write-docs", action="store_true", help="rewrite the table of docs/measurements.md")
    parser.add_argument(
        "--workers", type=int, nargs="+", help="stops and starts with many partitions alone, of so many workers each"
    )
    parser.add_argument("--partitions", type=int, help="with --workers: so many instead of those of the plan")
    parser.add_argument("--connections", type=int, default=0, help="with --workers: so many clients stay at the end")
    chosen = parser.parse_args(arguments)
    plan = QUICK if chosen.quick else FULL
    partitions = chosen.partitions or plan[2]
    if chosen.workers is None:
        rows = list(measure(*plan))
    else:
        rows = list(with_workers(chosen.workers, partitions, chosen.connections))
    report.save(chosen.json, {"machine": report.machine(), "figures": dict(rows)})
    lines = report.table(["", "measured"], rows)
    print("\n".join(lines))
    if chosen.write_docs:
        report.replace(report.PAGE, "trust", [f"{report.machine()}.", "", *lines])
    return 0


def measure(seconds: float, producers: list[int], partitions: int, log_bytes: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="horolog-trust-") as folder:
        root = Path(folder)
        yield from syncs(root / "syncs", seconds, producers)
        yield from starts_with_many(root / "many", partitions)
        yield from starts_with_one(root / "one", log_bytes)


def with_workers(counts: list[int], partitions: int, connections: int = 0) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="horolog-trust-") as folder:
        for count in counts:
            for name, measured in starts_with_many(Path(folder) / str(count), partitions, count, connections):
                yield f"{'1 process' if count == 1 else f'{count} workers'}: {name}", measured


# -- syncs


def syncs(root: Path, seconds: float, producers: list[int]) -> Iterator[Row]:
    port = process.free_ports(1)[0]
    broker = brokers.start(HOROLOG, root, SETTINGS | {"horolog.http.listen": f"127.0.0.1:{port}"})
    try:
        with Peer(broker.address) as peer:
            peer.create_topics([TOPIC], 1, {})
        for count in producers:
            before = sync_count(port)
            records = produce_for(broker.address, count, seconds)
            made = sync_count(port) - before
            name = "1 producer" if count == 1 else f"{count} producers"
            yield f"syncs/s, {name}", f"{made / seconds:,.0f}"
            yield f"records a sync, {name}", f"{records / max(1, made):,.1f}"
            yield f"records/s on the disk, {name}, one a request", f"{records / seconds:,.0f}"
    finally:
        broker.stop()
        shutil.rmtree(root)


def sync_count(port: int) -> int:
    """How many syncs the broker has counted."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        lines = answer.read().decode().splitlines()
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith("horolog_sync_seconds_count"))


def produce_for(address: str, producers: int, seconds: float) -> int:
    """Every producer sends a record when its last one is acknowledged; how many were."""
    frame = frames.produce(
        3, TOPIC, frames.batch(frames.payloads(RECORD_BYTES, 1), int(time.time() * 1000)), acks=ACKS_ALL
    )
    acknowledged = 0
    with selectors.DefaultSelector() as waiting:
        links = [pump.connect(address) for _ in range(producers)]
        try:
            for link in links:
                waiting.register(link, selectors.EVENT_READ)
                link.sendall(frame)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                for key, _ in waiting.select(1.0):
                    assert isinstance(key.fileobj, socket.socket)
                    take_answer(key.fileobj)
                    acknowledged += 1
                    key.fileobj.sendall(frame)
        finally:
            for link in links:
                link.close()
    return acknowledged


def take_answer(link: socket.socket) -> None:
    head = link.recv(4, socket.MSG_WAITALL)
    answer = head + link.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
    at = frames.produce_error_at(TOPIC)
    if answer[at : at + 2] != b"\0\0":
        raise BrokerError(f"refused: {answer!r}")


# -- starts


def starts_with_many(root: Path, partitions: int, workers: int = 1, connections: int = 0) -> Iterator[Row]:
    settings = SETTINGS | ({brokers.WORKERS: str(workers)} if workers > 1 else {})
    broker = brokers.start(HOROLOG, root, settings)
    name = f"{partitions:,} partitions of one record"
    try:
        with Peer(broker.address) as peer:
            peer.create_topics([TOPIC], partitions, {})
        write_to_each(broker.address)
        yield f"clean stop, {name}, none of them synced before", stop_cleanly(broker)
        broker = brokers.start(HOROLOG, root, settings, partitions=partitions)
        yield f"start after a clean stop, {name}", seconds_of(broker)
        yield f"clean stop, {name}, none written to since the start", stop_cleanly(broker)
        broker = brokers.start(HOROLOG, root, settings, partitions=partitions)
        write_to_each(broker.address)
        yield f"clean stop, {name}, each written to since the start", stop_cleanly(broker)
        broker = brokers.start(HOROLOG, root, settings, partitions=partitions)
        write_to_each(broker.address)
        kill(broker)
        broker = brokers.start(HOROLOG, root, settings, partitions=partitions)
        yield f"start after SIGKILL, {name}, each written to", seconds_of(broker)
        if connections:
            yield from with_clients(broker, connections, name)
    finally:
        broker.stop()
    shutil.rmtree(root)


def with_clients(broker: Running, connections: int, name: str) -> Iterator[Row]:
    """Memory before and after so many clients have connected and asked what the broker serves; they stay while it stops."""
    yield f"resident, all processes, {name}", f"{resident_mib(broker):,.0f} MiB"
    with ExitStack() as stack:
        for _ in range(connections):
            stack.enter_context(Peer(broker.address)).versions()
        clients = f"{connections:,} clients"
        yield f"resident, all processes, {name}, {clients}", f"{resident_mib(broker):,.0f} MiB"
        yield f"clean stop, {name}, {clients}", stop_cleanly(broker)


def resident_mib(broker: Running) -> float:
    """Of the process and its workers; pages that they share count for each of them."""
    return sum(map(process.resident_kib, [broker.pid, *process.children(broker.pid)])) / 1024


def write_to_each(address: str) -> None:
    """One record into each partition, at its leader."""
    records = frames.batch(frames.payloads(RECORD_BYTES, 1), fill.FIRST_TIMESTAMP)
    with Peer(address) as asker:
        placed = asker.placement([TOPIC])
    with ExitStack() as stack:
        peers = {node: stack.enter_context(Peer(one)) for node, one in placed.addresses.items()}
        for partition, leader in placed.leaders[TOPIC].items():
            peers[leader].call(frames.produce(3, TOPIC, records, partition=partition))


def starts_with_one(root: Path, log_bytes: int) -> Iterator[Row]:
    """The log grows from one size to twice that, and the broker is killed at both."""
    points: list[tuple[int, float]] = []
    for times in (1, 2):
        folder = root / str(times)
        broker = brokers.start(HOROLOG, folder, SETTINGS)
        records = times * log_bytes // (RECORD_BYTES + fill.RECORD_OVERHEAD)
        fill.ensure(
            broker.address,
            TOPIC,
            records,
            size_bytes=RECORD_BYTES,
            batch_bytes=BATCH_BYTES,
            settings={"segment.bytes": str(2**31 - 1)},
        )
        kill(broker)
        size = sum(path.stat().st_size for path in folder.glob(f"**/{TOPIC}-0/*.log"))
        broker, took = start_without_seals(folder)
        name = f"one partition of {size / MEBIBYTE:,.0f} MiB in one segment that nothing vouches for"
        yield f"start after SIGKILL, {name}", f"{took:.2f} s"
        points.append((size, took))
        broker.stop()
        if times == 2:
            broker = brokers.start(HOROLOG, folder, SETTINGS, partitions=1)
            yield f"start after a clean stop, one partition of {size / MEBIBYTE:,.0f} MiB", seconds_of(broker)
            broker.stop()
        shutil.rmtree(folder)
    yield from extrapolated(points)


def start_without_seals(folder: Path) -> tuple[Running, float]:
    """The broker runs; the quickest of a few starts that had to read all of the log, for whatever else runs makes them slower only."""
    taken: list[float] = []
    while True:
        for path in folder.glob(f"**/{SEALS}"):
            path.unlink()
        broker = brokers.start(HOROLOG, folder, SETTINGS, partitions=1)
        taken.append(broker.ready_seconds)
        if len(taken) == STARTS_EACH:
            return broker, min(taken)
        kill(broker)


def stop_cleanly(broker: Running) -> str:
    """Seconds from SIGTERM to the end of the process, and processor time that all of its processes took for it."""
    assert broker.process is not None
    ended_before = _seconds_of_ended()
    used_before = sum(map(process.cpu_seconds, [broker.pid, *process.children(broker.pid)]))
    began = time.monotonic()
    broker.process.send_signal(signal.SIGTERM)
    broker.process.wait(LONGEST_STOP_SECONDS)
    took = time.monotonic() - began
    if not (broker.data / CLEAN_STOP).exists():
        raise BrokerError("the stop was not clean")
    return f"{took:.2f} s ({_seconds_of_ended() - ended_before - used_before:.1f})"


def _seconds_of_ended() -> float:
    """Processor time of the processes that were started here, and by those, and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def extrapolated(points: list[tuple[int, float]]) -> Iterator[Row]:
    """The line through two measurements, if they differ: a log that is longer is not said to be as quick or quicker."""
    (size, took), (larger, took_larger) = points
    slope = (took_larger - took) / (larger - size)
    for target in (GIGABYTE, 10 * GIGABYTE):
        what = f"start after SIGKILL, {target // GIGABYTE} GB that nothing vouches for (reckoned from these)"
        yield what, f"{took + slope * (target - size):.2f} s" if slope > 0 else "the two do not differ"


def seconds_of(broker: Running) -> str:
    return f"{broker.ready_seconds:.2f} s"


def kill(broker: Running) -> None:
    assert broker.process is not None
    broker.process.send_signal(signal.SIGKILL)
    broker.process.wait(20)


if __name__ == "__main__":
    sys.exit(main())
