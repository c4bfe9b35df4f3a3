"""The cluster over a store as a value: members, leaders and lineages, whatever entries come in whatever order."""

import random

from horolog.broker.bucket.bucket_entries import (
    BrokerLeft,
    HandedOver,
    Suspected,
    SuspicionEnded,
    WalEnded,
)
from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.seams import Stretch
from horolog.broker.cluster.cluster_state import (
    Lead,
    LeadsChanged,
    Open,
    PartitionsAdded,
    ProducerIdsReserved,
    TopicsDeleted,
    transitions,
)
from horolog.broker.on_record.cluster_file import StoredTopic
from tests.unit.broker.bucket.bucket_states import ID, after, check, created, epochs, led, of, registered


def test_new_partitions_are_spread_over_the_members_in_epoch_0():
    state = of(1, 2, 3)
    check(state)
    assert sorted(led(state)) == [1, 1, 2, 2, 3, 3]
    assert set(epochs(state)) == {0}
    assert state.lineages[ID, 0] == (Stretch(0, state.wal_of(led(state)[0])),)
    assert state.leader(ID, 99) == -1
    assert state.wal_of(4) is None
    assert state.read_wals == state.written_wals == {state.wal_of(node) for node in (1, 2, 3)}
    assert state.was_member(3)
    assert not state.was_member(4)
    joined = after(registered(4), state=state)
    ended = after(WalEnded(joined.wal_of(4), 0), state=joined)
    assert not any(stretch.wal.node == 4 for line in ended.lineages.values() for stretch in line)
    assert ended.was_member(4), "it has led nothing, and was fenced"


def test_a_requested_leader_counts_if_it_is_a_member():
    leads = (((ID, 0), Lead(2, 7)), ((ID, 1), Lead(9, 0)))
    state = after(registered(1), registered(2), created(leads=leads))
    check(state)
    assert state.leads[ID, 0] == Lead(2, 7), "a topic that was imported begins in a later epoch"
    assert state.lineages[ID, 0] == (Stretch(7, state.wal_of(2)),)
    assert state.leads[ID, 1].node in {1, 2}


def test_partitions_that_are_added_get_leaders_and_the_others_keep_theirs():
    state = of(1, 2)
    grown = state.apply(PartitionsAdded((StoredTopic("t", ID, 9, {}),)))
    check(grown)
    assert led(grown)[:6] == led(state)


def test_a_deleted_topic_has_no_lineage():
    state = of(1, 2).apply(TopicsDeleted(("t",)))
    check(state)
    assert not state.leads
    assert not state.lineages


def test_topics_of_a_cluster_without_members_wait_for_one():
    state = after(created())
    check(state)
    assert set(led(state)) == {-1}
    state = state.apply(registered(4))
    check(state)
    assert (set(led(state)), set(epochs(state))) == ({4}, {0})


def test_leads_of_workers_mean_nothing_here():
    state = of(1, 2)
    moved = state.apply(LeadsChanged((((ID, 0), Lead(2, 9)),)))
    assert moved.number == state.number + 1
    assert moved.leads == state.leads


def test_an_entry_that_changes_no_topic_keeps_leads_as_they_are():
    state = of(1, 2)
    assert state.apply(ProducerIdsReserved(0)).leads is state.leads


def test_steps_follow_from_a_fence():
    state = of(1, 2, partitions=2)
    (place,) = state.led_by(2)
    ended = state.apply(WalEnded(Wal(2, 2), 7, {place: Lead(1, 1)}))
    check(ended)
    assert transitions(state, ended, 1) == [Open("t", place[1], 1)]
    assert ended.lineages[place] == (Stretch(0, Wal(2, 2), 7), Stretch(1, Wal(1, 1)))
    assert ended.fenced == {Wal(2, 2)}


def random_entry(chance, state):
    nodes = list(state.members) or [1]
    node = chance.choice(nodes)
    wal = state.wal_of(node) or Wal(node, 1)
    if chance.random() < 0.1:
        wal = Wal(node, chance.randrange(9))
    epoch = chance.choice([1, 1, 1, 2])
    leads = {
        place: Lead(chance.choice([*nodes, 9]), lead.epoch + epoch)
        for place, lead in state.leads.items()
        if chance.random() < 0.6
    }
    choices = [
        lambda: registered(chance.randrange(5), ended=chance.choice([None, 3]), is_dead=chance.random() < 0.5),
        lambda: WalEnded(wal, chance.randrange(9), leads),
        lambda: HandedOver(wal, chance.randrange(9), leads),
        lambda: BrokerLeft(wal, chance.randrange(9)),
        lambda: Suspected(chance.randrange(5), node),
        lambda: Suspected(node, node),
        lambda: SuspicionEnded(chance.choice(nodes), node),
        lambda: created(f"t{state.number}", 3, b"%16d" % state.number),
        lambda: TopicsDeleted(tuple(list(state.topics)[:1])),
    ]
    return chance.choice(choices)()


def test_whatever_entries_come_each_partition_has_one_open_stretch_that_is_its_leaders():
    for seed in range(60):
        chance = random.Random(seed)
        state = BucketState()
        for _ in range(40):
            before, state = state, state.apply(random_entry(chance, state))
            check(state)
            for place, line in state.lineages.items():
                old = before.lineages.get(place, ())
                known = [one for one in old if one.end is not None]
                assert list(line[: len(known)]) == known, "what has ended stays as it is"


def test_values_that_leaders_follow_from_are_replaced_with_each_change_of_them_and_with_no_other():
    state = of(1, 2, 3)

    def follows(*entries):
        pairs = zip(state.leaders_follow_from(), after(*entries, state=state).leaders_follow_from(), strict=True)
        return all(one is other for one, other in pairs)

    assert follows(ProducerIdsReserved(1))
    assert not follows(Suspected(2, 1))
    assert not follows(registered(4))
    assert not follows(WalEnded(state.wal_of(1), 0, {(ID, 0): Lead(2, 1)}))
    moved = HandedOver(state.wal_of(state.leader(ID, 0)), 0, {(ID, 0): Lead(state.leader(ID, 1), 1)})
    assert follows(moved), "its record has the leader"
    assert after(moved, state=state).records(ID, range(2)) == [Lead(state.leader(ID, 1), 1), state.leads[ID, 1]]
