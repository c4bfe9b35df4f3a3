"""The record that workers keep, hurt on a real disk, at rest and while they run: nothing that was acknowledged does harm or is lost."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from horolog import Admin
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.messages.transactions import InitProducerIdRequest
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record
from tests.support.broker_process import BrokerNotReadyError, BrokerProcess
from tests.support.guarded_broker import STANDARD_AUTHORIZER, acl
from tests.support.raw_wire import RawWire
from tests.support.waiting import wait_until
from tests.support.worker_processes import workers_of

PARTITIONS, FIRST_MS = 4, 1_700_000_000_000
GUARDED = {
    "horolog.workers": "2",
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "allow.everyone.if.no.acl.found": "true",
    "auto.create.topics.enable": "false",
    "num.partitions": "4",
}
DENIED = acl("ANONYMOUS", "READ", name="t", deny=True)
OF_TOPIC = 1
UNKNOWN = "horolog.settings.unknown"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path / "data", GUARDED)
    yield broker
    broker.kill()


def told(address: str, ask: Callable[[Admin], object]) -> object:
    async def asked() -> object:
        async with Admin(address) as admin:
            return await ask(admin)  # type: ignore[misc]

    return asyncio.run(asked())


def ports(broker: BrokerProcess) -> list[str]:
    nodes = told(broker.address, lambda admin: admin.describe_cluster()).nodes  # type: ignore[attr-defined]
    return [f"{node.host}:{node.port}" for node in nodes]


def producer_ids(broker: BrokerProcess, count: int = 4) -> list[int]:
    """Of producers that ask each worker."""
    found = []
    for address in ports(broker):
        with RawWire(address) as wire:
            answers = [wire.ask(InitProducerIdRequest(transaction_timeout_ms=0), 4) for _ in range(count)]
            assert [one.error_code for one in answers] == [0] * count
            found += [one.producer_id for one in answers]
    return found


def send(broker: BrokerProcess, producer_id: int) -> int:
    """A first batch of a new producer to the partition that somebody leads; how many were acknowledged as new."""
    record = Record(0, FIRST_MS, 0, b"k", b"v" * 60)
    batch = bytes(encode_batch([record], producer_id=producer_id, producer_epoch=0, base_sequence=0))
    data = TopicProduceData(name="s", partition_data=[PartitionProduceData(index=0, records=batch)])
    for address in ports(broker):
        with RawWire(address) as wire:
            answer = wire.ask(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data]), 9)
            (found,) = answer.responses[0].partition_responses
            if found.error_code == 0:
                return int(found.base_offset)
    raise AssertionError("nobody leads s-0")


def overrides(broker: BrokerProcess, name: str) -> dict[str, str]:
    found = told(broker.address, lambda admin: admin.describe_configs("topic", name))
    return {one.name: one.value for one in found.values() if one.source == OF_TOPIC}  # type: ignore[attr-defined]


def begun(broker: BrokerProcess) -> list[int]:
    """Topics, rules and producer ids that only the journal has."""
    broker.start()
    for name in ("t", "s"):
        told(broker.address, partial(Admin.create_topic, name=name, partitions=PARTITIONS))
    told(broker.address, lambda admin: admin.create_topic("u", 1, configs={"retention.ms": "123456789"}))
    ids = producer_ids(broker)
    told(broker.address, lambda admin: admin.create_acls([DENIED]))
    return ids


def hurt(path: Path, place: Callable[[bytes], int]) -> None:
    data = bytearray(path.read_bytes())
    data[place(bytes(data))] ^= 1
    with path.open("r+b") as file:
        file.write(data)


PLACES: dict[str, Callable[[bytes], int]] = {
    "its head": lambda _: 20,
    "a line in the middle": lambda data: data.index(b'"TopicsCreated"') + 30,
    "a line of producer ids": lambda data: data.index(b'"first"') + 9,
    "its last line": lambda data: len(data) - 12,
    "the end of its last line": lambda data: len(data) - 1,
}


def journal(broker: BrokerProcess) -> Path:
    return broker.data / "horolog-journal"


@pytest.mark.one_in(6)
@pytest.mark.parametrize("where", PLACES)
def test_all_are_killed_and_one_bit_flips(broker: BrokerProcess, where: str) -> None:
    ids = begun(broker)
    before = [send(broker, one) for one in ids]
    assert len(set(before)) == len(ids)
    broker.kill()
    hurt(journal(broker), PLACES[where])
    if where == "its last line":
        with pytest.raises(BrokerNotReadyError, match=r"horolog\.lost\.rules\.accept=true"):
            broker.start()
        broker.settings["horolog.lost.rules.accept"] = "true"
    broker.start()
    left = [] if where == "its last line" else [DENIED]
    assert told(broker.address, lambda admin: admin.describe_acls()) == left
    assert "is damaged" in broker.log()
    assert (broker.data / "horolog-journal.damaged").exists()
    again = producer_ids(broker)
    assert set(again).isdisjoint(one // 1000 * 1000 + more for one in ids for more in range(1000))
    offsets = [send(broker, one) for one in again]
    assert len({*before, *offsets}) == len(before) + len(offsets), "nobody is taken for another"
    found = overrides(broker, "u")
    assert UNKNOWN in found or found["retention.ms"] == "123456789"
    assert broker.stop() == 0


@pytest.mark.one_in(6)
@pytest.mark.parametrize("where", PLACES)
def test_workers_run_and_one_bit_flips(broker: BrokerProcess, where: str) -> None:
    """They know everything: changes go on, one that is killed comes back, and a clean stop loses nothing."""
    ids = begun(broker)
    hurt(journal(broker), PLACES[where])
    told(broker.address, lambda admin: admin.create_topic("made", 2, configs={"retention.ms": "987654321"}))
    os.kill(workers_of(broker)[2], signal.SIGKILL)
    wait_until(lambda: "worker 2 serves again" in broker.log(), what=broker.log())
    assert "is rewritten" in broker.log()
    hurt(journal(broker), PLACES["its head"])
    told(broker.address, lambda admin: admin.alter_configs("topic", "u", {"retention.ms": "55555555"}))
    hurt(broker.data / "horolog-cluster", lambda data: len(data) // 2)
    assert broker.stop() == 0
    broker.start()
    assert told(broker.address, lambda admin: admin.describe_acls()) == [DENIED]
    assert overrides(broker, "u") == {"retention.ms": "55555555"}
    assert overrides(broker, "made") == {"retention.ms": "987654321"}
    assert set(producer_ids(broker)).isdisjoint(ids)
    assert broker.stop() == 0


@pytest.mark.one_in(6)
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("left", [None, b""], ids=["missing", "empty"])
def test_the_record_is_gone_and_somebody_goes_by_an_access_list(
    broker: BrokerProcess, left: bytes | None, workers: str
) -> None:
    broker.settings["horolog.workers"] = workers
    begun(broker)
    assert broker.stop() == 0
    record = broker.data / "horolog-cluster"
    whole = record.read_bytes()
    record.unlink()
    if left is not None:
        record.write_bytes(left)
    for _ in range(2):
        with pytest.raises(BrokerNotReadyError, match=r"rules .* may be lost.*horolog\.lost\.rules\.accept=true"):
            broker.start()
    record.write_bytes(whole)
    broker.start()
    assert told(broker.address, lambda admin: admin.describe_acls()) == [DENIED]
    broker.stop()
    record.unlink()
    broker.settings["horolog.lost.rules.accept"] = "true"
    broker.start()
    assert told(broker.address, lambda admin: admin.describe_acls()) == []
    assert UNKNOWN in overrides(broker, "u")
    broker.stop()
    del broker.settings["horolog.lost.rules.accept"]
    broker.start()
    broker.stop()
