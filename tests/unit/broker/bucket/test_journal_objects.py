"""Entries and snapshots of the journal as objects."""

import random

import pytest

from horolog.broker.bucket import sealed_lines
from horolog.broker.bucket.journal_objects import (
    NumberedEntry,
    decode_log_entry,
    decode_snapshot,
    encode_log_entry,
    encode_snapshot,
)
from horolog.broker.bucket.sealed_lines import FormatError, Sealed
from horolog.broker.cluster.cluster_state import (
    BrokerConfigsChanged,
    ClusterState,
    EpochsTold,
    Lead,
    LeadsChanged,
    ProducerIdsReserved,
    TopicsCreated,
    TopicsDeleted,
)
from horolog.broker.cluster.entry_lines import encode_entry
from horolog.broker.on_record.cluster_file import StoredTopic
from tests.support import golden_objects
from tests.support.damage import cuts, flips

NONCE = bytes(range(16))
IDS = [bytes([number]) * 16 for number in range(1, 5)]
TOPICS = [StoredTopic(f"t{number}", one, 3, {"retention.ms": "1000"}) for number, one in enumerate(IDS)]
ENTRIES = [
    TopicsCreated(tuple(TOPICS), ((((IDS[0], 1)), Lead(2, 5)),)),
    BrokerConfigsChanged("1", {"log.retention.ms": "5", "num.partitions": "3"}),
    ProducerIdsReserved(1_000),
    LeadsChanged((((IDS[1], 0), Lead(3, 7)),)),
    EpochsTold((((IDS[1], 2), 9),)),
    TopicsDeleted(("t3",)),
]


def state_after(entries):
    state = ClusterState()
    for entry in entries:
        state = state.apply(entry)
    return state


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_is_read_as_it_was_written(entry):
    data = encode_log_entry(NumberedEntry(7, entry, NONCE))
    read = decode_log_entry(data, 7)
    assert (read.number, read.nonce) == (7, NONCE)
    assert encode_log_entry(read) == data
    with pytest.raises(FormatError):
        decode_log_entry(data, 8)


def test_damaged_entries_are_refused():
    data = encode_log_entry(NumberedEntry(7, ENTRIES[2], NONCE))
    assert data == golden_objects.read("entry-1")
    for hurt in (*cuts(data), *flips(data), data + b"\n"):
        with pytest.raises(FormatError):
            decode_log_entry(hurt, 7)


@pytest.mark.parametrize(
    "body",
    [b"", b"no entry\n", encode_entry(7, ENTRIES[2])[:-1], encode_entry(7, ENTRIES[2]) * 2, encode_entry(8, ENTRIES[2]),
     sealed_lines.encode(Sealed("x", NONCE, {}))],
)  # fmt: skip
def test_hostile_entries_are_refused(body):
    with pytest.raises(FormatError):
        decode_log_entry(sealed_lines.encode(Sealed("entry", NONCE, {"number": 7}, body)), 7)


def test_a_snapshot_is_the_state():
    state = state_after(ENTRIES)
    data = encode_snapshot(state)
    stored = decode_snapshot(data, state.number)
    assert (stored.number, stored.next_producer_id) == (6, 2_000)
    assert sorted(stored.topics) == ["t0", "t1", "t2"]
    assert stored.leads == {(IDS[0], 1): (2, 5), (IDS[1], 0): (3, 7)}
    assert stored.deleting == {"t3": {IDS[3]}}
    assert data == golden_objects.read("snapshot-1")
    with pytest.raises(FormatError, match="of another number"):
        decode_snapshot(data, 7)
    for hurt in (*cuts(data), *list(flips(data))[::7]):
        with pytest.raises(FormatError):
            decode_snapshot(hurt, state.number)


def test_states_of_the_same_entries_have_the_same_snapshot():
    first = encode_snapshot(state_after(ENTRIES))
    chance = random.Random(1)
    for _ in range(10):
        topics = list(TOPICS)
        chance.shuffle(topics)
        other = [TopicsCreated(tuple(topics), ENTRIES[0].leads), *ENTRIES[1:]]
        assert encode_snapshot(state_after(other)) == first


def test_a_damaged_state_in_a_whole_object_is_refused():
    with pytest.raises(FormatError, match="the head is missing"):
        decode_snapshot(sealed_lines.encode(Sealed("snapshot", bytes(16), {"number": 6}, b"x\n")), 6)
