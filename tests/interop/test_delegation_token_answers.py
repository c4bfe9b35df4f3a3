"""Requests about delegation tokens, one after the other, to horolog and to a real Kafka: both give the same answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.acls import AclCreation, CreateAclsRequest
from horolog.protocol.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
    TokenPrincipal,
)
from tests.interop.test_sasl_answers import Peer
from tests.support.sasl import plain_token
from tests.support.sasl_brokers import LISTENER, MODULES, Door, horolog, real_kafka

pytestmark = [pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.timeout(300)]

RELEASE = "4.3.1"
USERS = ("admin", "alice", "bob", "carol")
SETTINGS = {
    "delegation.token.secret.key": "a secret of the cluster",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
    f"{LISTENER}plain.sasl.jaas.config": f"{MODULES}.plain.PlainLoginModule required "
    + " ".join(f'user_{user}="pw"' for user in USERS)
    + ";",
}
USER, CREATE_TOKENS, DESCRIBE_TOKENS, DELEGATION_TOKEN, DESCRIBE = 7, 13, 14, 6, 8
HOUR_MS = 3_600_000
PATIENCE_S = 20.0


def named(*names: str) -> list[TokenPrincipal]:
    return [TokenPrincipal(principal_type=one.partition(":")[0], principal_name=one.partition(":")[2]) for one in names]


class Dialogue:
    """The requests of several users at one broker, and its answers as lines."""

    def __init__(self, door: Door) -> None:
        self.lines: list[str] = []
        self._peers = {user: self._logged_in(door.closed, user) for user in USERS}
        self._peers["nobody"] = Peer(door.open)
        self._names: dict[str, str] = {}
        self._issued: dict[str, int] = {}

    def _logged_in(self, address: str, user: str) -> Peer:
        peer = Peer(address)
        assert peer.choose("PLAIN")[0] == 0
        assert peer.prove(plain_token(user, "pw"))[0] == 0
        return peer

    def close(self) -> None:
        for peer in self._peers.values():
            peer.__exit__()

    def _note(self, title: str, code: int, *words: object) -> None:
        self.lines.append(" ".join(map(str, (title, ErrorCode(code).name, *words))))

    def create(self, user: str, label: str, version: int = 3, **fields: Any) -> bytes:
        request = CreateDelegationTokenRequest(**({"renewers": [], "max_lifetime_ms": -1} | fields))
        made = self._peers[user].ask(request, version)
        began = made.issue_timestamp_ms
        lasts = [(one - began) // 1000 for one in (made.expiry_timestamp_ms, made.max_timestamp_ms)]
        whose = f"{made.principal_type}:{made.principal_name} by {made.token_requester_principal_name}"
        self._note(f"create {user} {label}", made.error_code, whose, *lasts, len(made.token_id), len(made.hmac))
        if not made.error_code:
            self._names[made.token_id], self._issued[bytes(made.hmac).hex()] = label, began
            self._settle(lambda: made.token_id in {one.token_id for one in self._tokens("admin")})
        return bytes(made.hmac)

    def _tokens(self, user: str) -> list[Any]:
        return list(self._peers[user].ask(DescribeDelegationTokenRequest(owners=None), 3).tokens)

    def _settle(self, holds: Callable[[], bool]) -> None:
        """Real brokers know of changes a moment later."""
        end = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < end, "the change is not known"
            time.sleep(0.05)

    def describe(self, user: str, *owners: str, version: int = 3) -> None:
        request = DescribeDelegationTokenRequest(owners=named(*owners) if owners else None)
        answer = self._peers[user].ask(request, version)
        found = sorted(
            f"{self._names[one.token_id]}({one.principal_name},{one.token_requester_principal_name},{len(one.hmac)})"
            for one in answer.tokens
        )
        self._note(f"describe {user} {owners} v{version}", answer.error_code, *found)

    def renew(self, user: str, hmac: bytes, period_ms: int, version: int = 2) -> None:
        answer = self._peers[user].ask(RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms), version)
        self._note(f"renew {user} {period_ms}", answer.error_code, self._hours(hmac, answer.expiry_timestamp_ms))

    def expire(self, user: str, hmac: bytes, period_ms: int, version: int = 2) -> None:
        answer = self._peers[user].ask(
            ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms), version
        )
        self._note(f"expire {user} {period_ms}", answer.error_code, self._hours(hmac, answer.expiry_timestamp_ms))
        if period_ms < 0 and not answer.error_code:
            self._settle(lambda: hmac not in self._expiries())
        elif not answer.error_code:
            self._settle(lambda: self._expiries()[hmac] == answer.expiry_timestamp_ms)

    def _expiries(self) -> dict[bytes, int]:
        return {bytes(one.hmac): one.expiry_timestamp for one in self._tokens("admin")}

    def _hours(self, hmac: bytes, time_ms: int) -> int:
        """Whole hours from when a token was made; small numbers stand for no time."""
        return time_ms if time_ms <= 0 else round((time_ms - self._issued[hmac.hex()]) / HOUR_MS)

    def allow(self, kind: int, name: str, operation: int, user: str, shows: Callable[[], bool]) -> None:
        rule = AclCreation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=3,
            principal=f"User:{user}",
            host="*",
            operation=operation,
            permission_type=3,
        )
        self._note(
            f"allow {user}", self._peers["admin"].ask(CreateAclsRequest(creations=[rule]), 3).results[0].error_code
        )
        self._settle(shows)

    def id_of(self, label: str) -> str:
        return next(token_id for token_id, name in self._names.items() if name == label)

    def sees(self, user: str, label: str) -> bool:
        return self.id_of(label) in {one.token_id for one in self._tokens(user)}


def dialogue(door: Door) -> list[str]:
    talk = Dialogue(door)
    for user in ("nobody",):
        talk.create(user, "none")
        talk.describe(user)
        talk.renew(user, b"x", 1)
        talk.expire(user, b"x", 1)
    own = talk.create("alice", "own", renewers=named("User:bob"))
    for version in (1, 2):
        talk.create("alice", f"v{version}", version=version)
    for lifetime_ms in (60_000, 0, -5, 1 << 62):
        talk.create("alice", f"for {lifetime_ms}", max_lifetime_ms=lifetime_ms)
    talk.create("alice", "other", owner_principal_type="User", owner_principal_name="bob")
    talk.create("alice", "groups", renewers=named("Group:g", "User:bob"))
    talk.create("admin", "untyped", owner_principal_type="User")
    talk.create("admin", "bob's", owner_principal_type="User", owner_principal_name="bob", renewers=named("User:alice"))
    for user in ("alice", "bob", "carol", "admin"):
        talk.describe(user)
    talk.describe("alice", "User:bob")
    talk.describe("admin", "User:alice", "User:nobody")
    talk.describe("alice", version=1)
    for user, period_ms in (
        ("alice", -1),
        ("bob", 2 * HOUR_MS),
        ("alice", 1 << 62),
        ("alice", 0),
        ("carol", 1),
        ("admin", 1),
    ):
        talk.renew(user, own, period_ms)
    talk.renew("alice", b"unknown", 1)
    talk.renew("alice", b"", 1, version=1)
    for user, period_ms in (("carol", 1), ("bob", HOUR_MS), ("bob", 1 << 62), ("alice", 0)):
        talk.expire(user, own, period_ms)
    time.sleep(0.01)  # so that it has expired
    talk.renew("alice", own, 1)
    talk.expire("alice", own, 1)
    talk.expire("alice", own, -1)
    talk.expire("alice", own, -1)
    talk.renew("alice", own, 1)
    talk.allow(USER, "User:bob", DESCRIBE_TOKENS, "carol", lambda: talk.sees("carol", "bob's"))
    talk.describe("carol")
    talk.allow(DELEGATION_TOKEN, talk.id_of("v1"), DESCRIBE, "carol", lambda: talk.sees("carol", "v1"))
    talk.describe("carol")
    talk.close()
    return talk.lines


@pytest.mark.long
def test_answers_are_those_of_kafka(tmp_path: Path) -> None:
    with horolog(tmp_path / "data", **SETTINGS) as (door, _):
        found = dialogue(door)
    with real_kafka(RELEASE, tmp_path / "kafka", **SETTINGS) as door:
        expected = dialogue(door)
    assert found == expected
