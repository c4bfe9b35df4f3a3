"""Which broker leads what: each about as many, and no partition moves without need."""

from dataclasses import replace

from horolog.broker.bucket.balance import heirs, loads_of, surplus
from horolog.broker.bucket.bucket_entries import HandedOver, WalEnded
from horolog.broker.cluster.cluster_state import Lead
from tests.unit.broker.bucket.bucket_states import after, check, created, of, registered


def test_what_a_broker_led_goes_to_those_that_lead_the_fewest():
    state = of(1, 2, 3, partitions=9)
    leads = heirs(state, state.led_by(2), 2)
    assert len(leads) == 3
    ended = state.apply(WalEnded(state.wal_of(2), 4, leads))
    check(ended)
    assert sorted(loads_of(ended).values()) == [4, 5]


def test_without_another_broker_there_is_no_heir():
    state = of(1)
    assert heirs(state, state.led_by(1), 1) == {}


def test_a_broker_that_joins_gets_its_share_and_then_nothing_moves():
    state = after(registered(3), state=of(1, 2, partitions=12))
    for node in (1, 2):
        leads = surplus(state, node, 100)
        assert {lead.node for lead in leads.values()} == {3}
        state = state.apply(HandedOver(state.wal_of(node), 1, leads))
    check(state)
    assert sorted(loads_of(state).values()) == [4, 4, 4]
    assert not any(surplus(state, node, 100) for node in (1, 2, 3))


def test_so_many_at_a_time_and_only_a_members():
    state = after(registered(2), state=of(1, partitions=12))
    leads = surplus(state, 1, 2)
    assert list(leads.values()) == [Lead(2, 1), Lead(2, 1)]
    assert surplus(state, 7, 2) == {}


def test_one_more_than_another_is_no_surplus():
    assert surplus(of(1, 2, partitions=3), 1, 9) == {}


def on(machine, node):
    return replace(registered(node), host=machine)


def test_heirs_are_on_other_machines_where_there_are_any():
    """The workers of a machine stop together."""
    state = after(*(on("a", node) for node in (1, 2)), *(on("b", node) for node in (3, 4)), created(partitions=8))
    assert {lead.node for lead in heirs(state, state.led_by(1), 1).values()} == {3, 4}
    alone = after(*(on("a", node) for node in (1, 2, 3)), created(partitions=9))
    assert {lead.node for lead in heirs(alone, alone.led_by(1), 1).values()} == {2, 3}
