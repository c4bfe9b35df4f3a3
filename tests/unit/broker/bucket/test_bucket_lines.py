"""Entries of a cluster over a store as lines: each is read as it was written."""

import pytest

from horolog.broker.bucket.bucket_entries import (
    BrokerLeft,
    HandedOver,
    Suspected,
    SuspicionEnded,
    TailsCovered,
    WalEnded,
)
from horolog.broker.bucket.bucket_lines import BUCKET_FORMS, MembersLine, decode_members, encode_members
from horolog.broker.bucket.names import Wal
from horolog.broker.cluster.cluster_state import Lead, ProducerIdsReserved
from horolog.broker.cluster.entry_lines import DAMAGE, UnknownKind, decode_entry, encode_entry
from horolog.broker.on_record.checked_lines import encode_line
from tests.unit.broker.bucket.bucket_states import ID, after, of, registered

LEADS = {(ID, 0): Lead(1, 5), (ID, 1): Lead(-1, 6)}
ENTRIES = [
    registered(2),
    registered(2, ended=7, is_dead=True, rack="a"),
    WalEnded(Wal(2, 17), 5, LEADS),
    HandedOver(Wal(2, 17), 5, LEADS),
    BrokerLeft(Wal(2, 17), 5, LEADS),
    Suspected(1, 2),
    SuspicionEnded(1, 2),
    TailsCovered({(ID, 1): 6, (ID, 0): 5}),
    ProducerIdsReserved(7_000),
]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda one: type(one).__name__)
def test_an_entry_is_read_as_it_was_written(entry):
    line = encode_entry(9, entry, BUCKET_FORMS)
    assert decode_entry(line[:-1], BUCKET_FORMS) == (9, entry)


def test_other_journals_do_not_have_these_entries():
    with pytest.raises(KeyError):
        encode_entry(9, ENTRIES[0])
    with pytest.raises(UnknownKind):
        decode_entry(encode_entry(9, ENTRIES[0], BUCKET_FORMS)[:-1])


def test_the_line_of_a_snapshot_has_all_that_other_states_have_not():
    state = after(
        registered(2, ended=3, rack="r"),
        Suspected(3, 1),
        Suspected(3, 3),
        WalEnded(Wal(1, 1), 2, {}),
        state=of(1, 2, 3),
    )
    read = decode_members(encode_members(state)[:-1])
    assert read == MembersLine(state.members, state.fenced, state.suspicions, state.lineages)


@pytest.mark.parametrize("content", [{}, {"members": {"x": 1}, "fenced": [], "suspicions": {}, "lineages": {}}])
def test_a_line_of_another_kind_is_refused(content):
    with pytest.raises(DAMAGE):
        decode_members(encode_line(content).encode()[:-1])
