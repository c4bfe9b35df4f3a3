"""One member on its way to its target."""

import pytest

from horolog.broker.groups.reconcile import MemberState
from horolog.broker.groups.streams.streams_reconcile import CurrentTasks, next_tasks
from horolog.broker.groups.streams.tasks import NO_TASKS, Role, TaskSet


def active(*indexes):
    return TaskSet({"0": frozenset(indexes)} if indexes else {})


def free(*_):
    return True


def test_a_member_that_is_there_stays():
    current = CurrentTasks(3, 2, MemberState.STABLE, active(0), NO_TASKS, {("0", 0): 2})
    assert next_tasks(current, 3, active(0), free, None) is current


def test_free_tasks_are_given_in_the_new_epoch():
    current = next_tasks(CurrentTasks(), 4, active(0, 1), free, NO_TASKS)
    assert current == CurrentTasks(4, 0, MemberState.STABLE, active(0, 1), NO_TASKS, {("0", 0): 4, ("0", 1): 4})
    later = next_tasks(current, 5, active(0, 1, 2), free, None)
    assert (later.previous_epoch, later.epochs) == (4, {("0", 0): 4, ("0", 1): 4, ("0", 2): 5})


def test_a_task_that_another_member_has_is_waited_for():
    held = next_tasks(CurrentTasks(), 4, active(0, 1), lambda _, task: task != ("0", 1), NO_TASKS)
    assert (held.state, held.assigned, held.epoch) == (MemberState.UNRELEASED, active(0), 4)
    given = next_tasks(held, 4, active(0, 1), free, None)
    assert (given.state, given.assigned, given.previous_epoch) == (MemberState.STABLE, active(0, 1), 0)


@pytest.mark.parametrize("owned", [None, active(0, 1), active(1)])
def test_tasks_are_given_back_before_the_new_epoch(owned):
    current = CurrentTasks(4, 3, MemberState.STABLE, active(0, 1), NO_TASKS, {("0", 0): 4, ("0", 1): 4})
    asked = next_tasks(current, 5, active(0, 2), free, owned)
    assert (asked.epoch, asked.state, asked.assigned) == (4, MemberState.UNREVOKED, active(0))
    assert asked.revoking == active(1)
    assert next_tasks(asked, 5, active(0, 2), free, owned) is asked
    done = next_tasks(asked, 5, active(0, 2), free, active(0))
    assert (done.epoch, done.assigned, done.revoking.is_empty) == (5, active(0, 2), True)


def test_a_task_may_change_its_role():
    current = CurrentTasks(4, 3, MemberState.STABLE, active(0), NO_TASKS, {("0", 0): 4})
    target = TaskSet({}, {"0": frozenset({0})})
    asked = next_tasks(current, 5, target, free, active(0))
    assert asked.revoking == active(0)
    mine = next_tasks(asked, 5, target, lambda role, _: role is not Role.STANDBY, NO_TASKS)
    assert (mine.state, mine.assigned) == (MemberState.UNRELEASED, NO_TASKS)


def test_a_task_is_had_since_an_epoch_until_it_is_given_back():
    current = CurrentTasks(5, 4, MemberState.STABLE, active(0, 1), NO_TASKS, {("0", 0): 3})
    assert [current.got_in(("0", index)) for index in range(3)] == [3, 5, None]
    asked = next_tasks(current, 6, active(0), free, None)
    assert (asked.revoking, asked.got_in(("0", 1)), asked.got_in(("other", 0))) == (active(1), 5, None)
    done = next_tasks(asked, 6, active(0), free, active(0))
    assert (done.got_in(("0", 0)), done.got_in(("0", 1))) == (3, None)
