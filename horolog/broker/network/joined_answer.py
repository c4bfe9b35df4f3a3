"""The answer to a request that was served in pieces: the elements of its arrays are encoded as they come, and only their bytes are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from horolog.broker.handlers.pieces import Fields
from horolog.broker.handlers.throttling import THROTTLE_TIME, with_throttle_time
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.compile import element_encoder
from horolog.protocol.compile_encode import Encoded
from horolog.protocol.flat import value_of

if TYPE_CHECKING:
    from collections.abc import Sequence


class JoinedAnswer:
    """Grows by the answers to pieces. The fields next to the array of parts are those of the first, except for the longest throttle time.

    An element that several pieces answer stays open until the next one begins: its inner array grows as the outer ones do.
    """

    __slots__ = (
        "_arrays",
        "_encoders",
        "_fields",
        "_flat",
        "_heads",
        "_key",
        "_left_out",
        "_top",
        "_version",
    )

    def __init__(self, key: ApiKey, version: int, told: Sequence[str], *, flat: bool, left_out: int = 0) -> None:
        """`left_out` outer arrays of the request are not in the answer."""
        self._key = key
        self._version = version
        self._flat = flat
        self._left_out = left_out
        self._fields = Fields(API[key].response, told, flat=flat)
        self._encoders = [
            element_encoder(API[key].response, version, tuple(told[: depth + 1]), flat=flat)
            for depth in range(len(told))
        ]
        self._top: Any = None
        self._heads: list[Any] = []
        self._arrays = [Encoded()]

    def __repr__(self) -> str:
        return f"<JoinedAnswer of {self._fields!r}, {self.size_bytes} bytes>"

    @property
    def size_bytes(self) -> int:
        return sum(array.size_bytes for array in self._arrays)

    def fails(self, answer: Any) -> bool:
        """Whether the answer to a piece refuses the whole request: it has an error and no parts. Then it becomes the whole answer."""
        if not self._read(answer, "error_code") or self._fields.of(answer, 0):
            return False
        self._top, self._heads, self._arrays = answer, [], [Encoded()]
        return True

    def add(self, answer: Any, depth: int, fresh: int) -> None:
        """Add the answer to a piece: see `handlers.pieces.Piece`."""
        fields = self._fields
        depth, fresh = max(0, depth - self._left_out), max(0, fresh - self._left_out)
        self._close(fresh)
        self._take_top(answer)
        holder = answer
        for level in range(depth):
            elements = fields.of(holder, level)
            if not elements:
                return
            holder = elements[0]
            if level >= len(self._heads):
                self._heads.append(holder)
                self._arrays.append(Encoded())
        elements = fields.of(holder, depth)
        if elements:
            self._arrays[depth].add(len(elements), self._encoders[depth](elements))

    def _take_top(self, answer: Any) -> None:
        if self._top is None:
            self._top = answer
        elif (wait_ms := self._read(answer, THROTTLE_TIME)) > self._read(self._top, THROTTLE_TIME):
            self._top = with_throttle_time(self._key, self._top, wait_ms)

    def _read(self, answer: Any, field: str) -> int:
        """A number next to the array of parts; 0 where answers have none."""
        response = API[self._key].response
        number: int = value_of(response, answer, field) if field in response.FIELDS else 0
        return number

    def _close(self, level: int) -> None:
        """Encode the open elements from a level on."""
        while len(self._heads) > level:
            inner = self._arrays.pop()
            depth = len(self._heads) - 1
            head = self._fields.replaced(self._heads.pop(), depth + 1, inner)
            self._arrays[depth].add(1, self._encoders[depth]([head]))

    def encoded(self) -> bytes:
        """The body of the answer."""
        self._close(0)
        top = self._fields.replaced(self._top, 0, self._arrays[0])
        return element_encoder(API[self._key].response, self._version, (), flat=self._flat)([top])
