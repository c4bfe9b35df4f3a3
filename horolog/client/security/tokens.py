"""Sources of bearer tokens: each is called for a login and returns a token. They can be sent to other processes."""

from __future__ import annotations

import asyncio
import json
import shlex
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from horolog.base import no_redirects
from horolog.base.clock import SystemClock
from horolog.client.security.settings import SecurityError
from horolog.client.values.errors import AuthenticationFailed, ConnectionFailed

TIMEOUT_SECONDS: Final = 10.0
MAX_ANSWER_BYTES: Final = 1 << 20
_SERVER_ERRORS: Final = range(500, 600)
_DEFAULT_LIFETIME_SECONDS: Final = 3600


@dataclass(frozen=True, slots=True)
class GivenToken:
    """A literal token."""

    token: str = field(repr=False)

    async def __call__(self) -> str:
        return self.token.strip()


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file that another program keeps up to date."""

    path: str

    async def __call__(self) -> str:
        try:
            text = await asyncio.to_thread(Path(self.path).read_text, "ascii")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it holds no token"
            raise AuthenticationFailed(f"the file with the token, {self.path}: {reason}") from error
        return text.strip()


@dataclass(frozen=True, slots=True)
class TokenCommand:
    """A program that prints a token; run without a shell."""

    command: str = field(repr=False)

    async def __call__(self) -> str:
        words = shlex.split(self.command)
        name = words[0] if words else ""
        try:
            running = await asyncio.create_subprocess_exec(
                *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
            )
        except (OSError, TypeError) as error:
            raise AuthenticationFailed(f"the command for tokens, {name!r}, cannot be run") from error
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                said, _ = await running.communicate()
        except TimeoutError:
            running.kill()
            await running.wait()
            raise AuthenticationFailed(f"the command for tokens, {name}, gave none in time") from None
        if running.returncode:
            raise AuthenticationFailed(f"the command for tokens, {name}, ended with exit code {running.returncode}")
        return said.decode("ascii", "replace").strip()


@dataclass(frozen=True, slots=True)
class UnsecuredToken:
    """An unsigned token, for brokers under development: Kafka's own default."""

    claims: Mapping[str, Any]
    lifetime_seconds: int = _DEFAULT_LIFETIME_SECONDS

    async def __call__(self) -> str:
        now = SystemClock().wall_ms() / 1000
        claims = {"iat": now, "exp": now + self.lifetime_seconds, **self.claims}
        return f"{_part({'alg': 'none'})}.{_part(claims)}."


def unsecured(options: Mapping[str, str]) -> UnsecuredToken:
    """By the options of Kafka's login module: `unsecuredLoginStringClaim_sub="alice"`, and the same for numbers and lists."""
    claims: dict[str, Any] = {}
    lifetime = options.get("unsecuredLoginLifetimeSeconds", str(_DEFAULT_LIFETIME_SECONDS))
    try:
        for option, value in options.items():
            kind, _, name = option.partition("Claim_")
            if kind == "unsecuredLoginString":
                claims[name] = value
            elif kind == "unsecuredLoginNumber":
                claims[name] = float(value)
            elif kind == "unsecuredLoginList" and value:  # the first character is the separator
                claims[name] = value[1:].split(value[0])
        seconds = int(lifetime)
    except ValueError:
        raise SecurityError("sasl.jaas.config: expected a number in a claim of the token") from None
    principal = options.get("unsecuredLoginPrincipalClaimName", "sub")
    if not isinstance(claims.get(principal), str):
        raise SecurityError(f'sasl.jaas.config: unsecuredLoginStringClaim_{principal}="..." has to name the client')
    return UnsecuredToken(claims, seconds)


def _part(content: Mapping[str, Any]) -> str:
    return urlsafe_b64encode(json.dumps(content, separators=(",", ":")).encode()).rstrip(b"=").decode()


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """An identity provider that issues tokens for an id and a secret (RFC 6749, client credentials)."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str = ""

    async def __call__(self) -> str:
        return _access_token(await asyncio.to_thread(self._ask), self.url)

    def _ask(self) -> bytes:
        from http.client import HTTPException
        from urllib.error import HTTPError, URLError
        from urllib.parse import urlencode
        from urllib.request import Request

        form = {"grant_type": "client_credentials"} | ({"scope": self.scope} if self.scope else {})
        login = b64encode(f"{self.client_id}:{self.client_secret}".encode()).decode()
        headers = {"Authorization": f"Basic {login}", "Accept": "application/json"}
        request = Request(self.url, urlencode(form).encode(), headers)  # noqa: S310 - `options` allows only http and https
        try:
            with no_redirects.opener().open(request, timeout=TIMEOUT_SECONDS) as answer:
                return bytes(answer.read(MAX_ANSWER_BYTES))
        except HTTPError as error:
            error.close()
            kind = ConnectionFailed if error.code in _SERVER_ERRORS else AuthenticationFailed
            raise kind(f"{self.url} gave no token: HTTP {error.code} {error.reason}") from None
        except (HTTPException, URLError, OSError) as error:
            reason = getattr(error, "reason", error)
            raise ConnectionFailed(f"cannot get a token from {self.url}: {reason}") from None


def _access_token(body: bytes, url: str) -> str:
    try:
        token = json.loads(body)["access_token"]
    except (ValueError, KeyError, TypeError):
        token = None
    if not isinstance(token, str):
        raise AuthenticationFailed(f"{url} answered without an access_token")
    return token
