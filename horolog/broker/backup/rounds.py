"""The rounds of a backup: each looks at the folders, ships new bytes, makes the next moment, and removes outdated ones.

The newest moment names all that was shipped, so a round goes on where the last one ended, in whichever process. Long rounds make unfinished
moments on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from horolog.broker.backup import moment
from horolog.broker.backup.keeping import Keeper, read_moment
from horolog.broker.backup.looking import Ends, FoldersChanged, Look, SourceFolders
from horolog.broker.backup.moment import MOMENTS, OWNER, UNFINISHED, KeptPartition, Moment
from horolog.broker.backup.objects import Patient, PieceWriter
from horolog.broker.backup.pacing import BytePace
from horolog.broker.backup.shipping import Shipper
from horolog.broker.bucket import sealed_lines
from horolog.broker.bucket.names import NONCE_SIZE, number_of
from horolog.broker.bucket.sealed_lines import Sealed
from horolog.protocol.topic_partition import TopicPartition
from horolog.stores.object_store import ObjectStore

ATTEMPTS = 10
UNFINISHED_EVERY_BYTES = 1 << 30


class BackupTaken(Exception):
    """The place has a backup of other folders, or another process writes there."""


class RoundFailed(Exception):
    """The folders changed each time while they were read."""


class Means(NamedTuple):
    """What a round works with besides the folders."""

    pace: BytePace
    new_name: Callable[[], str]
    sleep: Callable[[float], None]
    history_ms: int


@dataclass(slots=True)
class Done:
    """What a round has done."""

    moment: Moment
    shipped_bytes: int
    removed_objects: int = 0


def moments_in(store: ObjectStore) -> Iterator[Moment]:
    """The moments of a backup, the newest first; one that is damaged is logged and left out. Raises StoreError."""
    for name in sorted((one.key for one in store.list(MOMENTS) if number_of(one.key) is not None), reverse=True):
        if isinstance(found := read_moment(store, name), Moment):
            yield found


def moment_at(store: ObjectStore, time_ms: int | None = None) -> Moment | None:
    """The newest moment that is not after that time. Raises StoreError."""
    return next((one for one in moments_in(store) if time_ms is None or one.time_ms <= time_ms), None)


class Rounds:
    """The rounds of one process."""

    def __init__(self, folders: SourceFolders, store: ObjectStore, means: Means) -> None:
        self._folders = folders
        self._store = store
        self._patient = Patient(store, means.sleep)
        self._means = means
        self._keeper = Keeper(store, means.history_ms)
        self._newest: Moment | None = None
        self._number = 0
        """Of the next moment."""
        self._has_begun = False
        self._checks_all = True

    def __repr__(self) -> str:
        return f"<Rounds from {self._folders.paths} to {self._store!r}: {self._newest!r}>"

    def run(self, take_ends: Callable[[], Ends] = dict) -> Done:
        """One round. Raises BackupTaken, RoundFailed, DataFolderError, StorageFault, StoreError and FormatError."""
        if not self._has_begun:
            self._begin()
        writer = PieceWriter(self._patient, self._means.new_name, self._means.pace)
        known = self._newest.by_place() if self._newest is not None else {}
        fault: FoldersChanged | None = None
        for _ in range(ATTEMPTS):
            try:
                look = self._folders.look(take_ends)
                self._own(look)
                partitions = self._ship(look, writer, known)
                break
            except FoldersChanged as error:
                fault = error
        else:
            raise RoundFailed(str(fault))
        writer.flush()
        made = self._make(look, partitions)
        self._checks_all = False
        return Done(made, writer.shipped_bytes, self._keeper.keep(made))

    def _begin(self) -> None:
        """Find the newest moment, unfinished or not."""
        names = {
            number: one.key
            for folder in (MOMENTS, UNFINISHED)
            for one in self._store.list(folder)
            if (number := number_of(one.key)) is not None
        }
        self._number = max(names, default=-1) + 1
        for number in sorted(names, reverse=True):
            if isinstance(found := read_moment(self._store, names[number]), Moment):
                self._newest = found
                break
        self._has_begun = True

    def _own(self, look: Look) -> None:
        """Make sure that the place has no backup of others. Raises BackupTaken."""
        mine = {"cluster": look.cluster_id, "node": look.node_id}
        if self._newest is not None:
            owner = {"cluster": self._newest.cluster_id, "node": self._newest.node_id}
        else:
            there = self._patient.create(OWNER, sealed_lines.encode(Sealed(OWNER, bytes(NONCE_SIZE), mine)))
            owner = mine if there is None else dict(sealed_lines.decode(there, OWNER).fields)
        if owner != mine:
            raise BackupTaken(f"this is the backup of broker {owner.get('node')} of cluster {owner.get('cluster')}")

    def _ship(self, look: Look, writer: PieceWriter, known: dict[TopicPartition, KeptPartition]) -> list[KeptPartition]:
        """`known` has the partitions that were shipped so far, and takes those of this round."""
        named_bytes = writer.shipped_bytes

        def reached(one: KeptPartition) -> None:
            nonlocal named_bytes
            known[one.place] = one
            if writer.shipped_bytes - named_bytes >= UNFINISHED_EVERY_BYTES:
                writer.flush()
                self._make(look, list(known.values()), is_whole=False)
                named_bytes = writer.shipped_bytes

        shipper = Shipper(self._folders.new_storage, writer, self._checks_all, reached)
        partitions = []
        for one in look.partitions:
            partitions.append(shipper.ship(one, known.get(one.place)))
            reached(partitions[-1])
        return partitions

    def _make(self, look: Look, partitions: list[KeptPartition], *, is_whole: bool = True) -> Moment:
        made = Moment(
            self._number, look.time_ms, look.cluster_id, look.node_id, look.record, partitions, is_whole, look.is_exact
        )
        if self._patient.create(made.key, moment.encode(made)) is not None:
            raise BackupTaken(
                f"another process has written {made.key}: only one broker at a time may back up to this place"
            )
        self._newest = made
        self._number += 1
        return made
