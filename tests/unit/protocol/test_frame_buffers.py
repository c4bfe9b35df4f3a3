"""Buffers of large frames: used again once nothing looks at them, never larger than what has arrived justifies."""

from horolog.protocol.frame_buffers import (
    FIRST_BYTES,
    GROWTH,
    KEPT_BYTES,
    LARGEST_FRAME_BYTES,
    SMALLEST_BUFFER_BYTES,
    STEP_BYTES,
    FrameBuffers,
    LargeFrame,
)


def fill(frame: LargeFrame, data: bytes) -> list[memoryview]:
    """Put these bytes into the frame as a socket would, and return it once it is complete."""
    at = 0
    while at < len(data):
        count = min(len(frame.room), len(data) - at)
        frame.room[:count] = data[at : at + count]
        at += count
        frame.advance(count)
    return [] if frame.whole is None else [frame.whole]


def test_a_frame_is_complete_when_all_its_bytes_have_arrived() -> None:
    data = bytes(range(256)) * 1000
    frame = LargeFrame(FrameBuffers(), data[:10_000], len(data))
    assert fill(frame, data[10_000:-1]) == []
    assert "255999 of 256000" in repr(frame)
    assert len(frame.room) == 1
    assert fill(frame, data[-1:]) == [data]


def test_a_buffer_follows_what_has_arrived() -> None:
    wanted = LARGEST_FRAME_BYTES
    frame = LargeFrame(FrameBuffers(), b"abc", wanted)
    assert frame.held_bytes == SMALLEST_BUFFER_BYTES
    arrived, held = 3, []
    while arrived < wanted:
        count = len(frame.room)
        arrived += count
        frame.advance(count)
        held.append(frame.held_bytes)
        assert frame.held_bytes <= (GROWTH if arrived >= FIRST_BYTES else 2) * arrived + STEP_BYTES
    assert len(held) == 5, "it grows in few steps"


def test_growing_keeps_what_has_arrived() -> None:
    data = bytes(range(251)) * 400
    assert fill(LargeFrame(FrameBuffers(), data[:5], len(data)), data[5:]) == [data]


def test_a_buffer_is_used_again_when_its_frame_is_gone() -> None:
    buffers = FrameBuffers()
    (first,) = fill(LargeFrame(buffers, b"a" * 8_000, 100_000), b"a" * 92_000)
    (second,) = fill(LargeFrame(buffers, b"b" * 8_000, 100_000), b"b" * 92_000)
    assert (bytes(first), bytes(second)) == (b"a" * 100_000, b"b" * 100_000)
    assert buffers.kept_bytes == 4 * STEP_BYTES
    del first
    (third,) = fill(LargeFrame(buffers, b"c" * 8_000, 90_000), b"c" * 82_000)
    assert buffers.kept_bytes == 4 * STEP_BYTES, "no third buffer was made"
    assert (bytes(second), bytes(third)) == (b"b" * 100_000, b"c" * 90_000)


def test_a_much_larger_buffer_is_left_for_frames_that_need_it() -> None:
    buffers = FrameBuffers()
    buffers.give(bytearray(20 * STEP_BYTES))
    assert len(buffers.take(2 * STEP_BYTES)) == 2 * STEP_BYTES
    assert len(buffers.take(6 * STEP_BYTES)) == 20 * STEP_BYTES
    assert buffers.kept_bytes == 0


def test_little_is_kept() -> None:
    buffers = FrameBuffers()
    for _ in range(100):
        buffers.give(bytearray(KEPT_BYTES // 10))
        assert buffers.kept_bytes <= KEPT_BYTES
    buffers.give(bytearray(2 * KEPT_BYTES))
    assert buffers.kept_bytes == 0
    assert repr(buffers) == "<FrameBuffers: 0 kept, 0 bytes>"
