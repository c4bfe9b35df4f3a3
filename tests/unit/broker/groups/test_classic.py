"""`classic.decide` alone: what every event does in every state, as data, with nothing around it."""

from types import SimpleNamespace

import pytest

from horolog.broker.base.late_answers import ANSWERED_WITHIN_S
from horolog.broker.groups import classic
from horolog.broker.groups.classic import decide
from horolog.broker.groups.classic_events import (
    AssignmentsStored,
    Client,
    Downgraded,
    EmptinessStored,
    FirstWaitOver,
    GroupLoaded,
    JoinGroup,
    JoinOver,
    Killed,
    LeaveGroup,
    NewIdStored,
    PendingOver,
    SessionOver,
    SyncGroup,
    SyncOver,
    Timeouts,
)
from horolog.broker.groups.classic_group import COMES_FROM, ClassicGroup, GroupState, record_of
from horolog.broker.groups.offsets import GroupOffsets
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import HeartbeatRequest, MemberIdentity

NOW_MS = 1_000_000
TIMEOUTS = Timeouts(session_ms=10_000, rebalance_ms=20_000)
SETTINGS = SimpleNamespace(group_max_size=1000, group_initial_rebalance_delay_ms=0)
WAITS = SimpleNamespace(group_max_size=1000, group_initial_rebalance_delay_ms=3000)
OK = ErrorCode.NONE


def join(member_id="", *, instance_id=None, version=3, protocols=(("range", b"r"),), name="new"):
    """The answer goes nowhere: what counts is that the decision has it."""
    client = Client(name, "/127.0.0.1")
    return JoinGroup(
        member_id,
        instance_id,
        "consumer",
        protocols,
        TIMEOUTS,
        client,
        version,
        lambda: f"{name}-1",
        f"join of {member_id or name}",
    )


def sync(member_id, generation=2, assignments=None):
    given = assignments or {}
    return SyncGroup(member_id, None, generation, "consumer", "range", given, f"sync of {member_id}")


def step(group, event, settings=SETTINGS):
    return decide(group, event, settings, NOW_MS)


def group_in(state):
    """A group of two, a-1 that leads and the static b-1, in generation 2, in this state; EMPTY has had them."""
    group = ClassicGroup("g", 0, GroupOffsets(), 0)
    step(group, join(name="a"))
    step(group, join(name="b", instance_id="i"))
    step(group, join("a-1"))
    assert (group.state, group.generation) == (GroupState.COMPLETING, 2)
    if state is GroupState.COMPLETING:
        return group
    written = step(group, sync("a-1", assignments={"a-1": b"pa", "b-1": b"pb"}))
    step(group, written.then(OK))
    if state is GroupState.PREPARING:
        step(group, join("a-1"))
    elif state is GroupState.EMPTY:
        step(group, LeaveGroup([MemberIdentity(member_id="a-1"), MemberIdentity(group_instance_id="i")]))
    elif state is GroupState.DEAD:
        step(group, Killed())
    assert group.state is state
    return group


def codes(decision):
    """Who is told what, in order."""
    return [(str(answer.to), int(answer.response.error_code)) for answer in decision.answers]


def timers(group, decision):
    """Which timers are set to what, by the names that they have in the group."""
    named = {id(member.session): f"session {member.id}" for member in group.members.values()}
    named |= {id(timer): f"pending {member_id}" for member_id, timer in group.pending.items()}
    named |= {id(group.join_timer): "join", id(group.sync_timer): "sync"}
    named |= {id(group.store_timer): "store"}
    return [(named.get(id(timer), "gone"), after_ms) for timer, after_ms, _ in decision.timers]


S, P, C, E, D = GroupState.STABLE, GroupState.PREPARING, GroupState.COMPLETING, GroupState.EMPTY, GroupState.DEAD
UNKNOWN, AGAIN, GONE = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)
LEADER, FOLLOWER, STRANGER, NEW = join("a-1"), join("b-1"), join("c-1"), join(name="c")
CHANGED = join("b-1", protocols=(("range", b"other"),))

JOINS = [
    # state, event, the state after it, answers
    (E, NEW, C, [("join of c", OK)]),
    (E, STRANGER, E, [("join of c-1", UNKNOWN)]),
    (P, LEADER, P, []),
    (P, FOLLOWER, C, [("join of a-1", OK), ("join of b-1", OK)]),
    (P, NEW, P, []),
    (P, STRANGER, P, [("join of c-1", UNKNOWN)]),
    (C, LEADER, C, [("join of a-1", OK)]),
    (C, FOLLOWER, C, [("join of b-1", OK)]),
    (C, CHANGED, P, []),
    (C, NEW, P, []),
    (S, LEADER, P, []),
    (S, FOLLOWER, S, [("join of b-1", OK)]),
    (S, CHANGED, P, []),
    (S, NEW, P, []),
    (S, STRANGER, S, [("join of c-1", UNKNOWN)]),
    (D, NEW, D, [("join of c", GONE)]),
]


@pytest.mark.parametrize(("state", "event", "after", "told"), JOINS)
def test_joining(state, event, after, told):
    group = group_in(state)
    decision = step(group, event)
    assert (group.state, codes(decision)) == (after, told)


SYNCS = [
    (E, "a-1", 2, E, UNKNOWN),
    (P, "a-1", 2, P, AGAIN),
    (C, "b-1", 2, C, None),  # waits for the leader
    (C, "b-1", 1, C, ErrorCode.ILLEGAL_GENERATION),
    (C, "x", 2, C, UNKNOWN),
    (S, "b-1", 2, S, OK),
    (D, "b-1", 2, D, GONE),
]


@pytest.mark.parametrize(("state", "member_id", "generation", "after", "code"), SYNCS)
def test_syncing(state, member_id, generation, after, code):
    group = group_in(state)
    decision = step(group, sync(member_id, generation))
    assert group.state is after
    assert codes(decision) == ([] if code is None else [(f"sync of {member_id}", code)])
    assert not decision.entries


HEARTBEATS = {E: UNKNOWN, P: AGAIN, C: OK, S: OK, D: GONE}


@pytest.mark.parametrize("state", GroupState)
def test_a_heartbeat_changes_nothing_and_begins_a_session_again(state):
    group = group_in(state)
    member = group.members.get("a-1")
    code, alive = classic.heartbeat(group, HeartbeatRequest(member_id="a-1", generation_id=2))
    assert (group.state, code) == (state, HEARTBEATS[state])
    assert alive is (member if state in {P, C, S} else None)
    assert classic.heartbeat(group, HeartbeatRequest(member_id="a-1", generation_id=1))[1] is None
    assert classic.committing(group, "a-1") is (member if state is not D else None)


LEAVES = [(E, E, UNKNOWN, 0), (P, C, OK, 0), (C, P, OK, 0), (S, P, OK, 0), (D, D, GONE, 0)]


@pytest.mark.parametrize(("state", "after", "code", "written"), LEAVES)
def test_leaving(state, after, code, written):
    """In PREPARING a-1 has joined already, so nobody is missing once b-1 is gone."""
    group = group_in(state)
    decision = step(group, LeaveGroup([MemberIdentity(member_id="b-1", group_instance_id="i")]))
    assert (group.state, decision.result, len(decision.entries)) == (after, [code], written)


def test_the_last_one_to_leave_has_an_empty_group_written():
    group = group_in(S)
    decision = step(group, LeaveGroup([MemberIdentity(group_instance_id="i"), MemberIdentity(member_id="a-1")]))
    assert (group.state, decision.result, len(decision.entries)) == (E, [OK, OK], 1)
    assert decision.then(OK) == EmptinessStored(OK)
    assert not step(group, EmptinessStored(OK)).notes
    assert len(step(group, EmptinessStored(GONE)).notes) == 1


# -- writes


def test_assignments_are_told_once_they_are_written():
    group = group_in(C)
    step(group, sync("b-1"))
    decision = step(group, sync("a-1", assignments={"a-1": b"pa", "b-1": b"pb", "x": b"px"}))
    assert (len(decision.entries), decision.answers, group.state) == (1, [], C)
    assignments = {"a-1": b"pa", "b-1": b"pb"}
    assert decision.then(OK) == AssignmentsStored(2, assignments, record_of(group, assignments), OK)
    told = step(group, decision.then(OK))
    assert (group.state, codes(told)) == (S, [("sync of a-1", OK), ("sync of b-1", OK)])
    assert [answer.response.assignment for answer in told.answers] == [b"pa", b"pb"]
    assert timers(group, told) == [("gone", None), ("session a-1", 10_000), ("session b-1", 10_000)]


@pytest.mark.parametrize(
    ("failure", "told"),
    [(GONE, GONE), (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR)],
)
def test_assignments_that_are_not_written_are_not_told_and_a_rebalance_begins(failure, told):
    group = group_in(C)
    decision = step(group, sync("a-1", assignments={"a-1": b"pa"}))
    after = step(group, decision.then(failure))
    assert (group.state, codes(after)) == (P, [("sync of a-1", told)])
    assert [member.assignment for member in group.members.values()] == [b"", b""]


def test_assignments_of_a_generation_that_is_over_do_nothing():
    group = group_in(C)
    decision = step(group, sync("a-1", assignments={"a-1": b"pa"}))
    assert codes(step(group, NEW)) == [("sync of a-1", AGAIN)]
    late = step(group, decision.then(OK))
    assert (group.state, late.answers, late.timers, late.entries) == (P, [], [], [])


def test_a_static_member_that_is_back_is_told_so_once_its_new_id_is_written():
    group = group_in(S)
    decision = step(group, join(name="b2", instance_id="i", version=9))
    assert (group.state, decision.answers, len(decision.entries)) == (S, [], 1)
    assert list(group.members) == ["a-1", "b2-1"]
    (answer,) = step(group, decision.then(OK)).answers
    assert (answer.response.member_id, answer.response.generation_id) == ("b2-1", 2)


def test_a_new_id_that_is_not_written_is_taken_back():
    group = group_in(S)
    decision = step(group, join(name="b2", instance_id="i", version=9))
    stored = decision.then(GONE)
    assert isinstance(stored, NewIdStored)
    after = step(group, stored)
    assert (codes(after), list(group.members), group.statics) == ([("join of b2", GONE)], ["a-1", "b-1"], {"i": "b-1"})
    assert after.notes


@pytest.mark.parametrize(
    ("version", "skipped", "leader", "members"), [(9, True, "a2-1", 1), (5, False, "a-1", 0)], ids=["v9", "v5"]
)
def test_a_static_leader_that_is_back_leaves_the_assignment_alone(version, skipped, leader, members):
    group = ClassicGroup("g", 0, GroupOffsets(), 0)
    step(group, join(name="a", instance_id="i"))
    step(group, step(group, sync("a-1", 1, {"a-1": b"pa"})).then(OK))
    (answer,) = step(group, step(group, join(name="a2", instance_id="i", version=version)).then(OK)).answers
    told = answer.response
    assert (told.skip_assignment, told.leader, len(told.members)) == (skipped, leader, members)


class TestAStaticMemberThatIsBackDuringARebalance:
    """Its new id is written in the stored generation before it hears of it: a coordinator that reads the group knows it."""

    def back(self, state=P, name="b2"):
        group = group_in(state)
        decision = step(group, join(name=name, instance_id="i", version=9))
        return group, decision

    def test_it_takes_part_once_its_new_id_is_written(self):
        group, decision = self.back()
        ((_, written),) = decision.entries
        assert (decision.answers, b"b2-1" in written, b"b-1" in written) == ([], True, False)
        assert [one.member_id for one in group.stored.members] == ["a-1", "b-1"]
        after = step(group, decision.then(OK))
        assert codes(after) == [("join of a-1", OK), ("join of b2", OK)]
        assert (group.state, group.stored.leader) == (C, "a-1")
        assert [one.member_id for one in group.stored.members] == ["a-1", "b2-1"]

    def test_a_leader_has_its_new_id_there_too(self):
        group = ClassicGroup("g", 0, GroupOffsets(), 0)
        step(group, join(name="a", instance_id="i"))
        step(group, step(group, sync("a-1", 1, {"a-1": b"pa"})).then(OK))
        decision = step(group, join(name="a2", instance_id="i", protocols=(("range", b"other"), ("new", b""))))
        step(group, decision.then(OK))
        assert (group.stored.leader, group.stored.generation) == ("a2-1", 1)

    def test_a_new_id_that_is_not_written_is_taken_back(self):
        group, decision = self.back()
        after = step(group, decision.then(GONE))
        assert (codes(after), list(group.members)) == ([("join of b2", GONE)], ["a-1", "b-1"])
        assert after.notes

    def test_a_successor_may_be_faster(self):
        group, decision = self.back()
        second = step(group, join(name="b3", instance_id="i", version=9))
        assert codes(step(group, decision.then(OK))) == [("join of b2", ErrorCode.FENCED_INSTANCE_ID)]
        assert ("join of b3", OK) in codes(step(group, second.then(OK)))

    def test_so_may_its_removal(self):
        group, decision = self.back()
        step(group, LeaveGroup([MemberIdentity(group_instance_id="i")]))
        assert codes(step(group, decision.then(OK))) == [("join of b2", UNKNOWN)]

    def test_a_member_that_the_log_does_not_know_has_nothing_to_write(self):
        group = ClassicGroup("g", 0, GroupOffsets(), 0)
        step(group, join(name="a"))
        step(group, join(name="b", instance_id="i"))
        decision = step(group, join(name="b2", instance_id="i"))
        assert (decision.entries, codes(decision)) == ([], [("join of b", ErrorCode.FENCED_INSTANCE_ID)])


# -- timers


def test_a_new_member_is_told_its_id_and_waited_for():
    group = group_in(S)
    decision = step(group, join(name="c", version=4))
    assert (codes(decision), group.state) == ([("join of c", ErrorCode.MEMBER_ID_REQUIRED)], S)
    assert timers(group, decision) == [("pending c-1", 10_000)]
    assert group.pending["c-1"].event == PendingOver("c-1")
    back = step(group, join("c-1", version=4))
    assert timers(group, back)[:2] == [("gone", None), ("session c-1", classic.NEW_MEMBER_TIMEOUT_MS)]
    assert (group.state, "c-1" in group.members, group.pending) == (P, True, {})


def test_a_rebalance_ends_without_one_that_never_comes_back():
    group = group_in(S)
    for event in (join(name="c", version=4), LEADER, FOLLOWER):
        step(group, event)
    assert group.state is P
    assert codes(step(group, PendingOver("c-1"))) == [("join of a-1", OK), ("join of b-1", OK)]
    assert group.state is C
    assert not step(group, PendingOver("c-1")).answers


SILENCES = [(P, "b-1", C), (C, "a-1", P), (S, "a-1", P)]


@pytest.mark.parametrize(("state", "member_id", "after"), SILENCES)
def test_a_session_that_is_over_takes_a_member_out(state, member_id, after):
    group = group_in(state)
    event = group.members[member_id].session.event
    assert event == SessionOver(group.members[member_id])
    decision = step(group, event)
    assert (group.state, member_id in group.members, len(decision.notes)) == (after, False, 1)
    assert not step(group, event).timers, "a member that is out already"


def test_a_member_that_waits_is_not_silent():
    group = group_in(P)
    assert not step(group, SessionOver(group.members["a-1"])).timers
    assert "a-1" in group.members


def test_the_time_to_join_is_over_for_dynamic_members_and_static_ones_keep_their_place():
    group = group_in(S)
    step(group, NEW)
    assert group.join_timer.event == JoinOver()
    decision = step(group, JoinOver())
    assert (group.state, list(group.members), group.leader_id) == (C, ["b-1", "c-1"], "c-1")
    assert codes(decision) == [("join of c", OK)]
    assert timers(group, decision) == [
        ("join", None), ("gone", None), ("sync", 20_000), ("session b-1", 10_000), ("session c-1", 10_000)
    ]  # fmt: skip


def test_nobody_is_back_yet():
    group = group_in(S)
    step(group, Downgraded())
    step(group, LeaveGroup([MemberIdentity(member_id="a-1")]))
    decision = step(group, JoinOver())
    assert (group.state, timers(group, decision)) == (P, [("join", None), ("join", 20_000)])


def test_all_that_wait_for_assignments_are_answered_where_these_are_not_written_in_time():
    group = group_in(C)
    assert timers(group, step(group, sync("b-1"))) == [], "it waits for the leader, as long as the rebalance may take"
    written = step(group, sync("a-1", assignments={"a-1": b"pa", "b-1": b"pb"}))
    assert timers(group, written) == [("store", ANSWERED_WITHIN_S * 1000)]
    (due,) = written.timers
    assert due.unless_running
    late = step(group, due.timer.event)
    assert codes(late) == [("sync of a-1", GONE), ("sync of b-1", GONE)]
    again = step(group, sync("b-1"))
    assert again.timers == [due]
    stored = step(group, written.then(OK))
    assert (codes(stored), group.state) == ([("sync of b-1", OK)], S)
    assert ("gone", None) in timers(group, stored)


def test_a_rebalance_ends_the_wait_for_assignments():
    group = group_in(C)
    written = step(group, sync("a-1"))
    assert ("gone", None) in timers(group, step(group, NEW))
    assert group.store_timer is None
    assert (step(group, written.timers[0].timer.event).answers, group.state) == ([], P)


def test_the_time_to_sync_is_over():
    group = group_in(C)
    step(group, sync("a-1", assignments={"a-1": b"pa"}))
    assert group.sync_timer.event == SyncOver(2)
    assert not step(group, SyncOver(1)).timers
    decision = step(group, SyncOver(2))
    assert (group.state, list(group.members)) == (P, ["a-1"])
    assert codes(decision) == [("sync of a-1", AGAIN)]
    assert not step(group_in(P), SyncOver(2)).timers


def test_the_first_rebalance_waits_as_long_as_members_come_up_to_their_timeout():
    group = ClassicGroup("g", 0, GroupOffsets(), 0)
    decision = step(group, join(name="a"), WAITS)
    assert timers(group, decision) == [("session a-1", classic.NEW_MEMBER_TIMEOUT_MS), ("join", 3000)]
    waited = [3000]
    while group.state is P:
        step(group, join(name=f"m{len(waited)}"), WAITS)
        event = group.join_timer.event
        assert isinstance(event, FirstWaitOver)
        decision = step(group, event, WAITS)
        waited += [after_ms for timer, after_ms, _ in decision.timers if timer is group.join_timer and after_ms]
    assert (group.state, sum(waited)) == (C, 20_000)
    assert len(decision.answers) == len(group.members)


# -- the group as a whole


def test_a_group_that_was_read_has_its_sessions_before_it():
    group = group_in(S)
    decision = step(group, GroupLoaded())
    assert (group.state, timers(group, decision)) == (S, [("session a-1", 10_000), ("session b-1", 10_000)])


def test_a_group_that_comes_from_the_newer_protocol_is_to_join_again():
    group = group_in(S)
    decision = step(group, Downgraded())
    assert group.state is P
    assert timers(group, decision)[-1] == ("join", 20_000)


@pytest.mark.parametrize("state", GroupState)
def test_who_waits_in_a_group_that_is_no_more_is_told_so(state):
    group = group_in(state)
    if state is C:
        step(group, sync("b-1"))
    decision = step(group, Killed(AGAIN))
    waited = {P: [("join of a-1", AGAIN)], C: [("sync of b-1", AGAIN)]}
    assert (group.state, codes(decision)) == (D, waited.get(state, []))
    assert all(after_ms is None for _, after_ms, _ in decision.timers)


def test_full_groups_and_other_languages():
    full = SimpleNamespace(group_max_size=2, group_initial_rebalance_delay_ms=0)
    group = group_in(S)
    assert codes(step(group, NEW, full)) == [("join of c", ErrorCode.GROUP_MAX_SIZE_REACHED)]
    assert codes(step(group, FOLLOWER, full)) == [("join of b-1", OK)]
    other = join(name="c", protocols=(("sticky", b""),))
    assert codes(step(group, other)) == [("join of c", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)]


EVENTS = [NEW, LEADER, FOLLOWER, CHANGED, STRANGER, sync("a-1"), sync("b-1"), JoinOver(), SyncOver(2), Killed()]


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("state", GroupState)
def test_every_step_is_one_of_the_table(state, event, monkeypatch):
    """Each transition on the way is checked where it is made, and its time is that of the decision."""
    group = group_in(state)
    ways = []
    original = ClassicGroup.go_to

    def go_to(group, to, now_ms):
        ways.append((group.state, to))
        original(group, to, now_ms)

    monkeypatch.setattr(ClassicGroup, "go_to", go_to)
    step(group, event)
    assert all(before in COMES_FROM[to] for before, to in ways)
    assert not ways or group.state_since_ms == NOW_MS
