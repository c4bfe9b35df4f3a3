"""Acting on decisions: timers, answers, records and what follows from their writing, each in its turn."""

import logging

import pytest

from horolog.broker.base.late_answers import ANSWERED_WITHIN_S
from horolog.broker.coordination.timers import Timers
from horolog.broker.groups import runner as runner_module
from horolog.broker.groups.classic_events import Downgraded, JoinOver
from horolog.broker.groups.classic_group import ClassicGroup
from horolog.broker.groups.consumer_group import ConsumerGroup
from horolog.broker.groups.decision import Decision, GroupTimer
from horolog.broker.groups.journal import GroupJournal
from horolog.broker.groups.known import Known
from horolog.broker.groups.offsets import GroupOffsets
from horolog.broker.groups.runner import Runner
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import HeartbeatRequest
from tests.support.group_members import ClassicClient, stabilise

ENTRY = (b"key", b"value")


class Script:
    """Stands for the `decide` of both protocols: the next decision of a list, and what it was asked."""

    def __init__(self, *decisions):
        self.decisions = list(decisions)
        self.events = []

    def __call__(self, group, event, _known, _now_ms):
        self.events.append(event)
        return self.decisions.pop(0) if self.decisions else Decision(group)


@pytest.fixture
def group():
    return ClassicGroup("g", 0, GroupOffsets(), 0)


@pytest.fixture
def runner(world):
    journal = GroupJournal(world.cluster, world.committer, world.clock)
    world.timers = Timers(world.clock)
    world.lost = []
    known = Known(world.cluster, world.clock)
    return Runner(known, world.timers, journal, world.coordinator.registry, world.lost.append)


def play(monkeypatch, *decisions):
    script = Script(*decisions)
    monkeypatch.setattr(runner_module.classic, "decide", script)
    monkeypatch.setattr(runner_module.kip848, "decide", script)
    return script


def test_a_timer_that_is_due_is_an_event_of_the_group(runner, world, group, monkeypatch):
    decision, timer, stopped = Decision(group), GroupTimer("due"), GroupTimer("never")
    decision.start(timer, 1000)
    decision.start(stopped, 500)
    decision.stop(stopped)
    decision.stop(None)
    script = play(monkeypatch, decision)
    assert runner.run(group, "begin") is decision
    world.advance(999)
    assert script.events == ["begin"]
    timer.event = "due at last"
    world.advance(1)
    assert script.events == ["begin", "due at last"]


def test_answers_are_given_in_order_and_at_once(runner, group, monkeypatch, caplog):
    decision, told = Decision(group), []
    decision.answer(told.append, 1)
    decision.answer(told.append, 2)
    decision.note(logging.WARNING, "group %s: %s", "g", "noted")
    play(monkeypatch, decision)
    runner.run(group, "begin")
    assert told == [1, 2]
    assert "group g: noted" in caplog.text


@pytest.mark.parametrize("fails", [False, True])
def test_what_follows_comes_once_the_records_are_written_or_cannot_be(runner, world, group, monkeypatch, fails):
    decision = Decision(group)
    decision.write([ENTRY], lambda code: ("stored", code))
    script = play(monkeypatch, decision)
    runner.run(group, "begin")
    assert script.events == ["begin"]
    if fails:
        world.storage.fail("write", "__consumer_offsets")
    world.tick()
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE if fails else ErrorCode.NONE
    assert script.events == ["begin", ("stored", code)]
    assert world.cluster.topics["__consumer_offsets"].find(0).high_watermark == (0 if fails else 1)


@pytest.mark.parametrize("is_late", [False, True])
def test_a_client_whose_records_are_not_written_in_time_gets_its_refusal(runner, world, group, monkeypatch, is_late):
    decision, told = Decision(group), []
    decision.write([ENTRY], lambda code: ("stored", code))
    decision.answer_if_late(told.append, "late")
    script = play(monkeypatch, decision)
    world.committer.holds = is_late
    runner.run(group, "begin")
    world.tick()
    world.advance(round(ANSWERED_WITHIN_S * 1000))
    assert told == ["late"] * is_late
    world.committer.holds = False
    world.tick()
    assert (script.events, len(told)) == (["begin", ("stored", ErrorCode.NONE)], is_late)


def test_an_event_that_decides_nothing_does_nothing(runner, world, group):
    runner.run(group, JoinOver())
    assert not world.committer.queued
    assert world.timers.next_due() is None


def test_a_timer_that_runs_may_be_left_alone(runner, world, group, monkeypatch):
    timer = GroupTimer("due")
    first, second = Decision(group), Decision(group)
    first.start(timer, 1000)
    second.start(timer, 5000, unless_running=True)
    script = play(monkeypatch, first, second)
    runner.run(group, "one")
    runner.run(group, "two")
    world.advance(1000)
    assert script.events == ["one", "two", "due"]
    third = Decision(group)
    third.start(timer, 10, unless_running=True)
    script.decisions.append(third)
    runner.run(group, "three")
    world.advance(10)
    assert script.events[3:] == ["three", "due"]


@pytest.mark.parametrize("fails", [False, True])
def test_a_promise_is_kept_once_the_records_are_written(runner, world, monkeypatch, fails):
    """A group of the newer protocol that could not be written is lost, and that is told before the refusal."""
    group = ConsumerGroup("g", 0, GroupOffsets(), 0)
    decision, told = Decision(group), world.lost
    decision.promise(told.append, "written", "refused")
    decision.write([ENTRY])
    play(monkeypatch, decision)
    runner.run(group, "begin")
    assert told == []
    if fails:
        world.storage.fail("write", "__consumer_offsets")
    world.tick()
    assert told == ([group.shard, "refused"] if fails else ["written"])


def test_a_successor_takes_the_place_of_a_group_and_has_its_members_join_again(runner, world, monkeypatch):
    group = ConsumerGroup("g", 0, GroupOffsets(), 0)
    registry = world.coordinator.registry
    registry.groups["g"] = group
    decision = Decision(group)
    decision.successor = ClassicGroup("g", 0, group.offsets, 0)
    script = play(monkeypatch, decision)
    runner.run(group, "begin")
    assert registry.groups["g"] is decision.successor
    assert script.events == ["begin", Downgraded()]


def test_nobody_waits_for_a_write_that_does_not_come(runner, group, monkeypatch):
    promised, followed = Decision(group), Decision(group)
    promised.promise(print, "written", "refused")
    followed.write([], lambda code: code)
    play(monkeypatch, promised, followed)
    for _ in range(2):
        with pytest.raises(AssertionError, match="waits for"):
            runner.run(group, "begin")
    with pytest.raises(AssertionError, match="one batch"):
        followed.write([ENTRY])


def test_a_heartbeat_begins_the_session_of_a_member_again(runner, world):
    member = ClassicClient(world)
    stabilise(member)
    group = world.coordinator.registry.groups["g"]
    request = HeartbeatRequest(group_id="g", member_id=member.id, generation_id=member.generation)
    assert runner.heartbeat(group, request) == ErrorCode.NONE
    assert group.members[member.id].session.running
    request.member_id = "stranger"
    assert runner.heartbeat(group, request) == ErrorCode.UNKNOWN_MEMBER_ID
    assert "Runner of" in repr(runner)


def test_a_commit_says_that_a_member_is_alive_if_it_is_one(runner, world):
    member = ClassicClient(world)
    stabilise(member)
    session = world.coordinator.registry.groups["g"].members[member.id].session
    world.coordinator._timers.stop(session)
    for group_id, member_id in (("nobody", member.id), ("g", "stranger")):
        runner.committed(group_id, member_id)
        assert not session.running
    runner.committed("g", member.id)
    assert session.running
