"""The cluster as a value: every entry gives the next state, and what a broker has to do follows from the two."""

import random

import pytest

from horolog.broker.base.topic_names import collision_key
from horolog.broker.cluster.cluster_state import (
    PRODUCER_ID_BLOCK_SIZE,
    BrokerConfigsChanged,
    Close,
    ClusterState,
    Configure,
    ConfigureBrokers,
    Delete,
    EpochsTold,
    FoldersRemoved,
    Identify,
    Lead,
    LeadsChanged,
    Make,
    Open,
    PartitionsAdded,
    ProducerIdsReserved,
    RulesChanged,
    TakeRules,
    TopicConfigsChanged,
    TopicsCreated,
    TopicsDeleted,
    TopicsFound,
    TopicsWithdrawn,
    transitions,
)
from horolog.broker.on_record.cluster_file import StoredTopic
from horolog.broker.on_record.stored_rules import StoredRule

ME, OTHER = 1, 2
EMPTY = ClusterState(nodes=(ME,))


def topic(name="t", count=2, number=1, **overrides):
    return StoredTopic(name, bytes([number]) * 16, count, overrides)


def after(*entries, state=EMPTY):
    for entry in entries:
        state = state.apply(entry)
    return state


def steps(before, *entries, me=ME):
    return transitions(before, after(*entries, state=before), me)


T = topic()
CREATED = after(TopicsCreated((T,)))


def test_a_topic_is_made_and_deleted():
    assert steps(EMPTY, TopicsCreated((T,))) == [Make(T, (0, 1))]
    gone = after(TopicsDeleted(("t",)), state=CREATED)
    assert (gone.topics, gone.deleting, gone.partition_count) == ({}, {"t": {T.id}}, 0)
    assert transitions(CREATED, gone, ME) == [Delete("t", T.id)]
    assert after(FoldersRemoved(frozenset([("t", T.id)])), state=gone).deleting == {}
    assert after(FoldersRemoved(frozenset()), state=gone).deleting == gone.deleting


def test_a_topic_that_is_deleted_and_made_anew_is_another_one():
    again = topic(number=2)
    made = after(TopicsDeleted(("t",)), TopicsCreated((again,)), state=CREATED)
    assert transitions(CREATED, made, ME) == [Delete("t", T.id), Make(again, (0, 1))]


def test_a_topic_that_could_not_be_made_leaves_nothing_behind():
    assert after(TopicsWithdrawn(frozenset(["t"])), state=CREATED).deleting == {}
    assert after(TopicsWithdrawn(frozenset(["t"])), state=CREATED).topics == {}


def test_only_what_is_added_is_made():
    grown = topic(count=5)
    assert steps(CREATED, PartitionsAdded((grown,))) == [Make(grown, (2, 3, 4))]
    assert steps(CREATED, PartitionsAdded((topic("u"),))) == []


def test_what_turned_out_to_be_smaller_or_another_asks_for_no_folders():
    big = after(PartitionsAdded((topic(count=5),)), state=CREATED)
    assert steps(big, TopicsFound((topic(count=3),))) == []
    assert after(TopicsFound((topic(count=3),)), state=big).partition_count == 3
    assert steps(CREATED, TopicsFound((topic(number=9),))) == [Identify("t", bytes([9]) * 16)]


@pytest.mark.parametrize("entry", [TopicsFound((T,)), PartitionsAdded((T,)), TopicConfigsChanged({"t": {}})])
def test_a_topic_whose_id_is_for_now_is_on_record_once_it_is_changed(entry):
    unsure = ClusterState.of([T], unidentified=frozenset(["t", "u"]))
    expected = {"t", "u"} if isinstance(entry, PartitionsAdded) else {"u"}
    assert after(entry, state=unsure).unidentified == expected


def test_settings_of_topics_and_brokers():
    changed = {"t": {"retention.ms": "5"}, "unknown": {}}
    assert steps(CREATED, TopicConfigsChanged(changed)) == [Configure("t", {"retention.ms": "5"})]
    assert '"retention.ms": "5"' in after(TopicConfigsChanged(changed), state=CREATED).topics["t"].line
    assert steps(CREATED, BrokerConfigsChanged("", {"a": "b"})) == [ConfigureBrokers({"": {"a": "b"}})]


def test_rules_are_put_replaced_and_removed():
    first, other = StoredRule("acl", "a", {"host": "*"}), StoredRule("acl", "a", {"host": "::1"})
    bob = StoredRule("user", "bob", {})
    state = after(RulesChanged((first, bob)))
    assert state.rules == {("acl", "a"): first, ("user", "bob"): bob}
    left = after(RulesChanged((other,), frozenset([bob.id, ("user", "nobody")])), state=state)
    assert left.rules == {("acl", "a"): other}
    assert steps(state, RulesChanged((other,), frozenset([bob.id]))) == [TakeRules(left.rules)]


def test_producer_ids_are_never_reserved_twice():
    state = after(ProducerIdsReserved(7), ProducerIdsReserved(0))
    assert state.next_producer_id == 7 + PRODUCER_ID_BLOCK_SIZE
    assert steps(state, ProducerIdsReserved(state.next_producer_id)) == []


LED_BY_ME = after(
    TopicsCreated((T,), (((T.id, 0), Lead(ME, 0)), ((T.id, 1), Lead(ME, 0)))), state=ClusterState(nodes=(ME, OTHER, 3))
)


def test_who_leads_no_more_closes_and_who_leads_now_opens():
    there = LeadsChanged((((T.id, 1), Lead(OTHER, 4)),))
    back = LeadsChanged((((T.id, 1), Lead(ME, 5)),))
    moved = after(there, state=LED_BY_ME)
    assert steps(LED_BY_ME, there) == [Close("t", 1)]
    assert steps(LED_BY_ME, there, me=OTHER) == [Open("t", 1, 4)]
    assert steps(LED_BY_ME, there, me=3) == []
    assert steps(moved, back) == [Open("t", 1, 5)]
    assert steps(moved, back, me=OTHER) == [Close("t", 1)]
    assert steps(moved, there) == []


def test_a_lead_goes_with_its_topic_and_nobody_leads_what_is_not_there():
    there = LeadsChanged((((T.id, 1), Lead(OTHER, 4)), ((T.id, 7), Lead(OTHER, 4)), ((bytes(16), 0), Lead(OTHER, 4))))
    assert steps(LED_BY_ME, there) == [Close("t", 1)]
    left = after(there, TopicsDeleted(("t",)), state=LED_BY_ME)
    assert set(left.leads) == {(bytes(16), 0)}


class TestSeveralBrokers:
    NODES = (1, 2, 3)
    ALONE = ClusterState(nodes=NODES)

    def state(self, *entries):
        return after(*entries, state=self.ALONE)

    def test_partitions_are_made_where_they_are_led(self):
        big = topic(count=6)
        made = {node: transitions(self.state(), self.state(TopicsCreated((big,))), node) for node in self.NODES}
        indexes = [step.indexes for (step,) in made.values()]
        assert sorted(index for each in indexes for index in each) == [0, 1, 2, 3, 4, 5]
        state = self.state(TopicsCreated((big,)))
        for node, (step,) in made.items():
            assert {state.leader(big.id, index) for index in step.indexes} == {node}
            assert all(state.leads_here(big, index, node) for index in step.indexes)

    def test_one_that_was_moved_is_led_there(self):
        created = self.state(TopicsCreated((T,)))
        was = created.leader(T.id, 0)
        now, third = [node for node in self.NODES if node != was]
        moved = created.apply(LeadsChanged((((T.id, 0), Lead(now, 4)),)))
        assert moved.leader(T.id, 0) == now
        assert transitions(created, moved, was) == [Close("t", 0)]
        assert transitions(created, moved, now) == [Open("t", 0, 4)]
        assert transitions(created, moved, third) == []
        assert moved.epoch(T.id, 0) == 4

    def test_a_lead_of_a_node_that_is_none_of_them_counts_as_not_moved(self):
        created = self.state(TopicsCreated((T,)))
        moved = created.apply(LeadsChanged((((T.id, 0), Lead(9, 4)),)))
        assert moved.leader(T.id, 0) == created.leader(T.id, 0)

    def test_epochs_are_told_and_go_with_the_topic(self):
        told = self.state(TopicsCreated((T,)), EpochsTold((((T.id, 0), 3), ((T.id, 1), 1))))
        assert (told.epoch(T.id, 0), told.epoch(T.id, 1), told.epoch(T.id, 2)) == (3, 1, 0)
        assert transitions(told, told.apply(EpochsTold((((T.id, 0), 4),))), ME) == []
        moved = told.apply(LeadsChanged((((T.id, 1), Lead(OTHER, 2)),)))
        assert (told.records(T.id, range(3)), told.records(bytes(16), range(1))) == ([3, 1, None], [None])
        assert moved.records(T.id, range(2)) == [None, Lead(OTHER, 2), 3, 1]
        assert told.apply(TopicsDeleted(("t",))).epochs == {}


def test_partitions_that_another_broker_leads_are_made_there():
    leads = LeadsChanged((((T.id, 0), Lead(OTHER, 0)), ((T.id, 1), Lead(ME, 0))))
    state = after(leads, state=ClusterState(nodes=(ME, OTHER)))
    assert steps(state, TopicsCreated((T,))) == [Make(T, (1,))]
    assert steps(state, TopicsCreated((T,)), me=OTHER) == [Make(T, (0,))]


def entries(chance):
    names = ["a", "b.c", "c_c", "d"]
    name, count = chance.choice(names), chance.randrange(1, 5)
    one = topic(name, count, chance.randrange(9))
    return chance.choice(
        [
            TopicsCreated((one, topic("e", 1, 8))),
            TopicsDeleted((name, "nobody")),
            TopicsWithdrawn(frozenset([name])),
            FoldersRemoved(frozenset([(name, one.id)])),
            PartitionsAdded((one,)),
            TopicsFound((one,)),
            TopicConfigsChanged({name: {"retention.ms": str(count)}}),
            BrokerConfigsChanged(str(count), {"x": name}),
            ProducerIdsReserved(1000 * count),
            LeadsChanged((((one.id, count), Lead(chance.randrange(3), count)),)),
        ]
    )


@pytest.mark.parametrize("seed", range(20))
def test_any_entry_can_be_applied_to_any_state_and_gives_the_same_everywhere(seed):
    chance = random.Random(seed)
    history = [entries(chance) for _ in range(200)]
    first, second = after(*history), after(*history)
    assert first == second
    assert first.number == 200
    assert first.partition_count == sum(one.partition_count for one in first.topics.values())
    assert first.collision_keys.keys() == {collision_key(name) for name in first.topics}
    assert transitions(first, first, ME) == []
