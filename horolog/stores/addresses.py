"""The ways to a store: one client for each address that its name resolves to, since gateways behind one name may differ.

The name in a certificate is that of the store, so a client of an https endpoint cannot choose its address: there each client opens
connections of its own, and the name server decides where they lead.
"""

import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from horolog.stores.bucket_store import BucketStore
from horolog.stores.place import StorePlace, as_settings

MOST_ADDRESSES = 16
REQUEST_SECONDS = 10.0

Resolve = Callable[[str, int], Sequence[Any]]
"""`socket.getaddrinfo`."""


def _resolve(host: str, port: int) -> Sequence[Any]:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


def ways_to(place: StorePlace, resolve: Resolve = _resolve) -> list[BucketStore]:
    """Stores that are one and the same, each through an address of its own. They send each request once."""
    return [BucketStore(one, REQUEST_SECONDS, retries=0) for one in places(place, resolve)]


def places(place: StorePlace, resolve: Resolve = _resolve) -> list[StorePlace]:
    """A place at each address of its endpoint; the place itself if that has one address, or is not known."""
    settings = dict(place.settings)
    scheme, host_port, *_ = url = urlsplit(settings.get("endpoint", ""))
    found = _addresses(url.hostname or "", url.port or 80, resolve)
    if len(found) < 2:
        return [place]
    if scheme != "http":
        return [place for _ in found]
    port = f":{url.port}" if url.port else ""
    endpoints = [settings["endpoint"].replace(host_port, _in_url(one) + port, 1) for one in found]
    return [replace(place, settings=as_settings(settings | {"endpoint": one})) for one in endpoints]


def _addresses(host: str, port: int, resolve: Resolve) -> list[str]:
    """None if the name cannot be resolved now: the first request says so."""
    try:
        found = resolve(host, port) if host else ()
    except OSError:
        return []
    return sorted({str(one[4][0]) for one in found})[:MOST_ADDRESSES]


def _in_url(address: str) -> str:
    return f"[{address}]" if ":" in address else address
