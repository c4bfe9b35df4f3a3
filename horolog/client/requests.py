"""A request whose form depends on the version that client and broker agree on."""

from collections.abc import Callable
from typing import NamedTuple

from horolog.protocol.apis import ApiKey
from horolog.protocol.wire import Message


class Versioned(NamedTuple):
    """`build` is told the version and makes the request."""

    key: ApiKey
    build: Callable[[int], Message]


Request = Message | Versioned
