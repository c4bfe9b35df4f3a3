"""How this broker proves itself at others, and what it believes of them: TLS and SASL of the listener between brokers, from its own settings.

All brokers are set up alike: the certificate that a broker shows its clients is the one that it shows other brokers, and the user of
`sasl.jaas.config` is one that they know.
"""

from __future__ import annotations

import ssl
from collections.abc import Generator
from dataclasses import dataclass, field

from horolog.base import jaas
from horolog.base.scram_client import DIGESTS, new_nonce, scram
from horolog.broker.config.inter_broker import inter_broker_address
from horolog.broker.config.listener_keys import names
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Settings
from horolog.broker.security import listener_protection
from horolog.broker.security.listener_protection import SaslSettings
from horolog.broker.security.tls import PeerTls

MECHANISM = "sasl.mechanism.inter.broker.protocol"
JAAS = "sasl.jaas.config"
PLAIN = "PLAIN"

LoginSteps = Generator[bytes, bytes, None]
"""Yields the tokens of one side of a login; those of the other side are sent in."""


@dataclass(frozen=True, slots=True)
class PeerUser:
    """The user as whom a broker logs in at others."""

    mechanism: str
    name: str
    password: str = field(repr=False)

    def login(self) -> LoginSteps:
        if self.mechanism == PLAIN:
            return _plain(self.name, self.password)
        return scram(self.mechanism, self.name, self.password, new_nonce())


def _plain(name: str, password: str) -> LoginSteps:
    yield f"\0{name}\0{password}".encode()


@dataclass(frozen=True, slots=True)
class PeerAccess:
    """The listener between brokers, and how it is entered; with neither TLS nor a user it is open."""

    listener: str
    tls: PeerTls | None = None
    user: PeerUser | None = None

    def context(self) -> ssl.SSLContext | None:
        """The TLS of a connection that begins now. Raises SettingsError."""
        return None if self.tls is None else self.tls.context()


def peer_access(settings: Settings) -> PeerAccess:
    """Raises SettingsError for what other brokers would refuse."""
    address = inter_broker_address(settings)
    protection = listener_protection.of(settings, address)
    tls = None
    if protection.tls is not None:
        checks_host = bool(settings.of_listener(address.name, "ssl.endpoint.identification.algorithm"))
        tls = PeerTls(address.name, protection.tls, checks_host=checks_host)
        tls.context()
    user = None if protection.sasl is None else _user(settings, address.name, protection.sasl)
    return PeerAccess(address.name, tls, user)


def _user(settings: Settings, listener: str, told: SaslSettings) -> PeerUser:
    mechanism = settings.sasl_mechanism_inter_broker_protocol
    if mechanism not in {PLAIN, *DIGESTS}:
        raise SettingsError(MECHANISM, mechanism, f"between brokers, expected one of {', '.join((PLAIN, *DIGESTS))}")
    if mechanism not in told.enabled_mechanisms:
        reason = f"is not among sasl.enabled.mechanisms of {listener}: {', '.join(told.enabled_mechanisms)}"
        raise SettingsError(MECHANISM, mechanism, reason)
    key = names(listener, JAAS, mechanism)[0]
    try:
        options = jaas.parse(told.mechanisms[mechanism].jaas_config or "").options
    except jaas.JaasError as error:
        raise SettingsError(key, None, f"is required for the login at other brokers: {error}") from None
    name, password = options.get("username"), options.get("password")
    if not name or not password:
        raise SettingsError(
            key, None, "needs the username and the password with which this broker logs in at other brokers"
        )
    return PeerUser(mechanism, name, password)
