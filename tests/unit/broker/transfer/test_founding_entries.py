"""The journal of a cluster that does not begin empty."""

from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.seams import Stretch
from horolog.broker.cluster.cluster_state import Lead
from horolog.broker.on_record.cluster_file import StoredTopic
from horolog.broker.on_record.stored_rules import StoredRule
from horolog.broker.transfer.founding_entries import Beginning
from tests.unit.broker.bucket.bucket_states import registered

ID = b"i" * 16
TOPIC = StoredTopic("t", ID, 2, {"retention.ms": "-1"}, {"folder": [0, 1]})
RULE = StoredRule("quota", "", {"a": 1})


def state_after(beginning, wal_end):
    state = BucketState()
    for entry in beginning.entries(wal_end):
        state = state.apply(entry)
    return state


def test_it_has_no_members_and_the_first_broker_leads_everything_in_the_next_epoch():
    beginning = Beginning(4, "host", (TOPIC,), {(ID, 0): 7}, {"": {"log.retention.ms": "1"}}, (RULE,), 5_000)
    state = state_after(beginning, 3)
    assert (state.members, state.topics["t"].id, state.topics["t"].folders) == ({}, ID, {})
    assert state.topics["t"].overrides == TOPIC.overrides
    assert (dict(state.broker_configs), dict(state.rules)) == ({"": {"log.retention.ms": "1"}}, {RULE.id: RULE})
    assert state.next_producer_id > 5_000
    wal = Wal(4, 1)
    assert dict(state.lineages) == {(ID, 0): (Stretch(7, wal, 3),), (ID, 1): (Stretch(0, wal, 3),)}
    state = state.apply(registered(1))
    assert dict(state.leads) == {(ID, 0): Lead(1, 8), (ID, 1): Lead(1, 1)}


def test_a_folder_with_nothing_makes_a_cluster_with_nothing():
    beginning = Beginning(1, "host", (), {}, {}, (), 0)
    assert len(beginning.entries(0)) == 2
    assert state_after(beginning, 0) == BucketState(number=2)
