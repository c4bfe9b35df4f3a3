"""Explores the model: every interleaving within small bounds, or random walks within larger ones.

python -m tests.model check [SCENARIO]    every interleaving, as designed: no promise is broken
python -m tests.model bugs [SCENARIO]     each planted bug is found, so the model can fail
python -m tests.model walk RUNS [BUG]     random walks, everything at once
"""

import random
import time
from typing import NamedTuple

from tests.model.moves import steps
from tests.model.state import Bounds, Broken, State, verify


def _bounds(*counts, acts):
    return Bounds(*counts, acts=frozenset(acts.split()))


SCENARIOS = {
    "wal": _bounds(2, 3, 3, 1, 0, 1, acts="crash"),
    "trim": _bounds(2, 3, 3, 1, 2, 0, acts="trim"),
    "chain": _bounds(3, 2, 2, 2, 0, 0, acts="crash"),
    "hand": _bounds(3, 1, 1, 2, 0, 0, acts="hand"),
    "back": _bounds(2, 3, 2, 2, 0, 0, acts="hand"),
    "again": _bounds(2, 1, 1, 2, 3, 0, acts="hand sweep"),
    "manifest": _bounds(2, 2, 2, 1, 3, 0, acts="trim"),
    "sweep": _bounds(2, 2, 2, 1, 3, 0, acts="trim sweep rewrite"),
    "merge": _bounds(2, 3, 3, 1, 0, 0, acts="merge"),
    "local": _bounds(2, 2, 2, 1, 0, 0, acts="crash"),
}
"""Small bounds, each for a part of the protocol: brokers, records, WAL objects, entries, manifests, repeats; acts."""

WALK = _bounds(4, 7, 6, 4, 7, 2, acts="crash hand trim merge sweep rewrite")

BUGS = {
    "taken_is_mine": "wal",
    "ack_out_of_order": "wal",
    "no_trim_check": "trim",
    "strays_replayed": "wal",
    "404_is_end": "trim",
    "trim_without_mark": "trim",
    "trim_before_manifest": "manifest",
    "last_wal_only": "chain",
    "entry_without_fence": "wal",
    "hand_over_by_others": "hand",
    "hand_over_unshipped": "hand",
    "resume_while_unknown": "hand",
    "entries_taken_blindly": "hand",
    "manifest_ignores_others": "manifest",
    "sweep_before_manifest": "sweep",
    "old_epoch_goes_on": "sweep",
    "local_tail_kept": "local",
    "conflict_is_taken": "wal",
    "merge_unsafe": "merge",
    "runs_of_any_epoch": "back",
    "upload_outlives_term": "again",
    "delete_named": "sweep",
    "sweep_any_epoch": "sweep",
}
"""Planted bugs, each with the scenario that finds it."""

RARE = ("dies", "hand over", "lists", "its own now")
"""Steps that a walk takes seldom, else leaders change before they have done anything."""


class Explored(NamedTuple):
    states: int
    depth: int
    broken: list[str]
    """The shortest way to a broken promise, and which one; empty if there is none."""
    is_complete: bool


def explore(bounds, bug="", limit=3_000_000):
    """Breadth first."""
    first = State(bounds)
    seen, front, depth = {hash(first.key())}, [(first, None)], 0
    while front and len(seen) <= limit:
        ahead = []
        for state, way in front:
            broken = _explore_from(state, way, bounds, bug, seen, ahead)
            if broken:
                return Explored(len(seen), depth, broken, is_complete=True)
        front = ahead
        depth += 1
    return Explored(len(seen), depth, [], is_complete=not front)


def _explore_from(state, way, bounds, bug, seen, ahead):
    """Add the new states behind this one; returns the way to a broken promise, if a step breaks one."""
    label = ""
    try:
        for label, after in steps(state, bounds, bug):
            key = hash(after.key())
            if key not in seen:
                seen.add(key)
                verify(after, bug)
                ahead.append((after, (label, way)))
    except Broken as broken:
        return [*_labels((label, way)), str(broken)]
    return []


def _labels(way):
    labels = []
    while way:
        label, way = way
        labels.append(label)
    return labels[::-1]


class Walked(NamedTuple):
    state: State
    labels: list[str]
    broken: str


def walk(seed, bug="", bounds=WALK, length=400):
    """One random walk."""
    chance, state, labels = random.Random(seed), State(bounds), []
    try:
        for _ in range(length):
            options = list(steps(state, bounds, bug))
            if not options:
                break
            quiet = [one for one in options if not any(word in one[0] for word in RARE)]
            label, state = chance.choice(quiet if quiet and chance.random() < 0.93 else options)
            labels.append(label)
            verify(state, bug)
    except Broken as broken:
        return Walked(state, labels, str(broken))
    return Walked(state, labels, "")


def main(what="check", *rest):
    """The exit code."""
    if what == "walk":
        return _walks(int(rest[0]), *rest[1:])
    failed = False
    for name, bounds in SCENARIOS.items():
        bugs = [""] if what == "check" else [bug for bug, scenario in BUGS.items() if scenario == name]
        for bug in bugs if not rest or name in rest else ():
            began = time.monotonic()
            states, depth, broken, is_complete = explore(bounds, bug)
            is_right = bool(broken) == bool(bug)
            failed |= not is_right
            scope = "every one" if is_complete else "not all"
            print(
                f"{'ok   ' if is_right else 'SHORT'} {name:9s} {bug or 'as designed':24s} {states:9,d} states, depth {depth},"
                f" {scope}, {time.monotonic() - began:.0f} s",
                flush=True,
            )
            print(*(broken if not is_right else broken[-1:]), sep="\n  ")
    return failed


def _walks(runs, bug=""):
    walks = [walk(seed, bug) for seed in range(runs)]
    broken = [(seed, one) for seed, one in enumerate(walks) if one.broken]
    for seed, one in broken[:1]:
        print(f"seed {seed}:", *one.labels, one.broken, sep="\n  ")
    changes, told = (
        sum(map(len, parts)) for parts in zip(*((one.state.journal, one.state.told) for one in walks), strict=True)
    )
    print(
        f"{bug or 'as designed'}: {runs} walks, {changes} changes of leader, {told} records told, {len(broken)} broken"
    )
    return bool(broken) != bool(bug)
