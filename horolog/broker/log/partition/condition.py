"""The condition of a partition: it serves, is read only, or is offline, each with its reason.

    serving     takes appends and is read
    read only   is read, and takes no appends until its disk works again
    offline     nothing of it works until its folder can be opened again
    deleted     offline for good

A partition that goes offline stays stopped if it was: what it holds is no surer than before, and nothing of it is synced
until it has been opened again. Nothing brings a deleted one back, whatever a worker thread finds late.
"""

from __future__ import annotations

from dataclasses import dataclass

DELETED = "deleted"
"""The fault of a partition that is no more."""


@dataclass(frozen=True, slots=True)
class Condition:
    fault: str | None = None
    """Why it is offline."""
    stopped: str | None = None
    """Why it takes no appends though it is read."""

    @property
    def is_deleted(self) -> bool:
        return self.fault == DELETED

    def offline(self, reason: str) -> Condition:
        return self if self.is_deleted else Condition(reason, self.stopped)

    def read_only(self, reason: str) -> Condition:
        return self if self.is_deleted else Condition(self.fault, reason)

    def resumed(self) -> Condition:
        return SERVING if self.fault is None else Condition(self.fault)

    def deleted(self) -> Condition:
        return Condition(DELETED, self.stopped)


SERVING = Condition()
