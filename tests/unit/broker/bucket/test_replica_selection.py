"""One broker of each rack serves a partition beside its leader, the same one wherever that is decided."""

from dataclasses import replace

from horolog.broker.bucket.bucket_segment import described
from horolog.broker.bucket.manifest import Manifest, Page
from horolog.broker.bucket.names import SegmentName
from horolog.broker.bucket.replica_selection import is_worth_it, reader_in, readers_of
from horolog.broker.log.integrity import Contents
from tests.unit.broker.bucket.bucket_states import ID, after, created, registered

NONCE = b"n" * 16


def members(**racks):
    return after(*(registered(int(node[1:]), rack=rack) for node, rack in racks.items()), created(partitions=50))


def test_a_broker_of_the_rack_is_chosen_and_partitions_are_spread_over_all_of_them():
    state = members(n1="a", n2="b", n3="b", n4=None)
    chosen = [reader_in(state, (ID, index), "b") for index in range(50)]
    assert {chosen.count(2) > 10, chosen.count(3) > 10, len(chosen) == chosen.count(2) + chosen.count(3)} == {True}
    assert reader_in(state, (ID, 0), "c") is None
    more = members(n1="a", n2="b", n3="b", n4=None, n5="b")
    assert all(reader_in(more, (ID, index), "b") in (5, before) for index, before in enumerate(chosen))


def test_a_suspected_broker_is_passed_over():
    state = replace(members(n1="a", n2="b"), suspicions={2: {1: 9}})
    assert reader_in(state, (ID, 0), "b") is None


def test_the_readers_of_a_partition_are_one_of_each_rack_but_the_leaders():
    state = members(n1="a", n2="b", n3="c", n4=None)
    for index in range(50):
        leader = state.leader(ID, index)
        assert readers_of(state, (ID, index)) == [node for node in (1, 2, 3) if node != leader]
    assert readers_of(members(n1=None, n2=None), (ID, 0)) == []
    assert readers_of(state, (b"?" * 16, 0)) == [1, 2, 3]


def test_it_is_worth_it_up_to_the_beginning_of_the_last_segment():
    segments = tuple(described("folder", SegmentName(0, base, NONCE), Contents(9, base + 10), 0) for base in (10, 20))
    manifest = Manifest(ID, 0, 3, 0, 12, NONCE, segments)
    assert [is_worth_it(manifest, offset) for offset in (11, 12, 20, 21)] == [False, True, True, False]
    assert not is_worth_it(None, 12)
    paged = Manifest(ID, 0, 3, 0, 0, NONCE, pages=(Page(SegmentName(0, 5, NONCE), 20, 2, 99),))
    assert [is_worth_it(paged, offset) for offset in (5, 6)] == [True, False]
    assert not is_worth_it(Manifest(ID, 0, 3, 0, 0, NONCE), 0)
