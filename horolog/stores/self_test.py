"""Whether a store keeps what brokers that share it rest on: of several creates of one key one wins, and everybody sees it at once.

Stores that check for a key and create it in two steps, or that ignore the condition, let several writers win: records would be lost
without an error anywhere. `self_test` finds them with creates that run at the same time, before anything is written there.
"""

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from horolog.base.clock import Clock
from horolog.stores.faults import StoreError, StoreRefusal
from horolog.stores.object_store import Created, ObjectStore, Outcome

FOLDER = "check"
"""The objects of a test lie in a folder of their own below it, and are removed at its end."""

WRITERS = 8
MAX_CLOCK_OFFSET_MS = 60_000
"""With a clock that is further from the store's ages count by the earlier of the two."""

CLOCKS = "compare the clocks"

CONFLICT = "409"
_ATTEMPTS = 5
_FIRST_PAUSE_SECONDS = 0.1
_COARSE_MS = 1_000
"""Stores tell times in whole seconds."""


class Finding(NamedTuple):
    """One property of a store that was tried, and what was found; `fault` is empty if the store has it."""

    tried: str
    found: str = ""
    fault: str = ""
    is_passing: bool = False
    """Whether the fault says only that the store is away or overloaded: another test may end well."""


class Attempt(NamedTuple):
    """What one writer of a race wrote, and the answers to its creates, the last of which it went by."""

    data: bytes
    answers: tuple[Created, ...]

    @property
    def outcome(self) -> Outcome:
        return self.answers[-1].outcome


def self_test(
    store: ObjectStore, clock: Clock, writers: int = WRITERS, keys: int = 1, others: Sequence[ObjectStore] = ()
) -> Iterator[Finding]:
    """Try the properties one after the other, and stop behind the first fault; raises nothing of the store's.

    `others` are further ways to the same store (`addresses`): each of them writes, reads and lists, too.
    """
    folder = f"{FOLDER}/{uuid.uuid4().hex}"
    ways = (store, *others)
    writers = max(writers, len(ways))
    names = [f"{folder}/{number:020}" for number in range(keys)]
    creates = f"create {keys} key{'' if keys == 1 else 's'} with {writers} writers each at once"
    steps: tuple[tuple[str, Callable[[], tuple[str, str]]], ...] = (
        ("list the prefix", lambda: _listed(store, folder)),
        (creates, lambda: _raced(ways, names, writers)),
        ("list what was created", lambda: _seen(ways, folder, names)),
        ("read a part of an object", lambda: _part(store, names[0])),
        (CLOCKS, lambda: _clocks(store, clock, f"{folder}/clock")),
    )
    try:
        for tried, step in steps:
            finding = _tried(tried, step)
            yield finding
            if finding.fault:
                break
    finally:
        removal = _tried("remove what was created", lambda: _removed(store, folder))
    if not removal.fault or removal.fault != finding.fault:
        yield removal


def _tried(what: str, step: Callable[[], tuple[str, str]]) -> Finding:
    try:
        return Finding(what, *step())
    except StoreError as error:
        return Finding(what, "", str(error), is_passing=not isinstance(error, StoreRefusal))
    except FileNotFoundError as error:
        return Finding(what, "", f"an object that was created is not there ({error})")


def _listed(store: ObjectStore, folder: str) -> tuple[str, str]:
    there = sum(1 for _ in store.list(folder))
    return "the credentials and the bucket are right", f"a new folder has {there} objects" if there else ""


# -- creates of one key


def _raced(ways: Sequence[ObjectStore], names: Sequence[str], writers: int) -> tuple[str, str]:
    creates = 0
    with ThreadPoolExecutor(writers) as pool:
        for name in names:
            attempts = race(ways, name, pool, writers)
            creates += sum(len(one.answers) for one in attempts)
            fault = next((said for way in ways if (said := verdict(attempts, partial(way.get, name)))), "")
            if fault and is_away(attempts):
                raise StoreError(fault)
            if fault:
                return "", fault
    return f"each key has one winner, whose bytes can be read at once; {creates} requests", ""


def race(ways: Sequence[ObjectStore], key: str, pool: ThreadPoolExecutor, writers: int) -> list[Attempt]:
    """Let so many writers create one key at the same time, each with bytes of its own, and each way with its share of them."""
    start = threading.Barrier(writers)

    def write(number: int) -> Attempt:
        data = f"{number} {uuid.uuid4().hex}".encode()
        start.wait()
        return Attempt(data, settled(ways[number % len(ways)], key, data))

    return list(pool.map(write, range(writers)))


def settled(store: ObjectStore, key: str, data: bytes) -> tuple[Created, ...]:
    """The answers to a create that is sent again, with the same bytes, while its outcome is unknown."""
    answers = [store.create(key, data)]
    while answers[-1].outcome is Outcome.UNKNOWN and len(answers) < _ATTEMPTS:
        time.sleep(_FIRST_PAUSE_SECONDS * 2 ** (len(answers) - 1))
        answers.append(store.create(key, data))
    return tuple(answers)


def verdict(attempts: Sequence[Attempt], read: Callable[[], bytes]) -> str:
    """The fault of a race; empty if exactly one writer won and its bytes are there."""
    winners = [one for one in attempts if one.outcome is Outcome.MADE]
    if len(winners) > 1:
        return (
            f"{len(winners)} of {len(attempts)} creates of one key succeeded: the store does not keep the condition"
            " If-None-Match, so two brokers could overwrite each other's data"
        )
    unknown = [one for one in attempts if one.outcome is Outcome.UNKNOWN]
    if unknown:
        said = unknown[0].answers[-1].fault
        if winners:
            return f"a create of an existing key should get 412, but: {said}"
        return f"no create got success or 412: {said}"
    content = read()
    owners = [one for one in attempts if one.data == content]
    if not owners:
        return "the bytes that were read are those of no writer"
    if winners and owners != winners:
        return "the bytes that are read are not those of the writer that won"
    if not winners and len(owners[0].answers) == 1:
        return "every create was refused as taken, and none had created the key"
    return ""


def is_away(attempts: Sequence[Attempt]) -> bool:
    """Whether creates have no outcome because the store is away or overloaded: it says nothing about how the store treats the condition.

    A refusal lasts, and so does a conflict where one writer won.
    """
    last = [one.answers[-1] for one in attempts if one.outcome is Outcome.UNKNOWN]
    has_winner = any(one.outcome is Outcome.MADE for one in attempts)
    return bool(last) and not any(one.is_refused or (has_winner and CONFLICT in one.fault) for one in last)


# -- what a store shows


def _seen(ways: Sequence[ObjectStore], folder: str, names: Sequence[str]) -> tuple[str, str]:
    missing = {name for way in ways for name in set(names) - {one.key for one in way.list(folder)}}
    return "the list is complete", f"{len(missing)} of {len(names)} objects are not in a list" if missing else ""


def _part(store: ObjectStore, key: str) -> tuple[str, str]:
    whole = store.get(key)
    part = store.get_range(key, 1, 5)
    return "the range is right", "" if part == whole[
        1:5
    ] else f"bytes 1 to 5 were requested, and {len(part)} others were returned"


def _clocks(store: ObjectStore, clock: Clock, key: str) -> tuple[str, str]:
    offset = measured_offset_ms(store, clock, key)
    found = shown_offset(offset)
    return (found, "") if abs(offset) <= MAX_CLOCK_OFFSET_MS else ("", f"{found}: set the one that is wrong")


def measured_offset_ms(store: ObjectStore, clock: Clock, key: str) -> int:
    """How far the store's clock is from ours, by an object that is created for it; raises StoreError and FileNotFoundError."""
    before = clock.wall_ms()
    created = store.create(key, b"")
    after = clock.wall_ms()
    if created.outcome is Outcome.UNKNOWN:
        raise StoreError(created.fault)
    stored = store.stat(key)
    return clock_offset_ms(before, stored.last_modified_ms, after)


def shown_offset(offset_ms: int) -> str:
    side = "behind" if offset_ms < 0 else "ahead of"
    return f"the store's clock is {abs(offset_ms) / 1000:.0f} s {side} this machine's" if offset_ms else "they agree"


def clock_offset_ms(before: int, stored: int, after: int) -> int:
    """How far a store's clock is from ours, from the time of an object that was created between two readings of ours."""
    if stored < before - _COARSE_MS:
        return stored - before
    return max(stored - after - _COARSE_MS, 0)


def _removed(store: ObjectStore, folder: str) -> tuple[str, str]:
    for one in list(store.list(folder)):
        store.delete(one.key)
    left = sum(1 for _ in store.list(folder))
    return "nothing is left", f"{left} objects are still listed" if left else ""
