"""What every part of a broker asks of the shared store, each until the answer is known, however long that takes.

A create that is UNKNOWN is sent again with the same bytes. After TAKEN the object is read: bytes with a nonce say whose they are. A key
that is taken and empty is UNKNOWN as well: stores may refuse a create while another one is under way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from horolog.broker.base.answers import Answer, Begin
from horolog.broker.bucket.refused_deletes import RefusedDeletes
from horolog.stores.faults import StoreError, StoreRefusal
from horolog.stores.object_store import Bytes, Created, Outcome, Stored
from horolog.stores.requests import Deleted, Got, GotPart, StoreRequests

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0
SAID_AFTER = 5
"""So many attempts of one request without an answer, within 1.5 s, are worth a line in the log; so is the next answer."""

Result = TypeVar("Result")

Pause = Callable[[float, Callable[[None], None]], object]
"""Calls back after so many seconds: `loop.call_later`, with an argument."""


class StoreAccess:
    """The store as one broker asks it; `fault` is the newest reason why an answer is missing, empty if none is."""

    def __init__(self, store: StoreRequests, pause: Pause) -> None:
        self._store = store
        self._pause = pause
        self._is_closed = False
        self._is_away = False
        self.deletes = RefusedDeletes(
            self._deleted,
            lambda seconds, done: None if self._is_closed else pause(seconds, done),
            lambda: not self.fault,
        )
        self.given_up: set[str] = set()
        """The objects that are missing or damaged, and whose records this broker goes on without."""
        self.fault = ""

    def __repr__(self) -> str:
        return f"<StoreAccess of {self._store!r}{': ' if self.fault else ''}{self.fault}>"

    def close(self) -> None:
        """Nothing is sent again, and work that waits for an answer goes no further."""
        self._is_closed = True

    async def create(self, key: str, data: bytes) -> bytes | None:
        """None if the key holds these bytes; else the bytes that it holds."""
        attempts = 0
        while True:
            created: Created = await Answer(self._asking(partial(self._store.create, key, data)))
            if created.outcome is Outcome.MADE:
                self._answered(attempts)
                return None
            if created.outcome is Outcome.TAKEN:
                there: Got = await Answer(self._asking(partial(self._store.get, key)))
                if isinstance(there, bytes):
                    self._answered(attempts)
                    return None if there == data else there
            attempts = await self._again(attempts, created.fault or f"{key} is taken, and cannot be read")

    async def read(self, key: str, *, insists: bool = True) -> bytes | None:
        """The object, or None if it is missing. A caller that does not insist gets StoreRefusal where the store refuses it."""
        attempts = 0
        while isinstance(found := await self._got(key), StoreError):
            _raise_refusal(found, insists=insists)
            attempts = await self._again(attempts, str(found))
        self._answered(attempts)
        return found

    async def _got(self, key: str) -> Got:
        found: Got = await Answer(self._asking(partial(self._store.get, key)))
        return found

    async def read_range(self, key: str, start: int, end: int) -> bytes | None:
        """The bytes of an object from `start` up to `end`, fewer where it ends; None if it is missing."""
        found = await self.view_range(key, start, end)
        return None if found is None else bytes(found)

    async def view_range(self, key: str, start: int, end: int, *, insists: bool = True) -> Bytes | None:
        """The same without a copy, and with StoreRefusal as in `read`."""
        attempts = 0
        while True:
            found: GotPart = await Answer(self._asking(partial(self._store.get_range, key, start, end)))
            if not isinstance(found, StoreError):
                self._answered(attempts)
                return found
            _raise_refusal(found, insists=insists)
            attempts = await self._again(attempts, str(found))

    async def list(self, prefix: str, limit: int | None = None) -> Sequence[Stored]:
        """With a limit at most so many of the objects, any of them."""
        return await self._listed(partial(self._store.list, prefix, limit=limit))

    async def folders(self, prefix: str) -> Sequence[str]:
        """The names of the folders in that one."""
        return await self._listed(partial(self._store.folders, prefix))

    async def _listed(
        self, request: Callable[[Callable[[Sequence[Result] | StoreError], None]], object]
    ) -> Sequence[Result]:
        attempts = 0
        while True:
            found: Sequence[Result] | StoreError = await Answer(self._asking(request))
            if not isinstance(found, StoreError):
                self._answered(attempts)
                return found
            attempts = await self._again(attempts, str(found))

    async def delete(self, key: str) -> bool:
        """Delete the object; returns whether it is gone. If the store refuses, it is deleted later, and nothing waits: see `RefusedDeletes`."""
        if key in self.deletes:
            return False
        refusal = await self._deleted(key)
        if refusal is not None:
            self.deletes.add(key, refusal)
        return refusal is None

    async def _deleted(self, key: str) -> StoreRefusal | None:
        """A store that refuses this, and nothing else, is not unavailable."""
        attempts = 0
        while True:
            fault: Deleted = await Answer(self._asking(partial(self._store.delete, key)))
            if fault is None:
                self._answered(attempts)
                return None
            if isinstance(fault, StoreRefusal):
                return fault
            attempts = await self._again(attempts, str(fault))

    def _asking(self, request: Callable[[Callable[[Result], None]], object]) -> Begin[Result]:
        """A request that is sent, and whose answer counts, only until this is closed: the logs of a broker that has stopped are closed, too."""

        def begin(done: Callable[[Result], None]) -> None:
            if not self._is_closed:
                request(lambda result: None if self._is_closed else done(result))

        return begin

    def _answered(self, attempts: int) -> None:
        """A request has its answer after so many attempts without one; other requests may still have none."""
        self.fault = ""
        if self._is_away and attempts > SAID_AFTER:
            self._is_away = False
            log.warning("the store is available again")

    async def _again(self, attempts: int, fault: str) -> int:
        """Wait before the next attempt."""
        self.fault = fault
        if attempts == SAID_AFTER and not (self._is_away or self._is_closed):
            self._is_away = True
            log.warning("the store is unavailable; trying again: %s", fault)
        if self._is_closed:
            await Answer(_never)
        await Answer(partial(self._pause, min(FIRST_PAUSE_S * 2**attempts, LONGEST_PAUSE_S)))
        return min(attempts + 1, 16)


def _raise_refusal(fault: StoreError, *, insists: bool) -> None:
    if isinstance(fault, StoreRefusal) and not insists:
        raise fault


def _never(done: Callable[[None], None]) -> None:
    """Never call back."""
