"""The audit of a broker process, alone and with workers: who has come in, what was refused and what was changed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from horolog import Admin, Consumer, ConsumerRecord, TopicPartition
from horolog.broker.security.sasl import scram_keys
from horolog.broker.security.sasl.scram_keys import SCRAM_SHA_512
from horolog.client.admin.admin_users import NewUser
from horolog.client.values.errors import AuthenticationFailed, KafkaError
from tests.support.guarded_broker import STANDARD_AUTHORIZER
from tests.support.sasl_brokers import PASSWORD, Door, horolog
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(120)
TOPIC = "audit"
ALONE = {"horolog.workers": "1"}
WORKERS = {"horolog.workers": "2", "horolog.worker.ports": "PLAINTEXT:0,SASL_PLAINTEXT:0"}


def login(password: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": password,
    }


async def cause_events(door: Door) -> None:
    """One login that fails and one that succeeds, a refusal, and some changes."""
    with pytest.raises(AuthenticationFailed):
        async with Admin(door.closed, security=login("hunter2")) as admin:
            await admin.topics()
    async with Admin(door.closed, security=login(PASSWORD)) as admin:
        with pytest.raises(KafkaError):
            await admin.create_topic("stolen")
    salt = scram_keys.new_salt()
    async with Admin(door.open) as admin:
        await admin.create_topic("orders", 2)
        await admin.alter_configs("topic", "orders", {"retention.ms": "1000"})
        await admin.put_users([NewUser("bob", "SCRAM-SHA-512", 4096, salt, SCRAM_SHA_512.salted("secret", salt, 4096))])
        await admin.delete_topics(["orders"])


def check(events: list[dict[str, Any]]) -> None:
    def told(event: str, *names: str) -> set[tuple[str | None, ...]]:
        return {tuple(each.get(name) for name in names) for each in events if each["event"] == event}

    assert told("login", "principal", "mechanism", "outcome", "listener") >= {
        ("User:alice", "PLAIN", "SASL_AUTHENTICATION_FAILED", "SASL_PLAINTEXT"),
        ("User:alice", "PLAIN", "NONE", "SASL_PLAINTEXT"),
    }
    assert ("User:alice", "CREATE", "topic:stolen", "TOPIC_AUTHORIZATION_FAILED") in told(
        "refusal", "principal", "operation", "resource", "outcome"
    )
    assert told("change", "principal", "operation", "resource", "outcome", "detail") == {
        ("User:ANONYMOUS", "CREATE", "topic:orders", "NONE", "2 partitions"),
        ("User:ANONYMOUS", "ALTER_CONFIGS", "topic:orders", "NONE", "retention.ms=1000"),
        ("User:ANONYMOUS", "ALTER", "user:bob", "NONE", "SCRAM-SHA-512 set"),
        ("User:ANONYMOUS", "DELETE", "topic:orders", "NONE", None),
    }
    assert {each["address"] for each in events} == {"127.0.0.1"}


async def read_topic(door: Door, partitions: int, count: int) -> list[dict[str, Any]]:
    """The first events of the topic, in the order of their times."""
    records: list[ConsumerRecord] = []
    async with asyncio.timeout(30), Consumer(door.open) as consumer:
        consumer.assign(TopicPartition(TOPIC, index) for index in range(partitions))
        while len(records) < count:
            records += await consumer.poll(1000)
    events = [json.loads(one.value or b"") for one in records]
    assert [(one.key or b"").decode() for one in records] == [each["event"] for each in events]
    return sorted(events, key=lambda each: str(each["time"]))


@pytest.mark.parametrize("workers", [ALONE, WORKERS], ids=["alone", "workers"])
async def test_a_broker_tells_a_file_and_a_topic(tmp_path: Path, workers: dict[str, str]) -> None:
    file = tmp_path / "audit.jsonl"
    settings = {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:ANONYMOUS",
        "horolog.audit.file": str(file),
        "horolog.audit.topic": TOPIC,
    }
    with horolog(tmp_path / "data", **settings, **workers) as (door, broker):
        await cause_events(door)
        wait_until(lambda: '"DELETE"' in file.read_text())
        in_topic = await read_topic(door, 2 if workers == WORKERS else 1, len(file.read_text().splitlines()))
        check(in_topic)
        broker.stop()
    text = file.read_text()
    events = [json.loads(line) for line in text.splitlines()]
    check(events)
    assert sorted(in_topic, key=str) == sorted(events, key=str)
    assert not [word for word in ("hunter2", PASSWORD, "secret") if word in text]
    assert {each.get("worker") for each in events} <= ({1, 2} if workers == WORKERS else {None})


async def test_a_broker_that_cannot_keep_its_audit_does_not_start(tmp_path: Path) -> None:
    settings = {"horolog.audit.file": str(tmp_path / "none" / "audit.jsonl")}
    with pytest.raises(Exception, match=r"No such file or directory: '.*audit\.jsonl'"), horolog(tmp_path, **settings):
        pass
