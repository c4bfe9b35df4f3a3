"""Delegation tokens as requests make, renew, expire and describe them: the answers are those of Kafka 4.3.1."""

import copy
from types import SimpleNamespace

import pytest

from horolog.broker.base.principal import ANONYMOUS, Principal
from horolog.broker.handlers.delegation_tokens import MOST_BYTES, MOST_RENEWERS, changed_expiry
from horolog.broker.security.delegation import DelegationToken
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
    TokenPrincipal,
)
from tests.support.audited import audited
from tests.support.guarded_broker import GuardedBroker, acl
from tests.support.memory_broker import NOW_MS

DAY_MS, WEEK_MS = 86_400_000, 604_800_000
OK, NOT_HERE = ErrorCode.NONE, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def named(*texts):
    return [
        TokenPrincipal(principal_type=kind, principal_name=name) for kind, name in (one.split(":") for one in texts)
    ]


async def create(wire, version=3, renewers=(), max_lifetime_ms=-1, **fields):
    request = CreateDelegationTokenRequest(renewers=named(*renewers), max_lifetime_ms=max_lifetime_ms, **fields)
    return await wire.ask(request, version)


async def for_other(wire, owner, **fields):
    kind, name = owner.split(":")
    return await create(wire, owner_principal_type=kind, owner_principal_name=name, **fields)


async def renew(wire, hmac, period_ms, version=2):
    answer = await wire.ask(RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms), version)
    return answer.error_code, answer.expiry_timestamp_ms


async def expire(wire, hmac, period_ms, version=2):
    answer = await wire.ask(ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms), version)
    return answer.error_code, answer.expiry_timestamp_ms


async def describe(wire, *owners, version=3):
    answer = await wire.ask(DescribeDelegationTokenRequest(owners=named(*owners) if owners else None), version)
    return answer.error_code or answer.tokens


# -- creating


@pytest.mark.parametrize("version", range(4))
async def test_a_token_of_ones_own(version):
    async with GuardedBroker() as memory:
        made = await create(memory.wire(), version, renewers=["User:bob"])
        assert (made.error_code, made.principal_type, made.principal_name) == (OK, "User", "alice")
        assert made.token_requester_principal_name == ("alice" if version == 3 else "")
        times = made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms
        assert times == (NOW_MS, NOW_MS + DAY_MS, NOW_MS + WEEK_MS)
        assert (len(made.token_id), len(made.hmac)) == (22, 64)
        (told,) = await describe(memory.wire(), version=version)
        assert (told.token_id, told.hmac, told.principal_name) == (made.token_id, made.hmac, "alice")
        assert (told.issue_timestamp, told.expiry_timestamp, told.max_timestamp) == times
        assert [one.principal_name for one in told.renewers] == ["bob"]


@pytest.mark.parametrize(
    ("asked_ms", "expires_ms", "max_ms"),
    [(60_000, 60_000, 60_000), (0, DAY_MS, WEEK_MS), (-5, DAY_MS, WEEK_MS), (2**62, DAY_MS, WEEK_MS)],
)
async def test_how_long_a_token_lives(asked_ms, expires_ms, max_ms):
    async with GuardedBroker() as memory:
        made = await create(memory.wire(), max_lifetime_ms=asked_ms)
        assert (made.expiry_timestamp_ms - NOW_MS, made.max_timestamp_ms - NOW_MS) == (expires_ms, max_ms)


async def test_the_longest_lifetime_has_a_timestamp():
    async with GuardedBroker(delegation_token_max_lifetime_ms=2**63 - 1) as memory:
        assert (await create(memory.wire())).max_timestamp_ms == 2**63 - 1


@pytest.mark.parametrize("owner", [{"owner_principal_type": "User"}, {"owner_principal_name": ""}, {}])
async def test_an_owner_without_a_name_is_the_requester(owner):
    async with GuardedBroker() as memory:
        made = await create(memory.wire(), **owner)
        assert (made.error_code, made.principal_name) == (OK, "alice")


async def test_what_is_wrong_with_principals():
    async with GuardedBroker() as memory:
        untyped = await create(memory.wire(), owner_principal_name="bob")
        of_group = await create(memory.wire(), renewers=["User:bob", "Group:g"])
        for made in (untyped, of_group):
            assert (made.error_code, made.principal_name) == (ErrorCode.INVALID_PRINCIPAL_TYPE, "alice")
            assert made.issue_timestamp_ms == made.expiry_timestamp_ms == made.max_timestamp_ms == -1
            assert (made.token_id, made.hmac) == ("", b"")


async def test_tokens_are_bounded():
    async with GuardedBroker(horolog_delegation_tokens_max=2) as memory:
        codes = [(await create(memory.wire())).error_code for _ in range(3)]
        assert codes == [OK, OK, ErrorCode.POLICY_VIOLATION]
        assert (await for_other(memory.wire("admin"), "User:alice")).error_code == OK, "admin has made none yet"
        for renewers in (["User:x"] * (MOST_RENEWERS + 1), [f"User:{'x' * MOST_BYTES}"]):
            assert (await create(memory.wire("bob"), renewers=renewers)).error_code == ErrorCode.POLICY_VIOLATION
        assert (await create(memory.wire("bob"), renewers=["User:x"] * MOST_RENEWERS)).error_code == OK


# -- where


@pytest.mark.parametrize("login", [None, SimpleNamespace(token_id="t")])
async def test_who_is_not_authenticated_or_only_by_a_token_may_ask_for_nothing(login):
    async with GuardedBroker() as memory:
        hmac = (await create(memory.wire())).hmac
        wire = memory.wire()
        if login is None:
            wire.conversation.serve_as(ANONYMOUS)
        wire.conversation.login = login
        assert (await create(wire)).error_code == NOT_HERE
        assert await renew(wire, hmac, 1) == await expire(wire, hmac, -1) == (NOT_HERE, -1)
        assert await describe(wire) == NOT_HERE
        wire.conversation.login = SimpleNamespace(token_id="")
        assert (await create(wire)).error_code == OK


async def test_without_a_secret_key_tokens_are_off():
    async with GuardedBroker(delegation_token_secret_key="") as memory:
        wire, off = memory.wire(), ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        assert (await create(wire)).error_code == off
        assert await renew(wire, b"x", 1) == await expire(wire, b"x", 1) == (off, 0)
        assert await describe(wire) == off


# -- renewing and expiring


async def test_renewals():
    async with GuardedBroker() as memory:
        made = await create(memory.wire(), renewers=["User:bob"], max_lifetime_ms=2 * DAY_MS)
        assert await renew(memory.wire(), made.hmac, 60_000) == (OK, NOW_MS + 60_000)
        assert await renew(memory.wire("bob"), made.hmac, -1) == (OK, NOW_MS + DAY_MS)
        for longest in (2**62, 0):
            assert await renew(memory.wire(), made.hmac, longest) == (OK, NOW_MS + DAY_MS)
        assert await expire(memory.wire(), made.hmac, 2**62) == (OK, NOW_MS + 2 * DAY_MS)
        assert await renew(memory.wire("admin"), made.hmac, 1) == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
        assert await renew(memory.wire(), made.hmac[:-1], 1) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, 0)
        assert await expire(memory.wire(), made.hmac, 0) == (OK, NOW_MS)
        memory.clock.advance(1)
        assert await renew(memory.wire(), made.hmac, 5) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, 0)


async def test_a_token_is_revoked():
    async with GuardedBroker() as memory:
        kept = audited(memory)
        made = await create(memory.wire(), renewers=["User:bob"])
        assert await expire(memory.wire("eve"), made.hmac, -1) == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
        assert await expire(memory.wire("bob"), made.hmac, 9_000) == (OK, NOW_MS + 9_000)
        assert await expire(memory.wire(), made.hmac, -1) == (OK, NOW_MS)
        assert await expire(memory.wire(), made.hmac, -1) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, 0)
        assert await describe(memory.wire()) == []
        resource = f"delegation_token:{made.token_id}"
        assert kept.told("principal", "operation", "resource", "outcome", "detail") == [
            ("User:alice", "CREATE_TOKENS", resource, "NONE", "of User:alice, renewed by User:bob"),
            ("User:eve", "ALTER", resource, "DELEGATION_TOKEN_OWNER_MISMATCH", "of User:alice, until 0"),
            ("User:bob", "ALTER", resource, "NONE", f"of User:alice, until {NOW_MS + 9_000}"),
            ("User:alice", "ALTER", resource, "NONE", f"of User:alice, until {NOW_MS}"),
        ]


async def test_tokens_outlive_a_loss_of_power():
    async with GuardedBroker() as first:
        made = await create(first.wire())
        lost = copy.deepcopy(first.storage)
    lost.crash()
    async with GuardedBroker(lost) as memory:
        assert [one.hmac for one in await describe(memory.wire())] == [made.hmac]


def test_a_token_that_is_gone_meanwhile():
    token = DelegationToken("t", ANONYMOUS, ANONYMOUS, (), 0, 1, 2)
    assert changed_expiry(None, ANONYMOUS, 1, 0) == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert changed_expiry(token, ANONYMOUS, -1, 5) is None, "an expired token can be removed"
    assert changed_expiry(token, Principal("User", "x"), -1, 0) == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


# -- describing


async def test_tokens_by_owner():
    async with GuardedBroker() as memory:
        admin = memory.wire("admin")
        memory.put(acl("admin", "ALL", "USER", "*"))
        for owner, renewers in (("User:alice", ["User:bob"]), ("User:bob", []), ("Group:g", [])):
            await for_other(admin, owner, renewers=renewers)
        assert len(await describe(admin)) == 3
        assert [one.principal_name for one in await describe(admin, "User:bob")] == ["alice", "bob"]
        assert [one.principal_type for one in await describe(admin, "Group:g", "User:x")] == ["Group"]
        answer = await admin.ask(DescribeDelegationTokenRequest(owners=[]), 3)
        assert (answer.error_code, answer.tokens) == (OK, [])
