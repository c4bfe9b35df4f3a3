"""What requests make of a persisted state, with the epochs that fence."""

from horolog.broker.share.records import Snapshot, Update
from horolog.broker.share.state import (
    COMBINE_ABOVE,
    NO_COUNT,
    ShareState,
    StateRead,
    StateSummary,
    StateUpdate,
    first_snapshot,
)
from horolog.broker.share.state_batches import NO_OFFSET, StateBatch
from horolog.protocol.errors import ErrorCode


def begun(state_epoch=5, start=0):
    return ShareState(first_snapshot(state_epoch, start, 1000), 0)


def write(state, *batches, state_epoch=5, leader_epoch=2, start=NO_OFFSET, count=NO_COUNT, most=500):
    value = state.written(StateUpdate(state_epoch, leader_epoch, start, count, batches), 2000, most)
    if isinstance(value, Update):
        state.take_update(value)
    elif isinstance(value, Snapshot):
        state.take_snapshot(value, 9)
    return value


def test_a_state_is_updated_with_what_has_changed():
    state = begun()
    assert write(state, StateBatch(0, 4, 2, 1), count=5) == Update(0, 2, -1, 5, (StateBatch(0, 4, 2, 1),))
    write(state, start=3)
    assert state.summary == StateSummary(5, 2, 3, 5)
    assert state.read == StateRead(5, 3, [StateBatch(3, 4, 2, 1)])
    assert state.updates == 2
    assert "2 updates" in repr(state)


def test_enough_updates_are_followed_by_a_snapshot():
    state = begun()
    write(state, StateBatch(0, 4, 2, 1), most=1)
    snapshot = write(state, StateBatch(5, 6, 0, 1), start=2, most=1)
    batches = (StateBatch(2, 4, 2, 1), StateBatch(5, 6, 0, 1))
    assert snapshot == Snapshot(1, 5, 2, 2, 0, 1000, 2000, batches)
    assert (state.updates, state.snapshot_at, state.read.batches) == (0, 9, list(batches))
    assert isinstance(write(state, most=1), Update)


def test_requests_of_the_past_are_fenced():
    state = begun()
    assert write(state, state_epoch=4) == ErrorCode.FENCED_STATE_EPOCH
    state.take_update(state.led(3))
    assert write(state, leader_epoch=2) == ErrorCode.FENCED_LEADER_EPOCH
    assert isinstance(write(state, leader_epoch=-1), Update)
    assert state.led(2) == ErrorCode.FENCED_LEADER_EPOCH
    assert state.led(3) is None
    assert state.led(-1) is None
    assert state.summary.leader_epoch == 3


def test_a_state_that_is_initialized_again_begins_again():
    state = begun()
    write(state, StateBatch(0, 4, 2, 1))
    assert state.initialized(4, 0, 3000) == ErrorCode.FENCED_STATE_EPOCH
    assert state.initialized(5, 7, 3000) == Snapshot(1, 5, 0, 7, 0, 3000, 3000, ())


def test_batches_of_many_updates_are_combined_on_the_way():
    state = begun()
    for offset in range(3 * COMBINE_ABOVE):
        write(state, StateBatch(offset, offset, 2, 1))
    assert len(state._recent) <= COMBINE_ABOVE + 1
    assert state.batches == [StateBatch(0, 3 * COMBINE_ABOVE - 1, 2, 1)]
    assert state.snapshot(4000).batches == tuple(state.batches)
