"""Puts the console together: routes, the login, static files, and one sentence for each error."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route, Router

from horolog.client.decoding import Decoder
from horolog.client.decoding import Options as Decoding
from horolog.client.values.errors import AuthenticationFailed, KafkaError
from horolog.console.guard import COOKIE, CSRF_FIELD, Guard, is_token_of, read_form, set_cookie
from horolog.console.options import ANSWER_SECONDS, CALLBACK, PAGES_AT_ONCE, Login, Options
from horolog.console.pulse import Pulses
from horolog.console.rendering import FOLDER
from horolog.console.sessions import Session, Sessions
from horolog.console.visits import FAULT, Desk, Refused, Visit, sentence_of

if TYPE_CHECKING:
    from horolog.base.clock import Clock
    from horolog.console.follow import Followers
    from horolog.console.live import Live
    from horolog.console.oidc_login import OidcLogin

Page = Callable[[Visit], Awaitable[Response]]
Change = Callable[[Visit, dict[str, str]], Awaitable[Response]]

TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".txt": "text/plain"}
AGAIN_SECONDS = 5
PASSING = {502, 504}
"""Statuses after which a page reloads by itself, since a broker that is away may come back."""
WRONG_TOKEN = "wrong token"  # noqa: S105 - the response to a wrong one
WRONG_PASSWORD = "wrong user or password"  # noqa: S105
_log = logging.getLogger(__name__)


class Application:
    """An ASGI application; `close` closes the connections of all sessions."""

    def __init__(self, options: Options, clock: "Clock") -> None:
        self.sessions = Sessions(options, clock)
        self.desk = Desk(options, self.sessions, clock, Decoder(Decoding(registry=options.registry)), Pulses())
        self._followers: Followers | None = None
        self._searchers: Followers | None = None
        self._live: Live | None = None
        self._oidc: OidcLogin | None = None
        self._busy = asyncio.Semaphore(PAGES_AT_ONCE)
        pages: dict[str, Page] = {
            "/": _page("now"),
            "/events": self._part("now_part.html", "now"),
            "/cluster": _page("cluster"),
            "/cluster/events": self._part("cluster_part.html", "cluster"),
            "/topic": _page("topic"),
            "/moment": _page("moment"),
            "/moment/download": _page("moment", "download"),
            "/moment/search": self._search,
            "/follow": _page("follow"),
            "/follow/events": self._events,
            "/groups": _page("groups", "page_of_all"),
            "/groups/events": self._part("groups_part.html", "groups", "data_of_all"),
            "/group": _page("groups"),
            "/group/events": self._part("group_part.html", "groups"),
            "/compare": _page("compare"),
            "/access": _page("access"),
            "/transactions": _page("transactions"),
            "/schemas": _page("schemas"),
        }
        routes = [Route(path, self._get(page)) for path, page in pages.items()]
        routes += [
            Route("/group/reset", self._get(_page("resets")), methods=["GET"]),
            Route("/group/reset", self._post(_apply_reset), methods=["POST"]),
            Route("/change/{kind}", self._get(_page("changes")), methods=["GET"]),
            Route("/change/{kind}", self._post(_change), methods=["POST"]),
            Route("/login", self._login, methods=["GET", "POST"]),
            Route("/login/oidc", self._with_provider),
            Route(CALLBACK, self._with_provider),
            Route("/logout", self._logout, methods=["POST"]),
            Route("/static/{name}", static),
        ]
        self._app = Guard(Router(routes, default=self._missing), options, self.sessions, clock)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)

    async def close(self) -> None:
        await self.desk.pulses.close()
        await self.sessions.close()

    # -- pages

    async def _events(self, visit: Visit) -> Response:
        from horolog.console import follow

        if self._followers is None:
            self._followers = follow.Followers()
        return await follow.events(visit, self._followers)

    async def _search(self, visit: Visit) -> Response:
        from horolog.console import follow, searching

        if self._searchers is None:
            self._searchers = follow.Followers(searching.SEARCHES_AT_ONCE, "searches are under way; stop one")
        return await searching.events(visit, self._searchers)

    def _get(self, page: Page) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            visit = Visit(self.desk, request)
            try:
                async with asyncio.timeout(ANSWER_SECONDS), self._busy:
                    return await page(visit)
            except (Refused, KafkaError, TimeoutError) as error:
                return sentence_page(visit, error)
            except Exception:  # noqa: BLE001 - a page that fails shows one sentence; the others go on
                _log.exception("a page failed: %s", request.url.path)
                return error_page(visit, FAULT, 500)

        return answer

    def _part(self, template: str, module: str, data_of: str = "data_of") -> Page:
        """The event stream of the live part of a page."""

        async def stream(visit: Visit) -> Response:
            from horolog.console.live import Live, Part

            self._live = self._live or Live()
            asked = getattr(import_module(f"horolog.console.{module}"), data_of)
            return await self._live.events(visit, Part(template, asked))

        return stream

    def _post(self, change: Change) -> Callable[[Request], Awaitable[Response]]:
        """A change, posted by a form of this session's pages."""

        async def apply(visit: Visit) -> Response:
            form = await read_form(visit.request)
            if not is_token_of(visit.session, form.get(CSRF_FIELD)):
                raise Refused("the form is too old; go back and reload the page", 403)
            return await change(visit, form)

        return self._get(apply)

    @staticmethod
    async def _missing(scope: Any, receive: Any, send: Any) -> None:
        await PlainTextResponse("There is no such page.\n", 404)(scope, receive, send)

    # -- the login

    async def _login(self, request: Request) -> Response:
        visit = Visit(self.desk, request)
        way = self.desk.options.login
        if way is Login.NONE:
            return RedirectResponse("/", 303)
        if request.method == "GET" or way is Login.OIDC:
            return visit.page("login.html", to=safe_target(visit.text("to")), said="", user="")
        form = await read_form(request)
        to, user = safe_target(form.get("to", "")), form.get("user", "")[:255]
        session, said, status = await self._admitted(request, way, user, form.get("secret", ""))
        if session is None:
            return visit.page("login.html", status, to=to, user=user, said=said)
        response = RedirectResponse(to, 303)
        set_cookie(response, session, self.desk.options)
        return response

    async def _with_provider(self, request: Request) -> Response:
        """The two steps of a login with an identity provider: to it, and back from it."""
        oidc = self.desk.options.oidc
        if oidc is None:
            return RedirectResponse("/login", 303)
        if self._oidc is None:
            from horolog.console.oidc_login import OidcLogin

            self._oidc = OidcLogin(self.desk, oidc)
        if request.url.path == CALLBACK:
            return await self._oidc.end(request)
        return await self._oidc.begin(request, safe_target(request.query_params.get("to", "")))

    async def _admitted(self, request: Request, way: Login, user: str, secret: str) -> tuple[Session | None, str, int]:
        """The session, or the response with its status. The right token is accepted whatever others have tried."""
        if way is Login.TOKEN and self.sessions.is_token(secret):
            return await self.sessions.begin(""), "", 200
        address = request.client.host if request.client is not None else ""
        with self.sessions.trying(address, user) as attempt:
            if attempt is None:
                return None, "too many logins failed; wait a minute", 429
            session, said = await self._try(way, user, secret)
            attempt.counts = said in {WRONG_TOKEN, WRONG_PASSWORD}  # others reveal nothing
            return session, said, 403

    async def _try(self, way: Login, user: str, secret: str) -> tuple[Session | None, str]:
        """A new session if the credentials are right, or the reason why not."""
        if way is Login.TOKEN:
            return None, WRONG_TOKEN
        try:
            async with (
                asyncio.timeout(ANSWER_SECONDS),
                self.sessions.new_client(self.desk.options.clusters[0], (user, secret)) as client,
            ):
                await client.metadata([])
        except AuthenticationFailed:
            return None, WRONG_PASSWORD
        except (KafkaError, TimeoutError, ValueError) as error:
            _log.warning("a login could not be checked: %s", type(error).__name__)
            return None, "the broker did not answer; is it running?"
        return await self.sessions.begin(user, (user, secret)), ""

    async def _logout(self, request: Request) -> Response:
        form = await read_form(request)
        session = request.scope["state"]["session"]
        if not is_token_of(session, form.get(CSRF_FIELD)):
            return PlainTextResponse("The form is too old; go back and reload the page.\n", 403)
        await self.sessions.end(session)
        response = RedirectResponse("/login", 303)
        response.delete_cookie(COOKIE)
        return response


def _page(module: str, name: str = "page") -> Page:
    """A page whose module is imported at its first request, so that the console's first page does not wait for others."""

    async def page(visit: Visit) -> Response:
        function: Page = getattr(import_module(f"horolog.console.{module}"), name)
        return await function(visit)

    return page


async def _apply_reset(visit: Visit, form: dict[str, str]) -> Response:
    from horolog.console import resets

    return await resets.apply(visit, form)


async def _change(visit: Visit, form: dict[str, str]) -> Response:
    from horolog.console import changes

    return await changes.send(visit, form)


def safe_target(to: str) -> str:
    """The page to redirect to: only a page of ours, never an address elsewhere."""
    is_ours = to.startswith("/") and not to.startswith(("//", "/\\")) and "\\" not in to and to.isprintable()
    return to if is_ours else "/"


async def static(request: Request) -> Response:
    """A static file. The names are listed from the folder: no other path is opened."""
    name = request.path_params["name"]
    folder = FOLDER / "static"
    if name not in {path.name for path in folder.iterdir()}:
        return PlainTextResponse("There is no such file.\n", 404)
    path = folder / name
    return Response(path.read_bytes(), media_type=TYPES.get(path.suffix, "application/octet-stream"))


# -- errors


def sentence_page(visit: Visit, error: Exception) -> Response:
    """The page for an error that has its own sentence."""
    return error_page(visit, *sentence_of(visit, error))


def error_page(visit: Visit, sentence: str, status: int) -> Response:
    """The error page, whose links leave out the invalid parts of the address."""
    if "cluster" in visit.given and visit.desk.options.cluster(visit.given["cluster"]) is None:
        visit.cluster = visit.desk.options.clusters[0]
    if "hx-request" in visit.request.headers:
        return visit.page("error_part.html", status, sentence=sentence)
    again = AGAIN_SECONDS if status in PASSING and visit.request.method == "GET" else 0
    try:
        answer = visit.page("error.html", status, sentence=sentence, again=again)
    except Refused:  # the zone is the invalid part
        visit.zone = visit.desk.options.zone
        answer = visit.page("error.html", status, sentence=sentence, again=again)
    if again:
        answer.headers["refresh"] = str(again)
    return answer
