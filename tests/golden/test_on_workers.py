"""Golden folders under two workers: the Java consumer's records are read from whoever leads, and times find the same ones.

A third of the cases: another `HOROLOG_SEED` chooses others.
"""

import os
import random
import shutil
import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from benchmarks.peer import Peer
from tests.golden.test_lookups import linear_scan, targets
from tests.golden.test_reading import STAGES, UNFINISHED
from tests.support.broker_process import WORKERS, BrokerProcess
from tests.support.golden import Case

PARTS = 3
STARTS = "log-start-offset-checkpoint"
WAIT_S = 60.0


def chosen(seed: str) -> list[tuple[str, str]]:
    """A third of the cases, each in one of its stages."""
    stages: dict[str, list[str]] = {}
    for name, stage in STAGES:
        if stage not in UNFINISHED:
            stages.setdefault(name, []).append(stage)
    names = [name for name in stages if zlib.crc32(f"{seed} {name}".encode()) % PARTS == 0]
    return [(name, random.Random(f"{seed} {name}").choice(stages[name])) for name in names]


def put_together(cases: Iterable[tuple[Case, str]], data: Path, aside: Path) -> None:
    """One data folder with a topic for each case, as if a broker had ended without warning."""
    data.mkdir()
    starts: list[str] = []
    for case, stage in cases:
        case.copy(stage, aside / case.name, case.name)
        shutil.move(aside / case.name / f"{case.name}-0", data)
        checkpoint = aside / case.name / STARTS
        starts += checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []
    (data / STARTS).write_text("".join(f"{line}\n" for line in ["0", str(len(starts)), *starts]))


def consumer_of(address: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "golden",
            "enable.auto.commit": False,
            "isolation.level": "read_uncommitted",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # at the end of each topic
        }
    )


Found = list[tuple[int, bytes | None, bytes | None]]
"""Offset, key and value of every record of a topic."""


def read_all(consumer: Consumer, topics: Iterable[str]) -> dict[str, Found]:
    """All at once: the client looks for the leader of a new topic only every half second."""
    found: dict[str, Found] = {topic: [] for topic in topics}
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING) for topic in found])
    reading = set(found)
    while reading:
        message = consumer.poll(WAIT_S)
        assert message is not None, f"{reading} are not read to their ends"
        topic, error, offset = message.topic(), message.error(), message.offset()
        assert topic is not None
        assert offset is not None
        if error is None:
            found[topic].append((offset, message.key(), message.value()))
        else:
            assert error.code() == KafkaError._PARTITION_EOF, error
            reading.remove(topic)
    return found


def check(found: Found, leader: Peer, case: Case) -> None:
    records = case.records()
    assert found == [(one.offset, one.key, one.value) for one in records], case.name
    for target in targets(case, records):
        assert leader.offset_at(case.name, target) == linear_scan(records, target)[0], f"{case.name}: target {target}"


@pytest.mark.one_broker("a folder is adopted")
def test_two_workers_serve_what_the_java_consumer_read(golden_root: Path, tmp_path: Path) -> None:
    seed = os.environ.get("HOROLOG_SEED", "1")
    cases = [(Case(name, golden_root), stage) for name, stage in chosen(seed)]
    put_together(cases, tmp_path / "data", tmp_path / "aside")
    broker = BrokerProcess(tmp_path / "data", {WORKERS: "2"}).start()
    try:
        with Peer(broker.address) as peer:
            placed = peer.placement([case.name for case, _ in cases])
        assert {led[0] for led in placed.leaders.values()} == {1, 2}
        consumer = consumer_of(broker.address)
        peers = {node: Peer(address) for node, address in placed.addresses.items()}
        found = read_all(consumer, [case.name for case, _ in cases])
        consumer.close()
        for case, _ in cases:
            check(found[case.name], peers[placed.leaders[case.name][0]], case)
        for leader in peers.values():
            leader.socket.close()
        assert broker.stop() == 0, broker.log()[-2000:]
    finally:
        broker.kill()


def test_every_seed_has_its_third() -> None:
    cases = {name for name, stage in STAGES if stage not in UNFINISHED}
    parts = [{name for name, _ in chosen(str(seed))} for seed in range(20)]
    assert set().union(*parts) == cases
    assert all(len(cases) / 6 < len(part) < len(cases) / 2 for part in parts)
