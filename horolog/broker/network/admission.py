"""Bounds the number of connections over all listeners: `max.connections`, `max.connections.per.ip` and its overrides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Settings
from horolog.broker.network.descriptors import left_for_connections


class Admission:
    """Counts connections in and out; the bounds may change while it counts."""

    __slots__ = ("_descriptors", "_max_connections", "_max_of_ip", "_max_per_ip", "_per_ip", "count")

    _max_connections: int
    _max_per_ip: int
    _max_of_ip: Mapping[str, int]

    def __init__(self, settings: Settings) -> None:
        self.count = 0
        self._per_ip: Counter[str] = Counter()
        self._descriptors = left_for_connections()
        self.allow(settings)

    def __repr__(self) -> str:
        return f"<Admission {self.count} connections of {len(self._per_ip)} addresses>"

    def allow(self, settings: Settings) -> None:
        """Set the bounds for new connections. Raises SettingsError."""
        overrides = _per_address(settings.max_connections_per_ip_overrides)
        self._max_connections = settings.max_connections
        self._max_per_ip = settings.max_connections_per_ip
        self._max_of_ip = overrides

    def enter(self, host: str) -> str | None:
        """Count in a connection, refused or not; return the reason if it may not stay."""
        self.count += 1
        self._per_ip[host] += 1
        if self.count > self._max_connections:
            return f"max.connections ({self._max_connections}) is reached"
        if self.count > self._descriptors:
            return f"the {self._descriptors} descriptors that the system leaves for connections are in use"
        allowed = self._max_of_ip.get(host, self._max_per_ip)
        if self._per_ip[host] > allowed:
            return f"max.connections.per.ip ({allowed}) is reached"
        return None

    def leave(self, host: str) -> None:
        self.count -= 1
        self._per_ip[host] -= 1
        if not self._per_ip[host]:
            del self._per_ip[host]


def _per_address(overrides: Iterable[str]) -> dict[str, int]:
    """`max.connections.per.ip.overrides`: ADDRESS:COUNT, several of them."""
    limits = {}
    for text in overrides:
        address, _, count = text.rpartition(":")
        if not (address and count.strip().isdigit()):
            raise SettingsError("max.connections.per.ip.overrides", text, "expected ADDRESS:COUNT")
        limits[address.strip()] = int(count)
    return limits
