"""What goes wrong again and again in a history: one in ten has a theme, for faults that take two of a kind to be found.

Where everything may happen, the same thing seldom happens twice. A theme makes a few things likely: which files are damaged, and how often,
what the disk refuses while the broker starts, what tools do.
"""

from __future__ import annotations

from dataclasses import dataclass

DAMAGED_KINDS = (
    ".log",
    ".log",
    ".log",
    ".log",
    ".index",
    ".timeindex",
    ".snapshot",
    "horolog-seals",
    "horolog-log-starts",
    "leader-epoch-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
    "horolog-cluster",
)
FAULTS = ("write", "write", "torn write", "sync", "lost pages", "read", "rename", "create", "sync_dir", "full")
PARTS = ("", "", "-", "-0/", "horolog", "__", "checkpoint")
ONE_IN, PLACE, PRINCIPALS_PLACE = 10, 7, 3
OFTEN = 10


@dataclass(frozen=True, slots=True)
class Theme:
    damaged: tuple[str, ...] = DAMAGED_KINDS
    damage_chance: float = 0.25
    faults: tuple[str, ...] = FAULTS
    parts: tuple[str, ...] = PARTS
    """Of the paths that a fault strikes."""
    start_fault_chance: float = 0.05
    waits_for_disk: bool = False
    """Partitions that are offline after a start come back by themselves; else the broker is started again."""
    sends_again: bool = False
    """Idempotent producers send again also what was acknowledged, as if they had not heard it."""
    sends_older_again: bool = False
    """They do so after a clean stop with any of the last batches, of which the broker knows five."""
    often: tuple[str, ...] = ()
    """The methods of operations that come more often than they would."""
    also: tuple[str, ...] = ()
    """Those that come in histories of this theme alone, and often."""


ANYTHING = Theme()
LOG_STARTS = Theme(
    damaged=("horolog-log-starts", "log-start-offset-checkpoint"),
    damage_chance=0.9,
    often=("delete_records", "_end_now"),
)
CLOSED_FOLDERS = Theme(
    damaged=("horolog-cluster",),
    damage_chance=0.9,
    faults=("read", "create"),
    parts=("-0/",),
    start_fault_chance=0.6,
    often=("_end_now",),
)
GROUPS = Theme(faults=("read",), parts=("__",), start_fault_chance=0.6, waits_for_disk=True, often=("_end_now",))
DELETIONS = Theme(often=("create", "delete", "end_at_an_operation"))
RETENTION = Theme(damage_chance=0.0, sends_again=True, often=("apply_retention", "_end_now"))
LOST_PAGES = Theme(faults=("lost pages",), parts=("", "-0/"), often=("fail_disk",))
COMPACTION = Theme(damaged=("cleaner-offset-checkpoint",), damage_chance=0.9, often=("compact", "_end_now"))
PRINCIPALS = Theme(damaged=(*DAMAGED_KINDS, *("horolog-cluster",) * len(DAMAGED_KINDS)))
THEMES = (LOG_STARTS, CLOSED_FOLDERS, GROUPS, DELETIONS, RETENTION, LOST_PAGES, COMPACTION)


def has_principals(seed: int) -> bool:
    """One history in ten has an access list, users, and principals that others give rights to and take them from."""
    return seed % ONE_IN == PRINCIPALS_PLACE


def seeds_with_principals(count: int) -> list[int]:
    """The first ones."""
    return [PRINCIPALS_PLACE + number * ONE_IN for number in range(count)]


def theme_of(seed: int) -> Theme:
    if has_principals(seed):
        return PRINCIPALS
    return THEMES[seed // ONE_IN % len(THEMES)] if seed % ONE_IN == PLACE else ANYTHING


def seeds_of(theme: Theme, count: int) -> list[int]:
    """The first seeds that have a theme."""
    first = THEMES.index(theme) * ONE_IN + PLACE
    return [first + number * ONE_IN * len(THEMES) for number in range(count)]
