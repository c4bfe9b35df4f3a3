"""A data folder on a real disk with every kind of file that a broker leaves, and the state of a broker opened on one."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from horolog.broker.base.own_thread import AtOnce
from horolog.broker.cluster.cluster_state import RulesChanged
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.log.files import checkpoints
from horolog.broker.log.partition import log_start
from horolog.broker.log.storage import DataFolderError, RealStorage, StorageFault
from horolog.broker.network.dispatch import Dispatcher
from horolog.broker.security.acls import rule_of
from horolog.broker.server.app import Broker
from horolog.broker.server.process import sole
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.messages.transactions import InitProducerIdRequest
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record
from tests.support import kraft
from tests.support.at_once import at_once
from tests.support.crew import Crew
from tests.support.guarded_broker import STANDARD_AUTHORIZER, acl
from tests.support.log_model import read_all
from tests.support.memory_broker import NOW_MS, MemoryBroker, Wire
from tests.support.transactional import Producer, aborted_in

GUARDED: dict[str, object] = {
    "authorizer_class_name": STANDARD_AUTHORIZER,
    "super_users": "User:ANONYMOUS",
    "auto_create_topics_enable": "false",
    "offsets_topic_num_partitions": 1,
    "transaction_state_log_num_partitions": 1,
    "log_cleaner_enable": "false",
}
SMALL = {"segment_bytes": 1000, "index_interval_bytes": 100, "segment_index_bytes": 4000, "retention_ms": -1}
DELETED_BEFORE, BATCHES = 3, 12
ALLOWED, DENIED = (rule_of(acl("alice", "READ", name="t", deny=deny)) for deny in (False, True))


class State(NamedTuple):
    """What a broker serves, and its settings and rules."""

    records: Mapping[tuple[str, int], list[bytes]]
    starts: Mapping[tuple[str, int], int]
    aborted: list[tuple[int, int]]
    topics: Mapping[str, bytes]
    settings: Mapping[str, Mapping[str, str]]
    unknown: frozenset[str]
    rules: frozenset[tuple[str, str]]
    next_producer_id: int
    knows_duplicates: bool
    cluster_id: str


class Life(NamedTuple):
    """A folder after its life, and its content; `before` is its content halfway."""

    folder: Path
    before: Path
    state: State
    newest_producer: int


async def produce(wire: Wire, topic: str, index: int, value: bytes, producer_id: int = -1, sequence: int = -1) -> int:
    """Append one batch of one record; returns its offset."""
    epoch = -1 if producer_id < 0 else 0
    record = Record(0, NOW_MS, 0, b"k", value)
    batch = bytes(encode_batch([record], producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence))
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=index, records=batch)])
    answer = await wire.ask(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data]), 9)
    (found,) = answer.responses[0].partition_responses
    return int(found.base_offset) if found.error_code == ErrorCode.NONE else -int(found.error_code)


def broker_over(folder: Path, **settings: object) -> MemoryBroker:
    storage: Any = RealStorage()
    return MemoryBroker(storage, (str(folder),), **{**GUARDED, **settings})


async def half(memory: MemoryBroker, which: int) -> int:
    """Half of a life: topics, records of all kinds, settings, rules. Returns the last producer."""
    cluster, wire = memory.broker.cluster, memory.connect()
    memory.topic(f"made{which}", 1, **SMALL)
    answer = await wire.ask(InitProducerIdRequest(transaction_timeout_ms=0), 4)
    for number in range(BATCHES):
        await produce(wire, "t", 0, b"%d of %d" % (number, which) + b"v" * 100, answer.producer_id, number)
    producer = Producer(wire)
    for number in range(4):
        await producer.initialize()
        await producer.add(("t", 1))
        await producer.send("t", 1, b"transaction %d of %d" % (number, which) + b"v" * 200)
        await producer.end(commit=bool(number % 2))
    changed = {**cluster.topics["t"].overrides, "retention.ms": str(10**12 + which)}
    assert at_once(cluster.alter_topic_configs, {"t": changed}) is None
    assert at_once(cluster.change_rules, lambda _: RulesChanged((DENIED if which else ALLOWED,))) is None
    log_start.delete_records_before(cluster.topics["t"].find(0), DELETED_BEFORE * (1 + which))
    memory.broker.logs.write_log_starts()
    return int(answer.producer_id)


def copied(folder: Path, to: Path) -> Path:
    return shutil.copytree(folder, to, ignore=shutil.ignore_patterns("*.sock"))


async def life_of_one(home: Path) -> dict[str, Life]:
    """A lone broker on a folder that Kafka left, ended by a kill and by a clean stop."""
    folder = home / "folder"
    metadata = folder / kraft.FOLDER
    metadata.mkdir(parents=True)
    (metadata / f"{0:020}.log").write_bytes(kraft.log(kraft.topic("k", b"k" * 16)))
    async with broker_over(folder) as memory:
        memory.topic("t", 2, **SMALL)
        await half(memory, 0)
    before = copied(folder, home / "before")
    async with broker_over(folder) as memory:
        newest = await half(memory, 1)
        state = await state_of(memory.broker, memory.connect(), newest)
        checkpoints.save_offsets(RealStorage(), f"{folder}/{checkpoints.CLEANER_OFFSETS}", {("t", 0): 2})
        killed = copied(folder, home / "killed")
        before_kill = copied(before, home / "before killed")
        (before_kill / checkpoints.CLEAN_SHUTDOWN).unlink()
    return {"a kill": Life(killed, before_kill, state, newest), "a clean stop": Life(folder, before, state, newest)}


async def state_of(broker: Broker, wire: Wire, newest_producer: int) -> State:
    """The state that clients of a broker see."""
    cluster = broker.cluster
    partitions = {(name, one.index): one for name, topic in cluster.topics.items() for one in topic.led_here}
    of_users = {key: one for key, one in partitions.items() if not key[0].startswith("__")}
    return State(
        {key: [value for _, _, value in read_all(one)] for key, one in of_users.items()},
        {key: one.log_start_offset for key, one in of_users.items()},
        aborted_in(partitions["t", 1], 0, 1 << 40) if ("t", 1) in partitions else [],
        {name: topic.id for name, topic in cluster.topics.items()},
        {name: dict(topic.overrides) for name, topic in cluster.topics.items()},
        frozenset(name for name, topic in cluster.topics.items() if topic.settings_unknown),
        frozenset((rule.key, rule.line) for rule in cluster.state.rules.values()),
        cluster.state.next_producer_id,
        ("t", 0) in partitions and await _knows_duplicates(wire, partitions["t", 0], newest_producer),
        cluster.cluster_id,
    )


async def _knows_duplicates(wire: Wire, partition: Any, producer_id: int) -> bool:
    """Whether the last batch of the last producer, sent again, is answered with its offset."""
    end = partition.log_end_offset
    offset = await produce(wire, "t", 0, b"%d of 1" % (BATCHES - 1) + b"v" * 100, producer_id, BATCHES - 1)
    return 0 <= offset < end


class Refused(NamedTuple):
    why: str


async def opened(folder: Path, newest_producer: int, **settings: object) -> State | Refused:
    """The state of a broker on a folder, from its start to its end."""
    memory = broker_over(folder, **settings)
    loop = asyncio.get_running_loop()
    try:
        memory.broker = Broker(
            memory.settings, memory.clock, memory.storage, list(memory.folders), loop, sole(memory.settings, AtOnce())
        )
        await memory.broker.start()
    except (DataFolderError, StorageFault) as error:
        memory.broker.logs.abandon()
        memory.broker.workers.shutdown()
        return Refused(str(error))
    memory.dispatcher = Dispatcher(memory.broker)
    try:
        return await state_of(memory.broker, memory.connect(), newest_producer)
    finally:
        await memory.broker.stop()


def harm(before: State, after: State | Refused) -> str:
    """The harm done, in the words of the table in docs/durability.md."""
    if isinstance(after, Refused):
        return "refused"
    found = []
    lost = [key for key, values in before.records.items() if not set(values) <= set(after.records.get(key, ()))]
    if lost:
        found.append("records")
    if any(after.starts.get(key, 0) < start for key, start in before.starts.items()):
        found.append("hidden records seen")
    if after.aborted != before.aborted:
        found.append("aborted")
    if after.topics != before.topics:
        found.append("topics")
    known = {name: one for name, one in after.settings.items() if name not in after.unknown}
    if after.unknown:
        found.append("settings unknown")
    if any(known[name] != before.settings.get(name) for name in known):
        found.append("settings of before")
    if after.rules != before.rules:
        found.append("rules")
    if after.next_producer_id < before.next_producer_id:
        found.append("producer ids again")
    if not after.knows_duplicates:
        found.append("duplicates")
    if after.cluster_id != before.cluster_id:
        found.append("cluster id")
    return ", ".join(found) or "nothing"


async def life_of_workers(home: Path) -> dict[str, Life]:
    """Two workers on such a folder, both killed, and both stopped without a merge of what they left."""
    alone = await life_of_one(home)
    folder = copied(alone["a clean stop"].folder, home / "workers")
    storage: Any = RealStorage()
    texts = {key: str(value).lower() if isinstance(value, bool) else value for key, value in GUARDED.items()}
    crew = Crew((1, 2), storage, [str(folder)], **texts).start()
    one = crew.clusters[1]
    at_once(one.alter_topic_configs, {"t": {**one.topics["t"].overrides, "retention.ms": str(10**12 + 2)}})
    for logs in crew.logs.values():
        logs.write_log_starts()
    before = copied(folder, home / "workers before")
    at_once(one.create_topics, [NewTopic("made2", 1)])
    at_once(one.alter_topic_configs, {"t": {**one.topics["t"].overrides, "retention.ms": str(10**12 + 3)}})
    at_once(crew.clusters[2].change_rules, lambda _: RulesChanged((rule_of(acl("bob", "READ", name="t", deny=True)),)))
    log_start.delete_records_before(crew.partition("t", 0), DELETED_BEFORE * 2 + 1)
    for logs in crew.logs.values():
        logs.write_log_starts()
    killed = copied(folder, home / "workers killed")
    crew.stop()
    looked_at = copied(folder, home / "workers looked at")
    newest = alone["a kill"].newest_producer
    state = await opened(looked_at, newest)
    assert isinstance(state, State)
    return {"a kill": Life(killed, before, state, newest), "a clean stop": Life(folder, before, state, newest)}
