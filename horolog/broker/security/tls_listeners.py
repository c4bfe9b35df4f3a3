"""All listeners of a broker that speak TLS, including the HTTP port: loaded at the start, and again when their files change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from horolog.base.certificates import expiry_warning
from horolog.broker.config import listener_keys
from horolog.broker.config.listeners import Address, listen_addresses
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import SPECS, Settings
from horolog.broker.security import listener_protection
from horolog.broker.security.tls import HandshakeBounds, ListenerTls
from horolog.broker.security.tls_wire import Tell, TlsDoor

HTTP: Final = "HTTP"
"""The name under which the HTTP port has keys of its own: `listener.name.http.ssl.keystore.location`."""


ENDPOINT: Final = "ssl.endpoint.identification.algorithm"
"""A key of connections to other brokers: it protects no listener."""


class TlsListeners:
    """The TLS of each listener that speaks it, by name."""

    def __init__(self, settings: Settings) -> None:
        """Raises SettingsError: for what cannot be read, and for keys that ask for TLS where no listener speaks it."""
        check_all_is_used(settings)
        bounds = HandshakeBounds(
            settings.horolog_ssl_handshake_max_ms,
            settings.horolog_ssl_handshake_max_bytes,
            settings.horolog_ssl_handshakes_max,
        )
        self._warning_ms = settings.horolog_ssl_expiry_warning_ms
        self.by_name = {
            one.name: ListenerTls(one.name, one.tls, bounds) for one in _protections(settings) if one.tls is not None
        }

    def __repr__(self) -> str:
        return f"<TlsListeners {', '.join(self.by_name) or 'none'}>"

    def __iter__(self) -> Iterator[ListenerTls]:
        return iter(self.by_name.values())

    def door(self, name: str, tell: Tell | None = None) -> TlsDoor | None:
        """The `TlsDoor` of a listener; None if it does not speak TLS."""
        tls = self.by_name.get(name)
        return None if tls is None else TlsDoor(tls, tell)

    def check(self, settings: Settings) -> None:
        """Whether other settings could be served. Raises SettingsError."""
        for one in _protections(settings):
            if one.tls is not None and one.name in self.by_name:
                self.by_name[one.name].check(one.tls)

    def take(self, settings: Settings) -> None:
        """Serve with other settings from now on, and with what the files hold now: setting a key again has them read again."""
        for one in _protections(settings):
            tls = self.by_name.get(one.name)
            if tls is not None and one.tls is not None and one.tls != tls.settings:
                tls.take(one.tls)
        self.look()

    def look(self) -> None:
        """Load files that have changed."""
        for tls in self.by_name.values():
            tls.look()

    def warnings(self, now_s: float) -> Iterator[str]:
        """A line for every certificate that is about to expire, or has."""
        for tls in self.by_name.values():
            warning = expiry_warning(f"listener {tls.listener}", tls.expires_s, now_s, self._warning_ms)
            if warning is not None:
                yield warning


def check_all_is_used(settings: Settings) -> None:
    """Refuse a key that asks for TLS on a listener that does not exist or does not speak it. Raises SettingsError."""
    controllers = {name.lower() for name in settings.controller_listener_names}  # which are not opened
    speaks_tls = {one.name.lower(): one.tls is not None for one in _protections(settings)}
    for key in settings.layers.static:
        told = listener_keys.read(key)
        spec = SPECS[listener_keys.plain(key)]
        if (
            not spec.name.startswith("ssl.")
            or spec.name == ENDPOINT
            or (told is not None and told.listener in controllers)
        ):
            continue
        if told is not None and told.listener not in speaks_tls:
            near = f"; did you mean {told.listener.lower()}?" if told.listener.lower() in speaks_tls else ""
            raise SettingsError(key, None, f"there is no listener {told.listener}{near}")
        asks = settings.value(key) != spec.default
        if asks and not (speaks_tls[told.listener] if told is not None else any(speaks_tls.values())):
            who = f"listener {told.listener} does not speak" if told is not None else "no listener speaks"
            raise SettingsError(key, None, f"asks for protection, but {who} SSL or SASL_SSL")


def _protections(settings: Settings) -> Iterator[listener_protection.ListenerProtection]:
    addresses = list(listen_addresses(settings))
    if settings.horolog_http_protocol == "HTTPS":
        addresses.append(Address(HTTP, "SSL", "", 0))
    return (listener_protection.of(settings, address) for address in addresses)
