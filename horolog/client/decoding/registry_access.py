"""A schema registry's address and credentials, by the setting names of Confluent's clients; secrets are never shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

URL: Final = ("schema.registry.url", "registry")
USER_INFO: Final = ("schema.registry.basic.auth.user.info", "basic.auth.user.info")
TOKEN: Final = ("schema.registry.bearer.auth.token", "bearer.auth.token")
CA_FILE: Final = ("schema.registry.ssl.ca.location", "schema.registry.ssl.truststore.location")
SECRETS: Final = frozenset({*USER_INFO, *TOKEN})
DEFAULT_TIMEOUT_MS: Final = 5000


class RegistryUrlError(ValueError):
    """The address is invalid; the message says why, without what may be a password in it."""


@dataclass(frozen=True, slots=True)
class RegistryAccess:
    """Raises RegistryUrlError if the address is invalid."""

    url: str = field(repr=False)
    user_info: str | None = field(default=None, repr=False)
    """`user:password`."""
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    """The timeout of each request to the registry, from the connection to the last byte."""

    def __post_init__(self) -> None:
        if self.scheme not in {"http", "https"} or not self.host:
            raise RegistryUrlError(
                "expected http://HOST:PORT or https://HOST:PORT as the address of a registry, with or without a path"
            )
        if self.user_info is not None and self.token is not None:
            raise RegistryUrlError("a registry takes either a user and a password, or a token; both are given")
        if self.user_info is not None and ":" not in self.user_info:
            raise RegistryUrlError(f"{USER_INFO[0]}: expected USER:PASSWORD")
        if any(ord(one) < 32 for one in f"{self.url}{self.user_info}{self.token}"):
            raise RegistryUrlError("the address or the credentials of a registry contain control characters")

    @classmethod
    def of(
        cls, settings: Mapping[str, str], url: str | None = None, timeout_ms: int = DEFAULT_TIMEOUT_MS
    ) -> "RegistryAccess | None":
        """From a client's settings; `url` overrides theirs, without credentials meant for another host. None: no registry."""
        own = _first(settings, URL)
        address = url or own
        if not address:
            return None
        named = cls(address, timeout_ms=timeout_ms)
        if own and url and cls(own).origin != named.origin:
            return named
        return cls(address, _first(settings, USER_INFO), _first(settings, TOKEN), _first(settings, CA_FILE), timeout_ms)

    @property
    def scheme(self) -> str:
        return self._parts[0]

    @property
    def host(self) -> str:
        return self._parts[1]

    @property
    def port(self) -> int:
        return self._parts[2]

    @property
    def path(self) -> str:
        return self._parts[3]

    @property
    def origin(self) -> tuple[str, str, int]:
        return self._parts[:3]

    @property
    def name(self) -> str:
        """The address without credentials, for messages."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"

    @property
    def has_login_in_url(self) -> bool:
        parts = urlsplit(self.url)
        return parts.username is not None or parts.password is not None

    @property
    def authorization(self) -> str | None:
        """The header's value; credentials in the address come last."""
        from base64 import b64encode

        if self.token is not None:
            return f"Bearer {self.token}"
        user_info = self.user_info
        if user_info is None:
            parts = urlsplit(self.url)
            if parts.username is None:
                return None
            user_info = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        return f"Basic {b64encode(user_info.encode()).decode()}"

    @property
    def _parts(self) -> tuple[str, str, int, str]:
        try:
            parts = urlsplit(self.url)
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            return "", "", 0, ""
        return parts.scheme, parts.hostname or "", port, parts.path.rstrip("/")


def _first(settings: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((settings[name] for name in names if settings.get(name)), None)
