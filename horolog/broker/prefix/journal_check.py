"""Checks the journal of a prefix: every entry from the first on, and that each snapshot is the state after its entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.journal_objects import (
    decode_founding,
    decode_log_entry,
    decode_snapshot,
    encode_snapshot,
)
from horolog.broker.bucket.names import LOG, SNAPSHOTS, key
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.cluster.cluster_state import Entry
from horolog.broker.prefix.findings import Finding, damaged, missing
from horolog.broker.prefix.prefix_reader import PrefixReader


class CheckedJournal(NamedTuple):
    """The state of the cluster as far as the journal can be read."""

    cluster_id: str
    state: BucketState
    findings: tuple[Finding, ...]


def check_journal(reader: PrefixReader) -> CheckedJournal:
    listed = reader.numbers(LOG)
    read = dict(zip(sorted(listed), reader.each(lambda one: reader.get(key(LOG, one)), sorted(listed)), strict=True))
    snapshots = {number: reader.get(key(SNAPSHOTS, number)) for number in sorted(reader.numbers(SNAPSHOTS))}
    return _Replay(read, snapshots).run()


class _Replay:
    """Applies entries in order. Behind one that cannot be applied it goes on from the next snapshot."""

    def __init__(self, read: Mapping[int, bytes | None], snapshots: Mapping[int, bytes | None]) -> None:
        self._read = read
        self._snapshots = snapshots
        self._findings: list[Finding] = []

    def run(self) -> CheckedJournal:
        cluster_id = self._cluster_id()
        state: BucketState | None = BucketState()
        best = BucketState()
        for number in range(1, max(self._read, default=0) + 1):
            entry = self._entry(number)
            state = None if state is None or entry is None else state.apply(entry)
            state = self._at_snapshot(number, state)
            best = best if state is None else state
        return CheckedJournal(cluster_id, best, tuple(self._findings))

    def _cluster_id(self) -> str:
        name, data = key(LOG, 0), self._read.get(0)
        if data is None:
            self._findings.append(missing(name, "the id of the cluster; no broker starts without it"))
            return ""
        try:
            return decode_founding(data).cluster_id
        except FormatError as error:
            self._findings.append(damaged(name, error))
            return ""

    def _entry(self, number: int) -> Entry | None:
        data = self._read.get(number)
        if data is None:
            self._findings.append(missing(key(LOG, number), "an entry of the journal, which brokers need to follow it"))
            return None
        try:
            return decode_log_entry(data, number).entry
        except FormatError as error:
            self._findings.append(damaged(key(LOG, number), error))
            return None

    def _at_snapshot(self, number: int, state: BucketState | None) -> BucketState | None:
        data = self._snapshots.get(number)
        if data is None:
            return state
        try:
            found = decode_snapshot(data, number)
        except FormatError as error:
            self._findings.append(damaged(key(SNAPSHOTS, number), error))
            return state
        if state is not None and encode_snapshot(found) != encode_snapshot(state):
            self._findings.append(damaged(key(SNAPSHOTS, number), "it is not the state after its entry"))
            return state
        return found
