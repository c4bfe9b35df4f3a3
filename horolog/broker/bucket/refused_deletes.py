"""A store that refuses to delete, as it does for a policy without that right: objects stay, and everything else goes on.

One delete asks again, less and less often, and all others wait for it. When it succeeds the next one asks, so that thousands that have
waited do not take the store's time from producers at once.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 30.0
SAID_AFTER = 5
"""So many refusals one after the other, within 1.5 s, are worth a line in the log; so is the next success."""

Done = Callable[[None], None]


class RefusedDeletes:
    """The deletes of one broker that its store has refused."""

    def __init__(self, pause: Callable[[float, Done], object]) -> None:
        self._pause = pause
        self._count = 0
        self._reason = ""
        self._is_said = False
        self._has_probe = False
        self._waiting: deque[Done] = deque()

    def __repr__(self) -> str:
        return f"<RefusedDeletes: {self._count} one after the other, {len(self._waiting)} wait>"

    @property
    def reason(self) -> str:
        """Why objects cannot be deleted; empty if they can, or if that may pass."""
        return self._reason if self._is_said else ""

    def refused(self, reason: str, done: Done, *, is_alone: bool) -> None:
        """A delete was refused: `done` is called when it may be sent again. Only refusals of deletes alone are said."""
        self._reason = reason
        if self._has_probe:
            self._waiting.append(done)
            return
        self._has_probe = True
        self._count += 1
        if self._count > SAID_AFTER and is_alone and not self._is_said:
            self._is_said = True
            log.warning(
                "objects cannot be deleted: %s; they stay in the store, and are deleted once it permits", reason
            )

        def again(_: None) -> None:
            self._has_probe = False
            done(None)

        self._pause(min(FIRST_PAUSE_S * 2.0 ** min(self._count - 1, 16), LONGEST_PAUSE_S), again)

    def succeeded(self) -> None:
        """A delete is done: the next of those that wait is sent."""
        self._count = 0
        if self._is_said:
            self._is_said = False
            log.warning("objects can be deleted again")
        if self._waiting:
            self._waiting.popleft()(None)
