"""Cuts a stream of bytes into frames, reads the headers of requests, and writes the headers of responses.

A frame is four bytes of size, big-endian and signed, and that many bytes. A request begins with its header: key (2), version (2),
correlation id (4), client id (2 of length, -1 for null, and UTF-8), and in flexible versions a tag section. A response begins
with the correlation id (4) and, in flexible versions except those of ApiVersions, an empty tag section.
"""

from typing import Final, NamedTuple

from horolog.protocol.apis import API, ApiKey
from horolog.protocol.errors import DecodeError, FrameError
from horolog.protocol.frame_buffers import LARGE_FRAME_BYTES, LARGEST_FRAME_BYTES, FrameBuffers, LargeFrame
from horolog.protocol.primitives import Buffer, Part, Unread, skip_tags
from horolog.protocol.source_writer import layout

SIZE_BYTES: Final = 4
FIXED_HEADER_BYTES: Final = 8  # key, version and correlation id
CLIENT_ID_START: Final = 10
MAX_HEADER_TAGS: Final = 64  # they are read before the peer is known, and no client sends one
SEPARATE_ABOVE_BYTES: Final = 65536  # a first part above this is not copied behind the response's header

_HTTP_STARTS: Final = (
    b"GET ",
    b"POST",
    b"HEAD",
    b"PUT ",
    b"DELE",
    b"OPTI",
    b"PATC",
    b"CONN",
    b"TRAC",
    b"PRI ",
    b"HTTP",
)
_TLS_HANDSHAKE: Final = b"\x16\x03"

# Whether a request is flexible, for every key and version that is known.
_FLEXIBLE: Final = {
    (int(api.key), version): version >= api.flexible_from
    for api in API.values()
    for version in range(api.min_version, api.max_version + 1)
}
_read_size: Final = layout("i").unpack_from
_read_fixed_header: Final = layout("hhi").unpack_from
_read_header: Final = layout("hhih").unpack_from
_pack_head: Final = layout("ii").pack
_pack_flexible_head: Final = layout("iix").pack


class FrameReader:
    """Cuts what arrives into frames; whole frames are views of what was fed, only a split frame is copied.

    With `buffers`, a large frame that is split goes to a buffer of its own. The caller may put its bytes there (`large`) and feed
    nothing. The frame that comes out is the caller's to write to: its view is not read-only.
    """

    __slots__ = ("_buffers", "_wanted_bytes", "large", "max_size_bytes", "pending")

    def __init__(self, max_size_bytes: int, buffers: FrameBuffers | None = None) -> None:
        self.max_size_bytes = max_size_bytes
        self._buffers = buffers
        self.large: LargeFrame | None = None
        self.pending = bytearray()
        """The beginning of a frame. It grows with the bytes that arrive, never by what a size claims."""
        self._wanted_bytes = SIZE_BYTES  # how long `pending` has to be before something can be done with it

    def feed(self, data: bytes) -> list[memoryview]:
        """All frames that are whole now, without their sizes; raises FrameError if the stream is not one of frames.

        The error carries the frames that were whole before the faulty size; the reader cannot be used afterwards.
        """
        position = 0
        frames: list[memoryview] = []
        if self.pending:
            position = self._complete_pending(data, frames)
            if self.pending:
                return frames
        elif self.large is not None:
            position = self._complete_large(data, frames)
            if self.large is not None:
                return frames
        view = memoryview(data)
        length = len(data)
        limit = self.max_size_bytes
        while length - position >= SIZE_BYTES:
            (size,) = _read_size(data, position)
            if not 0 < size <= limit:
                raise self._refusal(data, position, size, frames)
            end = position + SIZE_BYTES + size
            if end > length:
                if LARGE_FRAME_BYTES <= size <= LARGEST_FRAME_BYTES and self._buffers is not None:
                    self.large = LargeFrame(self._buffers, view[position:], SIZE_BYTES + size)
                    return frames
                self._wanted_bytes = SIZE_BYTES + size
                break
            frames.append(view[position + SIZE_BYTES : end])
            position = end
        if position < length:
            self.pending += view[position:]
        return frames

    @property
    def held_bytes(self) -> int:
        """The memory of an unfinished frame."""
        return len(self.pending) if self.large is None else self.large.held_bytes

    @property
    def arrived_bytes(self) -> int:
        """What has arrived of an unfinished frame."""
        return len(self.pending) if self.large is None else self.large.arrived_bytes

    def _complete_large(self, data: bytes, frames: list[memoryview]) -> int:
        """Move from `data` what the large frame lacks; return the position in `data` where the next frame begins."""
        large = self.large
        assert large is not None
        position = 0
        while large.whole is None and position < len(data):
            room = large.room
            count = min(len(room), len(data) - position)
            room[:count] = memoryview(data)[position : position + count]
            large.advance(count)
            position += count
        if large.whole is not None:
            frames.append(large.whole[SIZE_BYTES:])
            self.large = None
        return position

    def _complete_pending(self, data: bytes, frames: list[memoryview]) -> int:
        """Move from `data` what the unfinished frame lacks; return the position in `data` where the next frame begins."""
        pending = self.pending
        taken = 0
        if len(pending) < SIZE_BYTES:
            taken = SIZE_BYTES - len(pending)
            pending += data[:taken]
            if len(pending) < SIZE_BYTES:
                return len(data)
            (size,) = _read_size(pending)
            if not 0 < size <= self.max_size_bytes:
                raise self._refusal(pending, 0, size, frames)
            self._wanted_bytes = SIZE_BYTES + size
        end = taken + self._wanted_bytes - len(pending)
        pending += memoryview(data)[taken:end]
        if len(pending) < self._wanted_bytes:
            return len(data)
        frames.append(memoryview(pending).toreadonly()[SIZE_BYTES:])
        self.pending = bytearray()
        self._wanted_bytes = SIZE_BYTES
        return end

    def _refusal(self, data: bytes | bytearray, position: int, size: int, frames: list[memoryview]) -> FrameError:
        return FrameError(_reason(bytes(data[position : position + SIZE_BYTES]), size, self.max_size_bytes), frames)


def _reason(start: bytes, size: int, max_size_bytes: int) -> str:
    if start in _HTTP_STARTS:
        return "this is an HTTP request, not a Kafka request"
    if start.startswith(_TLS_HANDSHAKE):
        return "this is a TLS handshake, but the listener speaks plain text"
    if size < 0:
        return f"a frame claims a negative size ({size})"
    if size == 0:
        return "a frame claims to be empty"
    return f"a frame claims {size} bytes, more than the {max_size_bytes} that are allowed"


class RequestHeader(NamedTuple):
    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    body_start: int


HeaderFields = tuple[int, int, int, str | None, int]
"""A `RequestHeader` as compiled code passes it on, without an object."""


def read_request_header(frame: Buffer) -> RequestHeader:
    """The header in front of a request, see `header_fields`."""
    return RequestHeader(*header_fields(frame))


def header_fields(frame: Buffer) -> HeaderFields:
    """The fields of the header in front of a request.

    For a key or version that is not in the table of APIs, key, version and correlation id are right and the rest is read as
    header v1, or left out (client_id None) where that does not work: the caller has to decide by the first three.
    """
    size = len(frame)
    if size < CLIENT_ID_START:
        return _short_header(frame, size)
    api_key: int
    version: int
    correlation_id: int
    length: int
    api_key, version, correlation_id, length = _read_header(frame)
    flexible = _FLEXIBLE.get((api_key, version))
    if flexible is None and api_key == ApiKey.API_VERSIONS and version > 0:
        flexible = True  # newer than any known: the first request of a newer client, whose header has tags
    client_id, position = None, CLIENT_ID_START
    if length >= 0:
        position += length
        if position > size:
            if flexible is None:
                return api_key, version, correlation_id, None, CLIENT_ID_START
            raise DecodeError(f"the client id claims {length} bytes, but {size - CLIENT_ID_START} are left")
        client_id = str(frame[CLIENT_ID_START:position], "utf-8", "replace")  # a label for logs, no more
    if flexible:
        if position >= size:
            raise DecodeError("the request ends inside its header")
        tags = frame[position]
        if tags:
            position, _ = skip_tags(frame, position + 1, tags, size, MAX_HEADER_TAGS)
        else:
            position += 1
    return api_key, version, correlation_id, client_id, position


def _short_header(frame: Buffer, size: int) -> HeaderFields:
    """The header of a request that ends before the length of the client id."""
    if size < FIXED_HEADER_BYTES:
        raise DecodeError(f"a request of {size} bytes is shorter than a request's header")
    api_key, version, correlation_id = _read_fixed_header(frame)
    if (api_key, version) in _FLEXIBLE:
        raise DecodeError("the request ends inside its header")
    return api_key, version, correlation_id, None, FIXED_HEADER_BYTES


def encode_response(header_version: int, correlation_id: int, parts: list[Part]) -> list[Part]:
    """The frame of a response whose body is `parts`; large buffers are not copied."""
    pack = _pack_flexible_head if header_version else _pack_head
    if len(parts) == 1:  # as nearly all answers
        only = parts[0]
        size = len(only)
        if isinstance(only, bytes) and size <= SEPARATE_ABOVE_BYTES:
            head: bytes = pack(SIZE_BYTES + header_version + size, correlation_id)
            return [head + only]
    head = pack(SIZE_BYTES + header_version + sum(map(len, parts)), correlation_id)
    if parts:
        first = parts[0]
        if not isinstance(first, Unread) and len(first) <= SEPARATE_ABOVE_BYTES:
            return [head + first, *parts[1:]]
    return [head, *parts]
