"""The journal of a prefix: entries that are missing or damaged, and snapshots."""

import pytest

from horolog.broker.bucket.names import LOG, SNAPSHOTS, key
from horolog.broker.prefix.journal_check import check_journal
from horolog.broker.prefix.prefix_reader import PrefixReader
from tests.support.prefix_objects import change, new_prefix


@pytest.fixture
def store():
    return new_prefix()


def checked(store):
    with PrefixReader(store, 2) as reader:
        found = check_journal(reader)
    return found, [(one.kind.value, one.name) for one in found.findings]


def test_a_whole_journal(store):
    found, findings = checked(store)
    assert (found.cluster_id, found.state.number, findings) == ("c1", 5, [])


def test_behind_a_missing_entry_the_next_snapshot_counts(store):
    change(store, key(LOG, 2), None)
    found, findings = checked(store)
    assert (found.state.number, findings) == (5, [("missing", key(LOG, 2))])
    assert set(found.state.members) == {2}


def test_without_a_snapshot_the_state_is_the_one_before_the_damage(store):
    change(store, key(SNAPSHOTS, 4), None)
    change(store, key(LOG, 3), b"damage")
    found, findings = checked(store)
    assert (found.state.number, findings) == (2, [("damaged", key(LOG, 3))])


@pytest.mark.parametrize(("data", "kind"), [(None, "missing"), (b"damage", "damaged")])
def test_the_first_object(store, data, kind):
    change(store, key(LOG, 0), data)
    found, findings = checked(store)
    assert (found.cluster_id, findings) == ("", [(kind, key(LOG, 0))])


def test_a_snapshot_of_another_state(store):
    other = store.get(key(SNAPSHOTS, 4))
    change(store, key(SNAPSHOTS, 4), b"damage")
    assert checked(store)[1] == [("damaged", key(SNAPSHOTS, 4))]
    change(store, key(SNAPSHOTS, 4), other)
    change(store, key(LOG, 4), store.get(key(LOG, 4)).replace(b"HandedOver", b"BrokerLeft"))
    assert checked(store)[1] == [("damaged", key(LOG, 4))]


def test_a_snapshot_that_the_entries_do_not_lead_to(store):
    from horolog.broker.bucket.bucket_entries import BrokerRegistered
    from horolog.broker.bucket.bucket_state import BucketState
    from horolog.broker.bucket.journal_objects import encode_snapshot

    state = BucketState()
    for node in (5, 6, 7, 8):
        state = state.apply(BrokerRegistered(node, "h", ()))
    change(store, key(SNAPSHOTS, 4), encode_snapshot(state))
    found, findings = checked(store)
    assert (set(found.state.members), findings) == ({2}, [("damaged", key(SNAPSHOTS, 4))])
