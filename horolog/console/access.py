"""The page Access: SCRAM users, access rules and quotas, each with its changes. A list that the broker refuses is a sentence."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import Response

from horolog.client.values.errors import KafkaError
from horolog.commands.online.access_words import BY_DEFAULT
from horolog.console.acl_changes import words_of
from horolog.console.visits import NO_RULES, Visit, sentence_of

if TYPE_CHECKING:
    from horolog.client.admin.admin_quotas import Quota

ROWS_AT_MOST = 500


class AccessList(NamedTuple):
    """A list, or the reason why there is none."""

    rows: tuple[Any, ...] = ()
    left_out: int = 0
    why: str = ""


class UserRow(NamedTuple):
    name: str
    mechanism: str
    iterations: int


class QuotaRow(NamedTuple):
    words: dict[str, str]
    """Kinds and names, as in the address of a change."""
    values: dict[str, float]


async def page(visit: Visit) -> Response:
    return visit.page(
        "access.html",
        users=await _listed(visit, _users(visit)),
        acls=await _listed(visit, _acls(visit)),
        quotas=await _listed(visit, _quotas(visit)),
    )


async def _listed(visit: Visit, asked: Awaitable[list[Any]]) -> AccessList:
    try:
        rows = await asked
    except KafkaError as error:
        sentence, _ = sentence_of(visit, error)
        return AccessList(why=sentence if sentence == NO_RULES else f"The broker does not show this list: {sentence}")
    return AccessList(tuple(rows[:ROWS_AT_MOST]), max(0, len(rows) - ROWS_AT_MOST))


async def _users(visit: Visit) -> list[UserRow]:
    users = await visit.admin.describe_users()
    return [
        UserRow(name, kind, count) for name, kinds in sorted(users.items()) for kind, count in sorted(kinds.items())
    ]


async def _acls(visit: Visit) -> list[dict[str, str]]:
    return [words_of(acl) for acl in await visit.admin.describe_acls()]


async def _quotas(visit: Visit) -> list[QuotaRow]:
    return [_quota_row(one) for one in await visit.admin.describe_quotas({})]


def _quota_row(quota: "Quota") -> QuotaRow:
    words = {kind: BY_DEFAULT if name is None else name for kind, name in quota.entity}
    return QuotaRow(words, dict(sorted(quota.values.items())))
