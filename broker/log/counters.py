"""What the log counts; the application shows these among its metrics."""

from dataclasses import dataclass, field

from broker.metrics import Counter


@dataclass(frozen=True, slots=True)
class LogCounters:
    """Counters of all partitions together."""

    segments_rolled: Counter = field(default_factory=Counter)
    segments_expired: Counter = field(default_factory=Counter)
    segments_scanned: Counter = field(default_factory=Counter)
    """Read from end to end on opening, because no seal vouched for them."""
    segments_kept_by_future: Counter = field(default_factory=Counter)
    """Whose largest timestamp lies in the future and keeps them, and everything behind them, from expiring."""
    indexes_rebuilt: Counter = field(default_factory=Counter)
    """Index files that were not those of their log, found when first used."""
    torn_bytes_cut: Counter = field(default_factory=Counter)
    damaged_bytes: Counter = field(default_factory=Counter)
    """In the middle of logs, left where they are and passed over."""
    write_failures: Counter = field(default_factory=Counter)
    sync_failures: Counter = field(default_factory=Counter)
