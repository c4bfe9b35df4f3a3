"""Knows what each producer last wrote to a partition: distinguishes new batches from repeated, missing and fenced ones, and which
transactions are open.

Per producer id: its epoch, its last five batches, the epoch of the coordinator that wrote its last marker, and where its open
transaction began. The rules, as real brokers have them:

- A batch with the same epoch and the same first and last sequence as one of the last five is a duplicate: the producer
  gets the offsets of then, nothing is appended.
- An older epoch than the known one: INVALID_PRODUCER_EPOCH.
- A newer epoch starts at sequence 0, anything else: OUT_OF_ORDER_SEQUENCE_NUMBER.
- In the known epoch the first sequence follows the last one; behind 2^31-1 comes 0. Anything else, also a batch that was seen
  in part or too long ago to be recognised: OUT_OF_ORDER_SEQUENCE_NUMBER. After nothing but a marker comes 0.
- Behind an abort in the known epoch a transaction may also begin with a sequence of the aborted batches, and these have no duplicates.
  librdkafka gives their sequences out again if it lost its connection before they were acknowledged. Real brokers refuse that, or take
  the new batch for a duplicate of an aborted one: its records are acknowledged, committed, and lost.
- An unknown producer may begin with any sequence: its state may have expired, or its records been deleted.
- A plain batch inside a producer's open transaction: INVALID_TXN_STATE. A marker from an older coordinator:
  TRANSACTION_COORDINATOR_FENCED.

`check` changes nothing, `update` records an append, and `undo_unwritten` rolls back appends that were not written.
Producers that have been idle for `expiration_ms` are forgotten, counted from their last append on the broker's clock (or from
startup), not from the records' own times: a producer that loads last year's data is not idle. A transaction in progress keeps
its producer. At most `max_producers` are remembered; beyond that the longest idle one is forgotten early.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from horolog.broker.log.indexes import AbortedTransaction
from horolog.broker.log.producers.producers_file import Appended, Remembered
from horolog.broker.log.producers.snapshot_file import SnapshotEntry
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.control import Marker

BATCHES_REMEMBERED: Final = 5
MAX_PRODUCERS = 10_000
LARGEST_SEQUENCE: Final = 2**31 - 1
_new_tuple: Final = tuple.__new__  # a third of the cost of a named tuple's own constructor


class ProducerBatch(NamedTuple):
    """The facts about one batch with a producer id that the state needs."""

    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    max_timestamp: int
    transactional: bool = False
    marker: Marker | None = None  # of a control batch: how it ends the producer's transaction


class KnownProducer(NamedTuple):
    """The state of one producer. Every change replaces it as a whole, so that changes can be rolled back."""

    epoch: int
    batches: tuple[Appended, ...]  # oldest first; empty when only markers of this epoch are known
    last_timestamp: int
    coordinator_epoch: int
    transaction_start: int  # -1: no transaction is open
    touched_ms: int
    aborted_since: int
    """Where the last transaction began, if it was aborted in this epoch and nothing was appended since; else -1."""

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else -1

    @property
    def last_data_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The offsets of a batch that is in the log already."""

    first_offset: int
    last_offset: int
    timestamp: int


@dataclass(frozen=True, slots=True)
class Rejected:
    code: ErrorCode
    message: str


@dataclass(frozen=True, slots=True)
class Completed:
    """A marker that ended a transaction with records in this partition."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool
    last_stable_offset: int  # everything before it was decided when the marker had been appended

    def index_entry(self) -> AbortedTransaction:
        """The entry of the transaction index, if the transaction was aborted."""
        return AbortedTransaction(self.producer_id, self.first_offset, self.last_offset, self.last_stable_offset)


_UNKNOWN: Final = KnownProducer(-1, (), -1, -1, -1, 0, -1)


class ProducerStates:
    """The producers of one partition, longest idle first."""

    __slots__ = ("_max_producers", "_open", "_producers", "completed", "expiration_ms", "unwritten")

    def __init__(self, expiration_ms: int, max_producers: int = MAX_PRODUCERS) -> None:
        self.expiration_ms = expiration_ms
        self._max_producers = max_producers
        self._producers: dict[int, KnownProducer] = {}
        self._open: dict[int, int] = {}  # producer id -> first offset of its open transaction, ascending
        self.completed: list[Completed] = []
        """The transactions whose markers have not been written yet."""
        self.unwritten: list[tuple[int, KnownProducer | None]] = []
        """The producers changed since the last `written`, with their states before."""

    def __repr__(self) -> str:
        return f"<ProducerStates of {len(self._producers)} producers, {len(self._open)} with an open transaction>"

    def __len__(self) -> int:
        return len(self._producers)

    def __iter__(self) -> Iterator[tuple[int, KnownProducer]]:
        return iter(self._producers.items())

    def get(self, producer_id: int) -> KnownProducer | None:
        return self._producers.get(producer_id)

    def check(self, batch: ProducerBatch) -> Duplicate | Rejected | None:
        """None if this batch may be appended; else the duplicate, or why it is rejected."""
        producer = self._producers.get(batch.producer_id)
        if producer is None:
            return self._check_newcomer()
        if _goes_on(producer, batch):
            return None
        if batch.marker is not None:
            return _check_epoch(producer, batch) or _check_coordinator(producer, batch.marker)
        duplicate = _find_duplicate(producer, batch)
        if duplicate is not None:
            return duplicate
        return _check_epoch(producer, batch) or _check_sequence(producer, batch) or _check_transaction(producer, batch)

    def _check_newcomer(self) -> Rejected | None:
        if len(self._open) < self._max_producers:
            return None
        message = f"{len(self._open)} producers have open transactions on this partition, which is the maximum"
        return Rejected(ErrorCode.UNKNOWN_PRODUCER_ID, message)

    def update(self, batch: ProducerBatch, now_ms: int) -> Completed | None:
        """Record an appended batch, without checks."""
        producer_id = batch.producer_id
        before = self._producers.pop(producer_id, None)
        self.unwritten.append((producer_id, before))
        after = _after(before or _UNKNOWN, batch, now_ms)
        self._producers[producer_id] = after
        if before is None and len(self._producers) > self._max_producers:
            self._evict_longest_idle()
        if batch.marker is not None:
            return self._complete(before or _UNKNOWN, batch, batch.marker)
        if after.transaction_start >= 0 and producer_id not in self._open:
            self._open[producer_id] = after.transaction_start
        return None

    def replay(self, batch: ProducerBatch, now_ms: int) -> Completed | None:
        """Record a batch read again from the log, which cannot be undone."""
        completed = self.update(batch, now_ms)
        self.written()
        return completed

    def _complete(self, before: KnownProducer, batch: ProducerBatch, marker: Marker) -> Completed | None:
        self._open.pop(batch.producer_id, None)
        if before.transaction_start < 0:
            return None
        completed = Completed(
            batch.producer_id,
            before.transaction_start,
            batch.last_offset,
            not marker.committed,
            next(iter(self._open.values()), batch.last_offset + 1),
        )
        self.completed.append(completed)
        return completed

    def _evict_longest_idle(self) -> None:
        for producer_id in self._producers:
            if producer_id not in self._open:
                del self._producers[producer_id]
                return

    @property
    def first_undecided_offset(self) -> int | None:
        """The start of the earliest transaction that is open, or whose end is not written yet; None if there is none."""
        first = next(iter(self._open.values()), None)
        for completed in self.completed:
            if first is None or completed.first_offset < first:
                first = completed.first_offset
        return first

    def written(self) -> None:
        """Everything recorded so far has been written to the log."""
        self.unwritten.clear()
        self.completed.clear()

    def undo_unwritten(self) -> None:
        """Roll back every update since the last `written`: the appends failed."""
        while self.unwritten:
            producer_id, before = self.unwritten.pop()
            self._producers.pop(producer_id, None)
            if before is not None:
                self._producers[producer_id] = before
        self.completed.clear()
        self._find_open()

    def _find_open(self) -> None:
        starts = [(one.transaction_start, pid) for pid, one in self._producers.items() if one.transaction_start >= 0]
        self._open = {producer_id: start for start, producer_id in sorted(starts)}

    def expire(self, now_ms: int) -> int:
        """Forget producers that have been idle for too long; returns how many."""
        idle_since = now_ms - self.expiration_ms
        expired = [
            producer_id
            for producer_id, one in self._producers.items()
            if one.touched_ms <= idle_since and one.transaction_start < 0
        ]
        for producer_id in expired:
            del self._producers[producer_id]
        return len(expired)

    def clear(self) -> None:
        self._producers.clear()
        self._open.clear()
        self.written()

    def restore(self, entries: Iterable[SnapshotEntry], now_ms: int) -> None:
        """Begin again from a snapshot."""
        self.clear()
        for entry in entries:
            self._producers[entry.producer_id] = _from_snapshot(entry, now_ms)
            if len(self._producers) > self._max_producers:
                self._evict_longest_idle()
        self._find_open()

    def restore_missing(self, entries: Iterable[SnapshotEntry], now_ms: int) -> None:
        """Add the producers of a snapshot that the log behind it does not have."""
        for entry in entries:
            self._producers.setdefault(entry.producer_id, _from_snapshot(entry, now_ms))
        self._find_open()

    def snapshot(self) -> list[SnapshotEntry]:
        """The entries to save, by producer id."""
        return [_to_snapshot(producer_id, self._producers[producer_id]) for producer_id in sorted(self._producers)]

    def remembered(self) -> list[Remembered]:
        """The state that a snapshot has no room for, by producer id: the last batches of producers with more than one."""
        several = [(one_id, one) for one_id, one in sorted(self._producers.items()) if len(one.batches) > 1]
        return [Remembered(producer_id, one.epoch, one.batches) for producer_id, one in several]

    def recall(self, remembered: Mapping[int, Remembered]) -> None:
        """Restore the batches before the oldest known one."""
        for producer_id, kept in remembered.items():
            producer = self._producers.get(producer_id)
            if producer is None or producer.epoch != kept.epoch or not producer.batches:
                continue
            places = [one.place for one in kept.batches]
            oldest = producer.batches[0].place
            if oldest in places:
                batches = (*kept.batches[: places.index(oldest) + 1], *producer.batches[1:])
                self._producers[producer_id] = producer._replace(batches=batches[-BATCHES_REMEMBERED:])

    def recall_aborted(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Find the producers whose last batch was aborted, which snapshots do not say. A later epoch has no batches of before."""
        for one in aborted:
            producer = self._producers.get(one.producer_id)
            if producer is not None and one.first_offset <= producer.last_data_offset < one.last_offset:
                self._producers[one.producer_id] = producer._replace(aborted_since=one.first_offset)

    def last_records(self) -> Mapping[int, tuple[int, int]]:
        """The last data offset (-1: none) and epoch of each producer, of which the cleaner must keep a trace."""
        return {producer_id: (one.last_data_offset, one.epoch) for producer_id, one in self._producers.items()}


def _goes_on(producer: KnownProducer, batch: ProducerBatch) -> bool:
    """Whether a batch is the very next one of its producer, outside of transactions, as nearly all are."""
    epoch, batches, _, _, transaction_start, _, _ = producer
    _, producer_epoch, base_sequence, last_sequence, _, _, _, _, marker = batch
    return (
        producer_epoch == epoch
        and bool(batches)
        and base_sequence == batches[-1].last_sequence + 1
        and last_sequence >= base_sequence
        and transaction_start < 0
        and marker is None
    )


def _find_duplicate(producer: KnownProducer, batch: ProducerBatch) -> Duplicate | None:
    if batch.producer_epoch != producer.epoch:
        return None
    known = producer.batches
    if batch.transactional and producer.aborted_since >= 0:
        known = tuple(one for one in known if one.first_offset < producer.aborted_since)
    for one in known:
        if one.first_sequence == batch.base_sequence and one.last_sequence == batch.last_sequence:
            return Duplicate(one.first_offset, one.last_offset, one.timestamp)
    return None


def _check_epoch(producer: KnownProducer, batch: ProducerBatch) -> Rejected | None:
    if batch.producer_epoch >= producer.epoch:
        return None
    message = (
        f"producer {batch.producer_id} is at epoch {producer.epoch}, but the batch has epoch {batch.producer_epoch}"
    )
    return Rejected(ErrorCode.INVALID_PRODUCER_EPOCH, message)


def _check_sequence(producer: KnownProducer, batch: ProducerBatch) -> Rejected | None:
    first = batch.base_sequence
    if batch.producer_epoch != producer.epoch:
        if first == 0:
            return None
        message = f"producer {batch.producer_id} began epoch {batch.producer_epoch} at sequence {first}, not at 0"
    else:
        if first == next_sequence(producer.last_sequence) or _is_of_aborted(producer, batch):
            return None
        message = f"producer {batch.producer_id} sent sequence {first} after {producer.last_sequence}"
    return Rejected(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, message)


def _is_of_aborted(producer: KnownProducer, batch: ProducerBatch) -> bool:
    """Whether a transaction begins with a sequence of the aborted one before. Not where sequences begin again at 0."""
    if not batch.transactional or producer.aborted_since < 0:
        return False
    aborted = [one.first_sequence for one in producer.batches if one.first_offset >= producer.aborted_since]
    return bool(aborted) and aborted[0] <= batch.base_sequence <= producer.last_sequence


def next_sequence(last_sequence: int) -> int:
    """Sequences count up to the largest int32 and begin again at 0."""
    return 0 if last_sequence == LARGEST_SEQUENCE else last_sequence + 1


def comes_after(sequence: int, other: int) -> bool:
    """Whether a sequence is later than another one that was sent shortly before or after it: 0 is later than the largest int32."""
    return 0 < (sequence - other) & LARGEST_SEQUENCE <= LARGEST_SEQUENCE // 2


def _check_transaction(producer: KnownProducer, batch: ProducerBatch) -> Rejected | None:
    if producer.transaction_start < 0 or batch.transactional:
        return None
    message = f"producer {batch.producer_id} has a transaction open since offset {producer.transaction_start}, but the batch is not in it"
    return Rejected(ErrorCode.INVALID_TXN_STATE, message)


def _check_coordinator(producer: KnownProducer, marker: Marker) -> Rejected | None:
    if marker.coordinator_epoch >= producer.coordinator_epoch:
        return None
    message = f"coordinator epoch {marker.coordinator_epoch} is older than {producer.coordinator_epoch}"
    return Rejected(ErrorCode.TRANSACTION_COORDINATOR_FENCED, message)


def _after(before: KnownProducer, batch: ProducerBatch, now_ms: int) -> KnownProducer:
    """The producer's state once this batch is in the log."""
    kept = before.batches if batch.producer_epoch == before.epoch else ()
    if batch.marker is not None:
        return KnownProducer(
            batch.producer_epoch,
            kept,
            batch.max_timestamp,
            batch.marker.coordinator_epoch,
            -1,
            now_ms,
            _aborted_since(before, batch, batch.marker),
        )
    _, epoch, base_sequence, last_sequence, first_offset, last_offset, timestamp, transactional, _ = batch
    appended = _new_tuple(Appended, (base_sequence, last_sequence, first_offset, last_offset, timestamp))
    start = before.transaction_start
    if start < 0 and transactional:
        start = first_offset
    if kept and base_sequence <= kept[-1].last_sequence < LARGEST_SEQUENCE:
        kept = tuple(one for one in kept if one.last_sequence < base_sequence)  # the others were aborted
    batches = (*kept[1 - BATCHES_REMEMBERED :], appended)
    return _new_tuple(KnownProducer, (epoch, batches, timestamp, before.coordinator_epoch, start, now_ms, -1))


def _aborted_since(before: KnownProducer, batch: ProducerBatch, marker: Marker) -> int:
    """A second marker of an abort changes nothing."""
    if marker.committed or batch.producer_epoch != before.epoch:
        return -1
    return before.transaction_start if before.transaction_start >= 0 else before.aborted_since


def _from_snapshot(entry: SnapshotEntry, now_ms: int) -> KnownProducer:
    batches: tuple[Appended, ...] = ()
    if entry.last_offset >= 0:
        last = entry.last_sequence
        first = last - entry.offset_delta
        if first < 0 <= last:
            first += LARGEST_SEQUENCE + 1
        batches = (Appended(first, last, entry.last_offset - entry.offset_delta, entry.last_offset, entry.timestamp),)
    return KnownProducer(
        entry.producer_epoch,
        batches,
        entry.timestamp,
        entry.coordinator_epoch,
        entry.current_txn_first_offset,
        now_ms,
        -1,
    )


def _to_snapshot(producer_id: int, producer: KnownProducer) -> SnapshotEntry:
    last = producer.batches[-1] if producer.batches else Appended(-1, -1, -1, -1, -1)
    return SnapshotEntry(
        producer_id,
        producer.epoch,
        last.last_sequence,
        last.last_offset,
        last.last_offset - last.first_offset,
        producer.last_timestamp,
        producer.coordinator_epoch,
        producer.transaction_start,
    )
