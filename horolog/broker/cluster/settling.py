"""Turns what workers leave in the data folders into what a broker alone reads, and prepares the folders for new workers.

`merge` writes the workers' checkpoints under Kafka's names, and their journal into `horolog-cluster`. If all of them have ended well
it marks the folders as cleanly shut down. It runs when they have stopped, and at the next start after a crash: of a broker alone, or in

`settle`, in the first of new workers before any log is opened. It merges, decides which topics there are as any start does
(`cluster_start`, over folders whose logs stay closed), leaves each worker a mark if the stop was clean, and begins a new journal.

Each step can be repeated, and none relies on the one before being complete: a file is removed once what was made of it is on the disk.
The checkpoints come first: once the journal is in `horolog-cluster`, Kafka's names are believed for all topics that are there.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import NamedTuple, cast

from horolog.base.clock import Clock
from horolog.base.readable import counted
from horolog.broker.cluster import found_journals, journal_contents, worker_checkpoints
from horolog.broker.cluster.cluster_configs import ClusterConfigs
from horolog.broker.cluster.cluster_start import Start, beyond_counters, load_record, next_producer_id_of
from horolog.broker.cluster.cluster_state import ClusterState, Lead, plain_leads
from horolog.broker.cluster.entry_lines import Head, Illegible, with_rules_in_doubt, without_settings
from horolog.broker.cluster.journal_contents import FoundJournal
from horolog.broker.cluster.left_folders import NO_ROOM
from horolog.broker.cluster.worker_checkpoints import UNKNOWN
from horolog.broker.cluster.worker_folder_checkpoints import share_of
from horolog.broker.config.settings import Settings
from horolog.broker.config.topic_settings import TopicConfig, as_unknown
from horolog.broker.log.files import CheckpointError, checkpoints, log_starts
from horolog.broker.log.manager import DataFolders, LogManager, doom, partition_of
from horolog.broker.log.storage import DataFolderError, Storage, StorageFault
from horolog.broker.on_record.cluster_file import JOURNAL, ClusterFile, StoredCluster, StoredTopic

log = logging.getLogger(__name__)

Key = tuple[str, int]


def random_id() -> bytes:
    return uuid.uuid4().bytes


# -- the journal


def state_of(stored: StoredCluster, nodes: tuple[int, ...] = (), *, has_topics: bool = False) -> ClusterState:
    """The cluster as `horolog-cluster` has it. Without its head the settings that topics share are lost: no records may be deleted."""
    topics: Iterable[StoredTopic] = stored.topics.values()
    if stored.found and not stored.head_found:
        topics = [replace(topic, overrides=as_unknown(topic.overrides), line="") for topic in topics]
    return ClusterState.of(
        topics,
        nodes=nodes,
        broker_configs=stored.broker_configs,
        next_producer_id=next_producer_id_of(stored, random_id, has_topics=has_topics or bool(stored.topics)),
        deleting={name: frozenset(ids) for name, ids in stored.deleting.items()},
        leads={place: Lead(*lead) for place, lead in stored.leads.items()},
        rules=stored.rules,
        lost_rules=stored.lost_rules,
        rules_in_doubt=stored.rules_in_doubt,
        epochs=stored.epochs,
    )


def goes_on(found: FoundJournal | None, stored: StoredCluster) -> bool:
    """Whether `horolog-cluster`, which may be an older copy or gone, lacks a journal's changes."""
    return found is not None and found.head.base >= stored.number


def is_older(stored: StoredCluster, found: FoundJournal) -> bool:
    """Whether a journal continues a later record than this one. The record just before its base says the same: see `settle`."""
    is_right = stored.found and stored.number in (found.head.base, found.head.base - 1)
    return found.whole is None and not is_right


def refuse_what_others_know(stored: StoredCluster, found: FoundJournal) -> None:
    """A worker begins with what all of them know, and with nothing less. Raises DataFolderError."""
    if found.whole is None and (stored.damages or is_older(stored, found)):
        damage = stored.damages[0] if stored.damages else "it is an older copy"
        raise DataFolderError(
            f"horolog-cluster is damaged ({damage}), and no other worker has written what it said into {found.path}:"
            " stop all workers and start again"
        )


def replayed(state: ClusterState, found: FoundJournal | None, stored: StoredCluster) -> ClusterState:
    """The cluster after the changes of a journal."""
    if found is not None and goes_on(found, stored):
        state = beginning(state, found)
        for entry in found.read.entries:
            state = state.apply(entry)
    return state


def beginning(state: ClusterState, found: FoundJournal) -> ClusterState:
    """The cluster that the entries of a journal go on from, which is this one unless the journal has a state itself."""
    if found.whole is None:
        return state
    return replace(state_of(found.whole, state.nodes), number=journal_contents.number_of(found.head))


def after_a_loss(state: ClusterState) -> ClusterState:
    """The state to assume when changes were lost: none that may have been among them does harm."""
    return without_settings(replace(with_rules_in_doubt(state), next_producer_id=beyond_counters(random_id)))


# -- merging


class _Folder(NamedTuple):
    """One data folder as workers have left it."""

    path: str
    keys: frozenset[Key]
    loaded: worker_checkpoints.LoadedCheckpoints
    was_clean: bool


def merge(storage: Storage, data_dirs: Sequence[str]) -> bool:
    """Whether every worker has ended well, and the folders say so. Raises StorageFault."""
    journals = found_journals.find_all(storage, data_dirs)
    file = ClusterFile(storage, data_dirs[0], lambda: data_dirs)
    own_base = max((one.head.base for one in journals if one.head.is_of_one), default=None)
    stored = load_record(file, storage, data_dirs, own_base)
    found, written = found_journals.continuing(journals, stored.number), file.number
    if (found is None or _is_outlived(found, stored)) and _had_journal(storage, data_dirs, stored):
        found = journal_contents.lost(f"{data_dirs[0]}/{JOURNAL}", "it is missing")
    folders = [
        _look(storage, path, found, is_current=found is not None and goes_on(found, stored)) for path in data_dirs
    ]
    damages = [] if found is None else _damages(found, stored, folders, written)
    state = _made_of(found, stored, folders, written)
    _report(found, stored, damages)
    is_of_one = found is not None and found.head.is_of_one
    for folder in folders:
        if not is_of_one or folder.loaded.found:
            # Behind a broker alone workers have found Kafka's checkpoints up to date, whatever topics it had made.
            _merge_checkpoints(storage, folder, state, state.topics if is_of_one else stored.topics, written)
    if found is not None and goes_on(found, stored) and (stored.found or found.number or damages):
        if not found.is_lost:
            file.go_on_from(_covered(found))
        state.save(file, plain_leads(state.leads))
    for folder in folders:
        if folder.was_clean and not storage.exists(f"{folder.path}/{checkpoints.CLEAN_SHUTDOWN}"):
            checkpoints.mark_clean_shutdown(storage, folder.path)
        damaged = [
            node for node in worker_checkpoints.nodes_in(storage, folder.path) if node not in folder.loaded.found
        ]
        worker_checkpoints.keep_damaged(storage, folder.path, damaged)
        _remove_files_of_workers(storage, folder.path)
    for path in data_dirs:
        found_journals.remove(storage, path, is_damaged=bool(damages))
    return all(folder.was_clean for folder in folders)


def _is_outlived(found: FoundJournal, stored: StoredCluster) -> bool:
    """Whether a copy of the journal of a broker alone is from before the record: the one that continues it is missing."""
    return found.head.is_of_one and not goes_on(found, stored)


def _covered(found: FoundJournal) -> int:
    """How often the record was written with a journal: a broker alone counts each change (`OwnJournal.record_number`)."""
    return found.head.base + (found.number if found.head.is_of_one else 0)


def _had_journal(storage: Storage, data_dirs: Sequence[str], stored: StoredCluster) -> bool:
    """Whether there was a journal: a full disk may have kept workers from it. Without the record's head, checkpoints show it."""
    if stored.head_found:
        return stored.has_journal
    return any(worker_checkpoints.nodes_in(storage, one) for one in data_dirs)


def _made_of(
    found: FoundJournal | None, stored: StoredCluster, folders: Sequence[_Folder], written: int
) -> ClusterState:
    """The cluster as its record and a journal have it, and what was lost of either; `written` is how often the record was."""
    has_topics = bool(stored.topics) or any(folder.keys for folder in folders)
    state = state_of(stored, has_topics=has_topics)
    if found is None or not goes_on(found, stored):
        return state
    if found.is_lost or (has_topics and is_older(stored, found)):
        state = after_a_loss(state)
    state = replayed(state, found, stored)
    if found.head.base < written and not found.head.is_of_one:
        state = after_a_loss(state)
    for _ in range(_missing(found, folders, written)):
        state = state.apply(Illegible())
    return state


def _missing(found: FoundJournal, folders: Sequence[_Folder], written: int) -> int:
    """How many entries that were there are missing at the end: the journal was cut, or is an older copy."""
    if found.is_lost:
        return 0
    if found.head.is_of_one:
        return max(0, written - _covered(found))
    places = [one.at for folder in folders for one in folder.loaded.found.values()]
    applied = max((one.number for one in places if one.base == found.head.base), default=0)
    return max(0, applied - found.number)


def _damages(found: FoundJournal, stored: StoredCluster, folders: Sequence[_Folder], written: int) -> list[str]:
    """The damages of a journal that goes on from the record."""
    if not goes_on(found, stored):
        return []
    missing = _missing(found, folders, written)
    return [*found.damages, *([f"behind entry {found.number}: {missing} entries are missing"] if missing else [])]


def _report(found: FoundJournal | None, stored: StoredCluster, damages: Sequence[str]) -> None:
    if found is None:
        return
    for damage in damages:
        log.error("%s is damaged: %s; a copy is kept beside it", found.path, damage)
    if goes_on(found, stored) and not found.is_lost and is_older(stored, found):
        log.error("horolog-cluster is older than the state that %s continues", found.path)
    elif found.number and goes_on(found, stored):
        log.info("applied %s from %s", counted(found.number, "change"), found.path)


def _look(storage: Storage, path: str, found: FoundJournal | None, *, is_current: bool) -> _Folder:
    names = storage.list_dir(path)
    keys = frozenset(key for name in names if (key := partition_of(name)) is not None)
    loaded = worker_checkpoints.load_all(storage, path)
    for fault in loaded.faults:
        log.warning("%s; its content is ignored", fault)
    was_clean = checkpoints.CLEAN_SHUTDOWN in names
    if found is not None and is_current and not was_clean:
        # Workers other than those that the journal was begun for may have continued it: see `_go_on_as_left`.
        files = [loaded.found.get(node) for node in {*found.head.nodes, *worker_checkpoints.nodes_in(storage, path)}]
        was_clean = bool(files) and all(one is not None and one.has_stopped for one in files)
    return _Folder(path, keys, loaded, was_clean)


def _merge_checkpoints(
    storage: Storage, folder: _Folder, state: ClusterState, known: Mapping[str, StoredTopic], written: int
) -> None:
    """Write Kafka's files, with what they have said so far of topics that were not made since these were `known`."""

    def is_old(name: str) -> bool:
        now, then = state.topics.get(name), known.get(name)
        return now is None or (then is not None and then.id == now.id)

    def id_of(key: Key) -> bytes | None:
        topic = state.topics.get(key[0])
        return topic.id if topic is not None and key in folder.keys else None

    if not folder.loaded.found and all(map(is_old, state.topics)):
        return
    rows = worker_checkpoints.united(folder.loaded.found.values(), id_of)
    kafkas = log_starts.load(storage, folder.path)
    if kafkas.fault is not None:
        log.warning("%s; %s partitions start inside their first segment", kafkas.fault, len(kafkas.offsets))
    starts = _believed(kafkas.offsets, folder, is_old)
    for key, row in rows.items():
        if row.log_start > starts.get(key, 0):
            starts[key] = row.log_start
    points = {key: row.recovery_point for key, row in rows.items() if row.recovery_point != UNKNOWN}
    ends = {key: row.high_watermark for key, row in rows.items() if row.recovery_point != UNKNOWN}
    files = {
        checkpoints.RECOVERY_POINTS: _united(storage, folder, checkpoints.RECOVERY_POINTS, points, is_old),
        checkpoints.HIGH_WATERMARKS: _united(storage, folder, checkpoints.HIGH_WATERMARKS, ends, is_old),
        checkpoints.CLEANER_OFFSETS: _united(
            storage, folder, checkpoints.CLEANER_OFFSETS, _cleaned(storage, folder), is_old
        ),
        checkpoints.LOG_START_OFFSETS: starts,
    }
    storage.write_atomically(f"{folder.path}/{log_starts.LOG_STARTS}", log_starts.encode(starts, written))
    for name, offsets in files.items():
        path = f"{folder.path}/{name}"
        if offsets or storage.exists(path):
            checkpoints.save_offsets(storage, path, offsets)


def _united(
    storage: Storage, folder: _Folder, name: str, newer: Mapping[Key, int], is_old: Callable[[str], bool]
) -> dict[Key, int]:
    """What one of Kafka's files has said, updated with what workers know."""
    loaded = checkpoints.load_offsets(storage, f"{folder.path}/{name}")
    if loaded.fault is not None:
        log.warning("%s", loaded.fault)
    return {**_believed(loaded.offsets, folder, is_old), **newer}


def _believed(offsets: Mapping[Key, int], folder: _Folder, is_old: Callable[[str], bool]) -> dict[Key, int]:
    return {key: offset for key, offset in offsets.items() if key in folder.keys and is_old(key[0])}


def _cleaned(storage: Storage, folder: _Folder) -> dict[Key, int]:
    """How far workers have compacted."""
    offsets: dict[Key, int] = {}
    for node in folder.loaded.found:
        loaded = checkpoints.load_offsets(storage, f"{folder.path}/{checkpoints.CLEANER_OFFSETS}.{node}")
        for key, offset in loaded.offsets.items():
            if key in folder.keys:
                offsets[key] = max(offset, offsets.get(key, 0))
    return offsets


def _remove_files_of_workers(storage: Storage, path: str) -> None:
    kinds = (worker_checkpoints.NAME, checkpoints.CLEANER_OFFSETS, checkpoints.CLEAN_SHUTDOWN)
    doomed = [name for name in storage.list_dir(path) if _is_of_a_worker(name, kinds)]
    for name in doomed:
        storage.remove(f"{path}/{name}")
    if doomed:
        storage.sync_dir(path)


def _is_of_a_worker(name: str, kinds: Iterable[str]) -> bool:
    kind, _, node = name.rpartition(".")
    return kind in kinds and node.isdigit()


# -- settling


def settle(
    storage: Storage,
    data_dirs: Sequence[str],
    clock: Clock,
    settings: Settings,
    nodes: tuple[int, ...],
    new_topic_id: Callable[[], bytes] = random_id,
) -> None:
    """Prepare the folders for these workers; `settings` are those of the first. Raises DataFolderError and StorageFault."""
    share = share_of(settings.node_id, settings.node_id, is_first=True)
    folders = DataFolders(data_dirs, storage, clock, settings.node_id, share, may_make=True)
    folders.claim()
    paths = [folder.path for folder in folders.usable()]
    try:
        merge(storage, paths)
    except StorageFault as fault:
        if fault.code not in NO_ROOM or not _go_on_as_left(storage, paths, nodes):
            raise
        log.error("no free space to merge the changes of workers; they continue from their own files: %s", fault)
        return
    file = ClusterFile(storage, paths[0], lambda: paths)
    leads = file.load().leads
    logs = ClosedLogs(folders, storage)
    start = Start(cast("LogManager", logs), file, ClusterConfigs(settings), new_topic_id)
    state = start.run(clock.wall_ms(), lambda _: None)
    if start.is_news:
        # Workers know topics from the file alone, including those with a provisional id.
        replace(state, unidentified=frozenset()).save(file, leads)
    start.remember()
    for path in paths:
        if checkpoints.take_clean_shutdown(storage, path):
            for node in nodes:
                storage.create(f"{path}/{checkpoints.CLEAN_SHUTDOWN}.{node}").close()
    try:
        # The journal comes first, for the record says that there is one.
        found_journals.begin(storage, paths[0], Head(file.next_number, nodes))
        replace(state, unidentified=frozenset()).save(file, leads, has_journal=True)
    except StorageFault as fault:
        if fault.code not in NO_ROOM:
            raise
        log.error("no free space for the journal of workers; nothing can be changed until there is: %s", fault)


def _go_on_as_left(storage: Storage, paths: Sequence[str], nodes: tuple[int, ...]) -> bool:
    """Whether workers can go on from what others have left, as their successors would, or from what a broker alone has.

    If these are not the workers that the journal was begun for, partitions have other leaders now: a clean stop counts only if all
    workers have stopped cleanly. Each worker gets a file of its own, empty at first, or it would not count at the next settling.
    """
    stored = ClusterFile(storage, paths[0], lambda: paths).load()
    found = found_journals.continuing(found_journals.find_all(storage, paths), stored.number)
    if found is None or found.damages or stored.damages or not goes_on(found, stored):
        return False
    if found.head.is_of_one and max(log_starts.record_in(storage, one) for one in paths) > _covered(found):
        return False
    if found.head.nodes == nodes:
        return True
    for path in paths:
        loaded = worker_checkpoints.load_all(storage, path)
        if loaded.faults or any(one.has_stopped for one in loaded.found.values()):
            return False
        for node in nodes:
            if node not in loaded.found:
                storage.create(f"{path}/{worker_checkpoints.name_of(node)}").close()
        storage.sync_dir(path)
    return True


@dataclass(slots=True)
class ClosedLog:
    """A partition's folder; `place` is the id of the data folder that it lies in, or is to be made in."""

    topic: str
    index: int
    directory: str
    topic_id: bytes | None
    place: str | None
    condition: SimpleNamespace
    config: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(delete=False))
    log_start_offset: int = 0
    """No forecast of what retention will delete: that needs the log."""


class ClosedLogs:
    """The folders of partitions, in place of a LogManager, for a start that opens no log."""

    def __init__(self, folders: DataFolders, storage: Storage) -> None:
        self.folders = folders
        self.resources = SimpleNamespace(storage=storage)
        self.partitions: dict[Key, ClosedLog] = {}
        self._storage = storage

    def __repr__(self) -> str:
        return f"<ClosedLogs of {self.folders}>"

    def open(self, config_of: Callable[[str], TopicConfig]) -> None:  # noqa: ARG002
        for folder in self.folders.usable():
            keys = folder.keys()
            for key in keys:
                directory = f"{folder.path}/{key[0]}-{key[1]}"
                topic_id, fault = self._topic_id_of(directory)
                condition = SimpleNamespace(fault=fault)
                self.partitions[key] = ClosedLog(*key, directory, topic_id, folder.identity.directory_id, condition)

    def _topic_id_of(self, directory: str) -> tuple[bytes | None, str | None]:
        try:
            return checkpoints.load_topic_id(self._storage, directory), None
        except CheckpointError as damage:
            log.warning("%s: %s", directory, damage)
            return None, None
        except StorageFault as fault:
            return None, str(fault)

    def create_or_offline(
        self,
        topic: str,
        index: int,
        config: TopicConfig,  # noqa: ARG002
        topic_id: bytes | None,
        place: str | None = None,
    ) -> ClosedLog:
        """Decide where the partition's folder goes; the worker that leads it makes the folder."""
        is_away = self.folders.may_lack([] if place is None else [place]) and not self.folders.has(place)
        if not is_away:
            place = self.folders.for_new(place).identity.directory_id
        made = ClosedLog(topic, index, "", topic_id, place, SimpleNamespace(fault="it has no folder yet"))
        self.partitions[topic, index] = made
        return made

    def places_of(self, partitions: Iterable[ClosedLog]) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        is_told = len(self.folders) > 1
        for one in partitions:
            if one.place is not None and (is_told or not self.folders.has(one.place)):
                places.setdefault(one.place, []).append(one.index)
        return places

    def identify(self, partition: ClosedLog, topic_id: bytes) -> None:
        checkpoints.save_topic_id(self._storage, partition.directory, topic_id)
        partition.topic_id = topic_id

    def delete(self, partition: ClosedLog) -> None:
        """The first worker removes its files later on."""
        doom(self._storage, partition.directory)
        self.forget(partition)

    def forget(self, partition: ClosedLog) -> None:
        self.partitions.pop((partition.topic, partition.index), None)
