"""Runs the broker's own recovery on a partition, on an overlay or on the disk, and reports its changes.

Seals do not count for segments in which the check found faults: recovery then reads these segments itself.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from horolog.base.clock import SystemClock
from horolog.broker.cluster.left_folders import as_left, merge_what_workers_left, topics_left
from horolog.broker.config.settings import Settings
from horolog.broker.config.topic_settings import TopicConfig, resolve
from horolog.broker.log.files import LeaderEpochs, checkpoints, log_starts
from horolog.broker.log.integrity import SEALS, SealsDamaged, seals
from horolog.broker.log.partition import Resources, closing
from horolog.broker.log.recovery import Circumstances, PartitionFolder, open_partition
from horolog.broker.log.storage import (
    LOCK_FILE,
    Changed,
    OverlayStorage,
    ReadOnlyStorage,
    RealStorage,
    Storage,
    StorageFault,
    aside_names,
)
from horolog.client.cli.dumping.items import Item
from horolog.client.cli.dumping.kinds import BY_NAME, kind_of
from horolog.client.cli.examining.folder_check import PartitionReport, check_small_files
from horolog.commands.errors import CommandError

ASIDE = ".aside"
"""The copies that `--repair` makes before recovery removes a file: <name>.<time of the repair>.aside"""
_LEFTOVERS = (".deleted", ".cleaned", ".swap", ".tmp")
_INDEXES = (".index", ".timeindex")


def configurations(storage: Storage, data_folder: str) -> Callable[[str], TopicConfig]:
    """The configuration of every topic, from `horolog-cluster`; else the defaults."""
    from horolog.broker.config.setting_types import SettingsError
    from horolog.broker.on_record.cluster_file import NewerClusterFile

    settings = Settings()
    try:
        topics = topics_left(storage, data_folder)
    except NewerClusterFile as newer:
        raise CommandError(f"{data_folder}: {newer}") from newer

    def config_of(topic: str) -> TopicConfig:
        try:
            return resolve(topics[topic].overrides if topic in topics else {}, settings)
        except SettingsError:
            return resolve({}, settings)

    return config_of


def circumstances(storage: Storage, data_folder: str) -> Callable[[str, int], Circumstances]:
    """The offsets of every partition in the checkpoints."""
    storage = as_left(storage, [data_folder])
    starts = log_starts.load(storage, data_folder).offsets
    ends = checkpoints.load_offsets(storage, f"{data_folder}/{checkpoints.RECOVERY_POINTS}").offsets
    was_clean = storage.exists(f"{data_folder}/{checkpoints.CLEAN_SHUTDOWN}")
    now_ms = SystemClock().wall_ms()

    def known(topic: str, index: int) -> Circumstances:
        return Circumstances(was_clean, starts.get((topic, index), 0), now_ms, ends.get((topic, index), 0))

    return known


def rehearse(report: PartitionReport, config: TopicConfig, known: Circumstances, stamp: str) -> None:
    """Try recovery and add its actions and messages to the report."""
    storage = OverlayStorage(ReadOnlyStorage())
    try:
        _recover(storage, report, config, known, stamp)
        report.actions = list(actions(storage))
    except StorageFault as fault:
        report.messages.append(f"{report.name} cannot be opened: {fault}")


def distrust(storage: Storage, report: PartitionReport) -> None:
    """Make the seals of unsound segments mismatch: they still give the end of the log, but vouch for nothing."""
    unsound = report.unsound()
    if not unsound or not storage.exists(f"{report.directory}/{SEALS}"):
        return
    try:
        sealed = seals.load(storage, report.directory)
    except (SealsDamaged, ValueError):
        return  # recovery trusts none of it anyway
    changed = [
        replace(one, modified_ns=0, fingerprint=one.fingerprint ^ 1) if one.base_offset in unsound else one
        for one in sealed.values()
    ]
    seals.save(storage, report.directory, changed)


def actions(storage: OverlayStorage) -> Iterator[Item]:
    """Recovery's changes, without the small files that every stop rewrites."""
    for path, content in storage.differences():
        name = path.rpartition("/")[2]
        if name in BY_NAME:
            continue
        if content is None and any(one.startswith(f"{path}.") and one.endswith(ASIDE) for one in storage.changed):
            continue
        action = _removed(name) if content is None else _action(storage, path, name, content)
        if action is not None:
            yield {"file": path, **action}


def _removed(name: str) -> Item:
    return {"action": "removed", "reason": "left over" if name.endswith(_LEFTOVERS) else "not usable"}


def _action(storage: OverlayStorage, path: str, name: str, content: Changed) -> Item | None:
    told = aside_names.parse_name(name)
    if told is not None:
        return {"action": "set aside", "size_bytes": content.size_bytes, "position": told.position}
    if name.endswith(ASIDE):
        return {"action": "set aside", "size_bytes": content.size_bytes, "position": 0}
    old = _on_disk(path)
    if old is None:
        return None if kind_of(name) == "snapshot" else {"action": "made", "size_bytes": content.size_bytes}
    if name.endswith(_INDEXES):
        same = old.rstrip(b"\0") == storage.read_all(path).rstrip(b"\0")
        return None if same else {"action": "made anew", "size_bytes": content.size_bytes}
    if kind_of(name) == "log":
        return _log_action(path, content)
    return None if old == storage.read_all(path) else {"action": "written", "size_bytes": content.size_bytes}


def _on_disk(path: str) -> bytes | None:
    """The contents of a small file, empty for a log, None if there is no such file."""
    storage = RealStorage()
    if not storage.exists(path):
        return None
    return b"" if path.endswith(".log") else storage.read_all(path)


def _log_action(path: str, content: Changed) -> Item | None:
    size_bytes, _ = RealStorage().stat(path)
    places = [{"position": at, "size_bytes": len(data)} for at, data in content.patches]
    if content.size_bytes == size_bytes and not places:
        return None
    action: Item = {
        "action": "corrected" if places else "cut",
        "from_bytes": size_bytes,
        "to_bytes": content.size_bytes,
    }
    return {**action, "places": places} if places else action


def repair(data_folder: str, reports: list[PartitionReport], others: list[Item], stamp: str) -> None:
    """Run recovery on the disk, only on damaged partitions. Raises FolderInUse or StorageFault."""
    storage = RealStorage()
    lock = storage.lock(f"{data_folder}/{LOCK_FILE}")
    try:
        merge_what_workers_left(storage, [data_folder])
        config_of, known = configurations(storage, data_folder), circumstances(storage, data_folder)
        _forget_clean_stop(storage, data_folder)
        for report in reports:
            if report.is_damaged:
                _keep_what_is_removed(storage, report, stamp)
                there = replace(known(report.topic, report.index), may_be_unsynced=True)
                _recover(storage, report, config_of(report.topic), there, stamp)
        for finding in others:
            if kind_of(finding["file"]) == "offset-checkpoint":
                storage.rename(finding["file"], f"{finding['file']}.{stamp}{ASIDE}")
        storage.sync_dir(data_folder)
    finally:
        lock.release()


def _recover(storage: Storage, report: PartitionReport, config: TopicConfig, known: Circumstances, stamp: str) -> None:
    """Recover as the broker does; then set aside the faulty files that it left."""
    distrust(storage, report)
    report.messages.clear()
    with listening(report.messages):
        partition = open_partition(
            PartitionFolder(report.topic, report.index, report.directory), config, Resources(storage), known
        )
        closing.close(partition)
    for finding in check_small_files(storage, report.directory):
        path = finding["file"]
        storage.rename(path, f"{path}.{stamp}{ASIDE}")
        if kind_of(path) == "leader-epochs":
            epochs = LeaderEpochs()
            for epoch, start_offset in (one for segment in report.segments for one in segment.epochs):
                if epoch > epochs.latest:
                    epochs.append(epoch, start_offset)
            epochs.save(storage, report.directory)
    storage.sync_dir(report.directory)


def _forget_clean_stop(storage: Storage, data_folder: str) -> None:
    """Records that clients have seen may be gone: as after a crash, the next start begins a new leader epoch, so clients notice."""
    path = f"{data_folder}/{checkpoints.CLEAN_SHUTDOWN}"
    if storage.exists(path):
        storage.remove(path)
        storage.sync_dir(data_folder)


def _keep_what_is_removed(storage: Storage, report: PartitionReport, stamp: str) -> None:
    for action in report.actions:
        path = action["file"]
        if action["action"] == "removed" and action["reason"] != "left over":
            storage.write_atomically(f"{path}.{stamp}{ASIDE}", storage.read_all(path))


@contextmanager
def listening(messages: list[str]) -> Iterator[None]:
    """Collect the messages of `broker.log` instead of writing them."""

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    logger = logging.getLogger("horolog.broker.log")
    handler = Collect(logging.INFO)
    old_level, old_propagate = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(old_level)
        logger.propagate = old_propagate
