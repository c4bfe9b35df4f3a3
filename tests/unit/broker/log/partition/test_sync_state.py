"""What threads of a partition tell each other, and that nobody writes it past the methods that say which thread may."""

import ast
from pathlib import Path

import pytest

import horolog
from horolog.broker.log.partition.condition import Condition
from horolog.broker.log.partition.durability import Durability
from horolog.broker.log.partition.partition import Partition
from horolog.broker.log.partition.sync_state import ProducerSnapshot, SyncState
from horolog.broker.log.producers import ProducerBatch, ProducerStates
from horolog.broker.log.segments.segment import Segment
from horolog.broker.log.segments.segment_sync import SegmentSync
from horolog.broker.log.storage import StorageFault
from tests.support.attributes import attribute_names
from tests.support.log_model import Model

CODE = Path(horolog.__file__).parent


@pytest.fixture
def segment():
    return Model().partition.segments[0]


def test_a_segment_that_is_written_again_while_it_is_synced_is_due_again(segment):
    state = SyncState(0)
    state.segment_written(segment)
    assert segment.sync.is_due
    assert state.take_segment() is segment
    assert not segment.sync.is_due
    assert not state.has_work
    state.segment_written(segment)
    assert state.take_segment() is segment
    assert state.take_segment() is None


def test_a_segment_that_waits_is_not_queued_again(segment):
    state = SyncState(0)
    state.segment_written(segment)
    state.segment_written(segment)
    assert state.take_segment() is segment
    assert state.take_segment() is None


def test_a_segment_whose_sync_failed_is_due_again(segment):
    state = SyncState(0)
    state.segment_written(segment)
    state.give_back_segment(state.take_segment())
    assert segment.sync.is_due
    assert state.has_work


def test_seals_that_are_asked_for_while_they_are_written_are_due_again():
    state = SyncState(0)
    assert not state.take_seals()
    state.segments_changed()
    assert state.has_files_to_write
    assert state.take_seals()
    state.segments_changed()
    state.give_back_seals(are_due=False)
    assert state.take_seals()
    state.give_back_seals(are_due=True)
    assert state.take_seals()


def test_seals_alone_are_due_where_no_segment_came_or_went():
    state = SyncState(0)
    state.segments_changed(came_or_went=False)
    assert (state.has_files_to_write, state.names_are_unsynced) == (True, False)
    state.segments_changed()
    assert state.names_are_unsynced


def test_an_append_waits_until_a_sync_begins():
    state = SyncState(0)
    assert state.waiting_since_ms == -1
    state.append_waits(1000)
    assert state.waiting_since_ms == 1000
    state.sync_begins()
    assert state.waiting_since_ms == -1


def test_small_files_of_a_new_folder_are_synced_once():
    state = SyncState(0, new_files=["t-0/partition.metadata"])
    assert state.new_files == ["t-0/partition.metadata"]
    state.new_files_synced()
    assert not state.new_files


def test_it_says_how_much_is_on_the_disk():
    state = SyncState(7)
    assert repr(state) == "<SyncState: synced to offset 7>"
    state.names_changed()
    assert repr(state) == "<SyncState: synced to offset 7, more is due>"


def test_a_name_that_changes_while_the_folder_is_synced_is_unsynced():
    state = SyncState(0)
    state.names_changed()
    changes = state.changes_of_names()
    state.names_changed()
    state.names_synced(changes)
    assert state.names_are_unsynced
    state.names_synced(state.changes_of_names())
    assert not state.names_are_unsynced
    assert not state.has_work


def test_snapshots_are_saved_in_the_order_they_were_asked_for():
    state = SyncState(0, snapshot_offset=3)
    state.save_snapshot(ProducerSnapshot(7, []))
    state.save_snapshot(ProducerSnapshot(9, []))
    assert [one.offset for one in state.waiting_snapshots()] == [7, 9]
    state.snapshot_saved(7)
    assert (state.snapshot_offset, state.has_snapshots) == (7, True)
    state.snapshot_saved(9)
    assert (state.snapshot_offset, state.has_snapshots) == (9, False)


def test_a_snapshot_of_producers_waits_where_some_are_known():
    state = SyncState(0)
    producers = ProducerStates(1000)
    state.save_producers(producers, 7)
    assert not state.has_snapshots
    producers.update(ProducerBatch(7, 0, 0, 0, 4, 4, 100), 100)
    state.save_producers(producers, 9, replaces=5)
    (snapshot,) = state.waiting_snapshots()
    assert (snapshot.offset, snapshot.replaces, len(snapshot.entries)) == (9, 5, 1)


def test_what_is_on_the_disk_only_grows():
    state = SyncState(5)
    state.reached(3)
    assert state.recovery_point == 5
    state.reached(8)
    assert state.recovery_point == 8
    sync = SegmentSync(100)
    sync.reached(50)
    assert sync.synced_bytes == 100
    sync.reached(150)
    assert sync.synced_bytes == 150
    sync.begin_with(20)
    assert sync.synced_bytes == 20


def test_a_failure_lasts_until_everything_is_written_again():
    state = SyncState(0)
    fault = StorageFault("no more")
    state.sync_failed(fault)
    state.reached(4)
    assert state.failure is fault
    state.rewritten(6)
    assert (state.failure, state.recovery_point) == (None, 6)


def test_indexes_are_due_once_and_again_after_a_failure():
    sync = SegmentSync(0)
    assert not sync.take_up_indexes()
    sync.ask_for_indexes()
    assert sync.take_up_indexes()
    assert not sync.indexes_are_due
    sync.give_back_indexes(are_due=True)
    assert sync.indexes_are_due


def test_only_its_own_methods_write_what_threads_share():
    shared = _attributes(SyncState, SegmentSync, Condition) - {"_lock", "_name"}
    found = [
        f"{path.name}:{node.lineno}: {ast.unparse(node)}"
        for path in CODE.glob("broker/log/**/*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr in shared
        if ast.unparse(node.value) != "self"
    ]
    assert found == []
    assert not shared & _attributes(Partition, Segment, Durability)


def _attributes(*kinds):
    return {name for kind in kinds for name in attribute_names(kind)}
