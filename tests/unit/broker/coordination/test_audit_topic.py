"""Events in a topic: it is made when it is needed, written in order, and what cannot be written waits or is counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from horolog.broker.base.metrics import Counter
from horolog.broker.coordination import audit_topic
from horolog.broker.coordination.audit_topic import MOST_RECORDS, AuditTopic
from horolog.broker.coordination.topic_journal import TopicJournal
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.protocol.errors import ErrorCode
from tests.support.at_once import delete_topic
from tests.support.group_world import GroupWorld

NAME = "audit"


class Loop:
    """What an event loop is asked for here; the test says when a turn of it has come."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []
        self.later: list[Callable[[], None]] = []

    def call_soon(self, call: Callable[[], None]) -> None:
        self.soon.append(call)

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        assert seconds == audit_topic.RETRY_S
        self.later.append(call)


class Place:
    def __init__(self) -> None:
        self.world = GroupWorld()
        self.loop: Any = Loop()
        self.lost = Counter()
        world = self.world
        committer: Any = world.committer
        node = world.cluster.nodes[0]
        self.topic = AuditTopic(NAME, node, world.cluster, committer, world.clock, self.loop, lost=self.lost)
        self.topic.open()

    def turn(self) -> None:
        soon, self.loop.soon = self.loop.soon, []
        for call in soon:
            call()
        self.world.tick()

    def a_second(self) -> None:
        self.loop.soon, self.loop.later = [*self.loop.soon, *self.loop.later], []
        self.turn()

    def put(self, *lines: bytes) -> None:
        for line in lines:
            self.topic.take("login", line)

    def kept(self) -> list[bytes]:
        return [value for _, value in self.records()]

    def records(self) -> list[tuple[Any, Any]]:
        topic = self.world.cluster.topics[NAME]
        return [
            (one.key, one.value)
            for partition in topic.led_here
            for piece in TopicJournal.read_batches(partition)
            for batch in piece
            for one in batch.records()
        ]


def test_the_first_event_makes_the_topic_and_a_tick_is_one_batch() -> None:
    place = Place()
    assert NAME not in place.world.cluster.topics
    place.put(b"1", b"2")
    assert "2 events waiting" in repr(place.topic)
    place.turn()
    place.put(b"3")
    place.turn()
    assert place.records() == [(b"login", b"1"), (b"login", b"2"), (b"login", b"3")]
    topic = place.world.cluster.topics[NAME]
    assert (topic.partition_count, topic.overrides) == (1, {"cleanup.policy": "delete"})
    assert place.lost.value == 0


def test_many_events_are_several_batches() -> None:
    place = Place()
    lines = [b"%d" % number for number in range(2 * MOST_RECORDS + 1)]
    place.put(*lines)
    place.turn()
    assert place.kept() == lines
    (partition,) = place.world.cluster.topics[NAME].led_here
    assert sum(len(piece) for piece in TopicJournal.read_batches(partition)) == 3


def test_a_topic_that_was_deleted_is_made_again() -> None:
    place = Place()
    place.put(b"1")
    place.turn()
    delete_topic(place.world.cluster, NAME)
    place.put(b"2")
    place.turn()
    assert place.kept() == [b"2"]


def test_where_nothing_is_led_here_a_partition_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place()
    cluster = place.world.cluster
    cluster.create_topic(NAME, 2)
    topic = cluster.topics[NAME]
    topic.put(0, None)
    topic.put(1, None)
    place.put(b"1")
    place.turn()
    assert [one.index for one in topic.led_here] == [2]
    assert place.kept() == [b"1"]


@pytest.mark.parametrize(("code", "is_told"), [(ErrorCode.TOPIC_ALREADY_EXISTS, False), (ErrorCode.NONE, True)])
def test_events_wait_while_the_topic_cannot_be_made(
    monkeypatch: pytest.MonkeyPatch, caplog: Any, code: ErrorCode, is_told: bool
) -> None:
    place = Place()
    made: list[Any] = []
    cluster = place.world.cluster
    create = cluster.create_topics
    monkeypatch.setattr(cluster, "create_topics", lambda wanted, done: made.append((wanted, done)))
    place.put(b"1")
    place.turn()
    place.put(b"2")
    place.turn()
    place.a_second()
    assert len(made) == 1, "it is asked for once at a time"
    made.pop()[1]([ClusterError(code, "no")])
    assert ("could not be created: no" in caplog.text) is is_told
    monkeypatch.setattr(cluster, "create_topics", create)
    place.a_second()
    assert place.kept() == [b"1", b"2"]
    assert (place.loop.soon, place.loop.later) == ([], [])


def test_while_the_disk_fails_events_wait_or_are_counted(caplog: Any) -> None:
    place = Place()
    place.put(b"1")
    place.turn()
    place.world.storage.fail("write", NAME)
    place.put(b"2", b"3")
    place.turn()
    assert place.lost.value == 2, "they were on their way"
    (partition,) = place.world.cluster.topics[NAME].led_here
    partition.condition.go_offline("its disk is gone")
    place.put(b"4")
    place.turn()
    assert place.lost.value == 2
    assert "1 events waiting" in repr(place.topic)
    place.topic.close()
    assert place.lost.value == 3
    assert caplog.text.count("the audit cannot be written") == 1


def test_while_there_is_no_room_events_wait() -> None:
    """The store does not answer, and appended records wait in memory, too."""
    place = Place()
    place.put(b"a")
    place.turn()
    place.world.committer.has_room = False
    place.put(b"b")
    place.turn()
    assert (place.kept(), repr(place.topic)) == ([b"a"], "<AuditTopic audit: 1 events waiting>")
    place.world.committer.has_room = True
    place.a_second()
    assert place.kept() == [b"a", b"b"]


def test_what_the_topic_refuses_is_counted_and_told_once(caplog: Any) -> None:
    place = Place()
    place.world.cluster.create_topic(NAME, 1, {"max.message.bytes": "100"})
    for _ in range(2):
        place.put(b"x" * 200)
        place.turn()
    assert place.lost.value == 2
    assert caplog.text.count("the audit cannot be written: events are lost") == 1
    place.put(b"1")
    place.turn()
    place.put(b"x" * 200)
    place.turn()
    assert place.kept() == [b"1"]
    assert caplog.text.count("the audit cannot be written") == 2


def test_too_many_that_wait_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_topic, "MOST_WAITING", 2)
    place = Place()
    place.put(b"1", b"2", b"3")
    assert place.lost.value == 1
    place.topic.flush()
    place.world.tick()
    place.topic.close()
    assert place.kept() == [b"1", b"2"]
    assert place.lost.value == 1


def test_a_broker_that_only_reads_writes_no_topic(caplog: Any) -> None:
    place = Place()
    cluster = place.world.cluster
    cluster.settings = replace(cluster.settings, horolog_read_only=True)
    place.put(b"1", b"2")
    place.turn()
    assert NAME not in cluster.topics
    assert place.lost.value == 2
    assert caplog.text.count("horolog.read.only") == 1
