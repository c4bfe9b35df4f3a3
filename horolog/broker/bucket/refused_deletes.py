"""Objects that a store refuses to delete, all of them for a policy without that right, or some because they are locked: they stay, and
everything else goes on.

One after the other is asked for again, less and less often. When one is deleted the next ones are asked for without a pause, one at a
time: thousands that have waited do not take the store's time from producers at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from horolog.broker.base.answers import Answer, run
from horolog.stores.faults import StoreRefusal

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 30.0
SAID_AFTER = 5
"""So many refusals, within 1.5 s, are worth a line in the log; so is the end of them."""
MOST_WAITING = 100_000
"""The objects that have waited longest are left for the sweeps."""

Delete = Callable[[str], Coroutine[Answer[Any], Any, StoreRefusal | None]]


class RefusedDeletes:
    """The deletes of one broker that its store has refused."""

    def __init__(
        self, delete: Delete, pause: Callable[[float, Callable[[None], None]], object], is_alone: Callable[[], bool]
    ) -> None:
        """`is_alone` says whether the store answers other requests: if not, more is wrong than this says."""
        self._delete = delete
        self._pause = pause
        self._is_alone = is_alone
        self._keys: dict[str, None] = {}
        self._is_asking = False
        self._reason = ""
        self._is_said = False

    def __repr__(self) -> str:
        return f"<RefusedDeletes: {len(self._keys)} wait>"

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    @property
    def reason(self) -> str:
        """Why objects cannot be deleted; empty if they can, or if that may pass."""
        return self._reason if self._is_said else ""

    def add(self, key: str, refusal: StoreRefusal) -> None:
        self._put(key, refusal)
        if not self._is_asking:
            self._is_asking = True
            run(self._ask())

    def _put(self, key: str, refusal: StoreRefusal) -> None:
        self._keys[key] = None
        self._reason = str(refusal)
        if len(self._keys) > MOST_WAITING:
            del self._keys[next(iter(self._keys))]

    async def _ask(self) -> None:
        refusals = 1
        while self._keys:
            if refusals > SAID_AFTER and self._is_alone():
                self._say()
            await Answer[None](partial(self._pause, min(FIRST_PAUSE_S * 2.0 ** min(refusals - 1, 16), LONGEST_PAUSE_S)))
            while self._keys and not await self._is_refused(next(iter(self._keys))):
                pass
            refusals += 1
        self._is_asking = False
        if self._is_said:
            self._is_said = False
            log.warning("objects can be deleted again")

    async def _is_refused(self, key: str) -> bool:
        """Whether it still is; others have their turn first then."""
        refusal = await self._delete(key)
        self._keys.pop(key, None)
        if refusal is not None:
            self._put(key, refusal)
        return refusal is not None

    def _say(self) -> None:
        if not self._is_said:
            self._is_said = True
            log.warning(
                "objects cannot be deleted: %s; they stay in the store, %s among them, and are deleted once it permits",
                self._reason,
                next(iter(self._keys)),
            )
