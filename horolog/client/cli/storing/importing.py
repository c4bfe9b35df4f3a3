"""`horolog store import`: brings the data folders of a broker that has stopped, ours or Kafka's, into an empty prefix."""

from __future__ import annotations

import argparse
import hashlib
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from horolog.base.readable import counted
from horolog.broker.bucket.names import NONCE_SIZE
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.cluster.cluster_start import next_producer_id_of, refuse_lost_rules, with_doubts
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.topic_settings import resolve, usable
from horolog.broker.log.files import CheckpointError, meta_properties
from horolog.broker.log.partition import Partition, Resources, closing
from horolog.broker.log.recovery import Circumstances, PartitionFolder, open_partition
from horolog.broker.log.storage import (
    LOCK_FILE,
    DataFolderError,
    FolderInUse,
    OverlayStorage,
    ReadOnlyStorage,
    RealStorage,
    StorageFault,
)
from horolog.broker.on_record.cluster_file import StoredTopic
from horolog.broker.prefix.verifying import Verified, verify
from horolog.broker.security.password_encoder import PasswordEncoder
from horolog.broker.transfer import importing
from horolog.broker.transfer.founding_entries import Beginning
from horolog.broker.transfer.importing import Brought, Source
from horolog.broker.transfer.log_pieces import DamagedLog
from horolog.broker.transfer.partition_import import PrefixTaken
from horolog.broker.transfer.waiting_store import WaitingStore
from horolog.client.cli.examining import adopting
from horolog.client.cli.examining.given_folders import check_given
from horolog.client.cli.examining.rehearsal import circumstances, listening
from horolog.commands.errors import CommandError
from horolog.commands.exit_codes import ExitCode
from horolog.stores.faults import StoreError

if TYPE_CHECKING:
    from horolog.broker.adoption.takeover import Takeover
    from horolog.broker.config.settings import Settings
    from horolog.commands.console import Console
    from horolog.stores.bucket_store import BucketStore

ADVICE = "run the same command again: it continues where it stopped"


def run(store: BucketStore, arguments: argparse.Namespace, settings: Settings, console: Console) -> ExitCode:
    folders = [one.rstrip("/") or "/" for one in arguments.data_folders]
    check_given(ReadOnlyStorage(), folders)
    found = bring(store, folders, settings, console, dry_run=arguments.dry_run)
    if console.as_json:
        console.json(found)
    else:
        show(found, console)
    return ExitCode.ALERT if found["is_whole"] is False else ExitCode.OK


def bring(
    store: BucketStore, folders: Sequence[str], settings: Settings, console: Console, *, dry_run: bool
) -> dict[str, Any]:
    """Bring folders into a prefix, and verify it; what `document` says."""
    waiting = WaitingStore(store)
    try:
        with _locked(folders), listening([]):
            source, notes = source_of(folders, settings)
            return _bring(store, waiting, source, notes, console, dry_run=dry_run)
    except FolderInUse as error:
        raise CommandError(f"a broker runs on {', '.join(folders)}: {error}", "stop it first") from error
    except (PrefixTaken, FormatError) as error:
        raise CommandError(f"{store.place.url}: {error}", "choose an empty prefix") from error
    except DamagedLog as error:
        raise CommandError(str(error), "horolog doctor shows the damage, and --repair sets it aside") from error
    except (DataFolderError, StorageFault, SettingsError) as error:
        raise CommandError(f"{', '.join(folders)}: {error}") from error
    except StoreError as error:
        raise CommandError(str(error), ADVICE) from error
    finally:
        waiting.close()


def _bring(
    store: BucketStore, waiting: WaitingStore, source: Source, notes: Sequence[str], console: Console, *, dry_run: bool
) -> dict[str, Any]:
    prefix = waiting.result(importing.look(waiting.access, source, lambda: os.urandom(NONCE_SIZE)))
    with console.progress("bytes") as progress:
        if dry_run:
            brought = importing.weigh(source, progress.advance)
        else:
            brought = waiting.result(importing.bring(waiting.access, source, prefix, progress.advance))
    with console.progress("objects verified") as progress:
        verified = None if dry_run else verify(store, seen=lambda _: progress.advance())
    return document(source, brought, verified, notes)


@contextmanager
def _locked(folders: Sequence[str]) -> Iterator[None]:
    """Hold the locks of folders that can be written; the others are only read. Raises FolderInUse."""
    storage = RealStorage()
    locks = []
    try:
        for one in folders:
            try:
                locks.append(storage.lock(f"{one}/{LOCK_FILE}"))
            except FolderInUse:
                raise
            except StorageFault:
                continue
        yield
    finally:
        for lock in locks:
            lock.release()


def source_of(folders: Sequence[str], settings: Settings) -> tuple[Source, Sequence[str]]:
    """The source of an import, and notes about it. Raises StorageFault, DataFolderError and SettingsError."""
    cluster_id = _cluster_id(folders)
    stored, taken = adopting.plan(
        OverlayStorage(ReadOnlyStorage()), folders, {}, settings, partial(next, _ids(cluster_id))
    )
    refuse_lost_rules(with_doubts(stored, taken, settings), settings)
    encoder = PasswordEncoder.of(settings)
    beginning = Beginning(
        settings.node_id,
        socket.gethostname(),
        tuple(one for _, one in sorted(taken.topics.items())),
        {},
        {node: encoder.encoded_configs(one) for node, one in taken.broker_configs.items()},
        tuple(one for _, one in sorted(encoder.encoded_rules(taken.rules).items())),
        next_producer_id_of(stored, partial(next, _ids(cluster_id)), has_topics=bool(taken.topics)),
    )
    folder = _Folder(taken, adopting.with_dynamic(settings, taken), _circumstances(folders))
    return Source(cluster_id, beginning, folder.open, closing.close_files), [*stored.damages, *taken.notes]


def _cluster_id(folders: Sequence[str]) -> str:
    """That of the folders; if they have none, one that is the same for every attempt."""
    for one in folders:
        try:
            meta = meta_properties.load(ReadOnlyStorage(), one)
        except CheckpointError:
            continue
        if meta is not None and meta.cluster_id:
            return meta.cluster_id
    return hashlib.sha256("\n".join(map(os.path.realpath, folders)).encode()).hexdigest()[:22]


def _ids(cluster_id: str) -> Iterator[bytes]:
    """Ids for topics that have none: the same ones in every attempt."""
    for number in count():
        yield hashlib.sha256(f"{cluster_id} {number}".encode()).digest()[:16]


def _circumstances(folders: Sequence[str]) -> Mapping[str, Callable[[str, int], Circumstances]]:
    return {one: circumstances(ReadOnlyStorage(), one) for one in folders}


@dataclass(frozen=True, slots=True)
class _Folder:
    """The folders' partitions, opened as a broker would, with every change in memory."""

    taken: Takeover
    settings: Settings
    known: Mapping[str, Callable[[str, int], Circumstances]]

    def open(self, topic: StoredTopic, index: int) -> Partition | None:
        path = self.taken.places.get((topic.name, index))
        if path is None:
            return None
        overrides, _ = usable(topic.overrides, self.settings)
        place = PartitionFolder(topic.name, index, path)
        resources = Resources(OverlayStorage(ReadOnlyStorage()), self.settings.producer_id_expiration_ms)
        known = self.known[path.rpartition("/")[0]](topic.name, index)
        return open_partition(place, resolve(overrides, self.settings), resources, known)


def document(source: Source, brought: Brought, verified: Verified | None, notes: Sequence[str]) -> dict[str, Any]:
    return {
        "cluster_id": source.cluster_id,
        "dry_run": verified is None,
        "topics": brought.topics,
        "partitions": brought.partitions,
        "segments": brought.segments,
        "wal_objects": brought.wal_objects,
        "size_bytes": brought.size_bytes,
        "rules": len(source.beginning.rules),
        "notes": list(notes),
        "findings": [] if verified is None else [one._asdict() for one in verified.findings],
        "is_whole": None if verified is None else verified.is_whole,
    }


def show(found: dict[str, Any], console: Console) -> None:
    for note in found["notes"]:
        console.print(note)
    for one in found["findings"]:
        console.print(f"{console.style('red', one['kind'].value)}: {one['name']}: {one['reason']}")
    verb = "would go" if found["dry_run"] else "went"
    end = "nothing was written" if found["dry_run"] else "nothing is missing or damaged"
    if not (found["dry_run"] or found["is_whole"]):
        end = "the lines above list everything that is missing or damaged"
    console.print(
        f"cluster {found['cluster_id']}: {counted(found['topics'], 'topic')}, {counted(found['partitions'], 'partition')},"
        f" {counted(found['size_bytes'], 'byte')} {verb} into {counted(found['segments'], 'segment')} and"
        f" {counted(found['wal_objects'], 'WAL object')}, with {found['rules']} users, access rules and quotas: {end}"
    )
