"""Every API has its entry in the table, and to a principal that has nothing none of them tells or does anything."""

from __future__ import annotations

from typing import Any

import pytest

from horolog.broker.handlers import HANDLERS
from horolog.broker.handlers.authorization.table import NEEDS
from horolog.broker.handlers.refusals import refuse
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.configs import AlterConfigsRequest, AlterConfigsResource
from horolog.protocol.messages.metadata import MetadataRequest
from tests.support.every_request import ABSENT, BUILDERS, OPEN, SECRET, World, request_of, told
from tests.support.guarded_broker import GuardedBroker, acl
from tests.support.request_contexts import request_context

FREE = {"SASL_HANDSHAKE", "SASL_AUTHENTICATE", "API_VERSIONS"}
OF_TOKENS = {"CREATE_DELEGATION_TOKEN", "RENEW_DELEGATION_TOKEN", "EXPIRE_DELEGATION_TOKEN"}
"""They need no right for a token of one's own: see their tests."""
SILENT = {"LIST_GROUPS", "LIST_TRANSACTIONS", "DESCRIBE_CLUSTER", "DESCRIBE_DELEGATION_TOKEN"}
"""They answer everybody, and tell of nothing that may not be described."""
DENIALS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
EVERY = [(key, version) for key, one in HANDLERS.items() for version in range(one.min_version, one.max_version + 1)]


def test_every_api_has_an_entry_and_asks_for_something():
    assert set(HANDLERS) <= set(NEEDS)
    assert {key.name for key, one in NEEDS.items() if one.told == "nothing"} == FREE
    assert {key.name for key in HANDLERS} - FREE <= {key.name for key in BUILDERS}


async def world_of(memory: GuardedBroker, **more: Any) -> World:
    for name in (OPEN, SECRET, "kept"):
        if name not in memory.broker.cluster.topics:
            memory.topic(name)
    return World({name: topic.id for name, topic in memory.broker.cluster.topics.items()}, **more)


def codes(answer: Any, names: dict[bytes, str]) -> set[str]:
    return {code for row in told(answer, names) for code in row if "error_code=" in code}


@pytest.mark.parametrize(
    "key", [each for each in HANDLERS if each.name not in FREE | OF_TOKENS], ids=lambda key: key.name
)
async def test_nothing_is_told_or_done_for_a_principal_that_has_nothing(key: ApiKey) -> None:
    async with GuardedBroker() as memory:
        world = await world_of(memory)
        before = memory.broker.cluster.state
        for version in range(HANDLERS[key].min_version, HANDLERS[key].max_version + 1):
            request = request_of(key, world, version)
            answer = await memory.wire().ask(request, version)
            found = codes(answer, {})
            if key.name in SILENT:
                assert found <= {"error_code=0"}
                assert "authorized_operations=0" in str(told(answer, {})) or key is not ApiKey.DESCRIBE_CLUSTER
            elif key is ApiKey.DESCRIBE_LOG_DIRS and version < 3:
                assert answer.results == []
            else:
                denied = {f"error_code={int(code)}" for code in DENIALS}
                others = {
                    code for code in found if code.partition("error_code=")[2] not in {str(int(c)) for c in DENIALS}
                }
                assert any(code.endswith(tuple(denied)) for code in found)
                # what does not exist is refused like what does; ids alone are no secret
                assert others <= {"error_code=0", f"error_code={int(ErrorCode.UNKNOWN_TOPIC_ID)}", *_not_asked(key)}
        assert memory.broker.cluster.state is before
        assert memory.broker.cluster.topics[OPEN].find(0).high_watermark == 0  # type: ignore[union-attr]


def _not_asked(key: ApiKey) -> set[str]:
    return {"topic_config_error_code=0"} if key is ApiKey.CREATE_TOPICS else set()


@pytest.mark.parametrize("key", [each for each in HANDLERS if each.name not in FREE], ids=lambda key: key.name)
async def test_a_super_user_is_never_refused(key: ApiKey) -> None:
    async with GuardedBroker() as memory:
        world = await world_of(memory)
        for version in range(HANDLERS[key].min_version, HANDLERS[key].max_version + 1):
            answer = await memory.wire("admin").ask(request_of(key, world, version), version)
            assert not {f"error_code={int(code)}" for code in DENIALS} & codes(answer, {})


async def test_peers_are_trusted() -> None:
    async with GuardedBroker() as memory:
        await world_of(memory)
        wire = memory.wire("nobody")
        wire.conversation.listener = "peers"
        memory.broker._endpoints._addresses["peers"] = memory.broker._endpoints._addresses["PLAINTEXT"]
        answer = await wire.ask(MetadataRequest(topics=None), 9)
        assert {topic.name for topic in answer.topics} == {OPEN, SECRET, "kept"}


async def test_each_configuration_needs_a_right_of_its_kind() -> None:
    async with GuardedBroker() as memory:
        await world_of(memory)
        memory.put(acl("alice", "ALTER_CONFIGS", name=OPEN), acl("bob", "ALTER_CONFIGS", "CLUSTER"))
        asked = [(2, OPEN), (2, SECRET), (2, ABSENT), (4, "1"), (32, "g"), (99, "?")]
        request = AlterConfigsRequest(
            resources=[AlterConfigsResource(resource_type=kind, resource_name=name) for kind, name in asked],
            validate_only=True,
        )
        topic, cluster = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        group, bad = ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.INVALID_REQUEST
        for who, expected in (
            ("alice", [ErrorCode.NONE, topic, topic, cluster, group, bad]),
            ("bob", [topic, topic, topic, ErrorCode.NONE, group, bad]),
        ):
            answer = await memory.wire(who).ask(request, 2)
            found = {(one.resource_type, one.resource_name): one.error_code for one in answer.responses}
            assert [found[one] for one in asked] == expected


def test_a_refusal_as_a_whole_is_told_to_each_who_waits_for_one() -> None:
    request = request_of(ApiKey.ELECT_LEADERS, World({}), 1)
    answer: Any = refuse(ApiKey.ELECT_LEADERS, request, request_context(1), ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    (result,) = answer.replica_election_results
    assert answer.error_code == result.partition_result[0].error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert API[ApiKey.ELECT_LEADERS].response is type(answer)
