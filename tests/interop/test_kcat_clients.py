"""The tool kcat, where it is installed: every codec, lookups, append times, groups, idempotence and transactions.

kcat sets no times of its own, so records that need some are written by confluent-kafka and read by kcat.
"""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.samples import BEYOND_MS, SAMPLES, TARGETS, first_at_or_after
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique

KCAT = shutil.which("kcat") or shutil.which("kafkacat")
pytestmark = pytest.mark.skipif(KCAT is None, reason="kcat is not installed")

WAIT_SECONDS = 60.0
LINES = [f"key-{number}:value {number}" for number in range(100)]


def kcat(broker: BrokerProcess, *arguments: str, given: str = "") -> str:
    done = subprocess.run(
        [str(KCAT), "-b", broker.address, *arguments],
        input=given,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def produce(broker: BrokerProcess, topic: str, *arguments: str, lines: list[str] = LINES) -> None:
    kcat(broker, "-P", "-t", topic, "-p", "0", "-K:", *arguments, given="\n".join(lines) + "\n")


def read(broker: BrokerProcess, topic: str, *arguments: str) -> list[dict[str, object]]:
    told = kcat(broker, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q", "-J", *arguments)
    return [json.loads(line) for line in told.splitlines()]


def as_lines(records: list[dict[str, object]]) -> list[str]:
    return [f"{one['key']}:{one['payload']}" for one in records]


def create(broker: BrokerProcess, partitions: int = 1, **config: str) -> str:
    name = unique("kcat")
    admin = AdminClient({"bootstrap.servers": broker.address})
    wanted = NewTopic(name, partitions, 1, config={key.replace("_", "."): value for key, value in config.items()})
    for future in admin.create_topics([wanted]).values():
        future.result(WAIT_SECONDS)
    return name


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_come_back(session_broker: BrokerProcess, codec: str) -> None:
    topic = create(session_broker)
    produce(session_broker, topic, "-H", "h=1", "-H", "h=2", "-z", codec)
    records = read(session_broker, topic)
    assert as_lines(records) == LINES
    assert {tuple(one["headers"]) for one in records} == {("h", "1", "h", "2")}
    assert [one["offset"] for one in records] == list(range(100))


def test_look_ups_by_time(session_broker: BrokerProcess) -> None:
    topic = create(session_broker)
    sender = Producer({"bootstrap.servers": session_broker.address})
    for one in SAMPLES:
        sender.produce(topic, one.value, one.key, partition=0, timestamp=one.timestamp, headers=list(one.headers))
    assert sender.flush(WAIT_SECONDS) == 0
    assert [one["ts"] for one in read(session_broker, topic)] == [one.timestamp for one in SAMPLES]
    for target in TARGETS:
        told = kcat(session_broker, "-Q", "-t", f"{topic}:0:{target}")
        assert re.search(rf"\[0\] offset {first_at_or_after(target)[0]}\b", told), (target, told)
    assert re.search(r"\[0\] offset -1\b", kcat(session_broker, "-Q", "-t", f"{topic}:0:{BEYOND_MS}"))
    since = TARGETS[4]
    told = kcat(session_broker, "-C", "-t", topic, "-p", "0", "-o", f"s@{since}", "-e", "-q", "-f", "%o\n")
    assert told.split()[0] == str(first_at_or_after(since)[0])


def test_log_append_time_is_what_everybody_is_told(session_broker: BrokerProcess) -> None:
    topic = create(session_broker, message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000)
    produce(session_broker, topic)
    for record in read(session_broker, topic):
        assert record["tstype"] == "logappend"
        assert before <= int(str(record["ts"])) <= int(time.time() * 1000)


def test_an_idempotent_producer(session_broker: BrokerProcess) -> None:
    topic = create(session_broker)
    produce(session_broker, topic, "-X", "enable.idempotence=true", "-X", "batch.num.messages=7")
    assert as_lines(read(session_broker, topic)) == LINES


def test_transactions(session_broker: BrokerProcess) -> None:
    topic = create(session_broker)
    produce(session_broker, topic, "-X", f"transactional.id={topic}", lines=LINES[:50])
    aborting = Producer({"bootstrap.servers": session_broker.address, "transactional.id": f"{topic}-other"})
    aborting.init_transactions(WAIT_SECONDS)
    aborting.begin_transaction()
    for _ in range(50):
        aborting.produce(topic, b"aborted", partition=0)
    assert aborting.flush(WAIT_SECONDS) == 0
    aborting.abort_transaction(WAIT_SECONDS)
    produce(session_broker, topic, "-X", f"transactional.id={topic}", lines=LINES[50:])
    assert as_lines(read(session_broker, topic, "-X", "isolation.level=read_committed")) == LINES
    assert len(read(session_broker, topic, "-X", "isolation.level=read_uncommitted")) == 150


class Member:
    """One `kcat -G`: the partitions that it says it has, and what it has read."""

    def __init__(self, broker: BrokerProcess, topic: str, folder: Path) -> None:
        self.output, self.errors = folder / f"{unique('out')}", folder / f"{unique('err')}"
        settings = ("-X", "auto.offset.reset=earliest", "-X", "heartbeat.interval.ms=500")
        command = [str(KCAT), "-b", broker.address, *settings, "-u", "-f", "%p:%o\n", "-G", topic, topic]
        with self.output.open("wb") as out, self.errors.open("wb") as err:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    @property
    def assigned(self) -> set[str]:
        told = re.findall(r"rebalanced.*?: (assigned|revoked): (.*)", self.errors.read_text())
        return set(re.findall(r"\[(\d+)\]", told[-1][1])) if told and told[-1][0] == "assigned" else set()

    @property
    def seen(self) -> list[str]:
        return self.output.read_text().split()

    def leave(self) -> None:
        self.process.terminate()
        self.process.wait(WAIT_SECONDS)


@contextmanager
def joining(broker: BrokerProcess, topic: str, folder: Path) -> Iterator[Callable[[], Member]]:
    members: list[Member] = []

    def join() -> Member:
        members.append(Member(broker, topic, folder))
        return members[-1]

    try:
        yield join
    finally:
        for member in members:
            member.process.kill()
            member.process.wait(10)


def wait(held: Callable[[], bool], *members: Member) -> None:
    until = time.monotonic() + WAIT_SECONDS
    while not held():
        assert time.monotonic() < until, [(one.assigned, len(one.seen), one.errors.read_text()) for one in members]
        time.sleep(0.02)


def to_four(broker: BrokerProcess, topic: str, count: int) -> None:
    sender = Producer({"bootstrap.servers": broker.address})
    for number in range(count):
        sender.produce(topic, b"value", partition=number % 4)
    assert sender.flush(WAIT_SECONDS) == 0


def test_a_group_shares_and_one_leaves(session_broker: BrokerProcess, tmp_path: Path) -> None:
    topic = create(session_broker, 4)
    to_four(session_broker, topic, 100)
    with joining(session_broker, topic, tmp_path) as join:
        first = join()
        wait(lambda: len(first.assigned) == 4, first)
        second = join()
        wait(
            lambda: sorted([*first.assigned, *second.assigned]) == list("0123") and len(second.assigned) == 2,
            first,
            second,
        )
        to_four(session_broker, topic, 100)
        wait(lambda: len({*first.seen, *second.seen}) == 200, first, second)
        second.leave()
        wait(lambda: len(first.assigned) == 4, first)


def test_a_group_goes_on_where_it_was(session_broker: BrokerProcess, tmp_path: Path) -> None:
    topic = create(session_broker, 4)
    to_four(session_broker, topic, 100)
    with joining(session_broker, topic, tmp_path) as join:
        before = join()
        wait(lambda: len(before.seen) == 100, before)
        before.leave()
        to_four(session_broker, topic, 40)
        after = join()
        wait(lambda: len(after.seen) >= 40, after)
        after.leave()
        assert len(after.seen) == 40
        assert not {*before.seen} & {*after.seen}
