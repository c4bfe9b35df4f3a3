"""Share partitions are opened when they are asked for, begin where the group's settings say, and survive a kill."""

import asyncio

import pytest

from horolog.broker.groups.share.share_settings import ShareReset, share_settings
from horolog.broker.log.storage import MemoryStorage, NotHere, StorageFault
from horolog.broker.share import leader as leader_module
from horolog.broker.share.leader import OpenShare, limits_of
from horolog.broker.share.partition import SharePartition
from horolog.broker.share.persister import SharePersister
from horolog.broker.share.state_batches import DeliveryState
from horolog.broker.share.terms import Acknowledgement
from horolog.protocol.errors import ErrorCode
from tests.support.memory_broker import NOW_MS
from tests.support.share_broker import Member, initialize, opened, partition, put, share_broker
from tests.support.waiting import until


def begin_at(broker, kind, before_ms=0):
    terms = share_settings({}, broker.broker.settings)._replace(reset=ShareReset(kind, before_ms))
    broker.broker.shares.leader.terms_of = lambda _: terms


@pytest.fixture
async def broker():
    async with share_broker() as made:
        made.topic("t", 1)
        yield made


@pytest.mark.parametrize(
    ("kind", "before_ms", "start"),
    [("earliest", 0, 0), ("latest", 0, 5), ("by_duration", 1_000, 0), ("by_duration", -1_000, 5)],
)
async def test_a_group_begins_where_its_settings_say(broker, kind, before_ms, start):
    await put(broker, 5)
    await initialize(broker, start=-1)
    begin_at(broker, kind, before_ms)
    assert broker.clock.wall_ms() == NOW_MS
    await Member(broker).fetch()
    assert opened(broker).machine.end == (5 if start == 0 else start)
    assert opened(broker).machine.start == start


async def test_a_partition_is_opened_once_for_all_that_ask(broker, monkeypatch):
    await initialize(broker)
    asked, found = [], []
    monkeypatch.setattr(SharePersister, "read", lambda _, __, ___, done: asked.append(done))
    leader = broker.broker.shares.leader
    for _ in range(2):
        leader.open(partition(broker), found.append)
    assert len(asked) == 1
    asked[0](ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert found == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    leader.open(partition(broker, index=4), found.append)
    assert found[-1] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    leader.open(partition(broker)._replace(topic_id=b"x" * 16), found.append)
    assert found[-1] == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(
    ("fault", "code", "logged"),
    [
        (StorageFault("broken"), ErrorCode.KAFKA_STORAGE_ERROR, True),
        (NotHere("on its way here"), ErrorCode.COORDINATOR_NOT_AVAILABLE, False),
        (NotHere("on its way here", has_failed=True), ErrorCode.KAFKA_STORAGE_ERROR, True),
    ],
)
async def test_a_log_that_cannot_be_read_opens_no_partition(broker, monkeypatch, caplog, fault, code, logged):
    """Members ask again while what lies in a store is on its way here, and nothing is wrong with the disk."""
    await put(broker, 1)
    await initialize(broker, start=-1)
    begin_at(broker, "by_duration")

    def fail(*_):
        raise fault

    with monkeypatch.context() as patched:
        patched.setattr(leader_module.lookups, "first_at_or_after", fail)
        found = []
        broker.broker.shares.leader.open(partition(broker), found.append)
    assert found == [code]
    assert ("cannot be read for a share group" in caplog.text) is logged
    broker.broker.shares.leader.open(partition(broker), found.append)
    assert found[-1] is opened(broker)


async def test_a_new_epoch_of_the_leader_opens_it_again(broker):
    await put(broker, 5)
    await initialize(broker)
    ann = Member(broker)
    await ann.fetch()
    before = opened(broker)
    before.log.lead(before.leader_epoch + 1)
    assert broker.broker.shares.leader.find(partition(broker)) == ErrorCode.LEADER_NOT_AVAILABLE
    assert await ann.acquire() == [(0, 4, 1)]
    assert opened(broker) is not before
    assert "g" in repr(before)


async def test_a_state_that_is_begun_again_ends_what_was_known(broker):
    await put(broker, 5)
    await initialize(broker)
    ann = Member(broker)
    await ann.fetch()
    await initialize(broker, state_epoch=1)
    assert await ann.code((0, 4, [1])) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert await ann.acquire() == [(0, 4, 1)]
    broker.clock.advance(31_000)
    await initialize(broker, state_epoch=2)
    broker.broker.time_has_moved()
    await asyncio.sleep(0)
    assert broker.broker.shares.leader.find(partition(broker)) == ErrorCode.LEADER_NOT_AVAILABLE


@pytest.mark.parametrize("leaves", ["closes", "is lost"])
async def test_a_group_whose_members_have_left_reads_its_state_again(broker, leaves):
    """Its offsets may have been set or deleted meanwhile, and what was known would never be written, so nothing would show it."""
    await put(broker, 5)
    await initialize(broker)
    ann = Member(broker)
    await ann.fetch()
    assert await ann.code((0, 4, [1])) == ErrorCode.NONE
    assert await ann.acquire() == []
    if leaves == "closes":
        await ann.fetch(epoch=-1, topics=[])
    else:
        ann.wire.conversation.lost()
    await initialize(broker, state_epoch=1)
    assert await Member(broker, "ben").acquire() == [(0, 4, 1)]


async def test_a_partition_stays_open_for_the_members_that_are_left(broker):
    await put(broker, 5)
    await initialize(broker)
    ann, ben = Member(broker), Member(broker, "ben")
    await ann.fetch()
    await ben.fetch()
    before = opened(broker)
    await ann.fetch(epoch=-1, topics=[])
    assert opened(broker) is before
    assert await ben.acquire() == [(0, 4, 2)]


async def test_a_group_that_has_left_is_closed_once_its_changes_are_persisted(broker, monkeypatch):
    await put(broker, 5)
    await initialize(broker)
    ann = Member(broker)
    await ann.fetch()
    share, held, write = opened(broker), [], SharePersister.write
    monkeypatch.setattr(SharePersister, "write", lambda *arguments: held.append(arguments))
    ann.wire.send(ann.fetching([(0, 1, [1])]), 2)
    ann.wire.conversation.lost()
    assert len(held) == 2
    assert opened(broker) is share
    monkeypatch.undo()
    write(*held[0])
    await asyncio.sleep(0)
    assert opened(broker) is share
    write(*held[1])
    await until(lambda: not isinstance(broker.broker.shares.leader.find(partition(broker)), OpenShare))
    assert await Member(broker, "ben").acquire() == [(2, 4, 2)]


async def test_records_of_an_expired_lock_come_again_and_a_renewed_lock_is_not_forgotten(broker):
    await put(broker, 5)
    await initialize(broker)
    ann = Member(broker)
    await ann.fetch()
    broker.clock.advance(20_000)
    assert await ann.code((0, 1, [4]), is_renew_ack=True) == ErrorCode.NONE
    broker.clock.advance(11_000)
    broker.broker.time_has_moved()
    states = [(one.first, one.last, one.state) for one in opened(broker).machine.runs.all]
    assert states == [(0, 1, DeliveryState.ACQUIRED), (2, 4, DeliveryState.AVAILABLE)]
    broker.clock.advance(20_000)
    broker.broker.time_has_moved()
    assert opened(broker).machine.next_offset == 0
    assert not opened(broker).timer.running


async def test_what_was_accepted_is_not_delivered_after_a_kill():
    storage = MemoryStorage()
    async with share_broker(storage) as broker:
        broker.topic("t", 1)
        await put(broker, 5, 5)
        await initialize(broker)
        ann = Member(broker)
        await ann.fetch()
        assert await ann.code((0, 2, [1]), (3, 3, [2]), (4, 4, [3])) == ErrorCode.NONE
        copy = storage.copy() if hasattr(storage, "copy") else storage
    async with share_broker(copy) as broker:
        found = await Member(broker, "bob").acquire()
        assert found == [(3, 3, 2), (5, 9, 1)]


def test_limits_follow_the_terms():
    from tests.support.logs import broker_settings

    terms = share_settings({}, broker_settings())
    assert limits_of(terms) == (30.0, 5, 2_000, True)


async def test_a_wake_passes_by_requests_that_are_answered(broker):
    await initialize(broker)
    await put(broker, 1)
    ann = Member(broker)
    await ann.fetch()
    share = opened(broker)
    assert isinstance(share, OpenShare)
    assert isinstance(share.machine, SharePartition)
    told = []
    leader = broker.broker.shares.leader
    leader.acknowledge(partition(broker), "ann", [Acknowledgement(0, 0, [4])], told.append)
    assert told[0].code == ErrorCode.NONE, "nothing has to be written"
    leader.acknowledge(partition(broker, group="other"), "ann", [], told.append)
    assert told[1].code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    leader.close_session(("g", "nobody"), lambda: told.append("closed"))
    assert told[2] == "closed"


async def test_refusals_faults_and_lost_connections_are_told(broker):
    await put(broker, 5)
    await initialize(broker)
    ann, bob = Member(broker), Member(broker, "bob")
    await ann.fetch()
    leader = broker.broker.shares.leader
    assert "1 share partitions" in repr(leader)
    assert leader.in_flight == 5
    assert await bob.acquire() == []
    assert await bob.code((0, 1, [1])) == ErrorCode.INVALID_RECORD_STATE
    asked = bob.fetching(max_wait_ms=10_000)
    bob.wire.send(asked, 2)
    ann.wire.conversation.lost()
    answer = await bob.wire.take(asked, 2)
    assert answer.responses[0].partitions[0].acquired_records[0].delivery_count == 2
    share = opened(broker)
    share.log.condition.go_offline("broken")
    assert leader.find(partition(broker)) == ErrorCode.KAFKA_STORAGE_ERROR
    bob.wire.conversation.lost()
    assert len(leader.sessions) == 0
    leader._close(share)
    leader._close(share)
    share.machine.failed(share.machine.release("bob", limits_of(leader.terms_of("g"))))
    leader._expire(share)
    found = []
    leader.open(partition(broker, group="not begun"), found.append)
    assert found == [ErrorCode.KAFKA_STORAGE_ERROR]


async def test_a_group_without_a_state_reads_nothing(broker):
    found = []
    leader = broker.broker.shares.leader
    leader.open(partition(broker), found.append)
    assert found == [ErrorCode.UNKNOWN_SERVER_ERROR]
