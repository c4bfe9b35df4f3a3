"""The offsets of one group: the later of two counts, transactions hold theirs back, and each has its time."""

import pytest

from horolog.broker.groups.offsets import NEVER, Committed, GroupOffsets, tombstone
from horolog.broker.groups.records import OFFSET, OLD_OFFSET, kind_of, read_entry

T0, T1 = ("t", 0), ("t", 1)
TOPIC_ID = bytes(range(16))


def at(log_offset, offset=1, *, commit_ms=0, expire_ms=NEVER):
    return Committed(offset, 0, "", commit_ms, expire_ms, log_offset=log_offset)


def since_commit(_, committed):
    return committed.commit_ms


@pytest.fixture
def offsets():
    return GroupOffsets()


def test_the_one_that_stands_later_in_the_log_counts(offsets):
    for log_offset, offset in ((5, 50), (3, 30), (7, 70), (7, 71)):
        offsets.put(T0, at(log_offset, offset))
    assert offsets.get(T0).offset == 71
    assert (len(offsets), list(offsets), offsets.get(T1)) == (1, [T0], None)


def test_offsets_of_a_transaction_count_once_it_is_committed(offsets):
    offsets.put_pending(7, T0, at(5))
    offsets.put_pending(8, T1, at(6))
    assert (offsets.get(T0), offsets.is_pending(T0), offsets.has_pending) == (None, True, True)
    offsets.complete(7, committed=True)
    offsets.complete(8, committed=False)
    assert (offsets.get(T0).log_offset, offsets.get(T1), offsets.has_pending) == (5, None, False)


def test_a_transaction_that_is_not_known_ends_without_effect(offsets):
    offsets.complete(7, committed=True)
    offsets.put_pending(8, T0, at(5))
    offsets.complete(7, committed=True)
    assert (len(offsets), offsets.is_pending(T0)) == (0, True)


def test_what_is_removed_does_not_come_back_with_a_transaction(offsets):
    offsets.put(T0, at(1))
    offsets.put_pending(7, T0, at(5))
    offsets.remove(T0)
    offsets.complete(7, committed=True)
    assert len(offsets) == 0


@pytest.mark.parametrize(("now_ms", "found"), [(149, []), (150, [T0]), (199, [T0]), (200, [T0, T1])])
def test_an_offset_expires_at_its_own_time_or_after_the_retention(offsets, now_ms, found):
    offsets.put(T0, at(1, commit_ms=100, expire_ms=150))
    offsets.put(T1, at(2, commit_ms=100))
    assert offsets.expired(now_ms, 100, since_commit) == found


def test_what_is_in_use_or_pending_does_not_expire(offsets):
    offsets.put(T0, at(1))
    offsets.put(T1, at(2))
    offsets.put_pending(7, T1, at(5))
    assert offsets.expired(10**9, 1, lambda partition, _: None if partition == T0 else 0) == []


@pytest.mark.parametrize("expire_ms", [NEVER, 900])
def test_a_commit_is_written_and_read_as_it_was(expire_ms):
    before = Committed(17, 3, "note", 100, expire_ms, TOPIC_ID)
    key, value = before.entry("g", T1)
    kind, name, read = read_entry(key, value)
    after = Committed.read(read, 42)
    assert (kind, name.group, name.topic, name.partition, after.log_offset) == (OFFSET, "g", "t", 1, 42)
    assert (after.offset, after.metadata, after.expire_ms) == (17, "note", expire_ms)
    assert after.topic_id == (TOPIC_ID if expire_ms == NEVER else bytes(16)), "the one version with a time has no room"


def test_a_tombstone_has_the_key_of_what_it_removes():
    assert tombstone("g", T0) == (at(1).entry("g", T0)[0], None)
    assert kind_of(tombstone("g", T0, OLD_OFFSET)[0]) == OLD_OFFSET


def test_both_say_what_they_hold(offsets):
    offsets.put(T0, at(1))
    offsets.put_pending(7, T1, at(2))
    assert repr(offsets) == "<GroupOffsets of 1 partitions, 1 transactions>"
    assert repr(offsets.get(T0)) == "<Committed 1 in epoch 0, at 1 of the log>"
