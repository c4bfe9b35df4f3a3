"""However a stream of frames is cut into pieces, the same frames come out; whatever else it is, it ends in a FrameError."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from horolog.protocol.errors import DecodeError, FrameError
from horolog.protocol.frame_buffers import LARGE_FRAME_BYTES, FrameBuffers
from horolog.protocol.framing import FrameReader, read_request_header

MAX_BYTES = 300


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[bytes], list[bytes]]:
    """Bodies, and the stream of their frames in pieces."""
    bodies = draw(st.lists(st.binary(min_size=1, max_size=MAX_BYTES), max_size=12))
    data = b"".join(struct.pack(">i", len(body)) + body for body in bodies)
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=20)))
    return bodies, [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


@given(streams())
def test_the_same_frames_come_out_however_they_arrive(stream: tuple[list[bytes], list[bytes]]) -> None:
    bodies, pieces = stream
    reader = FrameReader(MAX_BYTES)
    out, fed = [], 0
    for piece in pieces:
        out += reader.feed(piece)
        fed += len(piece)
        assert len(reader.pending) == fed - sum(len(frame) + 4 for frame in out)
    assert out == bodies


@given(
    st.lists(st.sampled_from((1, 300, LARGE_FRAME_BYTES - 1, LARGE_FRAME_BYTES, 150_000)), max_size=6),
    st.lists(st.tuples(st.booleans(), st.integers(1, 60_000)), min_size=1),
)
def test_large_frames_come_out_whichever_way_they_go_in(sizes: list[int], pieces: list[tuple[bool, int]]) -> None:
    """Fed, or put into the large frame's room; frames that are still looked at keep their bytes."""
    bodies = [bytes([number + 1]) * size for number, size in enumerate(sizes)]
    data = b"".join(struct.pack(">i", len(body)) + body for body in bodies)
    reader = FrameReader(1 << 20, FrameBuffers())
    out: list[memoryview] = []
    at = turn = 0
    while at < len(data):
        in_place, size = pieces[turn % len(pieces)]
        turn += 1
        if in_place and reader.large is not None:
            room = reader.large.room
            piece = data[at : at + min(size, len(room))]
            room[: len(piece)] = piece
            reader.large.advance(len(piece))
            out += reader.feed(b"")
        else:
            piece = data[at : at + size]
            out += reader.feed(piece)
        at += len(piece)
        assert reader.arrived_bytes == at - sum(len(frame) + 4 for frame in out)
    assert out == bodies


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_garbage_never_holds_more_than_one_frame(pieces: list[bytes]) -> None:
    reader = FrameReader(MAX_BYTES)
    for piece in pieces:
        try:
            frames = reader.feed(piece)
        except FrameError:
            return
        assert all(0 < len(frame) <= MAX_BYTES for frame in frames)
        assert len(reader.pending) < MAX_BYTES + 4


@given(st.binary(max_size=60) | st.binary(max_size=30).map(lambda rest: struct.pack(">hh", 18, 3) + rest))
def test_any_frame_has_a_header_or_a_decode_error(frame: bytes) -> None:
    try:
        header = read_request_header(frame)
    except DecodeError:
        return
    assert 8 <= header.body_start <= len(frame)
