"""The tasks of a topology: one for each partition of a subtopology's topics, in one of three roles, as sets with their algebra."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Final, NamedTuple

from horolog.broker.groups.reconcile import difference, intersection, union
from horolog.protocol.messages.streams_groups import StreamsTaskIds

Tasks = dict[str, frozenset[int]]
"""Indexes of tasks by subtopology; subtopologies without tasks are left out."""

Task = tuple[str, int]
"""A subtopology, and the index of one of its tasks."""


class Role(Enum):
    """What a member does with a task: a standby or warm-up task keeps a copy of the state of the active one."""

    ACTIVE = "active"
    STANDBY = "standby"
    WARMUP = "warmup"


class TaskSet(NamedTuple):
    """The tasks of a member, by role."""

    active: Tasks = {}  # noqa: RUF012 - never changed
    standby: Tasks = {}  # noqa: RUF012 - never changed
    warmup: Tasks = {}  # noqa: RUF012 - never changed

    @property
    def is_empty(self) -> bool:
        return not any(self)

    def __and__(self, other: TaskSet) -> TaskSet:
        return TaskSet(*(intersection(mine, theirs) for mine, theirs in zip(self, other, strict=True)))

    def __sub__(self, other: TaskSet) -> TaskSet:
        return TaskSet(*(difference(mine, theirs) for mine, theirs in zip(self, other, strict=True)))

    def __or__(self, other: TaskSet) -> TaskSet:
        return TaskSet(*(union(mine, theirs) for mine, theirs in zip(self, other, strict=True)))

    def each(self) -> Iterator[tuple[Role, Task]]:
        for role, tasks in zip(Role, self, strict=True):
            for task in each_task(tasks):
                yield role, task


NO_TASKS: Final = TaskSet()


def each_task(tasks: Tasks) -> Iterator[Task]:
    for subtopology, indexes in tasks.items():
        for index in indexes:
            yield subtopology, index


def tasks_of(tasks: Iterable[Task]) -> Tasks:
    found: dict[str, set[int]] = {}
    for subtopology, index in tasks:
        found.setdefault(subtopology, set()).add(index)
    return {subtopology: frozenset(indexes) for subtopology, indexes in found.items()}


def read_tasks(given: Sequence[StreamsTaskIds] | None) -> Tasks:
    return tasks_of((one.subtopology_id, index) for one in given or () for index in one.partitions)


def written_tasks(tasks: Tasks) -> list[StreamsTaskIds]:
    return [
        StreamsTaskIds(subtopology_id=subtopology, partitions=sorted(indexes))
        for subtopology, indexes in sorted(tasks.items())
    ]
