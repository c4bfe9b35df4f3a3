"""Reads the objects of a backup, and holds every piece that its moments name against its checksum."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from crc32c import crc32c

from horolog.broker.backup.moment import KeptPiece, Moment
from horolog.broker.prefix.findings import Finding, damaged, missing
from horolog.stores.object_store import ObjectStore


class VerifiedBackup(NamedTuple):
    """The outcome."""

    objects: int
    size_bytes: int
    findings: tuple[Finding, ...]


def verify(
    store: ObjectStore, moments: Iterable[Moment], seen: Callable[[int], None] = lambda _: None
) -> VerifiedBackup:
    """Every object once; `seen` is called with the bytes of each. Raises StoreError."""
    pieces: dict[str, set[KeptPiece]] = {}
    for one in moments:
        for partition in one.partitions:
            for piece in partition.pieces():
                pieces.setdefault(piece.key, set()).add(piece)
    size_bytes, findings = 0, []
    for name, wanted in sorted(pieces.items()):
        try:
            data = store.get(name)
        except FileNotFoundError:
            findings.append(missing(name, "moments name it"))
            continue
        size_bytes += len(data)
        findings += _faults(name, data, wanted)
        seen(len(data))
    return VerifiedBackup(len(pieces), size_bytes, tuple(findings))


def _faults(name: str, data: bytes, wanted: Iterable[KeptPiece]) -> Iterator[Finding]:
    for piece in sorted(wanted, key=lambda one: one.position):
        found = data[piece.position : piece.position + piece.size_bytes]
        if len(found) != piece.size_bytes or crc32c(found) != piece.crc:
            yield damaged(name, f"{piece.size_bytes} bytes at {piece.position} are not those that were written")
