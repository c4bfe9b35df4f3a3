"""Identifies a data folder by node, cluster and its own id, kept in `meta.properties`."""

import errno
import logging
import uuid

from horolog.broker.log.files import LOG_STARTS, CheckpointError, MetaDamaged, MetaProperties, meta_properties
from horolog.broker.log.storage import DAMAGED_SUFFIX, DataFolderError, Storage, StorageFault
from horolog.protocol.uuids import show_uuid

log = logging.getLogger(__name__)


class FolderUnusable(DataFolderError):
    """The folder's disk does not work, at least for now: other folders are served without it."""


class FolderIdentity:
    """The ids that one data folder records."""

    def __init__(self, path: str, storage: Storage) -> None:
        self._path = path
        self._storage = storage
        self._meta: MetaProperties | None = None
        self._is_whole = False

    def __repr__(self) -> str:
        return f"<FolderIdentity of {self._path}: {self._meta}>"

    def load(self, node_id: int) -> None:
        """Read the folder's ids; `complete` adds the missing ones."""
        path = f"{self._path}/{meta_properties.FILE_NAME}"
        damaged = False
        try:
            meta = meta_properties.load(self._storage, self._path)
        except MetaDamaged as damage:
            meta, damaged = self._salvage(path, damage), True
        except CheckpointError as damage:
            raise DataFolderError(f"{path}: {damage}; correct it, or remove it to have a new one written") from damage
        if meta is None:
            return
        _refuse_another(path, meta, node_id)
        self._meta = meta
        self._is_whole = meta.node_id is not None and meta.cluster_id is not None and not damaged

    def complete(self, node_id: int, cluster_id: str, now_ms: int, *, one_of_several: bool) -> None:
        """Record the folder's ids durably; written only if something was missing. Raises StorageFault.

        One of several folders needs its own id, which folders of old Kafka versions do not have.
        """
        if self._is_whole and (self.directory_id is not None or not one_of_several):
            return
        if self._meta is None and self._storage.exists(f"{self._path}/{LOG_STARTS}"):
            log.warning(
                "%s/%s is missing: it gets new ids, unless another file has them", self._path, meta_properties.FILE_NAME
            )
        known = self._meta or MetaProperties(directory_id=new_id())
        directory_id = known.directory_id or (new_id() if one_of_several else None)
        self._meta = MetaProperties(known.version, node_id, cluster_id, directory_id, known.others)
        try:
            meta_properties.save(self._storage, self._path, self._meta, now_ms)
        except StorageFault as fault:
            if fault.code != errno.ENOSPC:
                raise
            log.error(
                "%s: the ids of the folder could not be written, the next start writes them: %s", self._path, fault
            )
        self._is_whole = True

    @property
    def cluster_id(self) -> str | None:
        """The cluster of the folder, if known."""
        return self._meta.cluster_id if self._meta else None

    @property
    def directory_id(self) -> str | None:
        """The folder's own id, which folders of old Kafka versions do not have."""
        return self._meta.directory_id if self._meta else None

    def _salvage(self, path: str, damage: MetaDamaged) -> MetaProperties:
        data = self._storage.read_all(path)
        self._storage.write_atomically(path + DAMAGED_SUFFIX, data)
        meta = meta_properties.salvage(data)
        message = "%s is damaged (%s) and kept as %s; node.id=%s, cluster.id=%s could be read, the rest is new"
        log.error(message, path, damage, DAMAGED_SUFFIX, meta.node_id, meta.cluster_id)
        return meta


def refuse_another_node(storage: Storage, folder: str, node_id: int) -> None:
    """Refuse a folder of a broker with another number, before it is used. Raises DataFolderError and StorageFault."""
    try:
        meta = meta_properties.load(storage, folder)
    except CheckpointError:
        return  # a start names the damage, or corrects it
    if meta is not None:
        _refuse_another(f"{folder}/{meta_properties.FILE_NAME}", meta, node_id)


def _refuse_another(path: str, meta: MetaProperties, node_id: int) -> None:
    if meta.node_id is not None and meta.node_id != node_id:
        raise DataFolderError(
            f"{path} belongs to node.id={meta.node_id}, but this broker has node.id={node_id}:"
            f" set node.id={meta.node_id}, or use another data folder"
        )


def new_id() -> str:
    """A random id in Kafka's format; never with a dash first, which command lines would take for an option."""
    text = "-"
    while text.startswith("-"):
        text = show_uuid(uuid.uuid4().bytes)
    return text
