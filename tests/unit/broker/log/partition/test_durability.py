"""The order in which a sync makes things durable, and that nothing asked for meanwhile is forgotten."""

import pytest

from horolog.broker.log.integrity import seals
from horolog.broker.log.partition.condition import Condition
from horolog.broker.log.partition.durability import Durability
from horolog.broker.log.partition.sync_state import ProducerSnapshot, SyncState
from horolog.broker.log.producers import snapshot_file
from horolog.broker.log.segments import syncing
from horolog.broker.log.storage import SharedSyncs, StorageFault
from tests.support.log_model import DIRECTORY, Model


@pytest.fixture
def model():
    model = Model()
    while len(model.partition.segments) < 3:
        model.append(2, 0, [5], [b"v" * 50])
    model.flush()
    while model.partition.sync_state.take_segment():
        pass  # tests ask for them with a state of their own
    return model


def new(storage, state):
    return Durability(storage, DIRECTORY, state, SharedSyncs(storage), Condition("t-0"))


def order_of(storage, durability, segments):
    """Which files were touched, in order."""
    touched = []

    def note(operation, path, *, raising=True):
        touched.append((operation, path.rpartition("/")[2].partition(".")[2] or path.rpartition("/")[2]))
        return original(operation, path, raising=raising)

    original, storage._fault_for = storage._fault_for, note
    durability.sync(segments, 10)
    storage._fault_for = original
    return [one for one in touched if one[0] in ("sync", "sync_dir", "rename")]


@pytest.fixture
def every_log_is_large(monkeypatch):
    """So that its indexes are synced with it."""
    monkeypatch.setattr(syncing, "REBUILD_AT_ONCE_BYTES", 0)


@pytest.mark.usefixtures("every_log_is_large")
def test_data_comes_first_then_names_then_what_describes_them(model):
    state = SyncState(0)
    durability = new(model.storage, state)
    segments = model.partition.segments
    state.segment_written(segments[0])
    state.segments_changed()
    state.save_snapshot(ProducerSnapshot(7, []))
    order = order_of(model.storage, durability, segments)
    assert order[:4] == [("sync", "log"), ("sync", "index"), ("sync", "timeindex"), ("sync_dir", "t-0")]
    renames = [what for operation, what in order if operation == "rename"]
    assert renames == ["snapshot.tmp", "tmp"]
    assert snapshot_file.offsets_in(model.storage, DIRECTORY)[-1] == 7
    assert sorted(seals.load(model.storage, DIRECTORY)) == [one.base_offset for one in segments[:2]]


def test_nothing_to_do_costs_nothing(model):
    state = SyncState(3)
    durability = new(model.storage, state)
    assert not state.has_work
    assert order_of(model.storage, durability, model.partition.segments) == []
    assert state.recovery_point == 10


@pytest.mark.usefixtures("every_log_is_large")
def test_what_is_written_during_a_sync_asks_for_another(model):
    state = SyncState(0)
    durability = new(model.storage, state)
    segment = model.partition.segments[0]
    state.segment_written(segment)

    class Busy:
        def __getattr__(self, name):
            return getattr(log, name)

        def datasync(self):
            assert not segment.sync.is_due
            state.segment_written(segment)
            segment.log = log

    log, segment.log = segment.log, Busy()
    before = model.storage.operations.get("sync", 0)
    durability.sync([segment], 5)
    assert not state.has_work
    assert model.storage.operations["sync"] == before + 5, "both times with its indexes, the log itself the second time"


def test_a_failed_sync_moves_no_recovery_point(model):
    state = SyncState(0)
    durability = new(model.storage, state)
    state.segment_written(model.partition.segments[0])
    state.segments_changed()
    model.storage.fail("sync")
    with pytest.raises(StorageFault):
        durability.sync(model.partition.segments, 9)
    assert state.recovery_point == 0
    assert not model.storage.exists(f"{DIRECTORY}/{seals.SEALS}")


def test_a_sync_is_due_after_flush_ms_and_for_what_waits_to_be_written():
    state = SyncState(0)
    durability = new(None, state)
    assert not durability.is_due(10_000, 100)
    state.append_waits(1000)
    assert not durability.is_due(1099, 100)
    assert durability.is_due(1100, 100)
    assert durability.is_due(900, 100), "the clock was set back"
    state.sync_begins()
    assert not durability.is_due(1100, 100)
    state.segments_changed()
    assert durability.is_due(1100, 100)
