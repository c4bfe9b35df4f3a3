"""Producer state: the rules batch by batch, taking back, expiry, snapshots of real brokers."""

import pytest

from horolog.broker.log.producers import (
    LARGEST_SEQUENCE,
    Completed,
    Duplicate,
    ProducerBatch,
    ProducerStates,
    Rejected,
    snapshot_file,
)
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.control import Marker

NOW = 1_700_000_000_000
DAY_MS = 86_400_000
COMMIT, ABORT = True, False


def batch(first, count=1, *, epoch=0, offset=0, pid=7, txn=False, timestamp=NOW):
    last = (first + count - 1) % (LARGEST_SEQUENCE + 1)
    return ProducerBatch(pid, epoch, first, last, offset, offset + count - 1, timestamp, txn)


def marker(kind, offset, *, epoch=0, pid=7, coordinator=0, timestamp=NOW):
    return ProducerBatch(pid, epoch, -1, -1, offset, offset, timestamp, True, Marker(kind, coordinator))


@pytest.fixture
def states():
    return ProducerStates(DAY_MS)


def send(states, *batches):
    """Append batches one behind the other as a partition does; the answers."""
    answers, offset = [], 0
    for one in batches:
        one = one._replace(first_offset=offset, last_offset=offset + one.last_offset - one.first_offset)
        verdict = states.check(one)
        answers.append(verdict.code if isinstance(verdict, Rejected) else verdict)
        if verdict is None:
            states.update(one, NOW)
            offset = one.last_offset + 1
    return answers


OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
STALE = ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(
    ("batches", "answers"),
    [
        ([batch(0), batch(1, 2), batch(3)], [None, None, None]),
        ([batch(0, 2), batch(0, 2)], [None, Duplicate(0, 1, NOW)]),
        ([batch(0), batch(5), batch(1)], [None, OUT_OF_ORDER, None]),
        ([batch(7), batch(8)], [None, None]),
        ([batch(0, 3), batch(1, 3)], [None, OUT_OF_ORDER]),
        ([batch(0, 3), batch(0, 2)], [None, OUT_OF_ORDER]),
        ([batch(0, epoch=1), batch(0), batch(1, epoch=1)], [None, STALE, None]),
        ([batch(0), batch(1), batch(0, epoch=1)], [None, None, None]),
        ([batch(0), batch(5, epoch=1)], [None, OUT_OF_ORDER]),
        ([batch(0), batch(0, epoch=1), batch(0)], [None, None, STALE]),
        ([batch(LARGEST_SEQUENCE - 1), batch(LARGEST_SEQUENCE), batch(0)], [None, None, None]),
        ([batch(LARGEST_SEQUENCE, 2), batch(1), batch(LARGEST_SEQUENCE, 2)], [None, None, Duplicate(0, 1, NOW)]),
        ([batch(LARGEST_SEQUENCE), batch(1)], [None, OUT_OF_ORDER]),
        ([batch(0), batch(0, pid=8), batch(1), batch(2, pid=8)], [None, None, None, OUT_OF_ORDER]),
        ([*(batch(n) for n in range(6)), batch(1), batch(0)], [*[None] * 6, Duplicate(1, 1, NOW), OUT_OF_ORDER]),
        (
            [batch(0), marker(ABORT, 0, epoch=1), batch(3, epoch=1), batch(0, epoch=1)],
            [None, None, OUT_OF_ORDER, None],
        ),
        ([batch(0, txn=True), batch(1)], [None, ErrorCode.INVALID_TXN_STATE]),
        ([batch(0, txn=True), marker(COMMIT, 0), batch(1)], [None, None, None]),
        (
            [marker(COMMIT, 0, coordinator=3), marker(COMMIT, 0, coordinator=2)],
            [None, ErrorCode.TRANSACTION_COORDINATOR_FENCED],
        ),
        ([batch(0, epoch=2), marker(COMMIT, 0, epoch=1)], [None, STALE]),
        # behind an abort
        (
            [batch(0), batch(1, txn=True), marker(ABORT, 0), batch(1, txn=True), batch(1, txn=True)],
            [None, None, None, None, Duplicate(3, 3, NOW)],
        ),
        (
            [batch(0, 3, txn=True), batch(3, 2, txn=True), marker(ABORT, 0), marker(ABORT, 0), batch(1, 2, txn=True)],
            [None] * 5,
        ),
        (
            [batch(0, txn=True), batch(1, 2, txn=True), marker(ABORT, 0), batch(3, txn=True), batch(1, 2, txn=True)],
            [None, None, None, None, Duplicate(1, 2, NOW)],
        ),
        (
            [batch(5), batch(6, 2, txn=True), marker(ABORT, 0), batch(5, txn=True), batch(9, txn=True)],
            [None, None, None, Duplicate(0, 0, NOW), OUT_OF_ORDER],
        ),
        (
            [batch(5), batch(6, 2, txn=True), marker(ABORT, 0), batch(6, 2), batch(7)],
            [None, None, None, Duplicate(1, 2, NOW), OUT_OF_ORDER],
        ),
        (
            [batch(0, txn=True), marker(ABORT, 0), marker(COMMIT, 0), batch(0, txn=True)],
            [None, None, None, Duplicate(0, 0, NOW)],
        ),
        (
            [batch(0, txn=True), marker(COMMIT, 0), marker(ABORT, 0), batch(0, txn=True)],
            [None, None, None, Duplicate(0, 0, NOW)],
        ),
    ],
)
def test_answers(states, batches, answers):
    assert send(states, *batches) == answers


@pytest.mark.parametrize(
    ("batches", "again", "answer"),
    [
        ([batch(0), batch(1, 2, txn=True), marker(ABORT, 0)], batch(1, txn=True), None),
        ([batch(0), batch(1, 2, txn=True), marker(ABORT, 0)], batch(1, 2, txn=True), None),
        ([batch(0), batch(1, 2, txn=True), marker(ABORT, 0)], batch(3, txn=True), None),
        ([batch(0), batch(1, 2, txn=True), marker(ABORT, 0)], batch(5, txn=True), OUT_OF_ORDER),
        ([batch(0), batch(1, 2, txn=True), marker(COMMIT, 0)], batch(1, txn=True), OUT_OF_ORDER),
        ([batch(0, txn=True), marker(ABORT, 0), batch(1, txn=True)], batch(1, txn=True), Duplicate(2, 2, NOW)),
        ([batch(0, txn=True), marker(ABORT, 0, epoch=1)], batch(1, epoch=1, txn=True), OUT_OF_ORDER),
        ([batch(0, txn=True, pid=8), marker(ABORT, 0, pid=8), batch(0)], batch(0, txn=True), Duplicate(2, 2, NOW)),
    ],
)
def test_behind_an_abort_and_a_restart(states, batches, again, answer):
    completed, offset = [], 0
    for one in batches:
        one = one._replace(first_offset=offset, last_offset=offset + one.last_offset - one.first_offset)
        completed.append(states.update(one, NOW))
        offset = one.last_offset + 1
    restarted = ProducerStates(DAY_MS)
    restarted.restore(states.snapshot(), NOW)
    restarted.recall_aborted(one.index_entry() for one in completed if one is not None and one.aborted)
    verdict = restarted.check(again)
    assert (verdict.code if isinstance(verdict, Rejected) else verdict) == answer


def test_what_is_undecided_and_what_completes(states):
    states.update(batch(0, 3, pid=1, offset=0, txn=True), NOW)
    states.update(batch(0, 2, pid=2, offset=3, txn=True), NOW)
    states.update(batch(0, 1, pid=3, offset=5), NOW)
    states.written()
    assert states.first_undecided_offset == 0
    completed = states.update(marker(ABORT, 6, pid=1), NOW)
    assert completed == Completed(1, 0, 6, aborted=True, last_stable_offset=3)
    assert states.first_undecided_offset == 0, "the marker has not been written yet"
    states.written()
    assert states.first_undecided_offset == 3
    assert states.update(marker(COMMIT, 7, pid=2), NOW).last_stable_offset == 8
    states.written()
    assert states.first_undecided_offset is None
    assert states.update(marker(COMMIT, 8, pid=2), NOW) is None, "a marker without a transaction decides nothing"


def test_what_was_not_written_is_taken_back(states):
    states.update(batch(0, pid=1, offset=0, txn=True), NOW)
    states.update(batch(0, pid=2, offset=1), NOW)
    states.written()
    before, undecided = states.snapshot(), states.first_undecided_offset
    states.update(marker(ABORT, 2, pid=1), NOW)
    states.update(batch(1, pid=2, offset=3), NOW)
    states.update(batch(1, pid=1, offset=4, txn=True), NOW)
    states.update(batch(0, pid=3, offset=5, txn=True), NOW)
    states.undo_unwritten()
    assert (states.snapshot(), states.first_undecided_offset) == (before, undecided)
    assert states.get(3) is None
    assert states.check(batch(1, pid=2)) is None


def test_idle_producers_are_forgotten_by_the_clock_and_not_by_their_records_times(states):
    states.update(batch(0, pid=1, timestamp=0), NOW)
    states.update(batch(0, pid=2, timestamp=NOW + 10 * DAY_MS), NOW - 10)
    states.update(batch(0, pid=3, txn=True), NOW - 10)
    assert states.expire(NOW + DAY_MS - 10) == 1
    assert sorted(pid for pid, _ in states) == [1, 3]
    assert states.expire(NOW + 9 * DAY_MS) == 1
    assert sorted(pid for pid, _ in states) == [3], "an open transaction keeps its producer"


def test_the_longest_idle_producer_makes_room():
    states = ProducerStates(DAY_MS, max_producers=3)
    states.update(batch(0, pid=1, offset=0, txn=True), NOW)
    for pid in (2, 3):
        states.update(batch(0, pid=pid), NOW)
    states.update(batch(1, pid=2), NOW)
    states.update(batch(0, pid=4), NOW)
    assert sorted(pid for pid, _ in states) == [1, 2, 4]


def test_open_transactions_cannot_grow_without_bound():
    states = ProducerStates(DAY_MS, max_producers=2)
    for pid in (1, 2):
        states.update(batch(0, pid=pid, txn=True), NOW)
    refused = states.check(batch(0, pid=3))
    assert isinstance(refused, Rejected)
    assert states.check(batch(1, pid=2, txn=True)) is None


@pytest.mark.parametrize("stage", ["active", "clean"])
@pytest.mark.parametrize("name", ["v2-txn", "v2-txn-multiseg", "v2-idempotent", "v2-compacted-txn", "v2-leader-epochs"])
def test_snapshots_of_real_brokers_are_taken_over_and_given_back(states, golden_root, name, stage):
    for path in sorted((golden_root / name / stage).glob("*.snapshot")):
        states.restore(snapshot_file.decode(path.read_bytes()), NOW)
        assert snapshot_file.encode(states.snapshot()) == path.read_bytes()


def test_after_a_restart_the_last_batch_is_still_known(states, golden_root):
    data = (golden_root / "v2-txn-multiseg/clean/00000000000000000034.snapshot").read_bytes()
    states.restore(snapshot_file.decode(data), NOW)
    assert states.first_undecided_offset == 30
    known = ProducerBatch(3, 0, 25, 28, 99, 102, NOW, True)
    assert states.check(known) == Duplicate(30, 33, 1600000000503)
    assert states.check(known._replace(base_sequence=29, last_sequence=29)) is None


def test_a_batch_over_the_sequence_wrap_survives_a_restart(states):
    states.update(batch(LARGEST_SEQUENCE - 1, 5, offset=10), NOW)
    again = ProducerStates(DAY_MS)
    again.restore(states.snapshot(), NOW)
    assert again.check(batch(LARGEST_SEQUENCE - 1, 5)) == Duplicate(10, 14, NOW)
    assert again.check(batch(3)) is None
