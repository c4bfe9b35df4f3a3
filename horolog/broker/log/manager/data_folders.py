"""Manages all data folders of a broker: which are available, whether they belong together, which one takes a new partition.

Some of several folders may be away, because their disk does not work. They are retried now and then.
"""

import logging
from collections.abc import Callable, Iterable, Iterator

from horolog.base.clock import Clock
from horolog.broker.log.manager.data_folder import DataFolder
from horolog.broker.log.manager.identity import FolderUnusable, new_id
from horolog.broker.log.manager.placing import Placing
from horolog.broker.log.manager.share import Share
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import DataFolderError, Storage, StorageFault, parent_of
from horolog.protocol.topic_partition import TopicPartition

log = logging.getLogger(__name__)

FOLDER_LOOK_S = 2.0


class DataFolders:
    """The data folders, in the order of `log.dirs`."""

    def __init__(
        self,
        paths: Iterable[str],
        storage: Storage,
        clock: Clock,
        node_id: int,
        share: Share,
        *,
        may_make: bool,
    ) -> None:
        """`node_id` is the node that the folders belong to."""
        self._all = [DataFolder(path, storage, clock, share, may_make=may_make) for path in paths]
        self._clock = clock
        self._node_id = node_id
        self._next_look_s = clock.monotonic()

    def __repr__(self) -> str:
        return repr(self._all)

    def __iter__(self) -> Iterator[DataFolder]:
        return iter(self._all)

    def __getitem__(self, index: int) -> DataFolder:
        return self._all[index]

    def __len__(self) -> int:
        return len(self._all)

    def claim(self) -> str:
        """Lock every folder, and record in each that it belongs to this node and cluster. Returns the cluster's id."""
        for folder in self._all:
            self.unless_unusable(folder, lambda folder: folder.claim(self._node_id))
        clusters = {
            folder.identity.cluster_id: folder.path
            for folder in self.usable()
            if folder.identity.cluster_id is not None
        }
        if len(clusters) > 1:
            told = ", ".join(f"{path} of cluster.id={one}" for one, path in clusters.items())
            raise DataFolderError(f"the data folders belong to different clusters: {told}")
        cluster_id = next(iter(clusters), None) or new_id()
        several = len(self._all) > 1
        for folder in self.usable():
            self.unless_unusable(
                folder,
                lambda one: one.identity.complete(
                    self._node_id, cluster_id, self._clock.wall_ms(), one_of_several=several
                ),
            )
        self._check_directory_ids()
        self._check_each_lies_once()
        return cluster_id

    def unless_unusable(self, folder: DataFolder, step: Callable[[DataFolder], None]) -> None:
        """Run a step; a folder whose disk does not work is left out, unless it was the last."""
        try:
            step(folder)
        except (FolderUnusable, StorageFault) as error:
            folder.leave(str(error))
            if all(one.fault is not None for one in self._all):
                if isinstance(error, DataFolderError):
                    raise
                raise DataFolderError(f"{folder.path} cannot be used: {error}") from error
            log.error("%s is unavailable, and its partitions are offline: %s", folder.path, error)

    def _check_directory_ids(self) -> None:
        paths: dict[str, str] = {}
        for folder in self.usable():
            if (
                folder.identity.directory_id is not None
                and paths.setdefault(folder.identity.directory_id, folder.path) != folder.path
            ):
                other = paths[folder.identity.directory_id]
                raise DataFolderError(
                    f"{other} and {folder.path} have the same directory.id: one is a copy of the other; remove it from log.dirs"
                )

    def usable(self) -> list[DataFolder]:
        """The available folders, including those in which a write has failed recently."""
        return [folder for folder in self._all if folder.is_claimed]

    def release(self) -> None:
        for folder in self._all:
            folder.release()

    def _check_each_lies_once(self) -> None:
        """Refuse to start if a partition lies in two folders, as Kafka does: it is unknown which one is current."""
        lies_in: dict[TopicPartition, str] = {}
        for folder in self.usable() if len(self._all) > 1 else ():
            for key in self._keys_of(folder):
                other = lies_in.setdefault(key, folder.path)
                if other != folder.path:
                    name = f"{key[0]}-{key[1]}"
                    raise DataFolderError(
                        f"{name} is in two data folders: {other}/{name} and {folder.path}/{name};"
                        " move away the one that is out of date"
                    )

    def _keys_of(self, folder: DataFolder) -> list[TopicPartition]:
        keys: list[TopicPartition] = []
        self.unless_unusable(folder, lambda one: keys.extend(one.keys()))
        return keys

    def may_lack(self, recorded: Iterable[str]) -> bool:
        """Whether there may be partitions that are not seen: a folder of `log.dirs`, or a recorded one, is away."""
        here = {folder.identity.directory_id for folder in self.usable()}
        return len(self.usable()) < len(self._all) or not here.issuperset(recorded)

    def placing(self) -> Placing:
        """The placing of new partitions: into working folders, if there are any."""
        if len(self._all) == 1:
            return Placing({})
        working = [folder for folder in self.usable() if folder.fault is None] or self.usable()
        return Placing(
            {one.identity.directory_id: len(one.partitions) for one in working if one.identity.directory_id is not None}
        )

    def for_new(self, place: str | None) -> DataFolder:
        """The folder of this id; if none has it, the one with the fewest partitions, the first of several."""
        named = [folder for folder in self.usable() if place is not None and folder.identity.directory_id == place]
        return min(named or self.usable(), key=lambda one: (one.fault is not None, len(one.partitions)))

    def of(self, partition: Partition) -> DataFolder:
        """The data folder that a partition lies in."""
        path = parent_of(partition.directory)
        return next(folder for folder in self._all if folder.path == path)

    def has(self, place: str | None) -> bool:
        """Whether the folder of this id is available."""
        return place is not None and any(folder.identity.directory_id == place for folder in self.usable())

    def due_checks(self, have_back: Callable[[DataFolder], None]) -> list[Callable[[], None]]:
        """Now and then, retry folders that are away; returns jobs that check those in which something has failed."""
        if self._clock.monotonic() < self._next_look_s:
            return []
        self._next_look_s = self._clock.monotonic() + FOLDER_LOOK_S
        jobs: list[Callable[[], None]] = []
        for folder in self._all:
            if not folder.is_claimed:
                have_back(folder)
            elif folder.fault is not None or (len(self._all) > 1 and folder.has_waiting_partitions()):
                jobs.append(folder.check)
        return jobs

    def claim_again(self, folder: DataFolder, cluster_id: str) -> dict[TopicPartition, int] | None:
        """Use a folder again that was away; returns its log starts, None if it is still away."""
        try:
            folder.claim(self._node_id)
            if folder.identity.cluster_id not in (None, cluster_id):
                raise DataFolderError(f"{folder.path} belongs to cluster.id={folder.identity.cluster_id}")
            folder.identity.complete(self._node_id, cluster_id, self._clock.wall_ms(), one_of_several=True)
            self._check_directory_ids()
            starts = folder.come_back()
        except (DataFolderError, StorageFault) as error:
            folder.leave(str(error))
            return None
        log.info("%s is available again", folder.path)
        return starts
