"""Assigns tasks to the members of a streams group as a pure function: evenly, and where their state already is.

An active task stays with its member, else it goes to one that has a copy of its state, as long as that member has less than its share;
the rest goes to the process with the least load for its number of members. A standby task is never in the process of its active task.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from horolog.broker.groups.streams.configured_topology import ConfiguredSubtopology
from horolog.broker.groups.streams.tasks import NO_TASKS, Task, TaskSet, each_task, tasks_of


class TaskRunner(NamedTuple):
    """A member as the assignor sees it: members of one process share the state on its disk."""

    process_id: str
    before: TaskSet = NO_TASKS


class TaskQuota:
    """How many tasks each member may have: an equal part of those that the members below their part still get."""

    def __init__(self, task_count: int, member_count: int) -> None:
        self._tasks = task_count
        self._members = member_count

    def __repr__(self) -> str:
        return f"<TaskQuota of {self._tasks} tasks for {self._members} members>"

    @property
    def limit(self) -> int:
        return -(-self._tasks // self._members) if self._members else 0

    def took(self, count: int) -> None:
        """A member has so many tasks now."""
        if count == self.limit:
            self._tasks -= count
            self._members -= 1


class Assigning:
    """The tasks that are handed out so far."""

    def __init__(self, runners: Mapping[str, TaskRunner], active_count: int, task_count: int) -> None:
        self._process_of = {member: one.process_id for member, one in runners.items()}
        self._members_of: dict[str, list[str]] = {}
        for member, process in self._process_of.items():
            self._members_of.setdefault(process, []).append(member)
        self._holding: dict[str, set[Task]] = {process: set() for process in self._members_of}
        self.active: dict[str, list[Task]] = {member: [] for member in runners}
        self.standby: dict[str, list[Task]] = {member: [] for member in runners}
        self._active_quota = TaskQuota(active_count, len(runners))
        self._quota = TaskQuota(task_count, len(runners))

    def __repr__(self) -> str:
        return f"<Assigning of {self._quota!r}>"

    def count_of(self, member: str) -> int:
        return len(self.active[member]) + len(self.standby[member])

    def load_of(self, member: str) -> float:
        """The load of a member's process: tasks for each of its members."""
        return self._load(self._process_of[member])

    def _load(self, process: str) -> float:
        members = self._members_of[process]
        return sum(map(self.count_of, members)) / len(members)

    def has_room(self, member: str, *, active: bool) -> bool:
        return self.count_of(member) < (self._active_quota if active else self._quota).limit

    def has(self, member: str, task: Task) -> bool:
        """Whether a member's process has a task already."""
        return task in self._holding[self._process_of[member]]

    def give(self, member: str, task: Task, *, active: bool) -> None:
        (self.active if active else self.standby)[member].append(task)
        self._holding[self._process_of[member]].add(task)
        count = self.count_of(member)
        if active:
            self._active_quota.took(count)
        self._quota.took(count)

    def least_loaded(self, task: Task) -> str | None:
        """The member with the fewest tasks of the process with the least load that does not have a task; None if all have it."""
        free = [process for process, holding in self._holding.items() if task not in holding]
        if not free:
            return None
        return min(self._members_of[min(free, key=self._load)], key=self.count_of)


def assign_sticky(
    runners: Mapping[str, TaskRunner], subtopologies: Mapping[str, ConfiguredSubtopology], standby_replicas: int
) -> dict[str, TaskSet]:
    """The tasks of every member."""
    if not runners:
        return {}
    active = [(name, index) for name, one in subtopologies.items() for index in range(one.task_count)]
    stateful = [task for task in active if subtopologies[task[0]].is_stateful]
    assigning = Assigning(runners, len(active), len(active) + len(stateful) * standby_replicas)
    had_active = {task: member for member, one in runners.items() for task in each_task(one.before.active)}
    had_copy: dict[Task, list[str]] = {}
    for member, one in runners.items():
        for task in (*each_task(one.before.standby), *each_task(one.before.warmup)):
            had_copy.setdefault(task, []).append(member)
    _assign_active(assigning, active, had_active, had_copy)
    _assign_standby(assigning, stateful, standby_replicas, had_active, had_copy)
    return {
        member: TaskSet(tasks_of(assigning.active[member]), tasks_of(assigning.standby[member])) for member in runners
    }


def _by_index(task: Task) -> tuple[int, str]:
    return task[1], task[0]


def _assign_active(
    assigning: Assigning, tasks: Iterable[Task], had_active: Mapping[Task, str], had_copy: Mapping[Task, list[str]]
) -> None:
    rest = []
    for task in sorted(tasks, key=_by_index):
        member = had_active.get(task)
        if member is not None and assigning.has_room(member, active=True):
            assigning.give(member, task, active=True)
        else:
            rest.append(task)
    homeless = []
    for task in rest:
        member = _least(assigning, had_copy.get(task, ()))
        if member is not None and assigning.has_room(member, active=True):
            assigning.give(member, task, active=True)
        else:
            homeless.append(task)
    for task in sorted(homeless):
        member = assigning.least_loaded(task)
        assert member is not None, "no process has an active task that is not handed out"
        assigning.give(member, task, active=True)


def _assign_standby(
    assigning: Assigning,
    tasks: Iterable[Task],
    replicas: int,
    had_active: Mapping[Task, str],
    had_copy: Mapping[Task, list[str]],
) -> None:
    left: list[Task] = []
    for task in sorted(tasks, key=_by_index, reverse=True):
        for _ in range(replicas):
            before = [one for one in (had_active.get(task), *had_copy.get(task, ())) if one is not None]
            member = _least(assigning, [one for one in before if not assigning.has(one, task)])
            if member is not None and assigning.has_room(member, active=False):
                assigning.give(member, task, active=False)
            else:
                left.append(task)
    for task in sorted(left, reverse=True):
        member = assigning.least_loaded(task)
        if member is not None:
            assigning.give(member, task, active=False)


def _least(assigning: Assigning, members: Iterable[str]) -> str | None:
    return min(members, key=lambda one: (assigning.load_of(one), assigning.count_of(one)), default=None)
