"""The settings of a console: its clusters, who may log in, whether changes are allowed, and its limits."""

from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from horolog.client.decoding import RegistryAccess
    from horolog.client.security import Security
    from horolog.client.segments.segments_look import HttpAccess
    from horolog.console.oidc import Oidc

SESSIONS_AT_MOST = 64
SESSION_IDLE_S = 3600.0
SESSION_LONGEST_S = 12 * 3600.0
LOGINS_A_MINUTE = 10
"""Failed logins of one user from one address, including those in progress."""
LOGINS_OF_AN_ADDRESS = 30
"""The same for all users together."""
PAGES_AT_ONCE = 8
FOLLOWERS_AT_ONCE = 16
CALLBACK = "/login/callback"
"""Where an identity provider leads browsers back to."""
ANSWER_SECONDS = 8.0
"""The timeout of a page."""


class Login(Enum):
    """The way to log in."""

    NONE = "none"
    TOKEN = "token"  # noqa: S105 - the name of a login, not a secret
    SASL = "sasl"
    OIDC = "oidc"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster, under its name in the addresses of pages."""

    name: str
    bootstrap: str
    security: "Security | None" = field(default=None, repr=False)
    http: "HttpAccess | None" = field(default=None, repr=False)
    """The HTTP port that lists its segments, if given, and the token."""


@dataclass(frozen=True, slots=True)
class Options:
    clusters: tuple[Cluster, ...]
    login: Login = Login.NONE
    token: str = field(default="", repr=False)
    mechanism: str = "SCRAM-SHA-256"
    """Of logins by SASL."""
    oidc: "Oidc | None" = None
    allow_changes: bool = False
    registry: "RegistryAccess | None" = field(default=None, repr=False)
    """Of schemas, for keys and values."""
    zone: tzinfo = UTC
    zone_name: str = "UTC"
    hosts: frozenset[str] = frozenset({"localhost", "127.0.0.1", "::1"})
    """Allowed Host names: a foreign page whose name resolves to this console has another one."""
    any_host: bool = False
    is_secure: bool = False
    """Whether pages are served over TLS: cookies are then for TLS only."""
    timeout_ms: int = 5000

    def cluster(self, name: str) -> Cluster | None:
        """The cluster of that name; the first if none is given."""
        if not name:
            return self.clusters[0]
        return next((one for one in self.clusters if one.name == name), None)


def clusters_of(addresses: list[str], security: "Security | None") -> tuple[Cluster, ...]:
    """A cluster for each `-b`, named by its first address. Raises ValueError for a duplicate or an invalid address."""
    from horolog.client.wire.addresses import parse_addresses

    found: dict[str, Cluster] = {}
    for text in addresses:
        host, port = parse_addresses(text)[0]
        name = f"{host}:{port}"
        if name in found:
            raise ValueError(f"{name} is given twice")
        found[name] = Cluster(name, text, security)
    return tuple(found.values())
