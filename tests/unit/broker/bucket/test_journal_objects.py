"""Entries and snapshots of the journal as objects."""

import random

import pytest

from horolog.broker.bucket import sealed_lines
from horolog.broker.bucket.bucket_entries import BrokerRegistered, Suspected, WalEnded
from horolog.broker.bucket.bucket_lines import encode_members
from horolog.broker.bucket.bucket_state import BucketState, MemberListener
from horolog.broker.bucket.journal_objects import (
    Founding,
    NumberedEntry,
    decode_founding,
    decode_log_entry,
    decode_snapshot,
    encode_founding,
    encode_log_entry,
    encode_snapshot,
)
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.sealed_lines import FormatError, NewerFormat, Sealed
from horolog.broker.cluster.cluster_state import (
    BrokerConfigsChanged,
    Lead,
    ProducerIdsReserved,
    TopicsCreated,
    TopicsDeleted,
)
from horolog.broker.cluster.entry_lines import encode_entry
from horolog.broker.on_record.checked_lines import decode_line, encode_line
from horolog.broker.on_record.cluster_file import StoredTopic
from tests.support import golden_objects
from tests.support.damage import cuts, flips

NONCE = bytes(range(16))
IDS = [bytes([number]) * 16 for number in range(1, 5)]
TOPICS = [StoredTopic(f"t{number}", one, 3, {"retention.ms": "1000"}) for number, one in enumerate(IDS)]
LISTENERS = (MemberListener("PLAINTEXT", "PLAINTEXT", "localhost", 9092),)
ENTRIES = [
    BrokerRegistered(1, "first", LISTENERS),
    BrokerRegistered(2, "second", LISTENERS, "rack"),
    TopicsCreated(tuple(TOPICS), ((((IDS[0], 1)), Lead(2, 0)),)),
    BrokerConfigsChanged("1", {"log.retention.ms": "5", "num.partitions": "3"}),
    ProducerIdsReserved(1_000),
    BrokerRegistered(3, "third", LISTENERS),
    WalEnded(Wal(2, 2), 7, {(IDS[0], 1): Lead(1, 1)}),
    Suspected(3, 1),
    TopicsDeleted(("t3",)),
]
RESERVED = ProducerIdsReserved(1_000)


def state_after(entries):
    state = BucketState()
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
    data = encode_log_entry(NumberedEntry(7, RESERVED, NONCE))
    assert data == golden_objects.read("entry-1")
    for hurt in (*cuts(data), *flips(data), data + b"\n"):
        with pytest.raises(FormatError):
            decode_log_entry(hurt, 7)


def entry_of_a_later_release(**changed):
    content = decode_line(encode_entry(7, RESERVED).rstrip(b"\n"))
    line = encode_line({**content, **changed}).encode("ascii")
    return sealed_lines.encode(Sealed("entry", NONCE, {"number": 7}, line))


def test_a_later_release_may_add_fields_that_readers_ignore():
    assert decode_log_entry(entry_of_a_later_release(reason="a restart"), 7) == NumberedEntry(7, RESERVED, NONCE)


def test_an_entry_of_a_kind_that_a_later_release_has_is_refused_as_such():
    with pytest.raises(NewerFormat, match="kind 'Renamed', which this release does not know: start the release"):
        decode_log_entry(entry_of_a_later_release(kind="Renamed"), 7)


@pytest.mark.parametrize(
    "body",
    [b"", b"no entry\n", encode_entry(7, RESERVED)[:-1], encode_entry(7, RESERVED) * 2, encode_entry(8, RESERVED),
     sealed_lines.encode(Sealed("x", NONCE, {}))],
)  # fmt: skip
def test_hostile_entries_are_refused(body):
    with pytest.raises(FormatError):
        decode_log_entry(sealed_lines.encode(Sealed("entry", NONCE, {"number": 7}, body)), 7)


def test_a_snapshot_is_the_state():
    state = state_after(ENTRIES)
    data = encode_snapshot(state)
    read = decode_snapshot(data, state.number)
    assert read == state
    assert encode_snapshot(read) == data
    assert read.apply(ProducerIdsReserved(7_000)) == state.apply(ProducerIdsReserved(7_000))
    assert data == golden_objects.read("snapshot-1")
    with pytest.raises(FormatError, match="it has another number"):
        decode_snapshot(data, 7)
    for hurt in (*cuts(data), *list(flips(data))[::7]):
        with pytest.raises(FormatError):
            decode_snapshot(hurt, state.number)


def test_an_empty_cluster_has_a_snapshot():
    assert decode_snapshot(encode_snapshot(BucketState()), 0) == BucketState()


def test_states_of_the_same_entries_have_the_same_snapshot():
    first = encode_snapshot(state_after(ENTRIES))
    chance = random.Random(1)
    for _ in range(10):
        topics = list(TOPICS)
        chance.shuffle(topics)
        other = [*ENTRIES[:2], TopicsCreated(tuple(topics), ENTRIES[2].leads), *ENTRIES[3:]]
        assert encode_snapshot(state_after(other)) == first


@pytest.mark.parametrize(
    ("body", "fault"), [(encode_members(BucketState()) + b"x\n", "the head is missing"), (b"x\n", "6")]
)
def test_a_damaged_state_in_a_whole_object_is_refused(body, fault):
    with pytest.raises(FormatError, match=fault):
        decode_snapshot(sealed_lines.encode(Sealed("snapshot", bytes(16), {"number": 6}, body)), 6)


def test_the_founding_of_a_cluster_has_its_id():
    data = encode_founding(Founding("abc", NONCE))
    assert decode_founding(data) == Founding("abc", NONCE)
    assert data == golden_objects.read("cluster-1")
    for hurt in (*cuts(data), *flips(data)):
        with pytest.raises(FormatError):
            decode_founding(hurt)


def test_a_cluster_that_was_imported_says_so_in_a_format_that_earlier_releases_refuse():
    founding = Founding("abc", NONCE, 5, "the folder of cluster abc")
    data = encode_founding(founding)
    assert decode_founding(data) == founding
    with pytest.raises(FormatError, match="format 2"):
        sealed_lines.decode(data, "cluster")
    with pytest.raises(FormatError, match="entries"):
        decode_founding(sealed_lines.encode(Sealed("cluster", NONCE, {"cluster": "abc"}, format=2)))


@pytest.mark.parametrize(
    "sealed",
    [
        Sealed("cluster", NONCE, {"cluster": ""}),
        Sealed("cluster", NONCE, {}),
        Sealed("cluster", NONCE, {"cluster": "a"}, b"x"),
    ],
)
def test_a_hostile_founding_is_refused(sealed):
    with pytest.raises(FormatError, match="no cluster id"):
        decode_founding(sealed_lines.encode(sealed))
