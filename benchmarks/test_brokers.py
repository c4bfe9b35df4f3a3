"""Brokers for tests beside each other: from the start to the first record that came back, their memory, and what works on them.

    python -m benchmarks.test_brokers [--repeats 3] [NAME...]

Every start is measured in a process of its own with one client, librdkafka, which is loaded before: `ready` is the time until the address
is known, `first record` until a record was sent with acks=all to a topic that is made on the way, and read back; the next
broker of the same process finds its modules loaded. Memory is that of the broker's process, or what a process has grown by
whose broker lies in it. The least of each figure counts, for whatever else the machine does only adds to it. Each question is
tried once.
`Kafka 4.3.1` is a process without a container; kfake is built with the Go toolchain, EmbeddedKafka (spring-kafka-test) fetched by
Maven. Brokers in containers are left out: they need a container engine and images.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import psutil
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

KAFKA = "4.3.1"
HERE = Path(__file__).parent
WAIT_S = 15.0
MIB = 1 << 20


class Started(NamedTuple):
    """A broker that can be asked; `pid` is None where it lies in this process."""

    bootstrap: str
    pid: int | None = None


@contextmanager
def in_thread() -> Iterator[Started]:
    from horolog.testing import broker_in_thread

    with broker_in_thread() as broker:
        yield Started(broker.bootstrap)


@contextmanager
def as_process() -> Iterator[Started]:
    with _process([sys.executable, "-m", "horolog", "test-broker", "--json"]) as (line, pid):
        yield Started(json.loads(line)["bootstrap"], pid)


@contextmanager
def kfake() -> Iterator[Started]:
    with _process([str(built_kfake())]) as (line, pid):
        yield Started(line.strip(), pid)


@contextmanager
def librdkafka_mock() -> Iterator[Started]:
    """It lies in a client of its own, which others ask for its address."""
    owner = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = owner.list_topics(timeout=WAIT_S).brokers.values()
    yield Started(f"{broker.host}:{broker.port}")
    del owner


@contextmanager
def a_kafka() -> Iterator[Started]:
    from benchmarks import brokers

    with tempfile.TemporaryDirectory() as folder:
        running = brokers.start(KAFKA, Path(folder), {"group.initial.rebalance.delay.ms": "0"})
        try:
            yield Started(running.address, running.pid)
        finally:
            running.stop()


@contextmanager
def embedded_kafka() -> Iterator[Started]:
    """Spring's, in one JVM for all of this process: the first start is that of the JVM, too."""
    process = _jvm()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("start\n")
    process.stdin.flush()
    try:
        yield Started(process.stdout.readline().strip(), process.pid)
    finally:
        process.stdin.write("stop\n")
        process.stdin.flush()


@cache
def _jvm() -> subprocess.Popen[str]:
    """It ends with its input, which is to say with this process."""
    from benchmarks import embedded_kafka

    command = embedded_kafka.command()
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


CONTENDERS = {
    "horolog in the test": in_thread,
    "horolog test-broker": as_process,
    "librdkafka mock": librdkafka_mock,
    "kfake": kfake,
    "EmbeddedKafka": embedded_kafka,
    f"Kafka {KAFKA}": a_kafka,
}


@contextmanager
def _process(command: list[str]) -> Iterator[tuple[str, int]]:
    """The first line that a program prints; it ends when its input does."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline(), process.pid
        finally:
            process.stdin.close()
            process.wait(WAIT_S)


def built_kfake() -> Path:
    """Built once for this checkout."""
    program = Path(tempfile.gettempdir()) / "horolog-kfake"
    if not program.exists():
        subprocess.run(["go", "build", "-o", str(program), "."], cwd=HERE / "kfake", check=True)
    return program


# -- the questions


def round_trip(bootstrap: str, topic: str = "first") -> None:
    """One record there and back."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0, "log_level": 0})
    producer.produce(topic, b"x", partition=0)
    if producer.flush(WAIT_S):
        raise TimeoutError("the record was not taken")
    consumer = _consumer(bootstrap)
    consumer.assign([TopicPartition(topic, 0, 0)])
    _next(consumer)
    consumer.close()


def _consumer(bootstrap: str, **settings: object) -> Consumer:
    given = {"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest", "log_level": 0}
    given["enable.auto.commit"] = "false"
    return Consumer(given | settings)


def _next(consumer: Consumer, wait_s: float = WAIT_S) -> bytes:
    ends = time.monotonic() + wait_s
    while time.monotonic() < ends:
        message = consumer.poll(0.05)
        if message is not None and message.error() is None:
            return bytes(message.value())
    raise TimeoutError("no record came")


def groups(bootstrap: str) -> bool:
    """A member gets its partitions, commits, and the commit is told."""
    round_trip(bootstrap, "of-groups")
    consumer = _consumer(bootstrap)
    consumer.subscribe(["of-groups"])
    _next(consumer)
    consumer.commit(asynchronous=False)
    (committed,) = consumer.committed([TopicPartition("of-groups", 0)], timeout=WAIT_S)
    consumer.close()
    return bool(committed.offset == 1)


def transactions(bootstrap: str) -> bool:
    """A reader of committed records does not see an aborted transaction."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "x", "log_level": 0})
    producer.init_transactions(WAIT_S)
    for value, end in ((b"aborted", producer.abort_transaction), (b"committed", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce("of-transactions", value, partition=0)
        producer.flush(WAIT_S)
        end(WAIT_S)
    consumer = _consumer(bootstrap, **{"isolation.level": "read_committed"})
    consumer.assign([TopicPartition("of-transactions", 0, 0)])
    try:
        return _next(consumer) == b"committed"
    finally:
        consumer.close()


def look_ups(bootstrap: str) -> bool:
    """The first record at or after a time."""
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    start_ms = time.time_ns() // 1_000_000 - 10_000
    for number in range(3):
        producer.produce("of-times", b"x", partition=0, timestamp=start_ms + number * 1000)
        producer.flush(WAIT_S)
    consumer = _consumer(bootstrap)
    (found,) = consumer.offsets_for_times([TopicPartition("of-times", 0, start_ms + 500)], timeout=WAIT_S)
    consumer.close()
    return bool(found.offset == 1)


def made_topics(bootstrap: str) -> bool:
    """CreateTopics with a setting, which DescribeConfigs tells."""
    from confluent_kafka.admin import ConfigResource

    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    asked = NewTopic("made", 2, 1, config={"retention.ms": "1234"})
    admin.create_topics([asked], request_timeout=WAIT_S)["made"].result(WAIT_S)
    resource = ConfigResource("topic", "made")
    (told,) = admin.describe_configs([resource], request_timeout=WAIT_S).values()
    return bool(told.result(WAIT_S)["retention.ms"].value == "1234")


QUESTIONS: dict[str, Callable[[str], bool]] = {
    "groups": groups,
    "transactions": transactions,
    "lookups by time": look_ups,
    "topics with settings": made_topics,
}


# -- one run, and all


def measure(name: str) -> dict[str, float]:
    """In a process of its own, or what was loaded for another contender would count as nothing."""
    here = psutil.Process()
    before = here.memory_info().rss
    began = time.monotonic()
    with CONTENDERS[name]() as started:
        ready_s = time.monotonic() - began
        round_trip(started.bootstrap)
        first_s = time.monotonic() - began
        if started.pid is None:
            held = here.memory_info().rss - before
        else:
            held = psutil.Process(started.pid).memory_info().rss
    began = time.monotonic()
    with CONTENDERS[name]() as started:
        round_trip(started.bootstrap)
        next_s = time.monotonic() - began
    return {"ready_s": ready_s, "first_s": first_s, "next_s": next_s, "mib": held / MIB}


def answers(name: str) -> dict[str, str]:
    """What each question comes to."""
    found = {}
    with CONTENDERS[name]() as started:
        for question, ask in QUESTIONS.items():
            try:
                found[question] = "yes" if ask(started.bootstrap) else "no"
            except (KafkaException, TimeoutError, OSError, KeyError) as error:
                found[question] = f"no ({type(error).__name__})"
    return found


def _alone(flag: str, name: str) -> dict[str, float | str]:
    command = [sys.executable, "-m", "benchmarks.test_brokers", flag, name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
    found: dict[str, float | str] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(CONTENDERS)}")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--answers", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure or given.answers:
        print(json.dumps(measure(given.measure) if given.measure else answers(given.answers)))
        return
    for name in given.names or CONTENDERS:
        runs = [_alone("--measure", name) for _ in range(given.repeats)]
        least = {key: min(float(run[key]) for run in runs) for key in ("ready_s", "first_s", "next_s", "mib")}
        print(
            f"{name}: ready {least['ready_s']:.3f} s, first record {least['first_s']:.3f} s,"
            f" of the next broker {least['next_s']:.3f} s, {least['mib']:.0f} MiB",
            flush=True,
        )
        for question, answer in _alone("--answers", name).items():
            print(f"    {question}: {answer}", flush=True)


if __name__ == "__main__":
    main()
