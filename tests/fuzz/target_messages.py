"""Bodies of requests and responses of every API and version: byte 0 picks the API, byte 1 the version, byte 2 which of the two."""

from horolog.protocol.apis import API, ApiKey
from horolog.protocol.compile import decode, encode
from horolog.protocol.errors import DecodeError
from tests.fuzz.targets import place

KEYS = sorted(ApiKey)  # of all, so that a corpus means the same whichever of them have messages


def target(data: bytes) -> object:
    if len(data) < 3:
        return None
    api = API.get(KEYS[data[0] % len(KEYS)])
    if api is None:
        return None
    version = api.min_version + data[1] % (api.max_version - api.min_version + 1)
    cls = api.response if data[2] & 1 else api.request
    try:
        message = decode(cls, version, memoryview(data)[3:], to_the_end=True)
    except DecodeError as error:
        return place(error)
    written = encode(message, version)
    again = decode(cls, version, written, to_the_end=True)
    assert again == message, f"{cls.__name__} v{version} changes when it is written and read again"
    return f"{cls.__name__} {version}"
