"""A streams group as data: its states, who may have a task, and the rights of commits."""

import pytest

from horolog.broker.groups.offsets import GroupOffsets
from horolog.broker.groups.reconcile import MemberState
from horolog.broker.groups.records import read_entry
from horolog.broker.groups.streams.streams_group import NOT_VALIDATED, QueryEndpoint, StreamsGroup, StreamsMember
from horolog.broker.groups.streams.streams_reconcile import CurrentTasks
from horolog.broker.groups.streams.tasks import NO_TASKS, Role, TaskSet
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.streams_group_records import StreamsGroupTopologyValue
from horolog.protocol.messages.streams_groups import StreamsSubtopology, StreamsTopicInfo

TASK = ("0", 1)


@pytest.fixture
def group():
    return StreamsGroup("g", 0, GroupOffsets(), 0)


def member(name="m", process="p", tasks=NO_TASKS, revoking=NO_TASKS):
    made = StreamsMember(name)
    made.process_id = process
    epochs = {("0", 1): 4, ("0", 2): 5}
    made.current = CurrentTasks(5, 4, MemberState.STABLE, tasks, revoking, epochs)
    return made


ACTIVE, COPY = TaskSet({"0": frozenset({1})}), TaskSet({}, {"0": frozenset({1})})


def test_states(group):
    assert (group.state_name, group.is_empty) == ("Empty", True)
    group.add(member())
    assert group.state_name == "NotReady"
    group.validated_epoch, group.epoch = 0, 5
    assert group.state_name == "Assigning"
    group.assignment_epoch = 6
    assert group.state_name == "Reconciling"
    group.assignment_epoch = 5
    assert group.state_name == "Stable"
    assert repr(group) == "<StreamsGroup g Stable in epoch 5, 1 members>"
    assert "STABLE" in repr(group.members["m"])


@pytest.mark.parametrize(
    ("tasks", "process", "role", "is_free"),
    [
        (ACTIVE, "other", Role.ACTIVE, False),
        (ACTIVE, "other", Role.STANDBY, True),
        (ACTIVE, "p", Role.STANDBY, False),
        (COPY, "other", Role.ACTIVE, True),
        (COPY, "other", Role.STANDBY, True),
        (COPY, "p", Role.ACTIVE, False),
        (COPY, "p", Role.WARMUP, False),
    ],
)
def test_who_may_have_a_task(group, tasks, process, role, is_free):
    asking = member("n", process)
    assert group.is_free(asking, role, TASK)
    group.add(member(tasks=tasks))
    assert group.is_free(asking, role, TASK) is is_free
    group.set_current(group.members["m"], member(revoking=tasks).current)
    assert group.is_free(asking, role, TASK) is is_free, "until it is given back"
    group.remove(group.members["m"])
    assert group.is_free(asking, role, TASK)
    assert not group.holders


def test_a_member_takes_its_tasks_to_its_other_process(group):
    group.add(member(tasks=COPY))
    group.set_process(group.members["m"], "q")
    assert group.is_free(member("n", "p"), Role.STANDBY, TASK)
    assert not group.is_free(member("n", "q"), Role.STANDBY, TASK)


def test_commits(group):
    def check(name="m", epoch=5, version=9, *, transactional=False):
        return group.check_commit(name, None, epoch, version, transactional=transactional)

    assert check(epoch=-1) == ErrorCode.NONE
    group.add(member())
    assert check() == ErrorCode.NONE
    assert check(epoch=4) == ErrorCode.STALE_MEMBER_EPOCH
    assert check("n") == ErrorCode.UNKNOWN_MEMBER_ID
    assert check(version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert check(version=3, transactional=True) == ErrorCode.NONE
    assert check("", epoch=-1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert check("", epoch=-1, transactional=True) == ErrorCode.NONE


def test_a_task_that_a_member_has_kept_is_committed_with_the_epoch_in_which_it_got_it(group):
    group.add(member(tasks=ACTIVE, revoking=TaskSet({"0": frozenset({2})})))
    assert not group.has_kept("m", 5, [("in", b"", 1)]), "without a topology"
    again = StreamsTopicInfo(name="again", partitions=0)
    subtopology = StreamsSubtopology(subtopology_id="0", source_topics=["in"], repartition_source_topics=[again])
    group.topology = StreamsGroupTopologyValue(epoch=0, subtopologies=[subtopology])
    for topic in ("in", "again"):
        asked = [(index, epoch) for index in range(4) for epoch in range(7)]
        kept = [(index, epoch) for index, epoch in asked if group.has_kept("m", epoch, [(topic, b"", index)])]
        assert kept == [(1, 4), (1, 5), (2, 5)]
    assert not group.has_kept("m", 5, [("other", b"", 1)])


def test_fetches_and_deletions(group):
    assert group.check_fetch(None, -1) == ErrorCode.NONE
    assert group.check_fetch("m", 5) == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.check_delete() == ErrorCode.NONE
    group.add(member())
    assert group.check_fetch("m", 5) == ErrorCode.NONE
    assert group.check_fetch("m", 4) == ErrorCode.STALE_MEMBER_EPOCH
    assert group.check_delete() == ErrorCode.NON_EMPTY_GROUP
    assert group.check_offset_delete() == ErrorCode.NONE
    group.subscribed = frozenset({"t"})
    assert group.reads("t")
    assert group.expiry_starts(("t", 0), None) is None


def test_bytes_and_descriptions(group):
    one = member()
    one.endpoint, one.tags, one.rack_id = QueryEndpoint("host", 1), (("zone", "a"),), "r"
    assert one.held_bytes == len("host") + len("zone") + len("a") + len("r") + len("p")
    group.add(one)
    assert group.held.total == one.held_bytes


def test_records(group):
    one = member(tasks=ACTIVE, revoking=TaskSet({"0": frozenset({2})}))
    group.add(one)
    group.topology = StreamsGroupTopologyValue(epoch=7)
    group.assignment_settings = {"num.standby.replicas": "1"}
    _, _, value = read_entry(*group.current_entry(one))
    assert (value.active_tasks[0].partitions, value.active_tasks[0].assignment_epochs) == ([1], [4])
    assert value.active_tasks_pending_revocation[0].assignment_epochs == [5]
    _, _, value = read_entry(*group.group_entry())
    assert (value.validated_topology_epoch, value.last_assignment_configs[0].value) == (NOT_VALIDATED, "1")
    _, _, value = read_entry(*group.topology_entry())
    assert value.epoch == 7
    assert [value for _, value in group.tombstones()] == [None] * 6
