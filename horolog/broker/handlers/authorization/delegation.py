"""Checks of the APIs of delegation tokens: who may make them for others, and who is shown them."""

from __future__ import annotations

from horolog.base.acl_types import Operation, ResourceType
from horolog.broker.handlers.authorization.authorized_request import AuthorizedRequest
from horolog.broker.handlers.delegation_tokens import may_ask, not_created, owner_of
from horolog.broker.security.delegation import DelegationToken
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.delegation_tokens import DescribeDelegationTokenResponse


def creatable(asked: AuthorizedRequest) -> None:
    """CREATE_TOKENS on the user who is to own the token, unless it is the principal."""
    requester = asked.context.principal
    owner = owner_of(asked.request, requester)
    if owner is None or owner == requester or not may_ask(asked.context):
        return  # refused by the handler, if at all
    if not asked.may(Operation.CREATE_TOKENS, ResourceType.USER, str(owner)):
        asked.answer = not_created(owner, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, asked.context)


def hide_tokens(asked: AuthorizedRequest, answer: DescribeDelegationTokenResponse) -> None:
    """Leave out the tokens that the principal may not see."""
    known = asked.broker.delegation_tokens.by_id
    answer.tokens = [one for one in answer.tokens if _is_shown(asked, known[one.token_id])]


def _is_shown(asked: AuthorizedRequest, token: DelegationToken) -> bool:
    return (
        token.concerns(asked.context.principal)
        or asked.may(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.id)
        or asked.may(Operation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner))
    )


def only_owners(_: AuthorizedRequest) -> None:
    """The handler checks it: access lists have no word in this."""
