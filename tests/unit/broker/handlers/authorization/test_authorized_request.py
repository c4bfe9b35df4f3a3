"""A request that is being checked, over the parts of the broker that it is answered by."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from horolog.base.acl_types import Operation, ResourceType
from horolog.broker.base.principal import Principal
from horolog.broker.handlers.authorization.authorized_request import AuthorizedRequest, NotingRights
from horolog.broker.security.audit import Denied
from horolog.broker.security.authorizer import Authorizer
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from horolog.protocol.messages.offsets import OffsetDeleteRequest, OffsetDeleteRequestTopic, OffsetDeleteResponse
from tests.support.guarded_broker import acl
from tests.support.request_contexts import amended, request_context

DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED


def asked(key: ApiKey, request: Any, version: int = 1) -> AuthorizedRequest:
    authorizer = Authorizer((), allow_without_rules=False, acls=[acl("alice", "READ", name="t")])
    context = request_context(version, principal=Principal("User", "alice"), peer_host="h")
    topic = SimpleNamespace(name="t")
    broker: Any = SimpleNamespace(cluster=SimpleNamespace(by_id={b"1": topic}))
    return AuthorizedRequest(key, broker, request, context, authorizer.rights(Principal("User", "alice"), "h"))


def answered(given: AuthorizedRequest, handle: Any) -> Any:
    """What leaves, once it is encoded."""
    return amended(given.context, given.answered_by(handle))


def deleted(_: Any, request: Any, __: Any) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=[DeletableGroupResult(group_id=name) for name in request.groups_names])


def test_rights_and_names() -> None:
    given = asked(ApiKey.DELETE_GROUPS, None)
    assert given.may(Operation.READ, ResourceType.TOPIC, "t")
    assert given.may_topic(Operation.READ, "t")
    assert not given.may_cluster(Operation.ALTER)
    assert (given.name_of(b"1"), given.name_of(b"2")) == ("t", None)
    assert "DELETE_GROUPS by <Rights of User:alice" in repr(given)


def test_what_is_left_out_is_answered_beside_the_rest() -> None:
    request = DeleteGroupsRequest(groups_names=["a", "b", "c"])
    given = asked(ApiKey.DELETE_GROUPS, request)
    assert not given.refuses_something
    given.leave_out("groups_names", ["b"], ["a", "c"], DENIED)
    given.leave_out("groups_names", ["b"], [], DENIED)
    assert given.refuses_something
    answer = answered(given, deleted)
    assert [(one.group_id, one.error_code) for one in answer.results] == [("b", 0), ("a", DENIED), ("c", DENIED)]
    assert request.groups_names == ["a", "b", "c"]


def test_elements_that_are_allowed_are_kept_in_their_order() -> None:
    given = asked(ApiKey.DELETE_GROUPS, DeleteGroupsRequest(groups_names=["a", "b", "a", "c"]))
    given.keep_if(lambda name: name != "b", "groups_names", DENIED)
    assert given.request.groups_names == ["a", "a", "c"]
    answer = answered(given, deleted)
    assert [(one.group_id, one.error_code) for one in answer.results] == [("a", 0), ("a", 0), ("c", 0), ("b", DENIED)]


def test_where_nothing_is_left_nobody_is_asked() -> None:
    given = asked(ApiKey.DELETE_GROUPS, DeleteGroupsRequest(groups_names=["a", "b"]))
    given.leave_out("groups_names", ["b"], ["a"], DENIED)
    given.leave_out("groups_names", [], ["b"], ErrorCode.INVALID_GROUP_ID)
    answer: Any = given.answered_by(lambda *_: 1 / 0)  # type: ignore[arg-type]
    assert [(one.group_id, one.error_code) for one in answer.results] == [
        ("a", DENIED),
        ("b", ErrorCode.INVALID_GROUP_ID),
    ]


def test_unless_its_answer_tells_of_more() -> None:
    given = asked(ApiKey.DELETE_GROUPS, DeleteGroupsRequest(groups_names=["a"]))
    given.leave_out("groups_names", [], ["a"], DENIED)
    given.ask_in_any_case()
    given.then(lambda answer: setattr(answer, "throttle_time_ms", 7))
    answer = answered(given, deleted)
    assert (answer.throttle_time_ms, len(answer.results)) == (7, 1)


def test_a_check_may_answer_itself_and_a_request_that_failed_has_no_parts() -> None:
    given = asked(ApiKey.DELETE_GROUPS, DeleteGroupsRequest())
    given.answer = 17
    assert given.answered_by(deleted) == 17
    topics = [OffsetDeleteRequestTopic(name=name) for name in "ab"]
    failing = asked(ApiKey.OFFSET_DELETE, OffsetDeleteRequest(group_id="g", topics=topics), 0)
    failing.leave_out("topics", topics[:1], topics[1:], DENIED)
    answer = answered(failing, lambda *_: OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND))
    assert answer.topics == []


def test_what_needs_no_change_is_left_alone() -> None:
    given = asked(ApiKey.DELETE_GROUPS, DeleteGroupsRequest(groups_names=["a"]))
    context: Any = given.context
    route = context.route
    assert len(answered(given, deleted).results) == 1
    assert context.route is route


def test_flat_requests_are_changed_like_others() -> None:
    given = asked(ApiKey.OFFSET_COMMIT, ("g", -1, "", None, -1, [("t", b"", []), ("u", b"", [(0, 1, -1, -1, "")])]), 5)
    given.leave_out("topics", given.request[5][:1], given.request[5][1:], DENIED)
    answer = answered(given, lambda _, request, __: (0, [(name, each, []) for name, each, _ in request[5]]))
    assert [name for name, _, _ in answer[1]] == ["t", "u"]
    assert answer[1][1][2] == [(0, DENIED)]


def test_rights_that_are_missing_are_noted() -> None:
    authorizer = Authorizer((), allow_without_rules=False, acls=[acl("alice", "READ", name="t")])
    noting = NotingRights(authorizer.rights(Principal("User", "alice"), "h"))
    assert "User:alice" in repr(noting)
    assert noting.may(Operation.READ, ResourceType.TOPIC, "t")
    assert noting.may_any(Operation.READ, ResourceType.TOPIC)
    assert Operation.WRITE not in noting.operations(ResourceType.TOPIC, "t")
    assert noting.missing() == []
    assert not noting.may(Operation.CREATE, ResourceType.CLUSTER, "kafka-cluster")
    on_cluster = Denied(Operation.CREATE, ResourceType.CLUSTER, "kafka-cluster")
    assert noting.missing() == [on_cluster]
    for _ in range(2):
        assert not noting.may(Operation.CREATE, ResourceType.TOPIC, "u")
    assert not noting.may_any(Operation.WRITE, ResourceType.TOPIC)
    assert noting.missing() == [
        Denied(Operation.CREATE, ResourceType.TOPIC, "u"),
        Denied(Operation.WRITE, ResourceType.TOPIC, "*"),
    ]


def test_what_is_hidden_or_answered_is_refused_too() -> None:
    given = asked(ApiKey.DELETE_GROUPS, None)
    given.hides_something()
    assert given.refuses_something
    answering = asked(ApiKey.DELETE_GROUPS, None)
    answering.answer = 17
    assert answering.refuses_something
