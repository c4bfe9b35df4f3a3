"""Sets of tasks by role."""

from horolog.broker.groups.streams.tasks import NO_TASKS, Role, TaskSet, each_task, read_tasks, tasks_of, written_tasks
from horolog.protocol.messages.streams_groups import StreamsTaskIds

ONE = TaskSet({"0": frozenset({0, 1})}, {"1": frozenset({2})})
OTHER = TaskSet({"0": frozenset({1, 2})}, {}, {"1": frozenset({2})})


def test_the_algebra_is_by_role():
    assert TaskSet({"0": frozenset({1})}) == ONE & OTHER
    assert TaskSet({"0": frozenset({0})}, {"1": frozenset({2})}) == ONE - OTHER
    assert TaskSet({"0": frozenset({0, 1, 2})}, {"1": frozenset({2})}, {"1": frozenset({2})}) == ONE | OTHER
    assert (ONE - ONE).is_empty
    assert NO_TASKS.is_empty
    assert not ONE.is_empty


def test_each_task_has_its_role():
    assert sorted(ONE.each(), key=repr) == [
        (Role.ACTIVE, ("0", 0)),
        (Role.ACTIVE, ("0", 1)),
        (Role.STANDBY, ("1", 2)),
    ]


def test_tasks_on_the_wire_are_sorted():
    wire = [StreamsTaskIds(subtopology_id="0", partitions=[1, 3]), StreamsTaskIds(subtopology_id="1", partitions=[0])]
    tasks = read_tasks([wire[1], StreamsTaskIds(subtopology_id="0", partitions=[3, 1])])
    assert written_tasks(tasks) == wire
    assert tasks_of(each_task(tasks)) == tasks
    assert read_tasks(None) == {}
