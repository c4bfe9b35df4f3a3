"""A request whose form depends on the negotiated version."""

from collections.abc import Callable
from typing import NamedTuple

from horolog.protocol.apis import ApiKey
from horolog.protocol.wire import Message


class Versioned(NamedTuple):
    """`build` makes the request for a version."""

    key: ApiKey
    build: Callable[[int], Message]


Request = Message | Versioned
