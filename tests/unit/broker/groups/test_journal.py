"""`__consumer_offsets` as groups use it: what was appended is told when it is written, and all of it is read again."""

from dataclasses import replace

import pytest

from horolog.broker.cluster.cluster_state import Lead, LeadsChanged
from horolog.broker.groups.journal import GroupJournal, Marked, Stored, TransactionalProducer
from horolog.broker.log.partition import append_marker
from horolog.broker.log.storage import StorageFault
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.control import Marker
from tests.support.at_once import at_once
from tests.support.group_world import GroupWorld
from tests.support.members import among

NONE = ErrorCode.NONE
ENTRY = (b"key", b"value")


class Told(list):
    def __call__(self, *outcome):
        self.append(outcome)


@pytest.fixture
def told():
    return Told()


def journal_of(world):
    return GroupJournal(world.cluster, world.committer, world.clock)


@pytest.fixture
def journal(world):
    return journal_of(world)


def in_log(world, shard=1):
    return [one for piece in journal_of(world).read(shard) for one in piece]


def led_by(world, journal, shard, node, epoch):
    journal.make_topic()
    topic = world.cluster.topics["__consumer_offsets"]
    among(world.cluster, 2)
    assert at_once(world.cluster.changes.make, lambda _: LeadsChanged((((topic.id, shard), Lead(node, epoch)),))) == {}


class TestAppending:
    def test_is_told_with_its_place_when_it_is_written(self, world, journal, told):
        journal.append(1, [ENTRY, (b"gone", None)], told)
        journal.append(1, [ENTRY], told)
        assert told == []
        world.tick()
        assert told == [(NONE, 0), (NONE, 2)]
        world.restart()
        assert in_log(world) == [
            Stored(0, b"key", b"value", -1),
            Stored(1, b"gone", None, -1),
            Stored(2, b"key", b"value", -1),
        ]

    def test_a_failed_write_is_told(self, world, journal, told):
        journal.append(1, [ENTRY], told)
        world.storage.fail("write", "__consumer_offsets")
        world.tick()
        assert told == [(ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)]
        assert in_log(world) == []

    def test_without_a_disk_for_the_topic_nothing_is_begun(self, world, journal, told):
        world.storage.fail("create", "__consumer_offsets-0")
        journal.append(1, [ENTRY], told)
        assert told == [(ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)]

    def test_a_partition_that_is_offline_takes_nothing(self, journal, told):
        journal.make_topic()
        assert not journal.is_offline(1)
        journal.put_offline(1, StorageFault("no disk"))
        assert journal.is_offline(1)
        journal.append(1, [ENTRY], told)
        assert told == [(ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)]

    def test_another_broker_coordinates_what_it_leads(self, world, journal, told):
        led_by(world, journal, 1, 2, 4)
        journal.append(1, [ENTRY], told)
        assert told == [(ErrorCode.NOT_COORDINATOR, -1)]
        assert not journal.is_offline(1)
        assert in_log(world) == []

    def test_so_it_does_if_it_leads_before_the_write_has_ended(self, world, journal, told):
        journal.append(1, [ENTRY], told)
        led_by(world, journal, 1, 2, 4)
        world.tick()
        assert told == [(ErrorCode.NOT_COORDINATOR, -1)]

    def test_only_the_state_of_a_group_may_be_larger_than_a_producers_batch(self, told):
        world = GroupWorld({"message.max.bytes": "1000"})
        journal = journal_of(world)
        large = (b"key", bytes(2000))
        journal.append(1, [large], told)
        journal.append(1, [large], told, is_state=True)
        world.tick()
        assert told == [(ErrorCode.MESSAGE_TOO_LARGE, -1), (NONE, 0)]
        assert [one.value for one in in_log(world)] == [large[1]]

    def test_a_broker_that_only_reads_keeps_groups_in_memory(self, told):
        world = GroupWorld()
        world.cluster.settings = replace(world.settings, horolog_read_only=True)
        journal_of(world).append(1, [ENTRY], told)
        world.tick()
        assert told == [(NONE, -1)]
        assert "__consumer_offsets" not in world.cluster.topics


class TestWaitingForWhatIsBeingWritten:
    def test_nothing_is_waited_for_where_nothing_is_on_its_way(self, journal, told):
        journal.when_written([0, 1], told)
        assert told == [()]

    @pytest.mark.parametrize("fails", [False, True])
    def test_the_action_follows_the_write_or_its_failure(self, world, journal, told, fails):
        journal.append(1, [ENTRY], told)
        journal.when_written([0, 1], told)
        if fails:
            world.storage.fail("write", "__consumer_offsets")
        assert told == []
        world.tick()
        assert told[-1] == ()
        assert len(told) == 2

    def test_a_shard_that_another_broker_leads_by_now_is_not_waited_for(self, world, journal, told):
        journal.append(1, [ENTRY], Told())
        led_by(world, journal, 1, 2, 4)
        journal.when_written([1], told)
        assert told == [()]


class TestReading:
    def test_a_log_that_was_never_written_is_empty(self, world):
        assert in_log(world) == []

    def test_transactions_are_told_with_their_ends(self, world, journal, told):
        for producer_id, committed in ((7, True), (8, False)):
            journal.append(1, [ENTRY], told, producer=TransactionalProducer(producer_id, 0))
            world.tick()
            append_marker(journal.find(1), producer_id, 0, Marker(committed, 0), 7000)
            journal.find(1).flush()
        assert in_log(world) == [
            Stored(0, *ENTRY, 7),
            Marked(7, committed=True),
            Stored(2, *ENTRY, 8),
            Marked(8, committed=False),
        ]

    def test_a_batch_that_cannot_be_read_costs_itself_only(self, world, journal, told, monkeypatch, caplog):
        for _ in range(3):
            journal.append(1, [ENTRY], told)
        world.tick()
        partition = journal.find(1)
        read = type(partition).read

        def damaged(*arguments, **fields):
            data = bytearray(read(*arguments, **fields))
            data[len(data) // 3 + 61] = 0xFF  # the length of the second batch's record
            return bytes(data)

        monkeypatch.setattr(type(partition), "read", damaged)
        assert [one.offset for one in in_log(world)] == [0, 2]
        assert "the batch at 1 cannot be read" in caplog.text
