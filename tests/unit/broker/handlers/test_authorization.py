"""The gate of an authorizer: free requests pass, refused ones never come to the handler, and peers are trusted."""

from __future__ import annotations

from typing import Any

import pytest

from horolog.broker.base.principal import Principal
from horolog.broker.config.listeners import PEERS
from horolog.broker.handlers import authorization
from horolog.broker.handlers.authorization import gate_by
from horolog.broker.handlers.authorization.checks import needs
from horolog.broker.handlers.authorization.table import NEEDS
from horolog.broker.handlers.authorization.topics import guarded_fetch
from horolog.broker.handlers.context import RequestContext
from horolog.broker.security.authorizer import Authorizer
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.acls import AclCreation, CreateAclsRequest
from horolog.protocol.messages.groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    HeartbeatRequest,
)
from tests.support.guarded_broker import acl
from tests.support.request_contexts import amended, request_context


class Handler:
    """Deletes every group that it is asked to, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def __call__(self, _broker: Any, request: Any, _context: Any) -> DeleteGroupsResponse:
        self.asked.append(request)
        return DeleteGroupsResponse(results=[DeletableGroupResult(group_id=name) for name in request.groups_names])


@pytest.fixture
def handler() -> Handler:
    return Handler()


def context_of(listener: str = "PLAINTEXT") -> RequestContext:
    return request_context(1, principal=Principal("User", "alice"), listener=listener, peer_host="h")


def guarded(key: ApiKey, handler: Handler, *acls: Any) -> Any:
    return gate_by(Authorizer((), allow_without_rules=False, acls=acls))(key, handler)


@pytest.mark.parametrize("key", [ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE])
def test_what_is_free_leads_to_the_handler_itself(key: ApiKey, handler: Handler) -> None:
    assert guarded(key, handler) is handler


def test_the_first_check_that_refuses_answers_in_the_handlers_stead(handler: Handler) -> None:
    request = CreateAclsRequest(creations=[AclCreation(), AclCreation()])
    answer = guarded(ApiKey.CREATE_ACLS, handler, acl("alice", "DESCRIBE", "CLUSTER"))(None, request, context_of())
    assert [one.error_code for one in answer.results] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2
    answer = guarded(ApiKey.HEARTBEAT, handler, acl("alice", "READ", "GROUP", "other"))(
        None, HeartbeatRequest(group_id="mine"), context_of()
    )
    assert (answer.error_code, handler.asked) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, [])


def test_the_handler_is_given_what_is_allowed_and_the_answer_tells_of_the_rest(handler: Handler) -> None:
    context = context_of()
    allowed = guarded(ApiKey.DELETE_GROUPS, handler, acl("alice", "DELETE", "GROUP", "mine"))
    answer = amended(context, allowed(None, DeleteGroupsRequest(groups_names=["mine", "theirs"]), context))
    assert [request.groups_names for request in handler.asked] == [["mine"]]
    assert [(one.group_id, one.error_code) for one in answer.results] == [
        ("mine", ErrorCode.NONE),
        ("theirs", ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ]


def test_what_comes_from_a_peer_was_decided_where_the_client_asked(handler: Handler) -> None:
    request = DeleteGroupsRequest(groups_names=["theirs"])
    answer = guarded(ApiKey.DELETE_GROUPS, handler)(None, request, context_of(PEERS))
    assert [one.error_code for one in answer.results] == [ErrorCode.NONE]
    assert handler.asked == [request]


def test_an_entry_may_name_what_answers_instead_of_the_handler(
    handler: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fetch looks at each topic by itself, for a session has topics that its request does not name."""
    assert NEEDS[ApiKey.FETCH].handle is guarded_fetch
    instead = Handler()
    monkeypatch.setattr(authorization, "NEEDS", {ApiKey.FETCH: needs(handle=instead)})
    request = DeleteGroupsRequest(groups_names=["mine"])
    guarded(ApiKey.FETCH, handler)(None, request, context_of())
    assert (instead.asked, handler.asked) == ([request], [])
