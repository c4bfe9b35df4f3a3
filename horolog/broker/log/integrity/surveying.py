"""Decides about the findings of a scan: they are kept, corrected, cut or set aside.

- A batch with a fault only outside of its checksum (offset, size, magic, leader epoch) is corrected if its neighbours determine
  the right value (`corrections.corrected`); `Survey.corrections` has to be written into the file.
- A torn tail is damage with nothing good behind it: what a crash leaves of the last write. It may be cut.
- Damage with good batches behind it is a hole: it is left in place, copied aside (`set_aside`), never deleted with the batches
  behind it, and readers skip it like a gap that the cleaner has left.

Leader epochs never go down from one batch to the next. An epoch above the next batch's, or in the last batch above all recorded
epochs, is wrong: the batch gets the epoch of the previous one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from horolog.broker.log.integrity.corrections import MAX_BATCH_BYTES, as_batch, corrected, moved, with_epoch
from horolog.broker.log.integrity.scanning import Batch, Damage, Read, scan
from horolog.broker.log.integrity.seals import Hole
from horolog.protocol.records.head import EPOCH_AT, EPOCH_ENDS_AT, OFFSET_BYTES, UNCOVERED_BYTES


@dataclass(frozen=True, slots=True)
class Loss:
    """A range without a good batch; times and offsets are those of its neighbours."""

    start: int
    end: int
    reason: str
    first_offset: int
    following_offset: int | None
    """The first offset that is present again; None if nothing good follows."""
    time_before: int = -1
    time_after: int = -1


@dataclass(frozen=True, slots=True)
class Correction:
    """The bytes to write into the log file, and why."""

    position: int
    data: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Facts about a log file that are not in its bytes."""

    first_offset: int
    """The lowest possible offset of the first batch at `start`."""
    end_offset: int
    """The first offset that cannot be in it."""
    border: int | None = None
    """The base offset in the next file's name. Batches that continue beyond it without a gap are good if that file is a stray."""
    stray_follows: Callable[[], bool] = lambda: False
    start: int = 0
    """The position to begin at."""
    is_last: bool = False
    """Nothing follows: the end of the file is the end of the log."""
    dense: bool = False
    """It was never cleaned, so it has no gaps."""
    begins_as_named: bool = False
    """Its first batch has the offset of the file's name: it was made for appends, and never cleaned."""
    next_offset: int | None = None
    """The last recorded end of the log."""
    newest_epoch: int | None = None
    """The newest recorded leader epoch."""


@dataclass(slots=True)
class Survey:
    """The findings in a log file."""

    file_bytes: int
    good_bytes: int = 0
    """Where the last good batch ends."""
    holes: tuple[Hole, ...] = ()
    losses: list[Loss] = field(default_factory=list)
    """One for each hole, and the torn tail last if there is one."""
    corrections: list[Correction] = field(default_factory=list)

    @property
    def torn_bytes(self) -> int:
        return self.file_bytes - self.good_bytes

    def holes_to(self, end: int) -> tuple[Hole, ...]:
        """The holes, with the torn tail last."""
        return self.holes if self.good_bytes == end else (*self.holes, (self.good_bytes, end))


def survey(read: Read, file_bytes: int, known: FileFacts, absorb: Callable[[Batch], None]) -> Survey:
    """Scan a log file, call `absorb` with every good batch in order, and return the other findings."""
    run = _Survey(read, file_bytes, known, absorb)
    spans = scan(read, file_bytes, first_offset=known.first_offset, end_offset=known.end_offset, position=known.start)
    for span in spans:
        if isinstance(span, Damage):
            run.damaged(span)
        else:
            run.good(span)
    run.end()
    return run.found


class _Survey:
    """One batch is held back: its leader epoch is judged by the one behind it."""

    __slots__ = ("_absorb", "_before", "_damage", "_epoch", "_held", "_known", "_read", "found")

    def __init__(self, read: Read, file_bytes: int, known: FileFacts, absorb: Callable[[Batch], None]) -> None:
        self.found = Survey(file_bytes, known.start)
        self._read = read
        self._known = known
        self._absorb = absorb
        self._before = known.first_offset  # behind the batch before the one that is held
        self._held: Batch | None = None
        self._damage: Damage | None = None
        self._epoch = -1

    @property
    def _expected(self) -> int:
        """The offset after the held batch."""
        return self._known.first_offset if self._held is None else self._held.last_offset + 1

    def damaged(self, span: Damage) -> None:
        """Note damage, to be decided once the next batch is known; two adjacent ranges are one."""
        first = self._damage
        self._damage = span if first is None else Damage(first.position, span.end, first.reason)

    def _is_beyond(self, batch: Batch) -> bool:
        """Whether it is the next file's: a batch across the border is not, nor is what follows it where that file is a stray."""
        border = self._known.border
        if border is None or batch.last_offset < border:
            return False
        if batch.base_offset < border:
            return False
        return not (batch.base_offset == self._expected and self._known.stray_follows())

    def good(self, batch: Batch) -> None:
        if self._known.border is not None and self._is_beyond(batch):
            self.damaged(Damage(batch.position, batch.end, f"offset {batch.base_offset} is the next segment's"))
            return
        if not batch.position and self._known.begins_as_named and self._begins_one_bit_off(batch):
            self.damaged(Damage(batch.position, batch.end, f"offset {batch.base_offset} at the beginning of the file"))
            return
        held = self._held
        if held is not None and self._is_plain(held, batch):  # nearly always
            self._absorb(held)
            self.found.good_bytes = held.position + held.size_bytes
            self._before = held.last_offset + 1
            self._held = batch
            return
        if self._damage is not None:
            self._settle(batch.base_offset, batch)
        self._hold(batch)

    def _is_plain(self, held: Batch, batch: Batch) -> bool:
        """Whether a batch and the one behind it need no decision."""
        return (
            held.leader_epoch == batch.leader_epoch == self._epoch
            and self._damage is None
            and held.position == self.found.good_bytes
        )

    def end(self) -> None:
        known = self._known
        if self._held is not None:
            self._held = self._moved(self._held)
        following: int | None = known.end_offset if known.border is None else known.border
        if known.is_last:
            is_short = known.next_offset is not None and self._expected < known.next_offset
            following = known.next_offset if is_short else None
        self._settle(following, None)
        if self._held is not None:
            self._pass_on(self._held, None)
            self._held = None

    def _settle(self, following: int | None, behind: Batch | None) -> None:
        """Decide about the damage between the held batch and the next one."""
        damage, self._damage = self._damage, None
        if damage is None:
            return
        right = self._put_right(damage, following)
        if right is not None:
            self._hold(right)
            return
        held, time_after = self._held, -1 if behind is None else behind.max_timestamp
        time_before = -1 if held is None else held.max_timestamp
        self.found.losses.append(
            Loss(damage.position, damage.end, damage.reason, self._expected, following, time_before, time_after)
        )

    def _put_right(self, damage: Damage, following: int | None) -> Batch | None:
        size_bytes = damage.end - damage.position
        if size_bytes > MAX_BATCH_BYTES:
            return None
        known, data = self._known, self._read(size_bytes, damage.position)
        as_named = known.begins_as_named and not damage.position
        right = corrected(
            data, self._expected, following, dense=known.dense, end_offset=known.end_offset, as_named=as_named
        )
        batch = None if right is None else as_batch(right, damage.position)
        if right is not None and batch is not None:
            reason = f"{damage.reason}; corrected: offsets {batch.base_offset} to {batch.last_offset}"
            self.found.corrections.append(Correction(damage.position, right[:UNCOVERED_BYTES], reason))
        return batch

    def _begins_one_bit_off(self, batch: Batch) -> bool:
        return batch.base_offset != self._expected and moved(batch, self._expected) is not None

    def _moved(self, batch: Batch) -> Batch:
        """The last batch of the log, put where the one before it ends if it is one bit off. A torn tail may lie behind it."""
        known = self._known
        goes_on = batch.last_offset + 1 == known.next_offset or batch.base_offset == self._before
        if goes_on or not (known.is_last and known.dense) or self.found.losses:
            return batch
        data = moved(batch, self._before)
        right = None if data is None else as_batch(data, batch.position)
        if data is None or right is None:
            return batch
        reason = f"last offset {batch.last_offset} is one bit off; corrected: {right.last_offset}"
        self.found.corrections.append(Correction(batch.position, data[:OFFSET_BYTES], reason))
        return right

    def _hold(self, batch: Batch) -> None:
        if self._held is not None:
            self._pass_on(self._held, batch)
        self._before = self._expected
        self._held = batch

    def _pass_on(self, batch: Batch, following: Batch | None) -> None:
        found = self.found
        if batch.magic >= 2:
            batch = self._with_right_epoch(batch, following)
            self._epoch = max(self._epoch, batch.leader_epoch)
        if batch.position > found.good_bytes:
            found.holes = (*found.holes, (found.good_bytes, batch.position))
        self._absorb(batch)
        found.good_bytes = batch.end

    def _with_right_epoch(self, batch: Batch, following: Batch | None) -> Batch:
        newest = self._known.newest_epoch
        limit = following.leader_epoch if following is not None and following.magic >= 2 else newest
        if limit is None or limit < self._epoch or self._epoch <= batch.leader_epoch <= limit:
            return batch
        right = limit if self._epoch < 0 else self._epoch
        data = with_epoch(batch, right)
        fixed = as_batch(data, batch.position)
        if fixed is None:
            return batch
        reason = f"leader epoch {batch.leader_epoch} at offset {batch.base_offset} corrected: {right}"
        self.found.corrections.append(Correction(batch.position + EPOCH_AT, data[EPOCH_AT:EPOCH_ENDS_AT], reason))
        return fixed
