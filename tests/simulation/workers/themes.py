"""What goes wrong again and again in a history of several workers; what disks lose at a failed sync is left to histories of one."""

from __future__ import annotations

from tests.simulation.themes import Theme

FAULTS = ("write", "write", "torn write", "read", "rename", "create", "full")
DAMAGED_KINDS = (
    ".log",
    ".log",
    ".index",
    ".timeindex",
    ".snapshot",
    "horolog-seals",
    "leader-epoch-checkpoint",
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
ANYTHING = Theme(faults=FAULTS, damaged=DAMAGED_KINDS, damage_chance=0.1)
HAND_OVERS = Theme(faults=FAULTS, damage_chance=0.0, often=("hand_over", "_end_now"))
KILLS = Theme(
    faults=FAULTS, damage_chance=0.0, often=("end_worker", "end_worker_at_a_change", "end_worker_at_a_message")
)
CHANGES = Theme(
    faults=FAULTS, damage_chance=0.0, often=("create", "delete", "grow", "configure", "end_worker_at_a_message")
)
LINKS = Theme(faults=FAULTS, damage_chance=0.0, often=("cut", "slow_down", "hang"))
STARTS = Theme(faults=FAULTS, damage_chance=0.0, often=("hand_over", "delete_records", "end_worker", "stop_worker"))
COORDINATORS = Theme(
    faults=FAULTS, damage_chance=0.0, often=("hand_over_coordinator", "_transact", "slow_down", "hang")
)
THEMES = (HAND_OVERS, KILLS, CHANGES, LINKS, STARTS, COORDINATORS)
WRITES_AT_HAND_OVERS = Theme(faults=FAULTS, damage_chance=0.0, also=("hand_over_amid_writes",))
LOST_ENTRIES = Theme(faults=FAULTS, damage_chance=0.0, also=("lose_an_entry",))
LOST_DECISIONS = Theme(faults=FAULTS, damage_chance=0.0, often=("_transact",), also=("lose_a_decision",))
CLEAN_STOPS = Theme(faults=FAULTS, damage_chance=0.0, sends_older_again=True, also=("stop_after_batches",))
RARE_THEMES = (WRITES_AT_HAND_OVERS, LOST_ENTRIES, LOST_DECISIONS, CLEAN_STOPS)
"""Of histories that would have none otherwise: for faults that take a coincidence to be found."""
HURT_RECORDS = Theme(
    faults=FAULTS, damage_chance=0.0, often=("create", "delete", "configure", "end_worker"), also=("hurt_record",)
)
ONE_IN, PLACE, PLACE_OF_HURT_RECORDS = 20, 6, 16


def theme_of(seed: int) -> Theme:
    """Every second history has one."""
    if seed % ONE_IN == PLACE:
        return RARE_THEMES[seed // ONE_IN % len(RARE_THEMES)]
    if seed % ONE_IN == PLACE_OF_HURT_RECORDS:
        return HURT_RECORDS
    return THEMES[seed // 2 % len(THEMES)] if seed % 2 else ANYTHING


def seeds_of(theme: Theme, count: int, first: int = 0) -> list[int]:
    """The first seeds that have a theme."""
    if theme in RARE_THEMES:
        place = RARE_THEMES.index(theme) * ONE_IN + PLACE
        return [place + number * ONE_IN * len(RARE_THEMES) for number in range(first, first + count)]
    start = THEMES.index(theme) * 2 + 1
    return [start + number * 2 * len(THEMES) for number in range(first, first + count)]
