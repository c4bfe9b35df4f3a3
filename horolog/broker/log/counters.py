"""The log's counters, which the application shows among its metrics."""

from dataclasses import dataclass, field

from horolog.broker.base.metrics import Counter
from horolog.broker.log.validation import RefusedSet
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.timestamps import TOO_EARLY, TOO_LATE


@dataclass(frozen=True, slots=True)
class LogCounters:
    """Counters of all partitions together."""

    segments_rolled: Counter = field(default_factory=Counter)
    segments_expired: Counter = field(default_factory=Counter)
    segments_scanned: Counter = field(default_factory=Counter)
    """Segments read from end to end on opening, because no seal vouched for them."""
    segments_kept_by_future: Counter = field(default_factory=Counter)
    """Segments whose largest timestamp lies in the future and keeps them, and everything behind them, from expiring."""
    indexes_rebuilt: Counter = field(default_factory=Counter)
    """Indexes rebuilt because their files did not match the log, found on first use."""
    files_rebuilt: Counter = field(default_factory=Counter)
    """Checkpoints, snapshots, seals and lists of leader epochs that were damaged: what they said was taken from elsewhere."""
    torn_bytes_cut: Counter = field(default_factory=Counter)
    damaged_ranges: Counter = field(default_factory=Counter)
    damaged_bytes: Counter = field(default_factory=Counter)
    """Damaged ranges in the middle of logs, left in place, copied aside and skipped."""
    batches_put_right: Counter = field(default_factory=Counter)
    """Batches whose offset, size, magic or leader epoch was wrong, judged by their neighbours."""
    blocks_scrubbed: Counter = field(default_factory=Counter)
    segments_mended: Counter = field(default_factory=Counter)
    "Segments that were read again while running, because their log or index files were damaged."
    write_failures: Counter = field(default_factory=Counter)
    sync_failures: Counter = field(default_factory=Counter)
    lookups_by_time: Counter = field(default_factory=Counter)
    appends_from_future: Counter = field(default_factory=Counter)
    """Appends whose largest timestamp is ahead of the broker's clock."""
    appends_far_ahead: Counter = field(default_factory=Counter)
    """Of those: by more than a day."""
    appends_behind_retention: Counter = field(default_factory=Counter)
    """Appends whose largest timestamp is older than retention.ms."""
    appends_out_of_order: Counter = field(default_factory=Counter)
    """Appends whose largest timestamp is before one that their segment has already."""
    timestamps_too_early: Counter = field(default_factory=Counter)
    timestamps_too_late: Counter = field(default_factory=Counter)
    timestamps_invalid: Counter = field(default_factory=Counter)
    """Of a type that producers may not set, or no time at all."""

    def note_refusal(self, refused: RefusedSet) -> None:
        """Count the records refused for their time."""
        if refused.code != ErrorCode.INVALID_TIMESTAMP:
            return
        for _, text in refused.record_errors or [(0, refused.message)]:
            if TOO_EARLY in text:
                self.timestamps_too_early.value += 1
            elif TOO_LATE in text:
                self.timestamps_too_late.value += 1
            else:
                self.timestamps_invalid.value += 1
