"""Work that would be done beside an event loop is done at once, for tests without one."""

from collections.abc import Callable
from typing import Any


class SameThread:
    """For callers that wait."""

    def run(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        done(work())

    def close(self) -> None:
        """Everything is done."""
