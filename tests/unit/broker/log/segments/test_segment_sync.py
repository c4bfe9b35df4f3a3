"""What the partition's thread and a worker say to each other about one segment."""

from horolog.broker.log.segments.segment_sync import SegmentSync


def test_what_is_asked_for_is_taken_up_once():
    sync = SegmentSync(0)
    sync.ask()
    assert sync.is_due
    sync.take_up()
    assert not sync.is_due
    sync.ask_for_indexes()
    assert [sync.take_up_indexes(), sync.take_up_indexes()] == [True, False]


def test_indexes_are_due_again_after_a_failed_sync_that_had_them():
    sync = SegmentSync(0)
    sync.give_back_indexes(are_due=False)
    assert not sync.indexes_are_due
    sync.give_back_indexes(are_due=True)
    assert sync.indexes_are_due


def test_a_sync_that_ends_late_takes_nothing_back():
    sync = SegmentSync(5)
    sync.reached(20)
    sync.reached(10)
    assert sync.synced_bytes == 20
    sync.begin_with(3)
    assert sync.synced_bytes == 3


def test_it_shows_whether_more_is_due():
    sync = SegmentSync(5)
    assert repr(sync) == "<SegmentSync: 5 bytes synced>"
    sync.ask()
    assert repr(sync) == "<SegmentSync: 5 bytes synced, more is due>"
