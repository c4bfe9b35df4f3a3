"""Verifies a prefix: reads all objects that brokers over a store have written there, and reports those that are missing, damaged or left over.

It only reads, and brokers may be running. A fault that a running broker may have caused, for example because it deleted a topic during the
check, is reported only if it is there in another reading, during which neither the journal nor a manifest changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.names import LOG, MARKS, MERGED, WALS, Wal
from horolog.broker.bucket.prefix_contents import KINDS, OTHER, Amount, amounts, kind_of
from horolog.broker.on_record.cluster_file import Place
from horolog.broker.prefix.findings import Finding, is_fault, left_over
from horolog.broker.prefix.journal_check import CheckedJournal, check_journal
from horolog.broker.prefix.manifest_check import FOLDER as MANIFESTS
from horolog.broker.prefix.manifest_check import check_manifests
from horolog.broker.prefix.partition_check import check_partition, gaps
from horolog.broker.prefix.prefix_reader import PrefixReader
from horolog.broker.prefix.segment_check import check_segments, unnamed
from horolog.broker.prefix.wal_check import WalUse, check_wal
from horolog.stores.object_store import ObjectStore, Stored

AT_ONCE = 8
ROUNDS = 3
WAL_FOLDERS = (WALS, MERGED, MARKS)
TESTS = "check"
NOT_OF_BROKERS = (KINDS[TESTS], OTHER)


class Verified(NamedTuple):
    """The report on a prefix."""

    cluster_id: str
    journal_entries: int
    topics: int
    partitions: int
    contents: tuple[Amount, ...]
    findings: tuple[Finding, ...]

    @property
    def is_whole(self) -> bool:
        return not any(map(is_fault, self.findings))


def verify(store: ObjectStore, at_once: int = AT_ONCE, seen: Callable[[int], None] = lambda _: None) -> Verified | None:
    """The report; None if no broker has used the prefix. Raises StoreError."""
    with PrefixReader(store, at_once, seen) as reader:
        for _ in range(ROUNDS):
            before = _marks_of(reader)
            found = _verify(reader)
            if found is None or found.is_whole or _marks_of(reader) == before:
                break
    return found


def _marks_of(reader: PrefixReader) -> frozenset[str]:
    """What changes when brokers change the cluster, or make manifests."""
    return frozenset((*reader.listed(LOG), *reader.listed(MANIFESTS)))


def _verify(reader: PrefixReader) -> Verified | None:
    listed = reader.listed("")
    if all(kind_of(name) in NOT_OF_BROKERS for name in listed):
        return None
    journal = check_journal(reader)
    state = journal.state
    wals = {use.wal: check_wal(reader, use) for use in _uses(journal, listed)}
    manifests = check_manifests(reader, state)
    extents = {wal: one.extents for wal, one in wals.items()}
    findings = [*journal.findings, *(each for one in wals.values() for each in one.findings), *manifests.findings]
    for _, topic in sorted(state.topics.items()):
        for index in range(topic.partition_count):
            place = topic.id, index
            newest = manifests.newest.get(place)
            start = 0 if newest is None else max(newest.start_offset, newest.end_offset)
            found = gaps(place, state.lineages.get(place, ()), extents, start)
            findings += check_partition(f"{topic.name}-{index}", found)
    segments = check_segments(reader, manifests.newest.values())
    findings += [*segments.findings, *unnamed(listed, segments.may_name), *_strangers(listed)]
    return Verified(
        journal.cluster_id,
        state.number,
        len(state.topics),
        len(state.leads),
        tuple(amounts(Stored(name, size, 0) for name, size in listed.items())),
        tuple(findings),
    )


def _uses(journal: CheckedJournal, listed: Mapping[str, int]) -> Iterator[WalUse]:
    """All WALs that partitions need, that members write, or of which there is an object."""
    stretches = _stretches(journal.state)
    written = journal.state.written_wals
    for wal in sorted({*stretches, *written, *_wals_in(listed)}):
        yield WalUse(wal, stretches.get(wal, {}), wal in written)


def _stretches(state: BucketState) -> dict[Wal, dict[tuple[Place, int], int | None]]:
    found: dict[Wal, dict[tuple[Place, int], int | None]] = {}
    for place, lineage in state.lineages.items():
        for one in lineage:
            found.setdefault(one.wal, {})[place, one.epoch] = one.end
    return found


def _wals_in(listed: Mapping[str, int]) -> Iterator[Wal]:
    for name in listed:
        folder, shown, *_ = (*name.split("/"), "")
        if folder in WAL_FOLDERS and (wal := Wal.of(shown)) is not None:
            yield wal


def _strangers(listed: Mapping[str, int]) -> Iterator[Finding]:
    tests = {name: size for name, size in listed.items() if name.startswith(f"{TESTS}/")}
    yield from left_over(TESTS, tests, "tests of the store that were interrupted, or are running")
    others = {name: size for name, size in listed.items() if kind_of(name) == OTHER}
    yield from left_over(min(others, default=""), others, "no broker has written them; they belong elsewhere")
