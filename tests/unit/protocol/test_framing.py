"""Frames, request headers and response heads: whole, split, and wrong."""

import struct
import tracemalloc

import pytest

from horolog.protocol.apis import API, ApiKey
from horolog.protocol.compile import encode
from horolog.protocol.errors import DecodeError, FrameError
from horolog.protocol.frame_buffers import LARGE_FRAME_BYTES, FrameBuffers
from horolog.protocol.framing import FrameReader, RequestHeader, encode_response, read_request_header
from horolog.protocol.messages.headers import RequestHeader as HeaderMessage
from horolog.protocol.messages.headers import ResponseHeader
from horolog.protocol.primitives import Buffer

MAX_BYTES = 1 << 20


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


def feed_in_steps(data: bytes, step: int) -> None:
    reader = FrameReader(MAX_BYTES)
    for at in range(0, len(data), step):
        reader.feed(data[at : at + step])


def test_whole_frames_are_views_of_what_arrived() -> None:
    data = framed(b"first", b"second", b"x")
    frames = FrameReader(MAX_BYTES).feed(data)
    assert frames == [b"first", b"second", b"x"]
    assert all(frame.obj is data for frame in frames)


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5, 7, 13, 64])
def test_frames_may_be_split_anywhere(step: int) -> None:
    data = framed(b"first", b"second" * 5, b"x", b"last")
    reader = FrameReader(MAX_BYTES)
    frames = [bytes(frame) for at in range(0, len(data), step) for frame in reader.feed(data[at : at + step])]
    assert frames == [b"first", b"second" * 5, b"x", b"last"]
    assert len(reader.pending) == 0


def test_pending_tells_how_much_is_held() -> None:
    reader = FrameReader(MAX_BYTES)
    held = []
    for piece in (b"\0\0", b"\0\x05ab", b"cd", b"e\0"):
        reader.feed(piece)
        held.append(len(reader.pending))
    assert held == [2, 6, 8, 1]


def test_frames_that_were_given_out_stay_as_they_are() -> None:
    reader = FrameReader(MAX_BYTES)
    reader.feed(framed(b"first")[:6])
    (frame,) = reader.feed(framed(b"first")[6:])
    reader.feed(framed(b"other")[:6])
    reader.feed(framed(b"other")[6:])
    assert frame == b"first"
    assert frame.readonly


def test_an_empty_piece_changes_nothing() -> None:
    reader = FrameReader(MAX_BYTES)
    reader.feed(b"\0\0\0")
    assert reader.feed(b"") == []
    assert reader.feed(b"\x01z") == [b"z"]


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        (struct.pack(">i", -5), "negative size"),
        (struct.pack(">i", 0), "empty"),
        (struct.pack(">i", MAX_BYTES + 1), f"claims {MAX_BYTES + 1} bytes, more than the {MAX_BYTES}"),
        (b"GET / HTTP/1.1\r\n", "HTTP"),
        (b"POST /metrics HTTP/1.1\r\n", "HTTP"),
        (b"PRI * HTTP/2.0\r\n", "HTTP"),
        (bytes.fromhex("16030100f5010000f1"), "TLS"),
    ],
)
@pytest.mark.parametrize("step", [1, 3, 100])
def test_streams_that_hold_no_frames_are_refused_with_a_reason(start: bytes, reason: str, step: int) -> None:
    with pytest.raises(FrameError, match=reason):
        feed_in_steps(start, step)


@pytest.mark.parametrize("split", [0, 3])
def test_an_error_carries_the_frames_before_it(split: int) -> None:
    reader = FrameReader(MAX_BYTES)
    data = framed(b"one", b"two") + struct.pack(">i", -1)
    reader.feed(data[:split])
    with pytest.raises(FrameError) as caught:
        reader.feed(data[split:])
    assert caught.value.frames == [b"one", b"two"]


def test_the_largest_size_is_allowed() -> None:
    assert FrameReader(100).feed(framed(b"x" * 100)) == [b"x" * 100]


def test_no_memory_is_taken_for_a_size_that_was_only_claimed() -> None:
    reader = FrameReader(1 << 30)
    tracemalloc.start()
    reader.feed(struct.pack(">i", 1 << 30) + b"abc")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000


def header(key: int, version: int, client_id: str | None, header_version: int) -> bytes:
    message = HeaderMessage(request_api_key=key, request_api_version=version, correlation_id=77, client_id=client_id)
    return encode(message, header_version)


@pytest.mark.parametrize("client_id", ["", None, "client", "größe"])
def test_request_headers_of_every_api_and_version(client_id: str | None) -> None:
    for api in API.values():
        for version in range(api.min_version, api.max_version + 1):
            encoded = header(api.key, version, client_id, api.request_header_version(version))
            expected = RequestHeader(api.key, version, 77, client_id, len(encoded))
            assert read_request_header(encoded + b"body") == expected
            assert read_request_header(memoryview(encoded)) == expected


def test_tags_of_a_header_are_skipped() -> None:
    encoded = header(ApiKey.FETCH, 12, "c", 2)[:-1] + bytes.fromhex("02 00 01 ff 7f 00")
    assert read_request_header(encoded + b"body").body_start == len(encoded)


@pytest.mark.parametrize(("key", "version"), [(18, -1), (0, -1), (999, 0), (-1, 3)])
def test_of_an_unknown_api_or_version_the_first_three_fields_are_read(key: int, version: int) -> None:
    encoded = header(key, version, "c", 1)
    assert read_request_header(encoded) == RequestHeader(key, version, 77, "c", len(encoded))
    for rest in (b"", b"\x7f\xff"):
        read = read_request_header(encoded[:8] + rest)
        assert read[:4] == (key, version, 77, None)
        assert read.body_start <= 8 + len(rest)


def test_a_client_id_that_is_no_utf8_is_only_a_label() -> None:
    assert read_request_header(bytes.fromhex("0000 0003 00000001 0001 ff")).client_id == "\N{REPLACEMENT CHARACTER}"


def test_a_newer_api_versions_request_is_read_with_its_tags() -> None:
    encoded = header(ApiKey.API_VERSIONS, 99, "c", 2)
    assert read_request_header(encoded + b"body") == RequestHeader(18, 99, 77, "c", len(encoded))


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        bytes(7),
        bytes.fromhex("0000 0009 00000001"),  # ends before the client id
        bytes.fromhex("0000 0009 00000001 00"),
        bytes.fromhex("0000 0009 00000001 0005 61"),  # ends inside of it
        bytes.fromhex("0012 0063 00000001 0001 61"),  # ApiVersions of the future has tags too
        bytes.fromhex("0000 0009 00000001 0001 61"),  # ends before the tags
        bytes.fromhex("0000 0009 00000001 0001 61 05 00"),  # ends inside of them
        bytes.fromhex("0000 0009 00000001 ffff ffffffffff"),
    ],
)
def test_broken_headers_of_known_requests_are_refused(frame: bytes) -> None:
    with pytest.raises(DecodeError):
        read_request_header(frame)


@pytest.mark.parametrize("header_version", [0, 1])
@pytest.mark.parametrize("parts", [[], [b"body"], [b"head", b"x" * 100_000, b"tail"], [b"x" * 100_000]])
def test_responses_are_framed_behind_their_header(header_version: int, parts: list[Buffer]) -> None:
    buffers = encode_response(header_version, 77, parts)
    body = encode(ResponseHeader(correlation_id=77), header_version) + b"".join(parts)
    assert b"".join(buffers) == framed(body)
    assert all(any(buffer is part for buffer in buffers) for part in parts if len(part) > 65536)


@pytest.mark.parametrize("step", [4095, 4096, 16_384, 40_000])
def test_a_large_frame_gets_a_buffer_of_its_own(step: int) -> None:
    large, small = b"large" * LARGE_FRAME_BYTES, b"small"
    data = framed(small, large, large, small)
    reader = FrameReader(MAX_BYTES, FrameBuffers())
    seen = []
    for at in range(0, len(data), step):
        for frame in reader.feed(data[at : at + step]):
            seen.append(bytes(frame))
            assert frame.readonly is (frame == small or frame.obj is data)
    assert seen == [small, large, large, small]
    assert reader.held_bytes == reader.arrived_bytes == 0


def test_a_large_frame_may_be_received_in_place() -> None:
    data = framed(b"z" * LARGE_FRAME_BYTES)
    reader = FrameReader(MAX_BYTES, FrameBuffers())
    reader.feed(data[:1000])
    assert reader.large is not None
    assert (reader.arrived_bytes, reader.held_bytes) == (1000, 4096)
    frames = []
    at = 1000
    while reader.large is not None:
        room = reader.large.room
        count = min(len(room), 9_000)
        room[:count] = data[at : at + count]
        at += count
        reader.large.advance(count)
        frames += reader.feed(b"")
    assert frames == [b"z" * LARGE_FRAME_BYTES]
    assert at == len(data)
    assert reader.feed(framed(b"next")) == [b"next"]


def test_a_large_frame_that_was_only_claimed_takes_little_memory() -> None:
    reader = FrameReader(1 << 30, FrameBuffers())
    reader.feed(struct.pack(">i", 1 << 30) + b"abc")
    assert reader.held_bytes < 10_000
