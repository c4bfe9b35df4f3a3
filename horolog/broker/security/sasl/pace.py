"""How long an address waits for the answer to a failed login: the longer, the more of its logins have failed within a minute.

The time doubles with each failure after the first few, from `connection.failed.authentication.delay.ms` to
`horolog.failed.authentication.delay.max.ms`. IPv6 addresses count by their network of 64 bits. A successful login does not wait, so
that users of one address do not keep each other out.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Final

FREE: Final = 10
"""Failures of an address that slow no answer: clients with an old password, and people who mistype."""
FORGET_S: Final = 60.0
"""After this time without a failure an address starts over."""
MOST_ADDRESSES: Final = 10_000
_NETWORK_BITS: Final = 64


class LoginPace:
    """See the module's docstring; one for all listeners."""

    def __init__(self, monotonic: Callable[[], float], first_ms: Callable[[], int], most_ms: Callable[[], int]) -> None:
        self._monotonic = monotonic
        self._first_ms = first_ms
        self._most_ms = most_ms
        self._failures: dict[str, tuple[int, float]] = {}
        """How many, and when the last of them was, by address; the least recent comes first."""

    def __repr__(self) -> str:
        return f"<LoginPace of {len(self._failures)} addresses that failed>"

    def failed(self, host: str) -> float:
        """Count a failure; return after how many seconds to answer it."""
        now_s, key = self._monotonic(), counted_as(host)
        count, last_s = self._failures.pop(key, (0, now_s))
        count = 1 if now_s - last_s > FORGET_S else count + 1
        if len(self._failures) >= MOST_ADDRESSES:
            del self._failures[next(iter(self._failures))]
        self._failures[key] = (count, now_s)
        first_ms = self._first_ms()
        doubled = first_ms << min(max(count - FREE, 0), 20)
        return max(first_ms, min(doubled, self._most_ms())) / 1000


def counted_as(host: str) -> str:
    """The address, or the network that one subscriber has."""
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((int(found), _NETWORK_BITS), strict=False))
    return str(found)
