"""The entries of a cluster over a store: what each does to the state that it fits, and nothing to another."""

import pytest

from horolog.broker.bucket.bucket_entries import (
    BrokerLeft,
    HandedOver,
    Suspected,
    SuspicionEnded,
    TailsCovered,
    WalEnded,
)
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.seams import Stretch
from horolog.broker.cluster.cluster_state import Lead
from tests.unit.broker.bucket.bucket_states import after, check, created, epochs, led, of, registered


def only_number(before, entry):
    state = before.apply(entry)
    assert state.number == before.number + 1
    return state.leads == before.leads and state.members == before.members and state.lineages == before.lineages


def test_a_broker_that_registers_again_leads_what_it_led_in_the_next_epoch():
    state = of(1, 2)
    again = state.apply(registered(1, ended=5, is_dead=True))
    check(again)
    assert led(again) == led(state)
    assert [epoch for epoch, node in zip(epochs(again), led(again), strict=True) if node == 1] == [1, 1, 1]
    assert again.wal_of(1) == Wal(1, again.number)
    place = again.led_by(1)[0]
    assert again.lineages[place] == (Stretch(0, Wal(1, 1), 5), Stretch(1, Wal(1, 4)))
    assert not again.fenced


def test_a_predecessor_that_may_live_counts_as_fenced():
    assert of(1, 2).apply(registered(1, ended=5)).fenced == {Wal(1, 1)}


@pytest.mark.parametrize("entry", [registered(1), registered(3, ended=5)])
def test_a_registration_that_was_decided_on_another_state_is_void(entry):
    assert only_number(of(1, 2), entry)


def test_a_fenced_broker_is_no_member_and_leads_nothing():
    state = of(1, 2, 3)
    places = state.led_by(2)
    ended = state.apply(WalEnded(Wal(2, 2), 7, {places[0]: Lead(1, 1), places[1]: Lead(2, 1)}))
    check(ended)
    assert ended.nodes == (1, 3)
    assert ended.leads[places[0]] == Lead(1, 1)
    assert ended.leads[places[1]] == Lead(-1, 0)
    back = ended.apply(registered(2))
    check(back)
    assert back.leads[places[1]] == Lead(2, 1)
    assert back.lineages[places[1]] == (Stretch(0, Wal(2, 2), 7), Stretch(1, Wal(2, 6)))


@pytest.mark.parametrize(
    "entry",
    [WalEnded(Wal(2, 1), 7, {}), WalEnded(Wal(4, 4), 7, {}), BrokerLeft(Wal(2, 1), 7), HandedOver(Wal(2, 1), 7, {})],
)
def test_the_end_of_a_wal_that_does_not_lead_is_void(entry):
    assert only_number(of(1, 2), entry)


@pytest.mark.parametrize("lead", [Lead(1, 0), Lead(1, 2), Lead(9, 1)])
def test_a_lead_that_does_not_follow_on_the_known_one_is_left_out(lead):
    state = of(1, 2)
    assert only_number(state, HandedOver(Wal(2, 2), 7, {state.led_by(2)[0]: lead}))


def test_a_leader_hands_over_and_stays_a_member():
    state = of(1, 2)
    one, other, third = state.led_by(2)
    moved = state.apply(HandedOver(Wal(2, 2), 7, {one: Lead(1, 1)}))
    check(moved)
    assert moved.led_by(2) == [other, third]
    back = moved.apply(HandedOver(Wal(1, 1), 3, {one: Lead(2, 2)}))
    check(back)
    assert back.lineages[one] == (Stretch(0, Wal(2, 2), 7), Stretch(1, Wal(1, 1), 3), Stretch(2, Wal(2, 2)))
    assert not back.fenced


def test_the_last_broker_leaves_partitions_without_a_leader():
    state = of(1).apply(BrokerLeft(Wal(1, 1), 9))
    check(state)
    assert set(led(state)) == {-1}
    assert not state.fenced
    assert set(epochs(state.apply(registered(5)))) == {1}


def test_a_member_is_suspected_answers_and_the_suspicion_ends():
    state = of(1, 2, 3).apply(Suspected(2, 1))
    assert state.suspicions == {2: {1: 5}}
    state = after(Suspected(2, 2), Suspected(2, 3), Suspected(2, 3), state=state)
    assert state.suspicions == {2: {1: 5, 2: 6, 3: 7}}
    state = state.apply(SuspicionEnded(2, 1))
    assert state.suspicions == {2: {2: 6, 3: 7}}
    state = state.apply(SuspicionEnded(2, 3))
    assert state.suspicions == {}


@pytest.mark.parametrize("entry", [Suspected(2, 2), Suspected(4, 1), Suspected(2, 4), SuspicionEnded(2, 1)])
def test_an_answer_without_a_suspicion_and_brokers_that_are_no_members_do_not_count(entry):
    assert of(1, 2, 3).apply(entry).suspicions == {}


def test_suspicions_end_with_the_one_that_suspects_and_with_the_one_that_is_suspected():
    state = after(Suspected(2, 1), Suspected(3, 1), Suspected(3, 2), state=of(1, 2, 3))
    state = state.apply(WalEnded(Wal(1, 1), 0, {}))
    assert state.suspicions == {3: {2: 7}}
    assert state.apply(registered(3, ended=0)).suspicions == {}
    assert state.apply(BrokerLeft(Wal(3, 3), 0)).suspicions == {}


def test_a_broker_that_leaves_gives_what_it_leads_to_others():
    state = of(1, 2)
    one, other, third = state.led_by(2)
    left = state.apply(BrokerLeft(Wal(2, 2), 7, {one: Lead(1, 1), other: Lead(1, 1)}))
    check(left)
    assert (left.leads[one], left.leads[third]) == (Lead(1, 1), Lead(-1, 0))
    assert not left.fenced


def test_topics_may_be_there_before_the_first_broker():
    assert set(led(after(created(), registered(1)))) == {1}


def test_covered_tails_leave_the_stretch_of_the_leader_who_says_so():
    state = of(1, 2).apply(registered(1, ended=5, is_dead=True))
    place, other = state.led_by(1)[:2]
    covered = state.apply(TailsCovered({place: 1, other: 0, (b"?" * 16, 0): 0}))
    check(covered)
    assert covered.lineages[place] == state.lineages[place][-1:]
    assert covered.lineages[other] == state.lineages[other], "another epoch is led by now"
    assert covered.leads == state.leads


def test_a_wal_is_spent_once_it_has_ended_and_no_lineage_names_it():
    state = of(1, 2).apply(registered(1, ended=5, is_dead=True))
    old, new, unknown = Wal(1, 1), state.wal_of(1), Wal(3, 10_000)
    assert state.spent([old, new, unknown]) == []
    covered = state.apply(TailsCovered(dict.fromkeys(state.led_by(1), 1)))
    assert covered.spent([old, new, unknown]) == [old]
    assert covered.gone([b"?" * 16, covered.led_by(1)[0][0]]) == [b"?" * 16]
    assert [node for node in (1, 2, 3) if covered.is_first(node)] == [1]
