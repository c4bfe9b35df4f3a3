"""The pages that change something: a form, what it would do with the command that does the same, and a confirmation.

A kind of change is a function from a visit to a `Form`. Its plan is made when the form is sent, and again when it is confirmed:
if the plan has another basis by then, the page shows the new plan and does nothing. Each change is logged with its user.
"""

import hashlib
import logging
import shlex
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from starlette.responses import RedirectResponse, Response

from horolog.client.values.errors import KafkaError
from horolog.console.recent import recent
from horolog.console.visits import Refused, Visit, sentence_of

if TYPE_CHECKING:
    from horolog.client.admin.admin import Admin

KINDS = {
    "topic-create": ("topic_changes", "creation"),
    "topic-partitions": ("topic_changes", "growth"),
    "topic-setting": ("topic_changes", "setting"),
    "topic-delete": ("deletions", "of_topic"),
    "group-delete": ("deletions", "of_group"),
    "produce": ("producing", "sending"),
    "user-put": ("user_changes", "putting"),
    "user-remove": ("user_changes", "removal"),
    "acl-add": ("acl_changes", "adding"),
    "acl-remove": ("acl_changes", "removal"),
    "quota-set": ("quota_changes", "setting"),
    "quota-remove": ("quota_changes", "removal"),
    "transaction-abort": ("transactions", "abort"),
}
"""Each kind with its module and function."""
APPLY = "apply"
_log = logging.getLogger(__name__)


class Input(NamedTuple):
    """A field of a form; one that is `fixed` is shown and not changed."""

    name: str
    label: str
    value: str
    hint: str = ""
    is_long: bool = False
    is_fixed: bool = False
    is_secret: bool = False
    """Typed when the change is confirmed, and not shown again."""
    choices: tuple[str, ...] = ()


class Plan(NamedTuple):
    """What a change would do."""

    does: tuple[str, ...]
    command: str
    apply: "Callable[[Admin], Awaitable[None]]"
    then: str
    """The page that shows the result."""
    warns: tuple[str, ...] = ()
    confirm: str = ""
    """What has to be typed to confirm; empty: a button is enough."""
    basis: str = ""
    """The state that the plan is for."""
    logged: str = ""
    """The text for the log in place of the command, if that has contents of records."""
    settled: Mapping[str, str] = {}
    """Values of fields that are confirmed in another form than they were typed: a relative time as an absolute one."""

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{self.command}\n{self.basis}".encode()).hexdigest()[:32]


def command_line(bootstrap: str, *words: str) -> str:
    """The command that does the same as a page, on the same cluster."""
    return shlex.join(["horolog", *words, "-b", bootstrap])


class Form(NamedTuple):
    title: str
    inputs: tuple[Input, ...]
    plan: Callable[[], Awaitable[Plan]]
    verb: str
    """On the button that applies it."""
    about: tuple[str, ...] = ()


async def page(visit: Visit) -> Response:
    """The form, filled in from the address."""
    return _shown(visit, await form_of(visit))


async def form_of(visit: Visit) -> Form:
    kind = visit.request.path_params["kind"]
    visit.must_be_allowed(kind)
    if kind not in KINDS:
        raise Refused(f"there is no change {kind!r}", 404)
    module, name = KINDS[kind]
    make: Callable[[Visit], Awaitable[Form]] = getattr(import_module(f"horolog.console.{module}"), name)
    return await make(visit)


async def send(visit: Visit, sent: Mapping[str, str]) -> Response:
    """The plan of a form that was sent; or its result, if this plan was confirmed."""
    visit.given = {**visit.given, **sent}
    form = await form_of(visit)
    plan = None
    try:
        plan = await form.plan()
        if sent.get("step") != APPLY:
            return _shown(visit, form, plan)
        if sent.get("seen") != plan.digest:
            visit.status = 409
            return _shown(
                visit, form, plan, "something has changed since the page was shown; this is the change as of now"
            )
        if sent.get("confirm", "") != plan.confirm:
            visit.status = 400
            visit.wrong["confirm"] = f"type {plan.confirm} to confirm"
            return _shown(visit, form, plan)
        return await _applied(visit, plan)
    except Refused as refused:
        if not refused.field:
            raise
        visit.status = refused.status
        visit.wrong[refused.field] = str(refused)
        return _shown(visit, form, plan)
    except KafkaError as error:
        sentence, visit.status = sentence_of(visit, error)
        return _shown(visit, form, None, sentence)


async def _applied(visit: Visit, plan: Plan) -> Response:
    user, said = visit.session.user or "-", plan.logged or plan.command
    try:
        await plan.apply(visit.admin)
    except KafkaError as error:
        _log.warning("%s failed on %s: %s (%s)", user, visit.cluster.name, said, error.code.name)
        raise
    _log.warning("%s changed %s: %s", user, visit.cluster.name, said)
    recent(visit.client).forget()
    return RedirectResponse(plan.then, 303)


def _shown(visit: Visit, form: Form, plan: Plan | None = None, failure: str = "") -> Response:
    return visit.page(
        "change.html",
        form=form,
        plan=plan,
        failure=failure,
        action=visit.link(visit.request.url.path),
        typed=visit.given.get("confirm", ""),
    )
