"""Reads bootstrap addresses: `host`, `host:port`, `[ipv6]:port`, several separated by commas."""

from collections.abc import Sequence

DEFAULT_PORT = 9092
MAX_PORT = 65535


def parse_addresses(text: str | Sequence[str]) -> list[tuple[str, int]]:
    """(host, port) pairs; ValueError names the invalid one."""
    given = text.split(",") if isinstance(text, str) else list(text)
    parsed = [_parse(each.strip()) for each in given if each.strip()]
    if not parsed:
        raise ValueError("no bootstrap address was given")
    return parsed


def _parse(address: str) -> tuple[str, int]:
    if address.startswith("["):
        host, _, rest = address[1:].partition("]")
        port = rest.removeprefix(":")
    elif address.count(":") > 1:
        host, port = address, ""
    else:
        host, _, port = address.partition(":")
    if not host or (port and not (port.isascii() and port.isdigit() and 0 < int(port) <= MAX_PORT)):
        raise ValueError(f"{address!r} is not an address: expected host:port, with a port from 1 to {MAX_PORT}")
    return host, int(port or DEFAULT_PORT)
