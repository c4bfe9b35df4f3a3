"""The pages of a login with an identity provider: to the provider, and back from it with a session."""

import logging
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from horolog.console.guard import set_cookie
from horolog.console.oidc import LONGEST_S, LoginFault, Oidc, OpenLogins, authorization_url, user_of
from horolog.console.options import CALLBACK
from horolog.console.provider import Provider
from horolog.console.visits import Visit

if TYPE_CHECKING:
    from horolog.console.visits import Desk

COOKIE = "horolog-console-login"
LONGEST_CODE = 4096
_log = logging.getLogger(__name__)


class OidcLogin:
    def __init__(self, desk: "Desk", oidc: Oidc) -> None:
        self._desk = desk
        self._oidc = oidc
        self._logins = OpenLogins()
        self._provider = Provider(oidc, desk.clock)

    def __repr__(self) -> str:
        return f"<OidcLogin at {self._oidc.issuer}, {self._logins!r}>"

    async def begin(self, request: Request, to: str) -> Response:
        """To the provider. The cookie is sent back with a link from there, which `strict` would forbid."""
        try:
            endpoints = await self._provider.endpoints()
        except LoginFault as fault:
            return self._refused(request, fault)
        login = self._logins.begin(to, self._redirect(request), self._desk.clock.monotonic())
        response = RedirectResponse(authorization_url(self._oidc, endpoints, login), 303)
        response.set_cookie(
            COOKIE,
            login.state,
            max_age=round(LONGEST_S),
            httponly=True,
            samesite="lax",
            secure=self._is_secure(),
            path="/login",
        )
        return response

    async def end(self, request: Request) -> Response:
        """Back from the provider: a session, and a page that leads on.

        Browsers send a strict cookie only with a link from a page of ours, so a redirect would arrive without a session.
        """
        given, now = request.query_params, self._desk.clock.monotonic()
        try:
            login = self._logins.take(given.get("state", ""), request.cookies.get(COOKIE, ""), now)
            if "error" in given or not 0 < len(given.get("code", "")) <= LONGEST_CODE:
                _log.warning("a login has failed: the provider says %r", given.get("error", "")[:100])
                raise LoginFault("the identity provider refused the login")
            user, role = user_of(await self._provider.claims(login, given["code"]), self._oidc, login)
        except LoginFault as fault:
            return self._refused(request, fault)
        session = await self._desk.sessions.begin(user, role=role)
        _log.info("%s logged in as %s", user, role.word)
        response = Visit(self._desk, request).page("login_done.html", to=login.to)
        response.headers["refresh"] = f"0; url={login.to}"
        response.delete_cookie(COOKIE, path="/login")
        set_cookie(response, session, self._desk.options)
        return response

    def _refused(self, request: Request, fault: LoginFault) -> Response:
        return Visit(self._desk, request).page("login.html", fault.status, to="/", said=str(fault), user="")

    def _is_secure(self) -> bool:
        return self._desk.options.is_secure or self._oidc.public_url.startswith("https://")

    def _redirect(self, request: Request) -> str:
        scheme = "https" if self._desk.options.is_secure else "http"
        return (self._oidc.public_url or f"{scheme}://{request.headers['host']}").rstrip("/") + CALLBACK
