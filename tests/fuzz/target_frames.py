"""A connection's bytes to requests: byte 0 says in what pieces they arrive, the rest is the stream."""

from horolog.protocol.apis import API
from horolog.protocol.compile import decode
from horolog.protocol.errors import DecodeError, FrameError
from horolog.protocol.framing import FrameReader, read_request_header
from tests.fuzz.targets import place

MAX_FRAME_BYTES = 1 << 16
PIECES = (1, 3, 4, 5, 64, 1 << 16)


def target(data: bytes) -> object:
    if not data:
        return None
    whole, whole_end = cut(data[1:], 1 << 20)
    pieces, pieces_end = cut(data[1:], PIECES[data[0] % len(PIECES)])
    # A reader gives up frames that came in one piece with a faulty size, so with a fault one may be the longer list.
    shorter = min(len(whole), len(pieces))
    assert whole[:shorter] == pieces[:shorter], "frames depend on how the bytes arrive"
    assert whole_end == pieces_end, "whether the stream is refused depends on how the bytes arrive"
    assert whole_end is not None or len(whole) == len(pieces)
    places = [request(frame) for frame in whole]
    return tuple(places[:4]), whole_end


def cut(data: bytes, size: int) -> tuple[list[bytes], str | None]:
    reader = FrameReader(MAX_FRAME_BYTES)
    frames: list[bytes] = []
    for start in range(0, len(data), size):
        try:
            frames += [bytes(frame) for frame in reader.feed(data[start : start + size])]
        except FrameError as error:
            return frames, str(error)
        assert len(reader.pending) <= MAX_FRAME_BYTES + 4, "more is held than one frame may have"
    return frames, None


def request(frame: bytes) -> str:
    try:
        header = read_request_header(frame)
        api = API.get(header.api_key)
        if api is None or not api.min_version <= header.version <= api.max_version:
            return "unknown"
        decode(api.request, header.version, memoryview(frame), header.body_start, to_the_end=True)
    except DecodeError as error:
        return place(error)
    return f"{api.name} {header.version}"
