"""Reads the addresses to listen on, and those to advertise, from the settings.

`listeners` and `advertised.listeners` win. If they are not given, Kafka 0.10's keys for one PLAINTEXT listener count: `port`
and `host.name` (9092 and every interface if only the other is given), `advertised.host.name` and `advertised.port`, which fall
back to those. Unlike Kafka 0.10, a host that is advertised without a port gets the port that is listened on, not 9092.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from horolog.base.hosts import host_and_port
from horolog.broker.config.setting_types import SettingsError

if TYPE_CHECKING:  # checking whether an address is of this machine needs no settings
    from horolog.broker.config.settings import Settings

PEERS = "peers"
"""The name of the listener for requests between brokers of one machine; no listener of the settings has it, for theirs are upper case."""
OLD_NAME, OLD_PORT = "PLAINTEXT", 9092
"""The listener of Kafka 0.10's `host.name` and `port`, and the port where that is not given."""


HTTP_LISTEN = "horolog.http.listen"


def with_port(address: str, bound: int) -> str:
    """An address as it was bound (0: it was not): with the port that the system chose, where it was to choose one."""
    return f"{address.removesuffix('0')}{bound}" if bound and address.endswith(":0") else address


@dataclass(frozen=True, slots=True)
class Address:
    """One listener's name, protocol and address; an empty host is every interface."""

    name: str
    protocol: str
    host: str
    port: int


def listen_addresses(settings: Settings) -> tuple[Address, ...]:
    """The addresses to bind; raises SettingsError if one cannot be read.

    Where only `advertised.listeners` is given, their ports are opened on all interfaces, as some of Kafka's images do.
    """
    key = "listeners"
    if not settings.is_set(key) and (old := _old_listener(settings)) is not None:
        return (old,)
    if settings.advertised_listeners and not settings.is_set(key):
        told = _not_controllers("advertised.listeners", settings.advertised_listeners, settings)
        found = [Address(address.name, address.protocol, "", address.port) for address in told]
    else:
        found = _not_controllers(key, settings.listeners, settings)
    if not found:
        raise SettingsError(key, ",".join(settings.listeners), "at least one listener for clients is needed")
    _refuse_twins(key, [address.name for address in found], "name")
    _refuse_twins(key, [f"{address.host}:{address.port}" for address in found if address.port], "address")
    return tuple(found)


def advertised_addresses(settings: Settings, hostname: str) -> dict[str, Address]:
    """The address advertised to clients of each listener; one on all interfaces without its own gets the machine's name."""
    key = "advertised.listeners"
    bound = listen_addresses(settings)
    given = _not_controllers(key, settings.advertised_listeners, settings)
    _refuse_twins(key, [address.name for address in given], "name")
    names = {address.name for address in bound}
    for address in given:
        if address.name not in names:
            reason = f"{address.name} is not among the listeners {', '.join(sorted(names))}"
            raise SettingsError(key, ",".join(settings.advertised_listeners), reason)
        if is_wildcard(address.host):
            reason = f"{address.name} needs a host that clients can reach, not {address.host or 'an empty one'}"
            raise SettingsError(key, ",".join(settings.advertised_listeners), reason)
    told = {address.name: address for address in given}
    if not given and (settings.advertised_host_name or settings.advertised_port is not None):
        old = _old_advertised(bound, settings, hostname)
        told[old.name] = old
    for address in bound:
        host = hostname if is_wildcard(address.host) else address.host
        told.setdefault(address.name, Address(address.name, address.protocol, host, address.port))
    return told


def _old_listener(settings: Settings) -> Address | None:
    """The listener of Kafka 0.10's own keys; None if they are not set."""
    host, port = settings.host_name, settings.port
    if not host and port is None:
        told = settings.advertised_host_name or settings.advertised_port is not None
        if not told or settings.advertised_listeners:
            return None
    return Address(OLD_NAME, OLD_NAME, host or "", OLD_PORT if port is None else port)


def _old_advertised(bound: Iterable[Address], settings: Settings, hostname: str) -> Address:
    """The address that Kafka 0.10's keys advertise, for the only listener or the one called PLAINTEXT."""
    key = "advertised.host.name" if settings.advertised_host_name else "advertised.port"
    candidates = list(bound)
    if len(candidates) > 1:
        candidates = [address for address in candidates if address.name == OLD_NAME]
    if not candidates:
        text = str(settings.advertised_host_name or settings.advertised_port)
        raise SettingsError(
            key, text, "it names one of several listeners; use advertised.listeners, which names all of them"
        )
    (address,) = candidates
    host = settings.advertised_host_name or settings.host_name or address.host
    if is_wildcard(host):
        host = hostname
    port = address.port if settings.advertised_port is None else settings.advertised_port
    return Address(address.name, address.protocol, host, port)


def warnings_about_old_names(settings: Settings) -> list[str]:
    """Warnings about Kafka 0.10's keys that are still set."""
    found = []
    for keys, newer, form in (
        (("host.name", "port"), "listeners", "PLAINTEXT://HOST:PORT"),
        (("advertised.host.name", "advertised.port"), "advertised.listeners", "PLAINTEXT://HOST:PORT"),
    ):
        given = [key for key in keys if settings.value(key) not in {None, ""}]
        if given and settings.is_set(newer):
            found.append(f"{' and '.join(given)} of Kafka 0.10 has no effect, because {newer} is set")
        elif given:
            found.append(
                f"{' and '.join(given)} of Kafka 0.10 is used; set {newer}={form} instead, as in Kafka 3 and newer"
            )
    return found


def controller_listeners(settings: Settings) -> list[str]:
    """The listeners of a controller, which are not opened."""
    names = _controllers(settings)
    return [text for text in settings.listeners if text.partition("://")[0].strip().upper() in names]


def _controllers(settings: Settings) -> set[str]:
    return {name.upper() for name in settings.controller_listener_names}


def _not_controllers(key: str, texts: Iterable[str], settings: Settings) -> list[Address]:
    protocols = _protocols(settings)
    names = _controllers(settings)
    return [
        read_address(key, text, protocols) for text in texts if text.partition("://")[0].strip().upper() not in names
    ]


def http_address(settings: Settings) -> tuple[str, int] | None:
    """Where metrics and health are served over HTTP; None: nowhere."""
    text = settings.horolog_http_listen
    return split_host_port("horolog.http.listen", text) if text else None


def is_wildcard(host: str) -> bool:
    return host in {"", "0.0.0.0", "::"}  # noqa: S104 - compared with, not bound


def read_address(key: str, text: str, protocols: dict[str, str]) -> Address:
    """NAME://HOST:PORT, an IPv6 host in brackets."""
    name, separator, rest = text.strip().partition("://")
    if not (name and separator):
        raise SettingsError(key, text, "an address has the form NAME://HOST:PORT")
    name = name.upper()
    if name not in protocols:
        known = ", ".join(sorted(protocols))
        raise SettingsError(key, text, f"{name} is not in listener.security.protocol.map, which has {known}")
    host, port = split_host_port(key, rest)
    return Address(name, protocols[name], host, port)


def split_host_port(key: str, text: str) -> tuple[str, int]:
    """HOST:PORT in its two parts; raises SettingsError."""
    try:
        return host_and_port(text)
    except ValueError as error:
        raise SettingsError(key, text, str(error)) from error


def _protocols(settings: Settings) -> dict[str, str]:
    key = "listener.security.protocol.map"
    known = {}
    for text in settings.listener_security_protocol_map:
        name, separator, protocol = text.partition(":")
        if not separator or protocol.upper() not in {"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}:
            raise SettingsError(key, text, "expected NAME:PROTOCOL with PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL")
        known[name.strip().upper()] = protocol.strip().upper()
    return known


def _refuse_twins(key: str, values: list[str], what: str) -> None:
    for value in values:
        if values.count(value) > 1:
            raise SettingsError(key, value, f"this {what} is listed twice")
