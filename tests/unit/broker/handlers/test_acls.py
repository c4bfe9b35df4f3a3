"""The access list on the wire, and where there is none."""

from __future__ import annotations

from typing import Any

import pytest

from horolog.broker.log.storage import MemoryStorage
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from tests.support.guarded_broker import GuardedBroker
from tests.unit.broker.handlers.stand_ins import StandIn

ANY = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


@pytest.mark.parametrize("version", range(4))
def test_without_an_authoriser_security_is_disabled(version):
    broker = StandIn()
    creation = AclCreation(
        resource_type=2, resource_name="x", principal="User:a", host="*", operation=3, permission_type=3
    )
    described = broker.ask(ApiKey.DESCRIBE_ACLS, version, **ANY)
    created = broker.ask(ApiKey.CREATE_ACLS, version, creations=[creation, creation])
    deleted = broker.ask(ApiKey.DELETE_ACLS, version, filters=[DeleteAclsFilter(**ANY)])
    codes = [described, *created.results, *deleted.filter_results]
    assert [one.error_code for one in codes] == [ErrorCode.SECURITY_DISABLED] * 4
    assert all(one.error_message for one in codes)


# -- with an authorizer


def creation(name: str = "t", **parts: Any) -> AclCreation:
    given = {"resource_type": 2, "principal": "User:a", "host": "*", "operation": 3, "permission_type": 3}
    return AclCreation(resource_name=name, **{**given, **parts})  # type: ignore[arg-type]


def chosen(**parts: Any) -> dict[str, Any]:
    return {**ANY, "pattern_type_filter": 1, **parts}


def told(answer: Any) -> set[tuple[str, int, str, int]]:
    return {
        (one.resource_name, one.pattern_type, acl.principal, acl.operation)
        for one in answer.resources
        for acl in one.acls
    }


async def test_rules_are_made_found_and_deleted() -> None:
    async with GuardedBroker() as memory:
        wire = memory.wire("admin")
        rules = [creation(), creation(), creation("or", resource_pattern_type=4), creation(principal="User:b")]
        made = await wire.ask(CreateAclsRequest(creations=rules), 3)
        assert [(one.error_code, one.error_message) for one in made.results] == [(ErrorCode.NONE, "")] * 4
        everything = {("t", 3, "User:a", 3), ("t", 3, "User:b", 3), ("or", 4, "User:a", 3)}
        assert told(await wire.ask(DescribeAclsRequest(**chosen()), 3)) == everything
        assert told(await wire.ask(DescribeAclsRequest(**chosen(principal_filter="User:b")), 1)) == {
            ("t", 3, "User:b", 3)
        }
        match = chosen(pattern_type_filter=2, resource_name_filter="orders")
        assert told(await wire.ask(DescribeAclsRequest(**match), 1)) == {("or", 4, "User:a", 3)}
        number = memory.broker.cluster.state.number
        assert not (await wire.ask(CreateAclsRequest(creations=rules[:1]), 3)).results[0].error_code
        assert memory.broker.cluster.state.number == number  # a rule that is there is not written again
        filters = [DeleteAclsFilter(**chosen(resource_name_filter="t")), DeleteAclsFilter(**chosen(host_filter="x"))]
        first, second = (await wire.ask(DeleteAclsRequest(filters=filters), 3)).filter_results
        assert {one.principal for one in first.matching_acls} == {"User:a", "User:b"}
        assert (first.error_code, second.error_code, second.matching_acls) == (0, 0, [])
        assert told(await wire.ask(DescribeAclsRequest(**chosen()), 3)) == {("or", 4, "User:a", 3)}


async def test_the_oldest_version_knows_literal_rules() -> None:
    async with GuardedBroker() as memory:
        wire = memory.wire("admin")
        rules = [creation("t"), creation("or", resource_pattern_type=4)]
        await wire.ask(CreateAclsRequest(creations=rules), 1)
        assert told(await wire.ask(DescribeAclsRequest(**ANY), 0)) == {("t", 3, "User:a", 3)}
        answer = await wire.ask(DeleteAclsRequest(filters=[DeleteAclsFilter(**ANY)]), 0)
        assert [one.resource_name for one in answer.filter_results[0].matching_acls] == ["t"]


async def test_what_makes_no_sense_is_refused_alone() -> None:
    async with GuardedBroker() as memory:
        wire = memory.wire("admin")
        rules = [creation(), creation(""), creation(operation=99), creation(principal="a")]
        made = await wire.ask(CreateAclsRequest(creations=rules), 3)
        bad = ErrorCode.INVALID_REQUEST
        assert [one.error_code for one in made.results] == [ErrorCode.NONE, bad, bad, bad]
        assert all(one.error_message for one in made.results[1:])
        assert told(await wire.ask(DescribeAclsRequest(**chosen()), 3)) == {("t", 3, "User:a", 3)}
        assert told(await wire.ask(DescribeAclsRequest(**chosen(operation=99)), 3)) == set()
        filters = [DeleteAclsFilter(**chosen(operation=99)), DeleteAclsFilter(**chosen())]
        unknown, all_of_them = (await wire.ask(DeleteAclsRequest(filters=filters), 3)).filter_results
        assert (unknown.error_code, len(all_of_them.matching_acls)) == (bad, 1)


@pytest.mark.parametrize("field", ["resource_type", "operation", "permission_type"])
async def test_a_zero_for_a_word_ends_the_connection(field: str) -> None:
    async with GuardedBroker() as memory:
        asked = f"{field}_filter" if field == "resource_type" else field
        for request in (
            CreateAclsRequest(creations=[creation(**{field: 0})]),
            DescribeAclsRequest(**chosen(**{asked: 0})),
            DeleteAclsRequest(filters=[DeleteAclsFilter(**chosen(**{asked: 0}))]),
        ):
            wire = memory.wire("admin")
            wire.send(request, 3)
            assert wire.closed


async def test_rules_are_on_the_disk_before_the_answer() -> None:
    storage = MemoryStorage()
    async with GuardedBroker(storage=storage) as memory:
        await memory.wire("admin").ask(CreateAclsRequest(creations=[creation()]), 3)
    async with GuardedBroker(storage=storage) as memory:
        assert told(await memory.wire("admin").ask(DescribeAclsRequest(**chosen()), 3)) == {("t", 3, "User:a", 3)}


async def test_a_rule_that_could_not_be_written_is_none() -> None:
    async with GuardedBroker() as memory:
        wire = memory.wire("admin")
        await wire.ask(CreateAclsRequest(creations=[creation()]), 3)
        memory.storage.fail("sync", "horolog-journal", times=4)
        made = await wire.ask(CreateAclsRequest(creations=[creation("u")]), 3)
        assert made.results[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        gone = await wire.ask(DeleteAclsRequest(filters=[DeleteAclsFilter(**chosen())]), 3)
        assert gone.filter_results[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert told(await wire.ask(DescribeAclsRequest(**chosen()), 3)) == {("t", 3, "User:a", 3)}
