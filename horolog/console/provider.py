"""Talks to an OpenID Connect provider: its discovery document, its keys, and the exchange of a code, in threads and bounded."""

import asyncio
import json
import logging
from base64 import b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus, urlencode

from horolog.base import no_redirects
from horolog.broker.security.sasl import jwks, oauthbearer, tokens
from horolog.console.oidc import Endpoints, LoginFault, Oidc, OpenLogin, endpoints_of, token_request

if TYPE_CHECKING:
    from horolog.base.clock import Clock

DISCOVERY: Final = "/.well-known/openid-configuration"
KEPT_S: Final = 3600.0
LEAST_BETWEEN_KEYS_S: Final = 10.0
TIMEOUT_S: Final = 6.0
MOST_BYTES: Final = 1 << 20
AWAY: Final = "the identity provider cannot be asked; see the log of the console"
_log = logging.getLogger(__name__)


class Provider:
    """One provider: its addresses are read once an hour, its keys also when a token names another one."""

    def __init__(self, oidc: Oidc, clock: "Clock") -> None:
        self.oidc = oidc
        self._clock = clock
        self._endpoints: tuple[float, Endpoints] | None = None
        self._keys: tuple[float, jwks.Keys] | None = None

    def __repr__(self) -> str:
        return f"<Provider {self.oidc.issuer}>"

    async def endpoints(self) -> Endpoints:
        """Raises LoginFault."""
        now = self._clock.monotonic()
        if self._endpoints is None or now - self._endpoints[0] > KEPT_S:
            url = self.oidc.issuer.rstrip("/") + DISCOVERY
            document = await self._asked(url)
            try:
                self._endpoints = now, endpoints_of(document, self.oidc.issuer)
            except ValueError as error:
                _log.error("a login has failed: %s: %s", url, error)
                raise LoginFault(AWAY, 502) from error
        return self._endpoints[1]

    async def claims(self, login: OpenLogin, code: str) -> Mapping[str, Any]:
        """The verified claims of the user who got this code; raises LoginFault."""
        endpoints = await self.endpoints()
        answer = await self._asked(endpoints.token, token_request(self.oidc, login, code))
        token = answer.get("id_token") if isinstance(answer, dict) else None
        if not isinstance(token, str):
            _log.error("a login has failed: %s sent no id_token; is `openid` in the scope?", endpoints.token)
            raise LoginFault(AWAY, 502)
        expected = tokens.Expected((self.oidc.client_id,), endpoints.issuer)
        try:
            return await self._verified(token, endpoints, expected)
        except oauthbearer.TokenRefused as error:
            _log.warning("a login has failed: the token is refused: %s", error)
            raise LoginFault("the identity provider's token cannot be verified; see the log of the console") from error

    async def _verified(self, token: str, endpoints: Endpoints, expected: tokens.Expected) -> Mapping[str, Any]:
        keys = await self._fetched(endpoints, KEPT_S)
        missing: list[str | None] = []

        def find(key_id: str | None) -> jwks.SigningKey | None:
            found = keys.get(key_id or "")
            if found is None and key_id is None and len(keys) == 1:
                return next(iter(keys.values()))
            if found is None:
                missing.append(key_id)
            return found

        try:
            return tokens.claims_of(token, find, expected)
        except oauthbearer.TokenRefused:
            if not missing:
                raise
        keys = await self._fetched(endpoints, LEAST_BETWEEN_KEYS_S)  # the provider may have changed its keys
        return tokens.claims_of(token, find, expected)

    async def _fetched(self, endpoints: Endpoints, oldest_s: float) -> jwks.Keys:
        now = self._clock.monotonic()
        if self._keys is None or now - self._keys[0] > oldest_s:
            try:
                self._keys = now, await asyncio.to_thread(jwks.fetch, endpoints.keys)
            except jwks.JwksFault as error:
                _log.error("a login has failed: %s", error)
                raise LoginFault(AWAY, 502) from error
        return self._keys[1]

    async def _asked(self, url: str, form: Mapping[str, str] | None = None) -> Any:
        try:
            return await asyncio.to_thread(read, url, form, self.oidc)
        except (OSError, ValueError) as error:
            _log.error("a login has failed: %s: %s", url, error)
            raise LoginFault(
                AWAY if form is None else "the identity provider refused the login; log in again", 502
            ) from error


def read(url: str, form: Mapping[str, str] | None, oidc: Oidc) -> Any:
    """The JSON document at a URL, or the answer to a form that is posted there by this client. Raises OSError or ValueError."""
    import urllib.request
    from http.client import HTTPException

    headers = {"accept": "application/json"}
    if form is not None and oidc.client_secret:
        pair = f"{quote_plus(oidc.client_id)}:{quote_plus(oidc.client_secret)}"
        headers["authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
    data = None if form is None else urlencode(form).encode()
    request = urllib.request.Request(url, data, headers)  # noqa: S310 - `is_safe_url` has checked it
    try:
        with no_redirects.opener().open(request, timeout=TIMEOUT_S) as answer:
            body = answer.read(MOST_BYTES + 1)
    except HTTPException as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
    if len(body) > MOST_BYTES:
        raise ValueError(f"the answer has more than {MOST_BYTES} bytes")
    return json.loads(body)
