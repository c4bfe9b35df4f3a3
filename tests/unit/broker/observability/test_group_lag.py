"""How far behind a group is: in records, and in seconds since the first record that it has not read was made."""

import pytest

from horolog.broker.groups.offsets import GroupOffsets
from horolog.broker.groups.streams.configured_topology import ConfiguredSubtopology, ConfiguredTopology
from horolog.broker.groups.streams.streams_group import StreamsGroup, StreamsMember
from horolog.broker.groups.streams.tasks import TaskSet
from horolog.broker.log.partition import log_start
from horolog.broker.log.storage import StorageFault
from horolog.broker.observability.group_lag import (
    NO_TIME,
    SHORT_BYTES,
    FirstUnread,
    batch_time,
    lag_records,
    uncommitted_records,
)
from horolog.protocol.group_metadata import write_assignment
from horolog.protocol.records.head import TIMES_END_AT
from tests.support import raw_records as raw
from tests.support.group_members import ClassicClient, ConsumerClient, commit
from tests.support.group_world import GroupWorld
from tests.support.log_model import Model, small_config

NOW_MS = 100_000
APPEND_TIME = 0x08


@pytest.fixture
def partition():
    """Three records, each in a batch of its own, at 10, 20 and 30 seconds."""
    model = Model(small_config())
    for time_ms in (10_000, 20_000, 30_000):
        model.append(2, 0, [time_ms], [b"v"])
    model.flush()
    return model.partition


@pytest.mark.parametrize(("committed", "lag"), [(0, 3), (2, 1), (3, 0), (7, 0), (-1, 3)])
def test_records_behind_are_those_up_to_the_end(partition, committed, lag):
    assert lag_records(partition, committed) == lag


def test_what_retention_has_taken_is_not_counted(partition):
    log_start.delete_records_before(partition, 2)
    assert lag_records(partition, 0) == 1
    assert FirstUnread(10).lag_seconds(partition, 0, NOW_MS) == 70.0


@pytest.mark.parametrize(("committed", "seconds"), [(0, 90.0), (1, 80.0), (3, 0.0)])
def test_seconds_behind_are_those_since_the_first_unread_record(partition, committed, seconds):
    assert FirstUnread(10).lag_seconds(partition, committed, NOW_MS) == seconds


def test_a_record_from_the_future_is_no_lag(partition):
    assert FirstUnread(10).lag_seconds(partition, 0, 5_000) == 0.0


def test_a_time_is_read_once_as_long_as_the_group_stays(partition, monkeypatch):
    unread, read = FirstUnread(10), type(partition).read
    reads = []
    monkeypatch.setattr(type(partition), "read", lambda *a, **k: (reads.append(1), read(*a, **k))[1])
    for _ in range(3):
        unread.begin()
        assert unread.lag_seconds(partition, 1, NOW_MS) == 80.0
    assert len(reads) == 1
    unread.begin()
    unread.begin()
    unread.lag_seconds(partition, 1, NOW_MS)
    assert len(reads) == 2, "a group that was not asked for in a round is forgotten"


def test_no_more_times_are_remembered_than_the_limit(partition):
    unread = FirstUnread(1)
    unread.begin()
    for committed in (0, 1, 2):
        unread.lag_seconds(partition, committed, NOW_MS)
    assert len(unread._next) == 1


def test_a_record_that_cannot_be_read_has_no_time(partition, monkeypatch):
    def fails(*_, **__):
        raise StorageFault("an input/output error")

    unread = FirstUnread(10)
    with monkeypatch.context() as patched:
        patched.setattr(type(partition), "read", fails)
        unread.begin()
        assert unread.lag_seconds(partition, 1, NOW_MS) is None
    unread.begin()
    assert unread.lag_seconds(partition, 1, NOW_MS) == 80.0, "it is read again, as bytes may have come from a store"


@pytest.mark.parametrize(
    ("head", "time_ms"),
    [
        (raw.batch([raw.record()], base_timestamp=5, max_timestamp=9)[:TIMES_END_AT], 5),
        (raw.batch([raw.record()], base_timestamp=5, max_timestamp=9, attributes=APPEND_TIME)[:TIMES_END_AT], 9),
        (raw.message(magic=1, timestamp=7), 7),
        (raw.message(magic=0), NO_TIME),
        (raw.batch([raw.record()], base_timestamp=5, max_timestamp=9)[: TIMES_END_AT - 1], NO_TIME),
        (b"", NO_TIME),
    ],
)
def test_the_time_is_read_from_the_head_alone(head, time_ms):
    assert batch_time(head) == time_ms


class TestRecordsWithoutACommit:
    @pytest.fixture
    def world(self):
        world = GroupWorld()
        world.topic("t", 4)
        return world

    @pytest.fixture
    def places(self, partition):
        empty = Model(small_config()).partition
        return {("t", 0): partition, ("t", 1): partition, ("t", 2): empty}

    def counted(self, world, places):
        return uncommitted_records(world.coordinator.registry.groups["g"], places, world.cluster.by_id)

    @pytest.mark.parametrize("elsewhere", [0, SHORT_BYTES])
    def test_a_classic_members_are_counted_where_records_wait(self, world, places, elsewhere):
        member = ClassicClient(world)
        member.join()
        others = {"other": list(range(elsewhere))} if elsewhere else {}
        member.sync({member.id: write_assignment(0, {"t": [0, 1, 2, 3]} | others)})
        assert self.counted(world, places) == 6
        assert commit(world, 1, member_id=member.id, generation_id_or_member_epoch=member.generation) == 0
        assert self.counted(world, places) == 3
        member.leave()
        assert self.counted(world, places) == 0

    def test_what_another_leader_wrote_is_not_read(self, world, places):
        member = ClassicClient(world)
        member.join()
        member.sync({member.id: b"\0\0words"})
        assert self.counted(world, places) == 0
        other = ClassicClient(world, protocol_type="connect", group_id="c")
        other.join()
        other.sync({other.id: write_assignment(0, {"t": [0]})})
        assert uncommitted_records(world.coordinator.registry.groups["c"], places, world.cluster.by_id) == 0

    def test_a_task_of_a_streams_group_is_counted_too(self, world, places):
        group = StreamsGroup("g", 0, GroupOffsets(), 0)
        member = StreamsMember("m")
        member.current = member.current._replace(assigned=TaskSet({"0": frozenset({0, 1})}))
        group.add(member)
        world.coordinator.registry.groups["g"] = group
        assert self.counted(world, places) == 0, "nothing is known of its topics"
        inputs = {name: 4 for name, _ in places}
        group.configured = ConfiguredTopology({"0": ConfiguredSubtopology(4, inputs, is_stateful=False)}, {}, {}, None)
        assert self.counted(world, places) == sum(
            lag_records(one, 0) for (_, index), one in places.items() if index in {0, 1}
        )

    def test_a_member_of_the_newer_protocol_is_counted_too(self, world, places):
        ConsumerClient(world, "A").join()
        assert self.counted(world, places) == 6
        assert uncommitted_records(world.coordinator.registry.groups["g"], places, {}) == 0
