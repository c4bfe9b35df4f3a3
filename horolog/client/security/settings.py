"""What a client presents and requires at a listener. No representation contains a secret."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

TokenSource = Callable[[], Awaitable[str]]
"""The source of a bearer token: called for each login."""


class SecurityError(ValueError):
    """Invalid names or values, or unusable files; the message shows no secret."""


@dataclass(frozen=True, slots=True)
class Store:
    """A file with certificates, and maybe a key."""

    name: str
    """The setting that names it, for messages."""
    location: str
    kind: str | None = None
    """PEM or PKCS12; None: detected by its content."""
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Tls:
    """Which certificates to trust, and which to present if the broker asks for one."""

    trusted: Store | None = None
    trusted_pem: str | None = field(default=None, repr=False)
    own: Store | None = None
    own_chain: str | Store | None = field(default=None, repr=False)
    own_key: str | Store | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    versions: tuple[str, ...] = ()
    cipher_suites: tuple[str, ...] = ()
    checks_host: bool = True
    checks_certificate: bool = True


@dataclass(frozen=True, slots=True)
class Sasl:
    """The client's identity, and how it proves it."""

    mechanism: str
    username: str = ""
    password: str = field(default="", repr=False)
    token: TokenSource | None = field(default=None, repr=False)
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)
    by_token: bool = False
    """Whether name and password are the id and the HMAC of a delegation token."""


@dataclass(frozen=True, slots=True)
class Security:
    """How to reach the listeners of one cluster. Without `tls` and `sasl`: open ones."""

    tls: Tls | None = None
    sasl: Sasl | None = None
    properties: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The settings that it was made from, for callers that pass it on as text."""

    @property
    def protocol(self) -> str:
        """Kafka's name of the protocol."""
        if self.sasl is None:
            return "PLAINTEXT" if self.tls is None else "SSL"
        return "SASL_PLAINTEXT" if self.tls is None else "SASL_SSL"

    @property
    def says_who(self) -> bool:
        """Whether the client can identify itself to a broker that asks."""
        tls = self.tls
        return self.sasl is not None or (tls is not None and (tls.own or tls.own_chain) is not None)

    @classmethod
    def of(cls, properties: Mapping[str, str], *, token: TokenSource | None = None) -> Security:
        """Read Kafka's names (`ssl.truststore.location`), or librdkafka's (`ssl.ca.location`). Other settings are ignored.

        `token` is called for a bearer token if no setting says how to get one. Raises SecurityError.
        """
        from horolog.client.security.options import read

        return read(properties, token)
