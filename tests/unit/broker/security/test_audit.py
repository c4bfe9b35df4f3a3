"""Events as lines: their fields, their bounds, and what happens where there are too many."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from horolog.base.acl_types import Operation, ResourceType
from horolog.base.clock import ManualClock
from horolog.broker.base.metrics import Metrics
from horolog.broker.base.principal import ANONYMOUS, Principal
from horolog.broker.security.audit import (
    BURST,
    CHANGE,
    EVENTS,
    LOST,
    MAX_CHARACTERS,
    REFUSAL,
    Denied,
    Part,
    Who,
)
from horolog.protocol.errors import ErrorCode
from tests.support.audited import Kept, trail

ALICE = Who("User:alice", "192.0.2.7", "CLIENTS", "app")
READ_T = Denied(Operation.READ, ResourceType.TOPIC, "t")


def test_a_login() -> None:
    kept = Kept()
    one = trail(kept)
    one.login(ALICE, "PLAIN", "NONE")
    one.login(Who(None, "h", "L"), "TLS", "SSL_AUTHENTICATION_FAILED", renewal=True, detail="no")
    common = {"time": "2023-11-14T22:13:20.000Z", "event": "login"}
    alice = {"principal": "User:alice", "address": "192.0.2.7", "listener": "CLIENTS", "client_id": "app"}
    assert kept.events() == [
        {**common, **alice, "operation": "LOGIN", "outcome": "NONE", "mechanism": "PLAIN"},
        {
            **common,
            "address": "h",
            "listener": "L",
            "operation": "RENEWAL",
            "outcome": "SSL_AUTHENTICATION_FAILED",
            "mechanism": "TLS",
            "detail": "no",
        },
    ]


def test_a_refusal_is_an_event_for_each_right_that_is_missing() -> None:
    kept = Kept()
    denied = [READ_T, Denied(Operation.ALTER, ResourceType.CLUSTER, "kafka-cluster")]
    trail(kept).refused(ALICE, "Fetch v13", denied)
    assert kept.told("event", "request", "operation", "resource", "outcome") == [
        ("refusal", "Fetch v13", "READ", "topic:t", "TOPIC_AUTHORIZATION_FAILED"),
        ("refusal", "Fetch v13", "ALTER", "cluster:kafka-cluster", "CLUSTER_AUTHORIZATION_FAILED"),
    ]


def test_a_change_is_an_event_for_each_of_its_parts() -> None:
    kept = Kept()
    parts = [Part("topic:t", 0, "1 partition"), Part("topic:u", ErrorCode.TOPIC_ALREADY_EXISTS)]
    trail(kept, worker=2).changed(ALICE, "CreateTopics v7", Operation.CREATE, iter(parts))
    assert kept.told("event", "worker", "operation", "resource", "outcome", "detail") == [
        ("change", 2, "CREATE", "topic:t", "NONE", "1 partition"),
        ("change", 2, "CREATE", "topic:u", "TOPIC_ALREADY_EXISTS", None),
    ]


def test_kinds_that_nobody_wants_are_not_told() -> None:
    kept, metrics = Kept(), Metrics()
    one = trail(kept, kinds=(CHANGE,), metrics=metrics)
    assert repr(one) == "<AuditTrail of change>"
    one.refused(ALICE, "Fetch v13", [READ_T])
    one.changed(ALICE, "x", Operation.CREATE, [Part("topic:t", 0)])
    assert kept.told("event") == [("change",)]
    assert list(metrics.samples(EVENTS)) == [(("change",), 1)]


def test_the_sinks_live_as_long_as_the_trail() -> None:
    kept = Kept()
    one = trail(kept)
    one.open()
    one.flush()
    one.close()
    assert kept.calls == ["open", "flush", "close"]


def test_a_flood_is_bounded_and_says_what_was_left_out(caplog: Any) -> None:
    kept, metrics, clock = Kept(), Metrics(), ManualClock(0)
    one = trail(kept, rate=10, metrics=metrics, clock=clock)
    one.refused(ALICE, "Fetch v13", [READ_T] * (BURST + 7))
    assert len(kept.events()) == BURST
    assert caplog.text.count("skips events of the kind refusal: more than 10 per second") == 1
    one.changed(ALICE, "x", Operation.CREATE, [Part("topic:t", 0)])
    assert kept.told("event", "left_out") == [("change", None)], "another kind has bounds of its own"
    clock.advance(100)
    one.refused(ALICE, "Fetch v13", [READ_T] * 3)
    assert kept.told("left_out") == [(7,)]
    clock.advance(3_600_000)
    one.refused(ALICE, "Fetch v13", [READ_T] * (BURST + 1))
    assert kept.told("left_out")[:2] == [(2,), (None,)]
    assert caplog.text.count("skips events") == 2
    assert dict(metrics.samples(LOST)) == {("rate",): 7 + 2 + 1}
    assert dict(metrics.samples(EVENTS))[REFUSAL,] == BURST + 1 + BURST


TEXT = st.text() | st.text(st.characters(categories=["Cs", "Cc", "Zl", "Zp"])) | st.just("x" * 100_000)


@given(who=st.builds(Who, st.none() | TEXT, TEXT, TEXT, st.none() | TEXT), texts=st.tuples(TEXT, TEXT, TEXT))
def test_any_event_is_one_short_line_of_json(who: Who, texts: tuple[str, str, str]) -> None:
    kept = Kept()
    one = trail(kept)
    first, second, third = texts
    one.login(who, first, second, detail=third)
    one.refused(who, first, [Denied(Operation.READ, ResourceType.GROUP, second)])
    one.changed(who, first, Operation.DELETE, [Part(second, 0, third)])
    for _, line in kept.lines:
        assert line.isascii()
        assert min(line) >= ord(" ")
        event = json.loads(line)
        assert all(len(value) <= MAX_CHARACTERS for value in event.values())
    assert len(kept.lines) == 3


def test_what_is_cut_shows_it() -> None:
    kept = Kept()
    trail(kept).login(ALICE._replace(client_id="c" * 300), "m" * MAX_CHARACTERS, "NONE")
    assert kept.told("client_id", "mechanism") == [("c" * (MAX_CHARACTERS - 1) + "…", "m" * MAX_CHARACTERS)]


def test_who_shows_no_certificate_has_not_logged_in() -> None:
    kept = Kept()
    tell = trail(kept).of_tls("SSL")
    tell("h", ANONYMOUS, "")
    tell("h", Principal("User", "CN=alice"), "")
    tell("h", None, "its certificate is refused")
    assert kept.told("principal", "outcome", "detail") == [
        ("User:CN=alice", "NONE", None),
        (None, "SSL_AUTHENTICATION_FAILED", "its certificate is refused"),
    ]
