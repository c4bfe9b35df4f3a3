"""`kip848.decide` alone: what every event does to a group of the newer protocol, as data, with nothing around it."""

from types import SimpleNamespace

import pytest

from horolog.broker.groups.classic_events import Client, GroupLoaded, JoinGroup, Killed, LeaveGroup, SyncGroup, Timeouts
from horolog.broker.groups.classic_group import ClassicGroup, GroupState
from horolog.broker.groups.consumer_group import LEAVE_EPOCH, STATIC_LEAVE_EPOCH, ConsumerGroup
from horolog.broker.groups.kip848 import decide
from horolog.broker.groups.kip848_events import NOT_COME_BACK, SILENT, Heartbeat, Leave, Overdue, Upgraded
from horolog.broker.groups.offsets import GroupOffsets
from horolog.broker.groups.reconcile import MemberState
from horolog.broker.groups.topic_patterns import PatternError
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest, TopicPartitions
from horolog.protocol.messages.groups import HeartbeatRequest, MemberIdentity
from tests.support.group_members import subscription
from tests.support.processor_time import at_most

CLIENT = Client("client", "/127.0.0.1")
TOPIC = SimpleNamespace(name="t", id=b"t" * 16, partition_count=4)
SESSION_MS, INTERVAL_MS, REBALANCE_MS = 45_000, 5_000, 20_000
OK = ErrorCode.NONE


class Known:
    """What decisions may look at: one topic, and patterns that are its name."""

    def __init__(self, **settings):
        defaults = {
            "group_consumer_max_size": 10,
            "group_max_size": 10,
            "group_consumer_session_timeout_ms": SESSION_MS,
            "group_consumer_heartbeat_interval_ms": INTERVAL_MS,
            "group_consumer_migration_policy": "bidirectional",
            "authorizer_class_name": "",
        }
        self.settings = SimpleNamespace(**(defaults | settings))
        self.topics = {"t": TOPIC}
        self.by_id = {TOPIC.id: TOPIC}

    def group_setting(self, group, key):
        return getattr(self.settings, f"group_{key.replace('.', '_')}")

    def check_pattern(self, pattern, may_describe):
        if pattern == "[":
            raise PatternError("a class that does not end")

    def matching(self, pattern, may_describe=None):
        return frozenset({"t"} if pattern == "t.*" else ())


KNOWN = Known()


@pytest.fixture
def group():
    return ConsumerGroup("g", 0, GroupOffsets(), 0)


def beat(member_id, epoch=0, *, owned=None, may_describe=None, **fields):
    partitions = None if owned is None else [TopicPartitions(topic_id=TOPIC.id, partitions=owned)]
    if not epoch:
        fields = {"rebalance_timeout_ms": REBALANCE_MS, "subscribed_topic_names": ["t"]} | fields
        partitions = []
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=member_id, member_epoch=epoch, topic_partitions=partitions, **fields
    )
    return Heartbeat(request, CLIENT, (), f"beat of {member_id}", may_describe)


def leave(member_id, epoch=LEAVE_EPOCH, instance_id=None):
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=member_id, member_epoch=epoch, instance_id=instance_id
    )
    return Leave(request, f"leave of {member_id}")


def join(member_id="", *, instance_id=None, version=3):
    protocols = (("range", subscription("t")),)
    timeouts = Timeouts(10_000, REBALANCE_MS)
    return JoinGroup(
        member_id, instance_id, "consumer", protocols, timeouts, CLIENT, version, lambda: "old-1", "classic join"
    )


def step(group, event, known=KNOWN):
    return decide(group, event, known, 1_000_000)


def timers(group, decision):
    named = {}
    for member in group.members.values():
        named[id(member.session)] = f"session {member.id}"
        named[id(member.rebalance)] = f"rebalance {member.id}"
        if member.classic is not None:
            named[id(member.classic.comeback)] = f"comeback {member.id}"
    return [(named.get(id(timer), "gone"), after_ms) for timer, after_ms, _ in decision.timers]


def has(member):
    return sorted(index for indexes in member.current.assigned.values() for index in indexes)


# -- heartbeats


def test_the_first_member_gets_everything_once_that_is_written(group):
    decision = step(group, beat("A"))
    (promise,) = decision.promises
    assert (promise.to, promise.response.member_epoch, decision.answers) == ("beat of A", 1, [])
    assert promise.response.heartbeat_interval_ms == INTERVAL_MS
    assert [one.partitions for one in promise.response.assignment.topic_partitions] == [[0, 1, 2, 3]]
    assert promise.refusal.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert timers(group, decision) == [("session A", SESSION_MS)]
    assert group.members["A"].session.event == Overdue(group.members["A"], SILENT)
    assert decision.entries


def test_a_heartbeat_that_changes_nothing_writes_nothing_and_is_answered_at_once(group):
    step(group, beat("A"))
    decision = step(group, beat("A", 1))
    (answer,) = decision.answers
    assert (answer.response.error_code, answer.response.assignment) == (OK, None)
    assert (decision.entries, decision.promises) == ([], [])
    assert timers(group, decision) == [("session A", SESSION_MS)]


def test_a_member_gives_back_before_another_gets(group):
    step(group, beat("A"))
    step(group, beat("B"))
    assert (has(group.members["B"]), group.members["B"].current.state) == ([], MemberState.UNRELEASED)
    told = step(group, beat("A", 1))
    (promise,) = told.promises
    kept = promise.response.assignment.topic_partitions[0].partitions
    assert (len(kept), promise.response.member_epoch) == (2, 1)
    assert timers(group, told) == [("rebalance A", REBALANCE_MS), ("session A", SESSION_MS)]
    assert [setting.unless_running for setting in told.timers] == [True, False]
    done = step(group, beat("A", 1, owned=kept))
    assert timers(group, done)[0] == ("rebalance A", None)
    assert step(group, beat("B", 2)).promises
    assert sorted(has(group.members["A"]) + has(group.members["B"])) == [0, 1, 2, 3]


REFUSALS = [
    (beat("X", 3), ErrorCode.UNKNOWN_MEMBER_ID),
    (beat("A", 7), ErrorCode.FENCED_MEMBER_EPOCH),
    (beat("X", 1, instance_id="i"), ErrorCode.FENCED_INSTANCE_ID),
    (beat("X", instance_id="i"), ErrorCode.UNRELEASED_INSTANCE_ID),
    (beat("X", subscribed_topic_regex="["), ErrorCode.INVALID_REGULAR_EXPRESSION),
    (leave("X"), ErrorCode.UNKNOWN_MEMBER_ID),
    (leave("X", STATIC_LEAVE_EPOCH, "i"), ErrorCode.FENCED_INSTANCE_ID),
]


@pytest.mark.parametrize(("event", "code"), REFUSALS)
def test_what_is_refused_changes_nothing(group, event, code):
    step(group, beat("A"))
    step(group, beat("S", instance_id="i"))
    before = group.epoch, list(group.members)
    decision = step(group, event)
    (answer,) = decision.answers
    assert answer.response.error_code == code
    assert (decision.entries, decision.timers, decision.promises) == ([], [], [])
    assert (group.epoch, list(group.members)) == before


def test_a_full_group_takes_nobody(group):
    step(group, beat("A"))
    (answer,) = step(group, beat("B"), Known(group_consumer_max_size=1)).answers
    assert answer.response.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_records_of_the_group_before_go_first_and_only_if_the_member_is_taken(group):
    first = (b"old group", None)
    assert step(group, beat("A", 5)._replace(entries=[first])).entries == []
    assert step(group, beat("A")._replace(entries=[first])).entries[0] == first


# -- leaving, and time


def test_who_leaves_is_written_out_of_the_group(group):
    step(group, beat("A"))
    step(group, beat("B"))
    decision = step(group, leave("A"))
    assert (list(group.members), group.epoch) == (["B"], 3)
    assert [value for _, value in decision.entries[:3]] == [None, None, None]
    assert decision.promises[0].response.member_epoch == LEAVE_EPOCH
    assert all(after_ms is None for _, after_ms, _ in decision.timers)


def test_a_static_member_that_leaves_for_a_while_is_replaced_under_its_instance_id(group):
    step(group, beat("A", instance_id="i"))
    step(group, leave("A", STATIC_LEAVE_EPOCH, "i"))
    assert (list(group.members), group.members["A"].current.epoch) == (["A"], STATIC_LEAVE_EPOCH)
    decision = step(group, beat("B", instance_id="i"))
    assert (list(group.members), group.statics, has(group.members["B"])) == (["B"], {"i": "B"}, [0, 1, 2, 3])
    assert timers(group, decision)[-1] == ("session B", SESSION_MS)


def test_a_member_that_is_overdue_is_out_once(group):
    step(group, beat("A"))
    event = group.members["A"].session.event
    decision = step(group, event)
    assert (group.is_empty, len(decision.notes), bool(decision.entries)) == (True, 1, True)
    again = step(group, event)
    assert (again.notes, again.entries, again.timers) == ([], [], [])


def test_sessions_begin_with_loading_and_upgrades_and_end_with_the_group(group):
    step(group, beat("A"))
    assert timers(group, step(group, GroupLoaded())) == [("session A", SESSION_MS)]
    assert ("session A", SESSION_MS) in timers(group, step(group, Upgraded()))
    assert ("session A", None) in timers(group, step(group, Killed()))


# -- members that speak the classic protocol


@pytest.fixture
def mixed(group):
    step(group, join())
    step(group, beat("A"))
    return group


def test_a_classic_member_joins_syncs_and_is_told_to_come_back(group):
    decision = step(group, join())
    (promise,) = decision.promises
    assert (promise.response.generation_id, promise.response.leader, promise.response.member_id) == (1, "", "old-1")
    assert timers(group, decision)[-1] == ("comeback old-1", REBALANCE_MS)
    assert group.members["old-1"].classic.comeback.event == Overdue(group.members["old-1"], NOT_COME_BACK)
    synced = step(group, SyncGroup("old-1", None, 1, "consumer", "range", {}, "sync"))
    assert synced.answers[0].response.error_code == OK
    assert timers(group, synced) == [("comeback old-1", None), ("session old-1", 10_000)]
    heartbeat = HeartbeatRequest(member_id="old-1", generation_id=1)
    assert step(group, heartbeat).result == OK
    step(group, beat("A"))
    told = step(group, heartbeat)
    assert (told.result, timers(group, told)[-1]) == (ErrorCode.REBALANCE_IN_PROGRESS, ("comeback old-1", REBALANCE_MS))


def test_a_restarted_static_classic_member_is_removed_too_if_it_does_not_sync(group):
    step(group, join(instance_id="i")._replace(new_id=lambda: "old-1"))
    step(group, SyncGroup("old-1", "i", 1, "consumer", "range", {}, "sync"))
    decision = step(group, join(instance_id="i")._replace(new_id=lambda: "old-2"))
    assert timers(group, decision)[-1] == ("comeback old-2", REBALANCE_MS)
    step(group, group.members["old-2"].classic.comeback.event)
    assert group.is_empty


def test_from_v4_on_a_classic_member_is_told_its_id_first(group):
    (answer,) = step(group, join(version=4)).answers
    assert (answer.response.error_code, answer.response.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "old-1")
    assert not group.members


@pytest.mark.parametrize(
    ("member_id", "generation", "code"),
    [("A", 2, ErrorCode.UNKNOWN_MEMBER_ID), ("old-1", 9, ErrorCode.ILLEGAL_GENERATION), ("x", 1, ErrorCode.UNKNOWN_MEMBER_ID)],
)  # fmt: skip
def test_wrong_classic_requests_are_refused(mixed, member_id, generation, code):
    assert step(mixed, HeartbeatRequest(member_id=member_id, generation_id=generation)).result == code
    (answer,) = step(mixed, SyncGroup(member_id, None, generation, None, None, {}, "sync")).answers
    assert answer.response.error_code == code


def test_the_group_goes_on_as_a_classic_one_when_the_last_new_member_leaves(mixed):
    decision = step(mixed, leave("A"))
    made = decision.successor
    assert isinstance(made, ClassicGroup)
    assert (made.state, list(made.members), made.generation) == (GroupState.STABLE, ["old-1"], mixed.epoch)
    assert decision.entries[-1] == made.entry()
    assert not step(mixed, leave("old-1"), Known(group_consumer_migration_policy="disabled")).successor


def test_both_kinds_of_members_can_be_taken_out_at_once(mixed):
    names = ["A", "x", "old-1", "A"]
    decision = step(mixed, LeaveGroup([MemberIdentity(member_id=name) for name in names]))
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert (decision.result, mixed.is_empty) == ([OK, unknown, OK, unknown], True)
    assert decision.entries


# -- patterns and access lists

SEEN, SECRET, LATER = (
    SimpleNamespace(name=name, id=name[0].encode() * 16, partition_count=2) for name in ("seen", "xsecret", "later")
)


class Several(Known):
    """Topics that all match, and access lists."""

    def __init__(self, *topics):
        super().__init__(authorizer_class_name="StandardAuthorizer")
        self.let(*topics)

    def let(self, *topics):
        self.topics = {one.name: one for one in topics}
        self.by_id = {one.id: one for one in topics}

    def matching(self, pattern, may_describe=None):
        return frozenset(name for name in self.topics if may_describe is None or may_describe(name))


class Eyes:
    """A principal, as far as topics go."""

    def __init__(self, *names):
        self.names = names

    def may_describe(self, name):
        return name in self.names


def look(member_id, epoch, eyes):
    fields = {} if epoch else {"subscribed_topic_names": [], "subscribed_topic_regex": ".*"}
    return beat(member_id, epoch, may_describe=eyes.may_describe, **fields)


def given(group, member_id):
    known = {one.id: one.name for one in (SEEN, SECRET, LATER)}
    return {known[topic]: sorted(indexes) for topic, indexes in group.members[member_id].target.items()}


def test_a_pattern_means_what_its_member_may_describe(group):
    known = Several(SEEN, SECRET)
    step(group, look("A", 0, Eyes("seen")), known)
    assert given(group, "A") == {"seen": [0, 1]}
    assert group.subscribed == {"seen"}
    assert step(group, look("A", 1, Eyes("seen")), known).entries == []


def test_members_of_two_principals_have_topics_of_their_own(group):
    known = Several(SEEN, SECRET)
    step(group, look("A", 0, Eyes("seen")), known)
    step(group, look("B", 0, Eyes("xsecret")), known)
    assert (given(group, "A"), given(group, "B")) == ({"seen": [0, 1]}, {"xsecret": [0, 1]})
    step(group, look("C", 0, Eyes("seen", "xsecret")), known)
    assert sum(len(given(group, each).get("xsecret", [])) for each in "BC") == 2
    assert "xsecret" not in given(group, "A")


def test_rights_that_come_and_go_count_with_the_next_heartbeat(group):
    known = Several(SEEN, SECRET)
    step(group, look("A", 0, Eyes("seen")), known)
    step(group, look("A", 1, Eyes("seen", "xsecret")), known)
    assert given(group, "A") == {"seen": [0, 1], "xsecret": [0, 1]}
    step(group, look("A", 2, Eyes("xsecret")), known)
    assert given(group, "A") == {"xsecret": [0, 1]}
    assert group.epoch == 3


def test_a_new_topic_that_nobody_may_describe_begins_no_epoch(group):
    known = Several(SEEN)
    eyes = Eyes("seen", "later")
    step(group, look("A", 0, eyes), known)
    known.let(SEEN, SECRET)
    assert step(group, look("A", 1, eyes), known).entries == []
    known.let(SEEN, SECRET, LATER)
    step(group, look("A", 1, eyes), known)
    assert given(group, "A") == {"seen": [0, 1], "later": [0, 1]}
    assert group.epoch == 2


def test_a_topic_that_another_member_brings_up_is_hidden_before_it_is_told(group):
    known = Several(SEEN)
    narrow, wide = Eyes("seen"), Eyes("seen", "xsecret")
    step(group, look("A", 0, narrow), known)
    known.let(SEEN, SECRET)
    step(group, look("B", 0, wide), known)
    answer = step(group, look("A", 1, narrow), known)
    assert "xsecret" not in given(group, "A")
    assert given(group, "B")["xsecret"] == [0, 1]
    (promise,) = answer.promises
    told = promise.response.assignment
    assert told is None or SECRET.id not in {one.topic_id for one in told.topic_partitions}


def test_after_a_start_a_member_keeps_what_it_had_until_it_is_heard_of(group):
    known = Several(SEEN, SECRET)
    narrow = Eyes("seen")
    step(group, look("A", 0, narrow), known)
    step(group, look("B", 0, narrow), known)
    step(group, look("A", 1, narrow), known)
    step(group, look("B", group.members["B"].current.epoch, narrow), known)
    before = given(group, "A"), given(group, "B"), group.epoch
    for member in group.members.values():
        member.sight = None
    step(group, GroupLoaded(), known)
    step(group, look("A", group.members["A"].current.epoch, narrow), known)
    step(group, look("B", group.members["B"].current.epoch, narrow), known)
    assert (given(group, "A"), given(group, "B"), group.epoch) == before


def test_without_access_lists_a_pattern_means_all_that_match(group):
    known = Several(SEEN, SECRET)
    known.settings.authorizer_class_name = ""
    step(group, beat("A", subscribed_topic_names=[], subscribed_topic_regex=".*"), known)
    assert given(group, "A") == {"seen": [0, 1], "xsecret": [0, 1]}


def test_a_topic_that_a_member_names_many_times_costs_no_more_than_its_partitions(group):
    step(group, beat("A"))
    event = beat("A", 1)
    event.request.topic_partitions = [TopicPartitions(topic_id=TOPIC.id, partitions=[index]) for index in range(20_000)]
    with at_most(1.0):
        step(group, event)
    assert has(group.members["A"]) == [0, 1, 2, 3]
