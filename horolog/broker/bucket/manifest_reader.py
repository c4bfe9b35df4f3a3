"""Finds the newest manifests of partitions, and removes those of partitions that are gone."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from horolog.broker.bucket.covered import NOTHING, Covered
from horolog.broker.bucket.manifest import Manifest, decode
from horolog.broker.bucket.names import key, manifests, number_of
from horolog.broker.bucket.parallel import in_parallel
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.on_record.cluster_file import Place

if TYPE_CHECKING:
    from horolog.broker.bucket.remote_segment import Parts
    from horolog.broker.bucket.seams import Opening

DELETED_AT_ONCE = 8


class StoredManifests:
    """The manifests in a store: they name no segments, so all records lie in WALs. See `seams.SegmentsInBucket`."""

    def __init__(self, store: StoreAccess) -> None:
        self._store = store

    def __repr__(self) -> str:
        return f"<StoredManifests in {self._store!r}>"

    async def newest(self, opening: Opening) -> Covered:
        """Raises FormatError. A partition without an earlier leader has no manifest."""
        found = await newest_manifest(self._store, opening.place) if len(opening.lineage) > 1 else None
        return NOTHING if found is None else Covered(found.start_offset, manifest=found)

    def decode_meta(self, data: bytes) -> Parts:
        raise FormatError(f"{len(data)} bytes of no segment")


async def newest_manifest(store: StoreAccess, place: Place) -> Manifest | None:
    """None if there is none; raises FormatError."""
    folder = manifests(*place)
    while True:
        numbers = [number_of(one.key) for one in await store.list(folder)]
        number = max((one for one in numbers if one is not None), default=None)
        if number is None:
            return None
        data = await store.read(key(folder, number))
        if data is not None:  # else it has been superseded and removed, or the topic is deleted
            return decode(data)


async def remove_manifests(store: StoreAccess, place: Place) -> None:
    """Remove the manifests of a partition whose topic is deleted."""
    stored = await store.list(manifests(*place))
    await in_parallel([partial(store.delete, one.key) for one in stored], DELETED_AT_ONCE)
