"""One connection to a broker process with full control over the requests: one goes out, its response comes back."""

import socket
import struct
from types import TracebackType
from typing import Any, Self

from horolog.protocol.apis import API
from horolog.protocol.compile import decode, encode
from horolog.protocol.wire import Message

TIMEOUT_S = 20.0


class RawWire:
    """Requests in the version that the test names; no retries."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), TIMEOUT_S)
        self._answers = self._socket.makefile("rb")
        self._last_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._answers.close()
        self._socket.close()

    def ask(self, request: Message, version: int) -> Any:
        api = next(api for api in API.values() if api.name + "Request" == type(request).__name__)
        self._last_id += 1
        header = struct.pack(">hhih4s", api.key, version, self._last_id, 4, b"test")
        header += b"\0" * (api.request_header_version(version) - 1)
        body = header + encode(request, version)
        self._socket.sendall(struct.pack(">i", len(body)) + body)
        (size,) = struct.unpack(">i", self._answers.read(4))
        frame = self._answers.read(size)
        return decode(api.response, version, frame, 4 + api.response_header_version(version), to_the_end=True)
