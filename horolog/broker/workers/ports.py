"""Ports of workers: for each listener a shared one, where any worker answers, and one for each worker, which alone is advertised.
A single worker has the listener's port only, as a broker of one process.

The supervisor binds all of them and listens on none. So a port that is taken is found before anything starts, and a port that the system
chose stays the same, and reserved, when a worker is replaced. The supervisor never gets a connection: the kernel gives connections only
to sockets that listen.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from horolog.broker.base.one_port import LISTEN, cannot_listen
from horolog.broker.config.listeners import (
    HTTP_LISTEN,
    Address,
    advertised_addresses,
    http_address,
    is_wildcard,
    listen_addresses,
)
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Settings

KEY = "horolog.worker.ports"
LARGEST_PORT = 65535


@dataclass(frozen=True, slots=True)
class ListenerPorts:
    """The ports of one listener; 0 is any free one."""

    name: str
    host: str
    shared: int
    own: tuple[int, ...]
    """One for each worker, in order."""
    advertised_shift: int = 0
    """By how much the advertised port is above the one that is listened on, if ports are translated on the way."""

    @property
    def is_of_one_worker(self) -> bool:
        return len(self.own) == 1

    @property
    def advertised(self) -> tuple[int, ...]:
        return tuple(port + self.advertised_shift for port in self.own)


def planned(settings: Settings, workers: int) -> tuple[ListenerPorts, ...]:
    """The ports that the settings ask for. Raises SettingsError where two are the same, or one is too large."""
    addresses = listen_addresses(settings)
    told = advertised_addresses(settings, socket.gethostname())
    given = _first_ports(settings, addresses)
    plan = tuple(_of_listener(one, told[one.name].port, given.get(one.name), workers) for one in addresses)
    _check(plan, settings)
    return plan


def _of_listener(address: Address, told: int, given: int | None, workers: int) -> ListenerPorts:
    """A port given by the setting is advertised unchanged; one derived from the listener's is translated as that one is."""
    if workers == 1:
        return ListenerPorts(address.name, address.host, address.port, (address.port,), _shift(told, address.port))
    if given is not None:
        first, shift = given, 0
    else:
        first = address.port + 1 if address.port else 0
        shift = _shift(told, address.port)
    own = tuple(first + place if first else 0 for place in range(workers))
    return ListenerPorts(address.name, address.host, address.port, own, shift)


def _shift(told: int, port: int) -> int:
    return told - port if told and port else 0


def _first_ports(settings: Settings, addresses: Sequence[Address]) -> dict[str, int]:
    """`horolog.worker.ports`: the first worker's port, by the listener's name; a port without a name is for the only listener."""
    first: dict[str, int] = {}
    names = [address.name for address in addresses]
    for text in settings.horolog_worker_ports:
        name, colon, port = text.rpartition(":")
        if not colon and len(names) > 1:
            raise SettingsError(KEY, text, f"use NAME:PORT to choose the listener: {', '.join(names)}")
        name = name.strip().upper() or names[0]
        if name not in names:
            raise SettingsError(KEY, text, f"{name} is not among the listeners {', '.join(names)}")
        if name in first:
            raise SettingsError(KEY, text, f"{name} is named twice")
        if not (port.strip().isdecimal() and int(port) <= LARGEST_PORT):
            raise SettingsError(KEY, text, "expected NAME:PORT, with a port from 0 to 65535")
        first[name] = int(port)
    return first


def _check(plan: Iterable[ListenerPorts], settings: Settings) -> None:
    given = ",".join(settings.horolog_worker_ports)
    taken: dict[tuple[str, int], str] = {}
    for one in plan:
        for port in (*one.own, *one.advertised):
            if port > LARGEST_PORT:
                raise SettingsError(KEY, given, f"{one.name} would need port {port}, and the largest is {LARGEST_PORT}")
        own = () if one.is_of_one_worker else one.own
        shared, worker = f"the listener {one.name}", f"a worker of {one.name}"
        for port, whose in ((one.shared, shared), *((port, worker) for port in own)):
            other = taken.setdefault((one.host, port), whose) if port else whose
            if other != whose:
                raise SettingsError(
                    KEY, given, f"port {port} would be used by {other} and by {whose}: name others, NAME:PORT"
                )
    if http := http_address(settings):
        _check_http(http, taken, settings)


def _check_http(http: tuple[str, int], taken: Mapping[tuple[str, int], str], settings: Settings) -> None:
    for (host, port), whose in taken.items():
        if port == http[1] and (host == http[0] or is_wildcard(host) or is_wildcard(http[0])):
            raise SettingsError(
                HTTP_LISTEN,
                str(settings.horolog_http_listen),
                f"port {port} would be used by {whose} and by HTTP: name another HOST:PORT",
            )


class Reserved:
    """Ports that no other process gets until they are released."""

    def __init__(self, plan: Iterable[ListenerPorts]) -> None:
        """Raises OSError, with the words of a server that cannot bind."""
        self._sockets: list[socket.socket] = []
        try:
            self.listeners = tuple(self._reserved(one) for one in plan)
        except BaseException:
            self.release()
            raise

    def __repr__(self) -> str:
        return f"<Reserved {self.listeners}>"

    def release(self) -> None:
        for one in self._sockets:
            one.close()
        self._sockets.clear()

    def shared_ports(self) -> dict[str, int]:
        return {one.name: one.shared for one in self.listeners}

    def own_ports(self, place: int) -> dict[str, int]:
        """The ports of the worker at this place, counted from 0."""
        return {one.name: one.own[place] for one in self.listeners}

    def advertised(self, nodes: Sequence[int]) -> Mapping[str, Mapping[int, int]]:
        return {one.name: dict(zip(nodes, one.advertised, strict=True)) for one in self.listeners}

    def _reserved(self, one: ListenerPorts) -> ListenerPorts:
        shared = self._bind(one.host, one.shared)
        own = (shared,) if one.is_of_one_worker else tuple(self._bind(one.host, port) for port in one.own)
        return ListenerPorts(one.name, one.host, shared, own, one.advertised_shift)

    def _bind(self, host: str, port: int) -> int:
        """Bind on every address of the host, as a server does; the port."""
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in dict.fromkeys(found):
            try:
                bound = socket.socket(family, kind, protocol)
            except OSError:
                continue  # an address family that this machine does not support
            self._sockets.append(bound)
            port = _bind_alone(bound, (address[0], port, *address[2:]))
        return port


def _bind_alone(bound: socket.socket, address: tuple[object, ...]) -> int:
    """Fails if another process has the port, even if that would share it. From then on workers may share it, others may not."""
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that have ended keep no port
    if bound.family == socket.AF_INET6:
        bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        bound.bind(address)
    except OSError as error:
        raise cannot_listen(error, str(address[0]), int(str(address[1])), LISTEN) from error
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)  # other processes that set it are refused, too
    return int(bound.getsockname()[1])
