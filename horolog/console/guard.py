"""Checks each request before a page sees it: its Host, its origin, its session; and adds the security headers.

A foreign page must not read or change anything here. It may lead a browser here under its own name (DNS rebinding): the
Host header has to be one of ours. It may post forms here: a change needs a token that only our pages have, and our Origin.
Values of records are hostile: scripts, styles, images and connections are allowed only from here, whatever a value contains.
"""

import asyncio
import logging
import secrets
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, quote, urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from horolog.console.options import Options
from horolog.console.sessions import Session, Sessions

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from horolog.base.clock import Clock

COOKIE: Final = "horolog-console"
CSRF_FIELD: Final = "csrf"
LARGEST_FORM: Final = 64 << 10
FORM_SECONDS: Final = 10.0
FIELDS_AT_MOST: Final = 2000
LONGEST_ADDRESS: Final = 8 << 10
OPEN_PATHS: Final = ("/login", "/static/")
CHANGES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with no-referrer browsers omit the origin of our own forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_log = logging.getLogger(__name__)


class Guard:
    """Middleware between the server and the pages. `scope["state"]` gets the session."""

    def __init__(self, app: "ASGIApp", options: Options, sessions: Sessions, clock: "Clock") -> None:
        self._app = app
        self._options = options
        self._sessions = sessions
        self._clock = clock

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            return
        began = self._clock.monotonic()
        status = [0]

        async def sending(message: "Message") -> None:
            if message["type"] == "http.response.start":
                status[0] = message["status"]
                _add_headers(message, scope["path"])
            await send(message)

        request = Request(scope, receive)
        refused = await self._refusal(request)
        try:
            await (refused or self._app)(scope, receive, sending)
        finally:
            user = getattr(scope.get("state", {}).get("session"), "user", "") or "-"
            took_ms = round((self._clock.monotonic() - began) * 1000)
            # Only the path: the query may hold keys and values of records.
            _log.info("%s %s %s %d %d ms", user, request.method, scope["path"], status[0], took_ms)

    async def _refusal(self, request: Request) -> Response | None:
        """The response that refuses the request; None if it may pass."""
        if not is_our_name(request.headers.get("host", ""), self._options):
            return PlainTextResponse("The console is not known under this name; --host adds one.\n", 421)
        if len(request.scope.get("query_string", b"")) > LONGEST_ADDRESS:
            return PlainTextResponse("The address is too long.\n", 414)
        if request.method not in {"GET", "HEAD", *CHANGES}:
            return PlainTextResponse("GET, HEAD and POST are served.\n", 405)
        session = await self._sessions.find(request.cookies.get(COOKIE, ""))
        request.scope.setdefault("state", {})["session"] = session
        path = request.url.path
        if request.method in CHANGES and not is_our_origin(request):
            return PlainTextResponse("The form is not from a page of this console.\n", 403)
        if session is None and not path.startswith(OPEN_PATHS):
            return self._to_login(request)
        return None

    @staticmethod
    def _to_login(request: Request) -> Response:
        if request.method != "GET" or "hx-request" in request.headers or path_is_data(request.url.path):
            return PlainTextResponse("Log in first.\n", 401, headers={"hx-redirect": "/login"})
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"/login?to={quote(request.url.path + query, safe='')}", 303)


def path_is_data(path: str) -> bool:
    return path.endswith(("/events", "/download"))


def _add_headers(message: "Message", path: str) -> None:
    known = {name.lower() for name, _ in message["headers"]}
    headers = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in known]
    caching = "max-age=86400" if path.startswith("/static/") else "no-store"
    message["headers"] = [*message["headers"], *headers, (b"cache-control", caching.encode())]


def is_our_name(host: str, options: Options) -> bool:
    """Whether a Host header names this console, whatever the port."""
    if options.any_host:
        return bool(host)
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return False
    return name is not None and name in options.hosts


def is_our_origin(request: Request) -> bool:
    """Whether a change comes from a page of ours: browsers send the origin of every posted form."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin")
    return site in {"same-origin", "none"} and origin is not None and urlsplit(origin).netloc == request.headers["host"]


def is_token_of(session: Session | None, given: object) -> bool:
    """Whether a form has the token of the session's pages."""
    return session is not None and isinstance(given, str) and secrets.compare_digest(given, session.csrf)


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form; empty if it is longer than ours, or does not arrive."""
    body = b""
    try:
        async with asyncio.timeout(FORM_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > LARGEST_FORM:
                    return {}
    except TimeoutError:
        return {}
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=FIELDS_AT_MOST))
    except ValueError:
        return {}


def set_cookie(response: Response, session: Session, options: Options) -> None:
    response.set_cookie(COOKIE, session.id, httponly=True, samesite="strict", secure=options.is_secure, path="/")
