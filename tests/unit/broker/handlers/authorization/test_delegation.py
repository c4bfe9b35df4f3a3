"""Who may make delegation tokens for others, and to whom they are shown."""

import pytest

from horolog.protocol.errors import ErrorCode
from tests.support.audited import audited
from tests.support.guarded_broker import GuardedBroker, acl
from tests.unit.broker.handlers.test_delegation_tokens import create, describe, for_other


async def test_a_token_for_another_user_needs_create_tokens_on_that_user():
    async with GuardedBroker() as memory:
        kept = audited(memory)
        memory.put(acl("alice", "CREATE_TOKENS", "USER", "bob"))  # a user is named with its type
        refused = await for_other(memory.wire(), "User:bob")
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert (refused.principal_name, refused.token_requester_principal_name) == ("bob", "alice")
        assert (refused.issue_timestamp_ms, refused.token_id) == (-1, "")
        assert kept.told("event", "operation", "resource") == [("refusal", "CREATE_TOKENS", "user:User:bob")]
        memory.put(acl("alice", "CREATE_TOKENS", "USER", "User:bob"))
        assert (await for_other(memory.wire(), "User:bob")).error_code == ErrorCode.NONE
        assert (await for_other(memory.wire(), "User:alice")).error_code == ErrorCode.NONE
        assert (await create(memory.wire(), owner_principal_name="bob")).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


async def test_who_may_not_ask_at_all_is_told_so():
    async with GuardedBroker() as memory:
        wire = memory.wire("ANONYMOUS")
        made = await for_other(wire, "User:bob")
        assert made.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


@pytest.mark.parametrize("version", [2, 3])
async def test_owners_renewers_and_requesters_are_shown_their_tokens(version):
    async with GuardedBroker() as memory:
        memory.put(acl("eve", "CREATE_TOKENS", "USER", "User:alice"))
        made = await for_other(memory.wire("eve"), "User:alice", renewers=["User:bob"])
        for who, count in (("alice", 1), ("bob", 1), ("eve", 1), ("admin", 1), ("mallory", 0)):
            assert len(await describe(memory.wire(who), version=version)) == count, who
        memory.put(acl("carol", "DESCRIBE", "DELEGATION_TOKEN", made.token_id))
        memory.put(acl("dan", "DESCRIBE_TOKENS", "USER", "User:alice"))
        memory.put(acl("frank", "DESCRIBE_TOKENS", "USER", "User:bob"))
        for who, count in (("carol", 1), ("dan", 1), ("frank", 0)):
            assert len(await describe(memory.wire(who), version=version)) == count, who
