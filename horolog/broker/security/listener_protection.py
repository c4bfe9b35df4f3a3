"""What each listener requires of its peers, read from the settings: TLS, SASL, both or neither."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from horolog.base.hosts import is_loopback
from horolog.broker.config.listener_keys import names, read
from horolog.broker.config.listeners import Address, listen_addresses
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import SPECS, Settings


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where certificates are: in a file, or as PEM text in the settings themselves. Truststores have no key."""

    type: str
    location: str | None
    password: str | None = field(repr=False)
    certificates: str | None = field(repr=False)
    key: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """The TLS of one listener."""

    keystore: StoreSettings
    truststore: StoreSettings
    client_auth: str
    """none, requested or required."""
    enabled_protocols: tuple[str, ...]
    cipher_suites: tuple[str, ...]
    principal_mapping_rules: str
    allows_name_changes: bool = False
    allows_alternatives_changes: bool = False


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    """Which tokens are accepted."""

    jwks_url: str | None
    refresh_ms: int
    retry_ms: int
    most_retry_ms: int
    audience: tuple[str, ...]
    issuer: str | None
    scope_claim: str
    subject_claim: str
    skew_s: int


@dataclass(frozen=True, slots=True)
class MechanismSettings:
    """The settings of one SASL mechanism of a listener."""

    jaas_config: str | None = field(repr=False)
    max_reauth_ms: int
    oauth: OAuthSettings


@dataclass(frozen=True, slots=True)
class SaslSettings:
    """By which mechanisms peers may authenticate, and how much they may send before."""

    enabled_mechanisms: tuple[str, ...]
    max_receive_bytes: int
    mechanisms: Mapping[str, MechanismSettings]
    """By the name under which each is enabled."""


@dataclass(frozen=True, slots=True)
class ListenerProtection:
    """What a listener requires; with neither, every peer is ANONYMOUS."""

    name: str
    tls: TlsSettings | None
    sasl: SaslSettings | None

    @property
    def asks_who(self) -> bool:
        """Whether every peer has to authenticate."""
        return self.sasl is not None or (self.tls is not None and self.tls.client_auth == "required")


def of(settings: Settings, address: Address) -> ListenerProtection:
    """The protection of the listener at an address."""
    protocol = address.protocol
    return ListenerProtection(
        address.name,
        _tls(settings, address) if protocol in {"SSL", "SASL_SSL"} else None,
        _sasl(settings, address.name) if protocol in {"SASL_PLAINTEXT", "SASL_SSL"} else None,
    )


def sasl_listeners(settings: Settings) -> set[str]:
    """The names of the listeners at which peers authenticate by SASL."""
    return {address.name for address in listen_addresses(settings) if of(settings, address).sasl is not None}


def refuse_what_closes_nothing(settings: Settings) -> None:
    """Refuse settings of SASL that no listener uses: they would protect nothing. Raises SettingsError."""
    closed = {name.lower() for name in sasl_listeners(settings)}
    key = "sasl.enabled.mechanisms"
    if not closed and settings.is_set(key) and settings.value(key) != SPECS[key].default:
        raise SettingsError(key, None, "no listener uses SASL, as SASL_SSL://HOST:PORT does")
    closed |= {name.lower() for name in settings.controller_listener_names}  # which are not opened
    for key in settings.listener_keys():
        told = read(key)
        if told is not None and "sasl" in told.key.split(".") and told.listener not in closed:
            raise SettingsError(key, None, f"there is no listener {told.listener.upper()} that uses SASL")


class ListenedAddress(Protocol):
    """An address that is listened on, or will be."""

    @property
    def name(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


def open_to_others(settings: Settings, listeners: Iterable[ListenedAddress]) -> str | None:
    """The warning if other machines reach a listener that does not authenticate every peer."""
    closed = {address.name for address in listen_addresses(settings) if of(settings, address).asks_who}
    reached = [
        f"{one.name} {one.host or '*'}:{one.port}"
        for one in listeners
        if one.name not in closed and not is_loopback(one.host)
    ]
    if not reached:
        return None
    return f"anyone who reaches {', '.join(reached)} can read, change and delete everything: no authentication is configured"


def _tls(settings: Settings, address: Address) -> TlsSettings:
    def value(key: str) -> Any:
        return settings.of_listener(address.name, key)

    return TlsSettings(
        keystore=StoreSettings(
            value("ssl.keystore.type"),
            value("ssl.keystore.location"),
            value("ssl.keystore.password"),
            value("ssl.keystore.certificate.chain"),
            value("ssl.keystore.key"),
            value("ssl.key.password"),
        ),
        truststore=StoreSettings(
            value("ssl.truststore.type"),
            value("ssl.truststore.location"),
            value("ssl.truststore.password"),
            value("ssl.truststore.certificates"),
        ),
        client_auth=_client_auth(settings, address),
        enabled_protocols=value("ssl.enabled.protocols"),
        cipher_suites=value("ssl.cipher.suites"),
        principal_mapping_rules=value("ssl.principal.mapping.rules"),
        allows_name_changes=value("ssl.allow.dn.changes"),
        allows_alternatives_changes=value("ssl.allow.san.changes"),
    )


def _client_auth(settings: Settings, address: Address) -> str:
    """With SASL, only the listener's own key can ask for a certificate, as in Kafka."""
    key = "ssl.client.auth"
    if address.protocol == "SASL_SSL" and not settings.is_set(names(address.name, key)[0]):
        return "none"
    return str(settings.of_listener(address.name, key))


def _sasl(settings: Settings, listener: str) -> SaslSettings:
    enabled: Any = settings.of_listener(listener, "sasl.enabled.mechanisms")
    most: Any = settings.of_listener(listener, "sasl.server.max.receive.size")
    return SaslSettings(enabled, most, {mechanism: _mechanism(settings, listener, mechanism) for mechanism in enabled})


def _mechanism(settings: Settings, listener: str, mechanism: str) -> MechanismSettings:
    def value(key: str) -> Any:
        return settings.of_listener(listener, key, mechanism)

    return MechanismSettings(
        value("sasl.jaas.config"),
        value("connections.max.reauth.ms"),
        OAuthSettings(
            value("sasl.oauthbearer.jwks.endpoint.url"),
            value("sasl.oauthbearer.jwks.endpoint.refresh.ms"),
            value("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
            value("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
            value("sasl.oauthbearer.expected.audience"),
            value("sasl.oauthbearer.expected.issuer"),
            value("sasl.oauthbearer.scope.claim.name"),
            value("sasl.oauthbearer.sub.claim.name"),
            value("sasl.oauthbearer.clock.skew.seconds"),
        ),
    )
