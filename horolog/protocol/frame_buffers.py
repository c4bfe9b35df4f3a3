"""Buffers for large frames: each is received into a buffer of its own, and a buffer that has no views left is used again.

A frame that is read piece by piece into one growing buffer is copied several times before anything looks at it. Once its size is
known, the bytes of a large frame can go where they stay. A size alone reserves nothing: a buffer has at most `GROWTH` times the bytes
that have arrived, and is replaced by a larger one when it is full.
"""

from typing import Final

from horolog.protocol.primitives import Buffer

LARGE_FRAME_BYTES: Final = 32 * 1024
"""A frame of at least this size gets a buffer of its own."""

LARGEST_FRAME_BYTES: Final = 1024 * 1024
"""One above this size does not: while its buffer was made larger by a copy, both would take memory."""

GROWTH: Final = 16
FIRST_BYTES: Final = 16 * 1024
SMALLEST_BUFFER_BYTES: Final = 4 * 1024
STEP_BYTES: Final = 64 * 1024
"""Buffers above this size are multiples of it, so that they fit frames that differ a little."""

KEPT_BYTES: Final = 8 * 1024 * 1024
"""The total size of buffers that are kept for later frames."""

LARGEST_SHARE: Final = 4
"""A kept buffer is used for frames of at least its size divided by this."""

SCRATCH_BYTES: Final = 32 * 1024
"""The most that is read at once where the next frame may get a buffer of its own: the rest of it goes there uncopied."""

LARGEST_SCRATCH_BYTES: Final = 256 * 1024
"""The same inside a frame that gets none, because it is too large: fewer reads take less time."""


class FrameBuffers:
    """The buffers of all connections of one event loop."""

    __slots__ = ("_kept", "scratch")

    def __init__(self) -> None:
        self._kept: list[bytearray] = []
        self.scratch = memoryview(bytearray(LARGEST_SCRATCH_BYTES))
        """For bytes without a buffer of their own; a reader copies them at once."""

    def __repr__(self) -> str:
        return f"<FrameBuffers: {len(self._kept)} kept, {self.kept_bytes} bytes>"

    @property
    def kept_bytes(self) -> int:
        return sum(map(len, self._kept))

    def take(self, size_bytes: int) -> bytearray:
        """A buffer of at least this size, with any content."""
        for place, buffer in enumerate(self._kept):
            if size_bytes <= len(buffer) <= LARGEST_SHARE * size_bytes and _has_no_views(buffer):
                del self._kept[place]
                return buffer
        if size_bytes > STEP_BYTES:
            size_bytes = -(-size_bytes // STEP_BYTES) * STEP_BYTES
        return bytearray(size_bytes)

    def give(self, buffer: bytearray) -> None:
        """Keep a buffer for a later frame, which gets it once all views of it are gone."""
        self._kept.append(buffer)
        while self.kept_bytes > KEPT_BYTES:
            del self._kept[0]


def _has_no_views(buffer: bytearray) -> bool:
    """Python refuses to resize a buffer that is being viewed."""
    try:
        last = buffer.pop()
    except BufferError:
        return False
    buffer.append(last)
    return True


class LargeFrame:
    """One frame that is not complete yet. Fill `room` from its start, and call `advance`, until `whole` is the frame, size included."""

    __slots__ = ("_buffer", "_buffers", "_wanted_bytes", "arrived_bytes", "room", "whole")

    def __init__(self, buffers: FrameBuffers, start: Buffer, wanted_bytes: int) -> None:
        """`start` is what has arrived of the `wanted_bytes`."""
        self._buffers = buffers
        self._wanted_bytes = wanted_bytes
        self.arrived_bytes = len(start)
        self._buffer = self._room_for(start)
        self.room = self._rest()
        self.whole: memoryview | None = None

    def __repr__(self) -> str:
        return f"<LargeFrame: {self.arrived_bytes} of {self._wanted_bytes} bytes, {self.held_bytes} held>"

    @property
    def held_bytes(self) -> int:
        return len(self._buffer)

    def advance(self, count: int) -> None:
        """Account for bytes that were put into `room`."""
        self.arrived_bytes += count
        if self.arrived_bytes == self._wanted_bytes:
            self.whole = memoryview(self._buffer)[: self._wanted_bytes]
            self._buffers.give(self._buffer)
        elif count == len(self.room):
            self._buffer = self._room_for(self._buffer)
        self.room = self._rest()

    def _room_for(self, start: Buffer) -> bytearray:
        """A buffer with these bytes at its start, and room for as much more as they justify."""
        growth = GROWTH if self.arrived_bytes >= FIRST_BYTES else 2
        size_bytes = min(self._wanted_bytes, max(growth * self.arrived_bytes, SMALLEST_BUFFER_BYTES))
        buffer = self._buffers.take(size_bytes)
        buffer[: self.arrived_bytes] = memoryview(start)[: self.arrived_bytes]
        return buffer

    def _rest(self) -> memoryview:
        return memoryview(self._buffer)[self.arrived_bytes : self._wanted_bytes]
