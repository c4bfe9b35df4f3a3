"""Reads the partitions of a prefix as a leader would that takes over all of them, without becoming one: brokers may be running.

The WAL of a broker that runs is read up to the numbers that followed one another when the reading began.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import NamedTuple

from horolog.broker.bucket import wal_object
from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.covered import Covered
from horolog.broker.bucket.lineage_reader import read_indexes, runs_of
from horolog.broker.bucket.manifest_reader import StoredManifests
from horolog.broker.bucket.names import Wal, key, number_of
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.seams import Lineage, Opening, Stretch
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.wal_fencing import newest_mark
from horolog.broker.bucket.wal_index import FoundRun
from horolog.broker.bucket.wal_writer import MAX_UNSAFE
from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.on_record.cluster_file import Place, StoredTopic

READER = Wal(0, 0)
"""In place of the leader that a reader would be."""

Ends = Mapping[Wal, int]


class PartitionContents(NamedTuple):
    """All that the store has of a partition."""

    opening: Opening
    covered: Covered
    runs: list[FoundRun]
    """Of WALs, behind the segments."""

    @property
    def size_bytes(self) -> int:
        segments = sum(one.contents.size_bytes for one in self.covered.segments)
        return segments + sum(one.run.length for one in self.runs)


async def ends_of_open(store: StoreAccess, state: BucketState) -> Ends:
    """Where the WALs of members end now. Raises FormatError."""
    return {wal: await _end_of(store, wal) for wal in sorted(state.written_wals)}


async def _end_of(store: StoreAccess, wal: Wal) -> int:
    mark = await newest_mark(store, wal)
    number = 0 if mark is None else mark.upto
    there = {number_of(one.key) for one in await store.list(wal.folder)}
    while number in there:
        number += 1
    for last in range(max(number - MAX_UNSAFE - 1, 0 if mark is None else mark.upto), number):
        data = await store.read(key(wal.folder, last))
        if data is None or not wal_object.is_object(data):
            return last  # a fence: it has just ended
    return number


def lineage_for_reader(state: BucketState, place: Place, ends: Ends) -> Lineage:
    """The lineage of a partition with an end for each leader, and with the reader as the last one."""
    line = state.lineages.get(place, ())
    ended = [one if one.end is not None else one._replace(end=ends.get(one.wal, 0)) for one in line]
    return (*ended, Stretch(state.epoch(*place) + 1, READER))


async def contents_of(
    store: StoreAccess, state: BucketState, topic: StoredTopic, index: int, config: TopicConfig, ends: Ends
) -> PartitionContents:
    """Raises FormatError."""
    place = topic.id, index
    opening = Opening(topic.name, topic.id, index, config, lineage_for_reader(state, place, ends))
    covered = await StoredManifests(store).newest(opening)
    begin = max(covered.log_start_offset, covered.end_offset)
    runs = runs_of(opening, await read_indexes(store, [opening]))
    return PartitionContents(opening, covered, [one for one in runs if one.run.next_offset > begin])


async def is_newest(store: StoreAccess, found: PartitionContents) -> bool:
    """Whether the manifest is still the one that it was: of an older one, objects may be gone."""
    with contextlib.suppress(FormatError):
        return await StoredManifests(store).newest(found.opening, found.covered) == found.covered
    return False
