"""Reads the addresses to listen on, and those to tell clients, out of the settings."""

from collections.abc import Iterable
from dataclasses import dataclass

from broker.setting_types import SettingsError
from broker.settings import Settings

SERVED_PROTOCOLS = ("PLAINTEXT",)


@dataclass(frozen=True, slots=True)
class Address:
    """One listener's name, what is spoken there, and where; an empty host is every interface."""

    name: str
    protocol: str
    host: str
    port: int


def listen_addresses(settings: Settings) -> tuple[Address, ...]:
    """What to bind; raises SettingsError for what cannot be read or is not served.

    Where only `advertised.listeners` is given, their ports are opened on all interfaces, as some of Kafka's images do.
    """
    key = "listeners"
    if settings.advertised_listeners and not settings.is_set(key):
        told = _not_controllers("advertised.listeners", settings.advertised_listeners, settings)
        found = [Address(address.name, address.protocol, "", address.port) for address in told]
    else:
        found = _not_controllers(key, settings.listeners, settings)
    if not found:
        raise SettingsError(key, ",".join(settings.listeners), "at least one listener for clients is needed")
    for address in found:
        if address.protocol not in SERVED_PROTOCOLS:
            reason = f"{address.name} speaks {address.protocol}; served is {', '.join(SERVED_PROTOCOLS)}"
            raise SettingsError(key, ",".join(settings.listeners), reason)
    _refuse_twins(key, [address.name for address in found], "name")
    _refuse_twins(key, [f"{address.host}:{address.port}" for address in found if address.port], "address")
    return tuple(found)


def advertised_addresses(settings: Settings, hostname: str) -> dict[str, Address]:
    """What clients of each listener are told; a listener on all interfaces with none of its own gets the machine's name."""
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
    for address in bound:
        host = hostname if is_wildcard(address.host) else address.host
        told.setdefault(address.name, Address(address.name, address.protocol, host, address.port))
    return told


def controller_listeners(settings: Settings) -> list[str]:
    """The listeners of a controller, which nobody opens."""
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
    host, separator, port = text.rpartition(":")
    if not (separator and port.isascii() and port.isdigit() and int(port) <= 65535):
        raise SettingsError(key, text, "a port from 0 to 65535 belongs behind the host: HOST:PORT")
    bracketed = host.startswith("[") and host.endswith("]")
    if ":" in host and not bracketed:
        raise SettingsError(key, text, "an IPv6 address stands in brackets: [HOST]:PORT")
    return (host[1:-1] if bracketed else host), int(port)


def _protocols(settings: Settings) -> dict[str, str]:
    key = "listener.security.protocol.map"
    known = {}
    for text in settings.listener_security_protocol_map:
        name, separator, protocol = text.partition(":")
        if not separator or protocol.upper() not in {"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}:
            raise SettingsError(key, text, "NAME:PROTOCOL with PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL is allowed")
        known[name.strip().upper()] = protocol.strip().upper()
    return known


def _refuse_twins(key: str, values: list[str], what: str) -> None:
    for value in values:
        if values.count(value) > 1:
            raise SettingsError(key, value, f"this {what} stands there twice")
