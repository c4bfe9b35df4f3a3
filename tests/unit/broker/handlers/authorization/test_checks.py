"""The words of the table, each by itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from horolog.base.acl_types import Operation, ResourceType
from horolog.broker.base.principal import Principal
from horolog.broker.handlers.authorization.checks import (
    AnswerChange,
    OnEach,
    OnOne,
    Special,
    cluster,
    listed,
    needs,
    own_cluster_operations,
    own_operations,
)
from horolog.broker.handlers.operations import NOT_ASKED
from horolog.broker.security.authorizer import Authorizer
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import DeleteGroupsRequest, HeartbeatRequest
from horolog.protocol.messages.list_offsets import OffsetForLeaderEpochRequest, OffsetForLeaderTopic
from horolog.protocol.messages.offsets import OffsetCommitRequest
from tests.support.guarded_broker import acl

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP


class Asked:
    """As much of the real one as checks need; parts that are left out are noted."""

    def __init__(self, request: Any, *acls: Any, version: int = 1) -> None:
        asked = Authorizer((), allow_without_rules=False, acls=acls)
        self.rights = asked.rights(Principal("User", "alice"), "h")
        self.request = request
        self.version = version
        self.left_out: list[Any] = []
        self.changes: list[Any] = []

    def may(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        return self.rights.may(operation, kind, name)

    def may_cluster(self, operation: Operation) -> bool:
        return self.rights.may(operation, ResourceType.CLUSTER, "kafka-cluster")

    def name_of(self, topic_id: bytes) -> str | None:
        return {b"1": "t1", b"2": "t2"}.get(topic_id)

    def leave_out(self, field: str, kept: list[Any], refused: list[Any], code: ErrorCode) -> None:
        self.left_out.append((field, kept, refused, code))

    def then(self, change: Any) -> None:
        self.changes.append(change)


def asked(request: Any, *acls: Any, version: int = 1) -> Any:
    return Asked(request, *acls, version=version)


def test_one_of_some_operations_on_the_cluster_will_do() -> None:
    word = cluster(Operation.ALTER, Operation.CLUSTER_ACTION)
    check = word.of_requests(ApiKey.WRITE_TXN_MARKERS)
    assert check(asked(None)) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert check(asked(None, acl("alice", "CLUSTER_ACTION", "CLUSTER"))) is None
    assert word.told == "ALTER or CLUSTER_ACTION on the cluster"


def test_the_one_that_is_named_is_asked_for_in_both_forms() -> None:
    word = OnOne(Operation.READ, GROUP, "group_id")
    flat = ("g", *(None for _ in list(OffsetCommitRequest.FIELDS)[1:]))
    for key, request in ((ApiKey.HEARTBEAT, HeartbeatRequest(group_id="g")), (ApiKey.OFFSET_COMMIT, flat)):
        check = word.of_requests(key)
        assert check(asked(request)) == ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert check(asked(request, acl("alice", "READ", "GROUP", "g"))) is None
    assert word.told == "READ on the group"


def test_each_element_is_kept_or_left_out() -> None:
    word = OnEach(Operation.DELETE, GROUP, "groups_names", None)
    given = asked(DeleteGroupsRequest(groups_names=["a", "b", "a"]), acl("alice", "DELETE", "GROUP", "b"))
    assert word.of_requests(ApiKey.DELETE_GROUPS)(given) is None
    assert given.left_out == [("groups_names", ["b"], ["a", "a"], ErrorCode.GROUP_AUTHORIZATION_FAILED)]
    nothing = asked(DeleteGroupsRequest(groups_names=[]))
    word.of_requests(ApiKey.DELETE_GROUPS)(nothing)
    assert nothing.left_out == []


def test_elements_are_named_by_id_from_a_version_on() -> None:
    word = OnEach(Operation.READ, TOPIC, "topics", by_id_from=10)
    topics = [("", b"1", []), ("", b"2", []), ("", b"3", [])]
    flat = ("g", -1, "", None, -1, topics)
    given = asked(flat, acl("alice", "READ", name="t1"), version=10)
    word.of_requests(ApiKey.OFFSET_COMMIT)(given)
    assert given.left_out == [("topics", [topics[0], topics[2]], [topics[1]], ErrorCode.TOPIC_AUTHORIZATION_FAILED)]


def test_a_right_on_the_cluster_may_do_instead() -> None:
    word = OnEach(Operation.DESCRIBE, TOPIC, "topics", "topic", unless=Operation.CLUSTER_ACTION)
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic="t")])
    check = word.of_requests(ApiKey.OFFSET_FOR_LEADER_EPOCH)
    allowed, refused = asked(request, acl("alice", "CLUSTER_ACTION", "CLUSTER")), asked(request)
    assert check(allowed) is check(refused) is None
    assert (len(allowed.left_out), len(refused.left_out)) == (0, 1)
    assert word.told == "DESCRIBE on each topic, or CLUSTER_ACTION on the cluster"


def test_a_right_on_the_cluster_may_do_for_followers_alone() -> None:
    """The request of another broker has its number; that of a client has -1."""
    word = OnEach(Operation.DESCRIBE, TOPIC, "topics", unless=Operation.CLUSTER_ACTION, replicas_alone=True)
    check, topics = word.of_requests(ApiKey.LIST_OFFSETS), [("t", [])]
    follower = asked((2, 0, topics, 0), acl("alice", "CLUSTER_ACTION", "CLUSTER"))
    client = asked((-1, 0, topics, 0), acl("alice", "CLUSTER_ACTION", "CLUSTER"))
    assert check(follower) is check(client) is None
    assert (len(follower.left_out), len(client.left_out)) == (0, 1)
    assert word.told == "DESCRIBE on each topic, or CLUSTER_ACTION on the cluster for followers"


@pytest.mark.parametrize("unless", [None, Operation.DESCRIBE])
def test_what_is_listed_is_what_may_be_described(unless: Operation | None) -> None:
    word = listed("groups", GROUP, "group_id", unless=unless)
    for acls, expected in (
        ([acl("alice", "READ", "GROUP", "a")], ["a"]),
        ([acl("alice", "DESCRIBE", "CLUSTER")], [] if unless is None else ["a", "b"]),
    ):
        given = asked(None, *acls)
        assert word.of_requests(ApiKey.LIST_GROUPS)(given) is None
        answer = SimpleNamespace(groups=[SimpleNamespace(group_id=name) for name in "ab"])
        given.changes[0](answer)
        assert [one.group_id for one in answer.groups] == expected


def test_operations_are_told_where_they_were_asked_for() -> None:
    given = asked(None, acl("alice", "READ", "GROUP", "g"))
    assert own_operations(given, GROUP, "g", NOT_ASKED) == NOT_ASKED
    assert own_operations(given, GROUP, "g", 3400) == 1 << 3 | 1 << 8
    assert own_cluster_operations(given, NOT_ASKED) == NOT_ASKED
    assert own_cluster_operations(given, 1) == 0
    assert own_cluster_operations(asked(None, acl("alice", "ALTER", "CLUSTER")), 1) == 1 << 7 | 1 << 8


def test_entries_say_what_they_need() -> None:
    entry = needs(
        cluster(Operation.ALTER), Special("a star", lambda _: None), AnswerChange("a name", lambda _, __: None)
    )
    assert entry.told == "ALTER on the cluster; a star; a name"
    assert needs().told == "nothing"
    assert entry.checks[1].of_requests(ApiKey.PRODUCE)(asked(None)) is None
