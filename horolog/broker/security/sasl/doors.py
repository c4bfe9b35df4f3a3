"""Makes the doors of all SASL listeners from the settings. A mechanism that lacks what it needs ends the start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Final

from horolog.base import jaas
from horolog.base.clock import Clock
from horolog.broker.base.metrics import Metrics
from horolog.broker.config.listener_keys import names
from horolog.broker.config.listeners import listen_addresses
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Settings
from horolog.broker.security import listener_protection
from horolog.broker.security.audit import AuditTrail
from horolog.broker.security.listener_protection import MechanismSettings, OAuthSettings, SaslSettings
from horolog.broker.security.password_encoder import PasswordEncoder
from horolog.broker.security.sasl import oauthbearer, plain
from horolog.broker.security.sasl.door import Later, SaslDoor
from horolog.broker.security.sasl.jwks import SCHEMES, InThread, Jwks, JwksFault, fetch
from horolog.broker.security.sasl.oauthbearer import OAuthBearer
from horolog.broker.security.sasl.outcome import Mechanism
from horolog.broker.security.sasl.pace import LoginPace
from horolog.broker.security.sasl.plain import PlainLogin
from horolog.broker.security.sasl.scram import TokenLogins
from horolog.broker.security.sasl.scram_keys import KINDS
from horolog.broker.security.sasl.tokens import Expected, TokenReader
from horolog.broker.security.users import ScramUsers

SERVED: Final = (plain.NAME, *KINDS, oauthbearer.NAME)
ENABLED: Final = "sasl.enabled.mechanisms"
JAAS: Final = "sasl.jaas.config"
JWKS_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
MODULES: Final = {
    plain.NAME: "org.apache.kafka.common.security.plain.PlainLoginModule",
    oauthbearer.NAME: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    **dict.fromkeys(KINDS, "org.apache.kafka.common.security.scram.ScramLoginModule"),
}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all doors need of the broker."""

    clock: Clock
    metrics: Metrics
    later: Later
    in_thread: InThread
    audit: AuditTrail | None = None
    tokens: TokenLogins | None = None


class SaslDoors:
    """The doors by the names of their listeners, and the users that log in there."""

    def __init__(self, settings: Settings, around: Surroundings) -> None:
        """Raises SettingsError."""
        self.users = ScramUsers(PasswordEncoder.of(settings), around.tokens)
        self._around = around
        self._pace = LoginPace(
            around.clock.monotonic,
            lambda: settings.connection_failed_authentication_delay_ms,
            lambda: settings.horolog_failed_authentication_delay_max_ms,
        )
        self._jwks: list[Jwks] = []
        self._doors: dict[str, SaslDoor] = {}
        for address in listen_addresses(settings):
            told = listener_protection.of(settings, address).sasl
            if told is not None:
                self._doors[address.name] = self._door(address.name, told)

    def __repr__(self) -> str:
        return f"<SaslDoors of {', '.join(self._doors) or 'no listener'}>"

    def of(self, listener: str) -> SaslDoor | None:
        return self._doors.get(listener)

    def start(self) -> None:
        """Fetch the keys of tokens now, and again from time to time."""
        for one in self._jwks:
            one.start(self._around.later, self._around.in_thread)

    def stop(self) -> None:
        for one in self._jwks:
            one.stop()

    def _door(self, listener: str, told: SaslSettings) -> SaslDoor:
        if not told.enabled_mechanisms:
            raise SettingsError(names(listener, ENABLED)[0], "", f"{listener} needs one of {', '.join(SERVED)}")
        around = self._around
        return SaslDoor(
            listener,
            {name: self._maker(listener, name, told.mechanisms[name]) for name in told.enabled_mechanisms},
            {name: one.max_reauth_ms for name, one in told.mechanisms.items()},
            told.max_receive_bytes,
            self._pace.failed,
            around.clock,
            around.metrics,
            around.later,
            around.audit,
        )

    def _maker(self, listener: str, mechanism: str, told: MechanismSettings) -> Callable[[], Mechanism]:
        """A function that makes the state of one login."""
        if mechanism not in SERVED:
            reason = f"{listener} has the mechanism {mechanism}, which is not supported; use {', '.join(SERVED)}"
            raise SettingsError(names(listener, ENABLED)[0], None, reason)
        options = _options(listener, mechanism, told.jaas_config)
        if mechanism == plain.NAME:
            return partial(PlainLogin, options)
        if mechanism == oauthbearer.NAME:
            return partial(OAuthBearer, self._token_reader(listener, told.oauth))
        return partial(self.users.login, KINDS[mechanism])

    def _token_reader(self, listener: str, told: OAuthSettings) -> TokenReader:
        key, url = names(listener, JWKS_URL, oauthbearer.NAME)[0], told.jwks_url
        if url is None:
            raise SettingsError(key, None, "is required: it names the keys with which tokens are signed")
        if url.partition(":")[0] not in SCHEMES:
            raise SettingsError(key, url, f"expected a URL of {', '.join(SCHEMES)}")
        if find_spec("jwt") is None or find_spec("cryptography") is None:
            raise SettingsError(key, url, "OAUTHBEARER needs the extra `oauth`: pip install 'horolog[oauth]'")
        keys = Jwks(url, told.refresh_ms, told.retry_ms, told.most_retry_ms)
        if url.startswith("file:"):
            try:
                keys.take(fetch(url))
            except JwksFault as fault:
                raise SettingsError(key, None, str(fault)) from fault
        self._jwks.append(keys)
        return TokenReader(
            keys, Expected(told.audience, told.issuer, told.scope_claim, told.subject_claim, told.skew_s)
        )


def _options(listener: str, mechanism: str, text: str | None) -> plain.PlainUsers:
    """The users that a JAAS text names, which PLAIN needs and others do not have; raises SettingsError."""
    key = names(listener, JAAS, mechanism)[0]
    wanted = MODULES[mechanism]
    if text is None:
        if mechanism == plain.NAME:
            raise SettingsError(key, None, f'is required: {wanted} required user_NAME="PASSWORD" ;')
        return plain.PlainUsers({})
    try:
        module = jaas.parse(text)
    except jaas.JaasError as error:
        raise SettingsError(key, None, str(error)) from None
    if module.name != wanted:
        raise SettingsError(key, None, f"{wanted} is the login module of {mechanism}")
    users = plain.users_of(module.options)
    if mechanism == plain.NAME and not users:
        raise SettingsError(key, None, 'names no user: add user_NAME="PASSWORD"')
    return users
