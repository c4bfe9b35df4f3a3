"""Requests of one broker to another over one connection, without a socket or a clock: requests become frames, frames become responses.

Requests are pipelined: the other broker serves them in their order. A response finds its request by the correlation id. A late response
to a request that timed out is dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import NamedTuple

from horolog.protocol.apis import API, Api
from horolog.protocol.compile import decoder, encoder
from horolog.protocol.errors import DecodeError, FrameError
from horolog.protocol.framing import SIZE_BYTES, FrameReader
from horolog.protocol.primitives import Buffer
from horolog.protocol.wire import Message

log = logging.getLogger(__name__)

Done = Callable[[Message | None], None]
"""Gets the response, or None if there will be none."""

MAX_ANSWER_BYTES = 100 * 1024 * 1024
LARGEST_NUMBER = 2**31 - 1

_HEAD = Struct(">ihhih")  # size, key, version, correlation id, length of the client id
_CORRELATION = Struct(">i")
_CLIENT_ID = b"peer"


class _Waiting(NamedTuple):
    """The callback of a request, and how its response is read."""

    done: Done
    api: Api
    version: int


class Questions:
    """The asking end of one connection."""

    def __init__(self) -> None:
        self._reader = FrameReader(MAX_ANSWER_BYTES)
        self._waiting: dict[int, _Waiting] = {}
        self._last_number = 0

    def __repr__(self) -> str:
        return f"<Questions: {len(self)} wait for their answers>"

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, request: Message, version: int, done: Done) -> tuple[int, bytes]:
        """The correlation id of a request, and the frame to send; `done` is called once."""
        api = _api_of(type(request))
        number = self._last_number = self._last_number % LARGEST_NUMBER + 1
        parts: list[Buffer] = []
        encoder(type(request), version)(request, parts)
        tags = b"\0" if version >= api.flexible_from else b""
        size = _HEAD.size - SIZE_BYTES + len(_CLIENT_ID) + len(tags) + sum(map(len, parts))
        head = _HEAD.pack(size, api.key, version, number, len(_CLIENT_ID))
        self._waiting[number] = _Waiting(done, api, version)
        return number, b"".join((head, _CLIENT_ID, tags, *parts))

    def receive(self, data: bytes) -> None:
        """Pass on the responses that these bytes complete. Raises ProtocolError if the bytes are not responses."""
        try:
            frames = self._reader.feed(data)
        except FrameError as error:
            self._tell_all(error.frames)
            raise
        self._tell_all(frames)

    def _tell_all(self, frames: list[memoryview]) -> None:
        for frame in frames:
            if len(frame) < _CORRELATION.size:
                raise DecodeError("an answer without a correlation id")
            waiting = self._waiting.pop(_CORRELATION.unpack_from(frame)[0], None)
            if waiting is None:
                continue  # its request timed out
            header_version = waiting.api.response_header_version(waiting.version)  # no broker sends tags there
            start = _CORRELATION.size + header_version
            try:
                answer, _ = decoder(waiting.api.response, waiting.version)(frame, start)
            except DecodeError:
                _tell(waiting.done, None)
                raise
            _tell(waiting.done, answer)

    def give_up(self, number: int) -> None:
        """The request timed out."""
        waiting = self._waiting.pop(number, None)
        if waiting is not None:
            log.warning("another broker did not answer %s in time", waiting.api.name)
            _tell(waiting.done, None)

    def lose(self) -> None:
        """The connection has ended: every request that waits gets None, and the next connection starts afresh."""
        self._reader = FrameReader(MAX_ANSWER_BYTES)
        lost, self._waiting = self._waiting, {}
        for waiting in lost.values():
            _tell(waiting.done, None)


def _tell(done: Done, answer: Message | None) -> None:
    """A callback that fails does not keep other callers from their responses."""
    try:
        done(answer)
    except Exception:
        log.exception("could not handle the response of another broker")


@cache
def _api_of(request: type[Message]) -> Api:
    return next(api for api in API.values() if api.name + "Request" == request.__name__)
