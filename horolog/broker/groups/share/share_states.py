"""The states of share partitions, as the coordinator of share groups asks for them; the persister keeps them.

Each call is about one partition, and answers once: at once, or when the state is written or read. A persister on another
worker answers when its answer has come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from horolog.protocol.errors import ErrorCode

UNINITIALIZED = -1
"""An offset or a count that is not known yet."""


class SharePlace(NamedTuple):
    """One partition of one share group."""

    group_id: str
    topic_id: bytes
    partition: int


class ShareRefusal(NamedTuple):
    """Why a request about a share group is refused."""

    code: ErrorCode
    message: str


class ShareSummary(Protocol):
    """A state in short; `complete_count` counts the records after the start offset that need no delivery any more."""

    @property
    def leader_epoch(self) -> int: ...
    @property
    def start_offset(self) -> int: ...
    @property
    def complete_count(self) -> int: ...


class ShareStates(Protocol):
    """The persister."""

    def initialize(
        self, place: SharePlace, state_epoch: int, start_offset: int, done: Callable[[ErrorCode], None]
    ) -> None:
        """Begin a state; a start offset of -1 leaves it to the leader of the partition."""
        ...

    def delete(self, place: SharePlace, done: Callable[[ErrorCode], None]) -> None: ...

    def read_summary(self, place: SharePlace, done: Callable[[ShareSummary | ErrorCode], None]) -> None: ...
