"""Requests wait until the transaction before theirs has ended: its decision is written, but not all of its markers, or the record of its end.
They also wait while this broker is about to coordinate their id, and has not read its records yet.

Kafka's brokers answer CONCURRENT_TRANSACTIONS or COORDINATOR_LOAD_IN_PROGRESS at once, and the client asks again. After a failover both may
take a second or more. librdkafka that aborts a transaction meanwhile sends EndTxn although no partition has been added, and takes the answer,
INVALID_TXN_STATE, for a fatal error. Here AddPartitionsToTxn waits, and EndTxn waits behind it.

The requests of a transactional id form a line: one that comes while others wait is served behind them. After `LONGEST_WAIT_MS` a request
is answered as it would have been without a line. A client that closes its connection meanwhile has made its request: it is served.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from horolog.broker.commit.waiting import Wait, WaitingRequests
from horolog.protocol.errors import ErrorCode

LONGEST_WAIT_MS = 5_000
"""Half of the shortest time that clients wait for an answer by default."""

Done = Callable[..., None]
"""Called with an error code first."""

_NOT_YET = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})


class _Request:
    """A request that may have to be made again."""

    __slots__ = ("_ask", "_done", "_is_asking", "_is_refused")

    def __init__(self, ask: Callable[[Done], None], done: Done) -> None:
        self._ask = ask
        self._done = done
        self._is_asking = self._is_refused = False

    def ask(self) -> bool:
        """Whether the transaction's coordinator has taken it; if not, the transaction before is still ending, or the coordinator loads."""
        self._is_asking, self._is_refused = True, False
        try:
            self._ask(self._told)
        finally:
            self._is_asking = False
        return not self._is_refused

    def ask_at_last(self) -> None:
        self._ask(self._done)

    def _told(self, code: ErrorCode, *rest: Any) -> None:
        if self._is_asking and code in _NOT_YET:
            self._is_refused = True
        else:
            self._done(code, *rest)


class TransactionLines:
    """The requests that wait, for each transactional id in the order in which they came."""

    def __init__(self, waiting: WaitingRequests, call_soon: Callable[..., object]) -> None:
        self._waiting = waiting
        self._call_soon = call_soon
        self._lines: dict[str, dict[Wait, None]] = {}
        self._looks_soon = False

    def __repr__(self) -> str:
        return f"<TransactionLines of {len(self._lines)} transactional ids>"

    def serve(self, transactional_id: str, ask: Callable[[Done], None], done: Done, place_count: int = 1) -> None:
        """Make a request by `ask(done)` as soon as nothing holds it up; it names `place_count` partitions."""
        request = _Request(ask, done)
        if transactional_id not in self._lines and request.ask():
            return
        wait = Wait(request.ask, request.ask_at_last, partial(self._leave, transactional_id), place_count)
        if not self._waiting.has_room_for(wait):
            request.ask_at_last()
            return
        self._lines.setdefault(transactional_id, {})[wait] = None
        self._waiting.add(wait, LONGEST_WAIT_MS)

    def settled(self, transactional_id: str) -> None:
        """A step of the id's transaction has ended."""
        if transactional_id in self._lines:
            self._call_soon(self._move, transactional_id)

    def look(self) -> None:
        """The records of some ids have been loaded, or another broker coordinates these ids now."""
        if self._lines and not self._looks_soon:
            self._looks_soon = True
            self._call_soon(self._look)

    def _look(self) -> None:
        self._looks_soon = False
        for transactional_id in list(self._lines):
            self._move(transactional_id)

    def _move(self, transactional_id: str) -> None:
        for wait in list(self._lines.get(transactional_id, ())):
            if wait.timer is not None and not wait.check():
                return
            self._waiting.remove(wait)

    def _leave(self, transactional_id: str, wait: Wait) -> None:
        line = self._lines[transactional_id]
        del line[wait]
        if not line:
            del self._lines[transactional_id]
