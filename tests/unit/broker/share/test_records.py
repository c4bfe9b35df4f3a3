"""The records of share partitions are read as they were written, and nothing else is taken for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.share import records
from horolog.broker.share.records import SNAPSHOT, UPDATE, SharePartitionKey, Snapshot, Update
from horolog.broker.share.state_batches import StateBatch
from horolog.protocol.errors import DecodeError

NUMBERS = st.integers(-1, 2**31 - 1)
OFFSETS = st.integers(-1, 2**63 - 1)
BATCHES = st.lists(
    st.builds(StateBatch, OFFSETS, OFFSETS, st.sampled_from((0, 2, 4)), st.integers(0, 99)), max_size=4
).map(tuple)
KEYS = st.builds(SharePartitionKey, st.text(max_size=20), st.binary(min_size=16, max_size=16), st.integers(0, 9999))
SNAPSHOTS = st.builds(Snapshot, NUMBERS, NUMBERS, NUMBERS, OFFSETS, NUMBERS, OFFSETS, OFFSETS, BATCHES)
UPDATES = st.builds(Update, NUMBERS, NUMBERS, OFFSETS, NUMBERS, BATCHES)


@given(KEYS, st.sampled_from((SNAPSHOT, UPDATE)))
def test_keys_that_are_written_are_read(key, kind):
    assert records.read_key(records.key_bytes(kind, key)) == (kind, key)


@given(SNAPSHOTS)
def test_snapshots_that_are_written_are_read(snapshot):
    assert records.read_value(SNAPSHOT, records.value_bytes(snapshot)) == snapshot


@given(UPDATES)
def test_updates_that_are_written_are_read(update):
    assert records.read_value(UPDATE, records.value_bytes(update)) == update


def test_keys_of_other_kinds_are_left_alone():
    assert records.read_key(b"\0\2anything") is None


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0", b"\0\1\0\x05abc"])
def test_a_key_that_is_cut_is_an_error(data):
    with pytest.raises(DecodeError):
        records.read_key(data)


@pytest.mark.parametrize("data", [b"", b"\0\1" + bytes(40), b"\0\0\0"])
def test_a_value_that_is_cut_or_of_another_version_is_an_error(data):
    with pytest.raises(DecodeError):
        records.read_value(SNAPSHOT, data)
