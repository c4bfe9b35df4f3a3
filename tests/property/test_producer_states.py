"""Producer state against the plainest model: the list of everything that was appended, searched anew for every batch."""

from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.log.producers import Duplicate, ProducerBatch, ProducerStates, Rejected
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.control import Marker

WRAP = 2**31

steps = st.lists(
    st.tuples(
        st.integers(1, 2),  # producer
        st.integers(0, 2),  # epoch
        st.one_of(
            st.integers(0, 6), st.integers(WRAP - 3, WRAP - 1)
        ),  # sequence, or how far back a repeated batch lies
        st.integers(1, 3),  # records
        st.sampled_from(["send", "next", "repeat", "commit", "abort"]),
        st.booleans(),  # transactional
    ),
    max_size=30,
)


class Model:
    """Every appended batch, oldest first."""

    def __init__(self):
        self.log = []

    def of(self, pid):
        return [one for one in self.log if one.producer_id == pid]

    def verdict(self, new):
        mine = self.of(new.producer_id)
        if not mine:
            return None
        epoch = mine[-1].producer_epoch
        data = [one for one in mine if one.marker is None and one.producer_epoch == epoch]
        if new.marker is not None:
            return ErrorCode.INVALID_PRODUCER_EPOCH if new.producer_epoch < epoch else None
        aborted = self.aborted_since(new.producer_id) if new.transactional else None
        known = remembered(data)
        for one in known:
            if aborted is not None and one.first_offset >= aborted:
                continue
            if (one.producer_epoch, one.base_sequence, one.last_sequence) == (
                new.producer_epoch,
                new.base_sequence,
                new.last_sequence,
            ):
                return one.first_offset, one.last_offset
        if new.producer_epoch < epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        expected = (data[-1].last_sequence + 1) % WRAP if new.producer_epoch == epoch and data else 0
        again = [one.base_sequence for one in known if aborted is not None and one.first_offset >= aborted]
        may_begin_again = new.producer_epoch == epoch and again and again[0] <= new.base_sequence < expected
        if new.base_sequence != expected and not may_begin_again:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if self.open_since(new.producer_id) is not None and not new.transactional:
            return ErrorCode.INVALID_TXN_STATE
        return None

    def aborted_since(self, pid):
        """Where the last transaction of the producer began, if it was aborted in its epoch, with nothing behind it."""
        start = aborted = epoch = None
        for one in self.of(pid):
            if one.marker is None:
                start, aborted = (one.first_offset if one.transactional and start is None else start), None
            else:
                is_abort = not one.marker.committed and one.producer_epoch == epoch
                start, aborted = None, (aborted if start is None else start) if is_abort else None
            epoch = one.producer_epoch
        return aborted

    def open_since(self, pid):
        start = None
        for one in self.of(pid):
            if one.marker is not None:
                start = None
            elif one.transactional and start is None:
                start = one.first_offset
        return start

    def first_undecided(self):
        starts = [self.open_since(pid) for pid in {one.producer_id for one in self.log}]
        return min((start for start in starts if start is not None), default=None)


def remembered(data):
    """The last five batches, without aborted ones whose sequences were given out again."""
    known = []
    for one in data:
        if known and one.base_sequence <= known[-1].last_sequence < WRAP - 1:
            known = [before for before in known if before.last_sequence < one.base_sequence]
        known = [*known[-4:], one]
    return known


def made(model, step, offset):
    pid, epoch, number, count, kind, transactional = step
    mine = [one for one in model.of(pid) if one.marker is None]
    if kind in {"commit", "abort"}:
        return ProducerBatch(pid, epoch, -1, -1, offset, offset, 0, True, Marker(kind == "commit", 0))
    if kind == "repeat" and mine:
        one = mine[-1 - number % len(mine)]
        size = one.last_offset - one.first_offset
        return ProducerBatch(
            pid, one.producer_epoch, one.base_sequence, one.last_sequence, offset, offset + size, 0, transactional
        )
    first = (mine[-1].last_sequence + 1) % WRAP if kind == "next" and mine else number
    return ProducerBatch(pid, epoch, first, (first + count - 1) % WRAP, offset, offset + count - 1, 0, transactional)


@given(steps, st.data())
def test_every_verdict_and_the_last_stable_offset_are_those_of_the_model(some, data):
    states, model, offset = ProducerStates(1000), Model(), 0
    for step in some:
        batch = made(model, step, offset)
        verdict = states.check(batch)
        expected = model.verdict(batch)
        if isinstance(verdict, Duplicate):
            assert (verdict.first_offset, verdict.last_offset) == expected
        else:
            assert (verdict.code if isinstance(verdict, Rejected) else verdict) == expected
        if verdict is not None:
            continue
        states.update(batch, 0)
        if data.draw(st.booleans(), label="the write fails"):
            states.undo_unwritten()
            continue
        states.written()
        model.log.append(batch)
        offset = batch.last_offset + 1
        assert states.first_undecided_offset == model.first_undecided()
