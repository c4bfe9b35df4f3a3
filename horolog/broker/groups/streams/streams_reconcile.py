"""Moves a member of a streams group from its current to its target tasks, heartbeat by heartbeat, as a pure function.

A member first gives back the tasks that are no longer its own and confirms that; only then it enters the new epoch. It gets an active task
as soon as no other member runs it, and any task as soon as no other member of its process has it in another role.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from horolog.broker.groups.reconcile import MemberState
from horolog.broker.groups.streams.tasks import NO_TASKS, Role, Task, TaskSet, each_task, tasks_of

IsFree = Callable[[Role, Task], bool]
NO_EPOCHS: Mapping[Task, int] = {}


class CurrentTasks(NamedTuple):
    """A member's tasks and its epoch. `epochs` has the epochs in which it got its active tasks."""

    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: TaskSet = NO_TASKS
    revoking: TaskSet = NO_TASKS
    epochs: Mapping[Task, int] = NO_EPOCHS

    def in_epoch(self, epoch: int, state: MemberState, assigned: TaskSet) -> CurrentTasks:
        previous = self.previous_epoch if epoch == self.epoch else self.epoch
        epochs = {task: self.epochs.get(task, epoch) for task in each_task(assigned.active)}
        return CurrentTasks(epoch, previous, state, assigned, NO_TASKS, epochs)

    def got_in(self, task: Task) -> int | None:
        """The epoch in which the member got an active task; None if it has not got it, or has given it back."""
        name, index = task
        if index in self.assigned.active.get(name, ()) or index in self.revoking.active.get(name, ()):
            return self.epochs.get(task, self.epoch)
        return None


def next_tasks(
    current: CurrentTasks, target_epoch: int, target: TaskSet, is_free: IsFree, owned: TaskSet | None
) -> CurrentTasks:
    """The member's next state; `owned` are the tasks that it reports, None if it sends no report."""
    if current.state is MemberState.STABLE and current.epoch == target_epoch:
        return current
    if current.state is MemberState.UNREVOKED and _owns_any(owned, current.revoking):
        return current
    kept, revoking = current.assigned & target, current.assigned - target
    if not revoking.is_empty and _owns_any(owned, revoking):
        return current._replace(state=MemberState.UNREVOKED, assigned=kept, revoking=revoking)
    wanted = target - kept
    new = _free(wanted, is_free)
    state = MemberState.STABLE if new == wanted else MemberState.UNRELEASED
    return current.in_epoch(target_epoch, state, kept | new)


def _owns_any(owned: TaskSet | None, tasks: TaskSet) -> bool:
    return owned is None or not (owned & tasks).is_empty


def _free(wanted: TaskSet, is_free: IsFree) -> TaskSet:
    """The wanted tasks that nothing keeps from the member."""
    return TaskSet(
        *(
            tasks_of(task for task in each_task(tasks) if is_free(role, task))
            for role, tasks in zip(Role, wanted, strict=True)
        )
    )
