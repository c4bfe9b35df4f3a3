"""One request for a page: its session, cluster, zone and the parameters of the address, each read in one place."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import tzinfo
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import HTMLResponse

from horolog.base.readable import exact_time
from horolog.client.values.errors import KafkaError
from horolog.client.values.times import Moment, TimeTextError, parse_time, parse_zone
from horolog.console.options import ANSWER_SECONDS, Cluster, Options
from horolog.console.rendering import Times, link, render
from horolog.console.roles import least_role
from horolog.console.sessions import Session, Sessions

if TYPE_CHECKING:
    from horolog.base.clock import Clock
    from horolog.client.admin.admin import Admin
    from horolog.client.decoding import Decoder
    from horolog.client.values.time_ranges import TimeRange
    from horolog.client.wire.client import Client
    from horolog.client.wire.cluster_view import TopicView
    from horolog.console.pulse import Pulses

LONGEST_WORD = 500
_NUMBERED_TIME = re.compile(r"@(-?[0-9]{1,18})ms|(?<![@0-9])-?[0-9]{6,18}(?![0-9])")
_ONLY_NUMBERED = re.compile(r"(?:@-?[0-9]{1,18}ms|-?[0-9]{6,18})(?:\.\.@-?[0-9]{1,18}ms)?")
NO_CHANGES = "this console changes nothing; start it with --allow-changes"
FAULT = "the console has a fault; see its log for details"
GONE = {"NETWORK_EXCEPTION", "REQUEST_TIMED_OUT", "COORDINATOR_NOT_AVAILABLE", "LEADER_NOT_AVAILABLE"}
NO_RULES = (
    "This broker has no access rules: every client may do everything. To restrict clients, set authorizer.class.name and"
    " super.users in the settings of the broker, as docs/security.md describes under Access lists."
)
NOT_THERE = {"UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "GROUP_ID_NOT_FOUND"}
PAGES = (
    *("/", "/moment", "/follow", "/groups", "/group/reset", "/compare"),
    *("/cluster", "/access", "/transactions"),
)
"""Those that others lead to."""


class Refused(Exception):
    """The request is invalid, or its object does not exist: a sentence for people, and the response's status.

    `field` is the wrong parameter of the address: a page with a field for it shows the sentence there.
    """

    def __init__(self, sentence: str, status: int = 400, field: str = "") -> None:
        super().__init__(sentence)
        self.status = status
        self.field = field


@dataclass(frozen=True, slots=True)
class Desk:
    """The parts that every page uses."""

    options: Options
    sessions: Sessions
    clock: "Clock"
    decoder: "Decoder"
    pulses: "Pulses"

    def now_ms(self) -> int:
        return self.clock.wall_ms()


class Visit:
    def __init__(self, desk: Desk, request: Request) -> None:
        self.desk = desk
        self.request = request
        self.now_ms = desk.now_ms()
        self.given: Mapping[str, str] = request.query_params
        self.wrong: dict[str, str] = {}
        """Sentences about fields, by their names."""
        self.status: int = HTTPStatus.OK

    @contextmanager
    def reading(self, *fields: str) -> Iterator[None]:
        """Note refusals of these fields, for the page that asks for them again; the first sets the status."""
        try:
            yield
        except Refused as refused:
            if refused.field not in fields:
                raise
            self.status = refused.status if self.status == HTTPStatus.OK else self.status
            self.wrong.setdefault(refused.field, str(refused))

    # -- who, where

    @property
    def session(self) -> Session:
        found = self.request.scope["state"]["session"]
        assert found is not None, "the console requires a login"
        return found  # type: ignore[no-any-return]

    def may(self, kind: str) -> bool:
        """Whether this console and the session's role allow a kind of change."""
        return self.desk.options.allow_changes and self.session.role >= least_role(kind)

    def must_be_allowed(self, kind: str) -> None:
        """Raises Refused if they do not."""
        if not self.desk.options.allow_changes:
            raise Refused(NO_CHANGES, 403)
        if not self.may(kind):
            raise Refused(f"your role is {self.session.role.word}; this needs the role {least_role(kind).word}", 403)

    @cached_property
    def cluster(self) -> Cluster:
        return self.cluster_named(self.text("cluster"))

    def cluster_named(self, name: str) -> Cluster:
        found = self.desk.options.cluster(name)
        if found is None:
            raise Refused(f"there is no cluster {name!r} here", 404)
        return found

    @property
    def client(self) -> "Client":
        return self.client_of(self.cluster)

    @property
    def admin(self) -> "Admin":
        from horolog.client.admin.admin import Admin

        return Admin(self.client)

    def client_of(self, cluster: Cluster) -> "Client":
        return self.desk.sessions.client(self.session, cluster)

    async def topic(self, name: str) -> "TopicView":
        return await topic_of(self.client, name)

    # -- the parameters of the address

    def text(self, name: str, default: str = "") -> str:
        value: str = self.given.get(name, default).strip()
        if len(value) > LONGEST_WORD:
            raise Refused(f"{name} is longer than {LONGEST_WORD} characters", field=name)
        return value

    def number(self, name: str, default: int, least: int = 0, most: int = 2**31) -> int:
        text = self.text(name)
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 18 and least <= int(text) <= most):
            raise Refused(f"{name}={text}: expected a whole number from {least} to {most}", field=name)
        return int(text)

    @cached_property
    def zone(self) -> tzinfo:
        name = self.text("tz")
        if not name:
            return self.desk.options.zone
        try:
            return parse_zone(name)
        except TimeTextError as error:
            raise Refused(f"tz: {error}", field="tz") from error

    @property
    def zone_name(self) -> str:
        return self.text("tz") or self.desk.options.zone_name

    def time(self, name: str) -> Moment | None:
        """The moment of a text in the time grammar, or of a number of milliseconds, as in links."""
        text = self.text(name)
        if not text:
            return None
        try:
            return parse_time(_as_time(text), now_ms=self.now_ms, zone=self.zone)
        except TimeTextError as error:
            raise Refused(f"{name}: {error}", field=name) from error

    def typed(self, name: str) -> str:
        """The parameter as its field shows it again: times that are numbers in links are written for people."""
        text = self.given.get(name, "").strip()
        if not _ONLY_NUMBERED.fullmatch(text):
            return text
        return _NUMBERED_TIME.sub(lambda found: exact_time(int(found[1] or found[0]), self.zone), text)

    def range(self, name: str) -> "TimeRange | None":
        """The two times around `..`, as on the command line; None for a single time, or none."""
        from horolog.client.values.time_ranges import split_range

        text = self.text(name)
        try:
            if split_range(text) is None:
                return None
        except TimeTextError as error:
            raise Refused(f"{name}: {error}", field=name) from error
        return self.range_of(text, None, name)

    def range_of(self, since: str, until: str | None, name: str) -> "TimeRange":
        """The range between two texts; a refusal names this field."""
        from horolog.client.values.time_ranges import parse_range

        try:
            found = parse_range(_as_time(since), _as_time(until) if until else None, now_ms=self.now_ms, zone=self.zone)
        except TimeTextError as error:
            raise Refused(f"{name}: {error}", field=name) from error
        if found.until_ms is None:
            raise Refused(f"{name}: {until or since!r} is not a time; give one, such as now", field=name)
        return found

    # -- the answer

    def link(self, path: str, **values: Any) -> str:
        """A link to a page of the same cluster in the same zone, unless `values` say otherwise; a moment's page opens at its moment."""
        kept = {"cluster": self.cluster.name if len(self.desk.options.clusters) > 1 else None, "tz": self.text("tz")}
        address = link(path, **{**kept, **values})
        return f"{address}#moment" if path == "/moment" and "topic" in values else address

    def page(self, template: str, status: int = 200, /, **data: Any) -> HTMLResponse:
        status = self.status if status == HTTPStatus.OK else status
        return HTMLResponse(render(template, {**self.frame(), "status": status, **data}), status)

    def frame(self) -> dict[str, Any]:
        """The values for every page and its links."""
        options = self.desk.options
        session = self.request.scope.get("state", {}).get("session")
        times = Times(self.zone, self.now_ms)
        return {
            "times": times,
            "when": times.show,
            "ago": times.ago,
            "link": self.link,
            "cluster": self.cluster,
            "clusters": options.clusters,
            "session": session,
            "login": options.login.value,
            "provider": options.oidc.issuer.partition("://")[2] if options.oidc is not None else "",
            "allow_changes": session is not None and self.may(""),
            "may": self.may,
            "zone_name": self.zone_name,
            "now_ms": self.now_ms,
            "path": self.request.url.path,
            "shown_pages": PAGES if options.registry is None else (*PAGES, "/schemas"),
            "wrong": self.wrong,
        }


def _as_time(text: str) -> str:
    """Numbers of links are milliseconds."""
    return f"@{text}ms" if text.lstrip("-").isdigit() and len(text) > 5 else text


def sentence_of(visit: Visit, error: Exception) -> tuple[str, int]:
    """The sentence of an error for people, and the response's status."""
    if isinstance(error, Refused):
        return str(error), error.status
    if isinstance(error, TimeoutError):
        return f"the broker took longer than {ANSWER_SECONDS:.0f} s; ask for less, or try again", 504
    assert isinstance(error, KafkaError)
    if error.code.name in GONE:
        return f"no answer from {visit.cluster.name}: {error.message}", 502
    if error.code.name == "SECURITY_DISABLED":
        return NO_RULES, 409
    status = 404 if error.code.name in NOT_THERE else 403 if "AUTHORIZATION" in error.code.name else 502
    return f"{error.message} ({error.code.name})", status


async def topic_of(client: "Client", name: str, field: str = "topic") -> "TopicView":
    """An existing topic; Refused names one that is spelled alike."""
    if not name:
        raise Refused(f"the address names no topic; add {field}=NAME", field=field)
    known = client.view.topics.get(name)
    if known is None or known.error_code:
        known = (await client.metadata()).topics.get(name)
    if known is None or known.error_code:
        from difflib import get_close_matches

        names = list(client.view.topics)
        refused = await client.withheld(name)
        if refused is not None:
            raise refused
        close = get_close_matches(name, names, n=1)
        raise Refused(f"there is no topic {name!r}" + (f"; do you mean {close[0]!r}?" if close else ""), 404, field)
    return known
