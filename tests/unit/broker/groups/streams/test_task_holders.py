"""Who has each task."""

from horolog.broker.groups.streams.streams_reconcile import CurrentTasks
from horolog.broker.groups.streams.task_holders import TaskHolders
from horolog.broker.groups.streams.tasks import NO_TASKS, Role, TaskSet

TASK = ("0", 1)
ACTIVE, COPY = TaskSet({"0": frozenset({1})}), TaskSet({}, {"0": frozenset({1})})


def test_a_task_is_held_until_all_have_released_it():
    holders = TaskHolders()
    running, copying = CurrentTasks(assigned=ACTIVE), CurrentTasks(revoking=COPY)
    holders.hold("m", "p", running)
    holders.hold("n", "q", copying)
    assert (len(holders), repr(holders)) == (1, "<TaskHolders of 1 tasks>")
    assert not holders.is_free("r", Role.ACTIVE, TASK)
    assert holders.is_free("r", Role.STANDBY, TASK)
    assert not holders.is_free("q", Role.STANDBY, TASK)
    holders.release("m", running)
    assert holders.is_free("r", Role.ACTIVE, TASK)
    assert not holders.is_free("q", Role.ACTIVE, TASK)
    holders.release("n", copying)
    holders.release("n", copying)
    assert (len(holders), holders) == (0, TaskHolders())
    assert holders != NO_TASKS
