"""Keeps states in its journal: they survive a start, failed writes have no effect, and superfluous records go."""

import asyncio

import pytest

from horolog.broker.log.storage import MemoryStorage
from horolog.broker.share.journal import StateJournal
from horolog.broker.share.records import SharePartitionKey, Update
from horolog.broker.share.state import UNINITIALIZED, StateRead, StateUpdate
from horolog.broker.share.state_batches import StateBatch
from horolog.broker.share.state_keeper import _renewed, _take
from horolog.protocol.errors import ErrorCode
from tests.support.share_broker import share_broker


class World:
    def __init__(self, broker):
        self.broker = broker
        self.keeper = broker.broker.shares.states
        self.key = SharePartitionKey("g", broker.broker.cluster.topics["t"].id, 0)

    async def ask(self, method, *arguments, key=None):
        told = asyncio.get_running_loop().create_future()
        method(key or self.key, *arguments, told.set_result)
        async with asyncio.timeout(5):
            return await told

    async def initialize(self, state_epoch=0, start=0, key=None):
        return await self.ask(self.keeper.initialize, state_epoch, start, key=key)

    async def write(self, *batches, start=-1, state_epoch=0):
        return await self.ask(self.keeper.write, StateUpdate(state_epoch, 0, start, -1, batches))

    async def read(self, leader_epoch=0, key=None):
        return await self.ask(self.keeper.read, leader_epoch, key=key)

    @property
    def shard(self):
        return self.keeper._journal.shard_of_state(self.key)

    @property
    def log(self):
        return self.broker.broker.cluster.topics["__share_group_state"].find(self.shard)


@pytest.fixture
async def world():
    async with share_broker(share_coordinator_snapshot_update_records_per_snapshot=2) as broker:
        broker.topic("t", 1)
        yield World(broker)


async def test_states_are_read_again_at_a_start():
    storage = MemoryStorage()
    async with share_broker(storage, share_coordinator_snapshot_update_records_per_snapshot=2) as broker:
        broker.topic("t", 2)
        world = World(broker)
        other = world.key._replace(partition=1)
        assert not await world.initialize()
        assert not await world.initialize(key=other)
        for offset in range(5):
            assert not await world.write(StateBatch(offset, offset, 2, 1))
        assert not await world.ask(world.keeper.delete, key=other)
    async with share_broker(storage) as broker:
        world = World(broker)
        assert await world.read() == StateRead(0, 0, [StateBatch(0, 4, 2, 1)])
        assert await world.read(key=other) == ErrorCode.INVALID_REQUEST
        assert "1 states" in repr(world.keeper)


async def test_a_write_that_fails_has_no_effect(world, monkeypatch):
    assert not await world.initialize()
    submit = StateJournal.submit

    def fail(journal, partitions, done, *, durable):
        submit(journal, partitions, lambda _: done({partitions[0]: "broken"}), durable=durable)

    with monkeypatch.context() as patched:
        patched.setattr(StateJournal, "submit", fail)
        patched.setattr(StateJournal, "read", lambda *_: None)
        assert await world.write(StateBatch(0, 4, 2, 1)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert await world.read() == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert "1 shards are unread" in repr(world.keeper)
    world.keeper.retry_unread(world.shard)
    assert isinstance(await world.read(), StateRead)
    world.keeper.retry_unread(world.shard)


async def test_a_partition_that_takes_no_appends_is_not_written(world):
    assert not await world.initialize()
    world.log.condition.go_offline("broken")
    assert await world.write() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.keeper.gained(world.shard)
    assert await world.read() == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_states_of_a_shard_that_another_leads_are_forgotten(world):
    assert not await world.initialize()
    world.keeper.lost(world.shard)
    assert await world.ask(world.keeper.read_summary) == UNINITIALIZED


async def test_records_before_the_last_snapshots_are_deleted(world):
    assert not await world.initialize()
    for offset in range(9):
        assert not await world.write(StateBatch(offset, offset, 2, 1))
    world.broker.clock.advance(300_001)
    world.broker.broker.time_has_moved()
    await world.broker.broker.committer.drain()
    assert world.log.log_start_offset == world.log.log_end_offset - 1
    assert not world.keeper._pruning.running
    before = world.log.log_end_offset
    world.keeper.gained(world.shard)
    assert tuple((await world.read()).batches) == (StateBatch(0, 8, 2, 1),)
    assert world.log.log_end_offset == before


async def test_a_state_that_holds_up_many_records_is_written_again(world, monkeypatch):
    monkeypatch.setattr("horolog.broker.share.state_keeper.SPARSE_ABOVE", 3)
    idle = next(
        key
        for key in (world.key._replace(group=f"g{n}") for n in range(99))
        if world.keeper._journal.shard_of_state(key) == world.shard
    )
    assert not await world.initialize(key=idle, start=7)
    assert not await world.initialize()
    for offset in range(9):
        assert not await world.write(StateBatch(offset, offset, 2, 1))
    world.broker.clock.advance(300_001)
    world.broker.broker.time_has_moved()
    await world.broker.broker.committer.drain()
    assert world.log.log_start_offset >= 9
    world.keeper.gained(world.shard)
    assert await world.read(key=idle) == StateRead(0, 7, [])


async def test_requests_that_cannot_be_are_refused(world, monkeypatch):
    keeper = world.keeper
    negative, absent = world.key._replace(partition=-1), world.key._replace(topic_id=b"x" * 16)
    for key, code in ((negative, ErrorCode.INVALID_REQUEST), (absent, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)):
        assert await world.initialize(key=key) == code
        assert await world.ask(keeper.read_summary, key=key) == code
    assert await world.read(key=negative) == ErrorCode.INVALID_REQUEST
    assert await world.ask(keeper.delete, key=negative) == ErrorCode.INVALID_REQUEST
    assert await world.ask(keeper.write, StateUpdate(0, 0, 0, 0, ()), key=negative) == ErrorCode.INVALID_REQUEST
    assert await world.write() == ErrorCode.INVALID_REQUEST
    assert await world.ask(keeper.delete) == ErrorCode.NONE
    assert not await world.initialize(state_epoch=3)
    assert await world.initialize(state_epoch=2) == ErrorCode.FENCED_STATE_EPOCH
    assert not await world.initialize(state_epoch=3, start=4)
    assert await world.read(leader_epoch=2) == StateRead(3, 4, [])
    assert await world.read(leader_epoch=1) == ErrorCode.FENCED_LEADER_EPOCH
    assert not await world.ask(keeper.delete)
    monkeypatch.setattr(StateJournal, "leads", lambda _, shard: shard != world.shard)
    assert await world.read() == ErrorCode.NOT_COORDINATOR


async def test_what_is_pruned_is_here(world, monkeypatch):
    assert not await world.initialize()
    assert "_Place of" in repr(world.keeper._find(world.key))
    monkeypatch.setattr(StateJournal, "find", lambda *_: ErrorCode.NOT_LEADER_OR_FOLLOWER)
    world.keeper._prune()
    _renewed(world.key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    states = {}
    _take(states, world.key, Update(0, 0, 0, 0, ()), 5)
    assert states == {}


@pytest.mark.parametrize("is_synced", [False, True])
async def test_acknowledgements_wait_for_the_disk_where_offset_commits_do(is_synced):
    async with share_broker(horolog_offsets_commit_sync=is_synced) as broker:
        broker.topic("t", 1)
        world = World(broker)
        before = broker.storage.operations.get("sync", 0)
        assert not await world.initialize()
        begun = broker.storage.operations.get("sync", 0)
        assert begun > before, "a state that begins is synced in any case"
        assert not await world.write(StateBatch(0, 4, 2, 1))
        assert (broker.storage.operations["sync"] > begun) is is_synced
