"""What readers of old data cost the producers beside them: acknowledgements alone, beside readers at full speed, and beside slower ones.

    python -m benchmarks.store_acks [--readers 10] [--mib-per-second 0 20] [--seconds 10] [--rounds 2]

A broker serves a topic from a real S3 server on this machine, with a cache that is much smaller than the topic. One producer waits for each
acknowledgement before it sends the next record. A timer in the broker's event loop says how long its turns take, and apart from that how
long its thread waits for a processor: the broker shares the processors with the S3 server and with the readers.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import process, report
from benchmarks.consume import Reader
from benchmarks.peer import BrokerError
from benchmarks.store_reads import (
    LARGE,
    MIB,
    RECORD_BYTES,
    RETRY_S,
    Serving,
    fill_large,
    import_data,
    in_ms,
    over_store,
    whole_batches,
)
from tests.support import s3_server
from tests.support.broker_process import BrokerProcess
from tests.support.loop_probe import Tick, ticks_of

ACKS = "acks"
CACHE_BYTES = 64 * MIB
PAUSE_S = 0.01
"""Between two records."""
WARM = 20
SETTLES_S = 2.0
BUSY_FIELDS = (0, 1, 2, 5, 6)
"""Of the first line of /proc/stat: user, nice, system, interrupts."""


class Window(NamedTuple):
    """What was measured beside some readers."""

    took_s: list[float]
    ticks: list[Tick]
    seconds: float
    read_bytes: int
    broker_s: float
    busy: float
    """The share of the machine's processors that was in use."""


def acknowledged(address: str, seconds: float) -> list[float]:
    """The seconds of each acknowledgement."""
    from confluent_kafka import Producer

    took: list[float] = []
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0})

    def send() -> None:
        began, failed = time.perf_counter(), []
        producer.produce(ACKS, b"x" * 100, on_delivery=lambda error, _: failed.append(error))
        producer.flush(30)
        if failed != [None]:
            raise BrokerError(f"a record is not acknowledged: {failed}")
        took.append(time.perf_counter() - began)

    for _ in range(WARM):
        send()
    took.clear()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        send()
        time.sleep(PAUSE_S)
    return took


def read_on(address: str, bytes_per_second: int, ends: Event, got: Any) -> None:
    """Read the large topic again and again, as fast as it comes or at a rate."""
    reader = Reader(address, LARGE, 4, RECORD_BYTES)
    offset, due_s = 0, time.monotonic()
    while not ends.is_set():
        try:
            answered = reader.fetch(offset)
        except BrokerError:
            time.sleep(RETRY_S)
            continue
        end, following = whole_batches(reader, answered)
        got.value += end - reader.records_at
        offset = (following or offset) % reader.end
        if bytes_per_second:
            due_s = max(due_s + (end - reader.records_at) / bytes_per_second, time.monotonic() - 1)
            time.sleep(max(0.0, due_s - time.monotonic()))


@contextmanager
def readers(address: str, count: int, bytes_per_second: int) -> Iterator[Sequence[Any]]:
    """The bytes that each of them has read."""
    context = multiprocessing.get_context("fork")
    ends, got = context.Event(), [context.Value("q", 0, lock=False) for _ in range(count)]
    started = [context.Process(target=read_on, args=(address, bytes_per_second, ends, one)) for one in got]
    with ExitStack() as stack:
        for one in started:
            one.start()
            stack.callback(one.join)
            stack.callback(one.terminate)
        stack.callback(ends.set)
        yield got


def machine_times() -> tuple[int, int]:
    """Busy and all ticks of all processors."""
    fields = [int(one) for one in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(fields[number] for number in BUSY_FIELDS), sum(fields)


def measure(broker: Serving, probe: Path, count: int, bytes_per_second: int, seconds: float) -> Window:
    with readers(broker.address, count, bytes_per_second) as got:
        time.sleep(SETTLES_S)
        began_s, read, used = time.monotonic(), sum(one.value for one in got), process.cpu_seconds(broker.pid)
        machine = machine_times()
        took = acknowledged(broker.address, seconds)
        ended_s, read_bytes = time.monotonic(), sum(one.value for one in got) - read
        broker_s = process.cpu_seconds(broker.pid) - used
        busy, whole = (after - before for before, after in zip(machine, machine_times(), strict=True))
    time.sleep(SETTLES_S)
    ticks = ticks_of(probe, began_s, ended_s)
    return Window(took, ticks, ended_s - began_s, read_bytes, broker_s, busy / whole)


def described(window: Window) -> list[str]:
    ticks = window.ticks
    gib = window.read_bytes / (MIB << 10)
    return [
        f"{in_ms(window.took_s)} ({len(window.took_s)})",
        f"{in_ms([one.late_s for one in ticks])}, most {max(one.late_s for one in ticks) * 1000:.0f} ms",
        in_ms([one.ran_s for one in ticks]),
        in_ms([one.queued_s for one in ticks]),
        in_ms([one.else_s for one in ticks]),
        f"{sum(one.queued_s for one in ticks) / window.seconds:.0%}",
        f"{window.read_bytes / MIB / window.seconds:.0f} MiB/s",
        f"{window.broker_s / gib:.2f} s" if gib else "",
        f"{window.busy:.0%}",
    ]


HEADINGS = (
    "readers",
    "acknowledgements",
    "a timer of the loop is late",
    "the loop ran since the tick before",
    "it waited for a processor",
    "it waited for anything else",
    "of the time it waited for a processor",
    "read",
    "processor time of the broker for a GiB",
    "of the processors in use",
)


def windows(count: int, rates: Sequence[int], seconds: float, rounds: int, mebibytes: int) -> Iterator[list[str]]:
    with tempfile.TemporaryDirectory() as name, s3_server.running(Path(name)) as server:
        folder, probe = Path(name), Path(name) / "ticks"
        local = BrokerProcess(folder / "data", {"num.partitions": "1"}).start()
        fill_large(local.address, mebibytes)
        acknowledged(local.address, 0)
        local.stop()
        import_data(folder / "data", server.endpoint, server.environment)
        environment = server.environment | {"HOROLOG_TEST_PROBE": str(probe)}
        with over_store(server.endpoint, environment, folder / "small", CACHE_BYTES, (LARGE, ACKS)) as broker:
            for _ in range(rounds):
                yield ["none", *described(measure(broker, probe, 0, 0, seconds))]
                for rate in rates:
                    window = measure(broker, probe, count, rate * MIB, seconds)
                    yield [f"{count}, {f'{rate} MiB/s each' if rate else 'full speed'}", *described(window)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.store_acks", description=__doc__.splitlines()[0])
    parser.add_argument("--readers", type=int, default=10)
    parser.add_argument(
        "--mib-per-second", type=int, nargs="+", default=[0, 20], help="of each reader; 0 is full speed"
    )
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--mebibytes", type=int, default=320, help="the size of the topic that is read")
    chosen = parser.parse_args(arguments)
    rows = []
    for row in windows(chosen.readers, chosen.mib_per_second, chosen.seconds, chosen.rounds, chosen.mebibytes):
        print(*(f"{name}: {value}" for name, value in zip(HEADINGS, row, strict=True)), sep="\n  ", flush=True)
        rows.append(row)
    print(*report.table(list(HEADINGS), rows), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
