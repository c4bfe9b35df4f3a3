"""Who has each task of a streams group: a process has it in one role at most, and one member at most runs it."""

from __future__ import annotations

from horolog.broker.groups.streams.streams_reconcile import CurrentTasks
from horolog.broker.groups.streams.tasks import Role, Task


class TaskHolders:
    """The processes of the members that have a task, those included that still have to give it back."""

    def __init__(self) -> None:
        self._of: dict[Task, dict[tuple[str, Role], str]] = {}
        """By task, and by member and role."""

    def __repr__(self) -> str:
        return f"<TaskHolders of {len(self._of)} tasks>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TaskHolders) and self._of == other._of

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self._of)

    def hold(self, member_id: str, process_id: str, current: CurrentTasks) -> None:
        for tasks in (current.assigned, current.revoking):
            for role, task in tasks.each():
                self._of.setdefault(task, {})[member_id, role] = process_id

    def release(self, member_id: str, current: CurrentTasks) -> None:
        for tasks in (current.assigned, current.revoking):
            for role, task in tasks.each():
                holders = self._of.get(task, {})
                holders.pop((member_id, role), None)
                if not holders:
                    self._of.pop(task, None)

    def is_free(self, process_id: str, role: Role, task: Task) -> bool:
        """Whether a member of a process may get a task in a role."""
        return not any(
            process == process_id or (role is Role.ACTIVE and its_role is Role.ACTIVE)
            for (_, its_role), process in self._of.get(task, {}).items()
        )
