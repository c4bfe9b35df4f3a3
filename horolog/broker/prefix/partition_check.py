"""Checks that the records of a partition follow one another from its start to its end, in the WALs that its lineage names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.seams import Lineage
from horolog.broker.on_record.cluster_file import Place
from horolog.broker.prefix.findings import Finding, missing
from horolog.broker.prefix.wal_check import Extent

Extents = Mapping[Wal, Mapping[tuple[Place, int], Sequence[Extent]]]


def gaps(place: Place, lineage: Lineage, extents: Extents, start_offset: int) -> Iterator[Extent]:
    """The offsets from the start on that no WAL has, although it has later ones."""
    reached = start_offset
    for stretch in lineage:
        for one in extents.get(stretch.wal, {}).get((place, stretch.epoch), ()):
            if one.base_offset > reached:
                yield Extent(reached, one.base_offset)
            reached = max(reached, one.next_offset)


def check_partition(name: str, found: Iterator[Extent]) -> Iterator[Finding]:
    for one in found:
        yield missing(name, f"offsets {one.base_offset} to {one.next_offset - 1} are in no object")
