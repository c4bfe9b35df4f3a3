"""`horolog store export`: writes a prefix as a data folder."""

from __future__ import annotations

import argparse
import uuid
from typing import TYPE_CHECKING, Any

from horolog.base.readable import counted
from horolog.broker.bucket.prefix_contents import found_in
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.log.storage import LOCK_FILE, RealStorage, StorageFault, make_folder
from horolog.broker.transfer import exporting
from horolog.broker.transfer.exporting import Exported
from horolog.broker.transfer.waiting_store import WaitingStore
from horolog.broker.transfer.whole_folder import ExportTarget, FolderTaken
from horolog.commands.errors import CommandError
from horolog.commands.exit_codes import ExitCode
from horolog.protocol.uuids import show_uuid
from horolog.stores.faults import StoreError

if TYPE_CHECKING:
    from horolog.broker.bucket.prefix_contents import FoundCluster
    from horolog.broker.config.settings import Settings
    from horolog.commands.console import Console
    from horolog.stores.bucket_store import BucketStore

ADVICE = "run the same command again: it continues where it stopped"


def run(store: BucketStore, arguments: argparse.Namespace, settings: Settings, console: Console) -> ExitCode:
    folder = arguments.folder.rstrip("/") or "/"
    waiting = WaitingStore(store)
    try:
        found = found_in(store)
        if found is None:
            raise CommandError(f"{store.place.url}: no broker has used this URL")
        with console.progress("bytes") as progress:
            if arguments.dry_run:
                steps = exporting.weigh(waiting.access, found, settings, progress.advance)
                exported = waiting.result(steps)
            else:
                exported = copy_to(waiting, found, folder, settings, console, progress.advance)
    except FolderTaken as error:
        raise CommandError(str(error), "choose an empty folder") from error
    except FormatError as error:
        raise CommandError(f"{store.place.url}: {error}") from error
    except StorageFault as error:
        raise CommandError(str(error), ADVICE) from error
    except StoreError as error:
        raise CommandError(str(error), ADVICE) from error
    finally:
        waiting.close()
    document = document_of(found, exported, is_dry=arguments.dry_run)
    if console.as_json:
        console.json(document)
    else:
        show(document, folder, console)
    return ExitCode.ALERT if exported.findings else ExitCode.OK


def copy_to(
    waiting: WaitingStore, found: FoundCluster, folder: str, settings: Settings, console: Console, seen: exporting.Seen
) -> Exported:
    """Write a cluster into an empty folder, created if it does not exist. Raises FolderTaken, FormatError, StorageFault and StoreError."""
    storage = RealStorage()
    make_folder(storage, folder)
    target = ExportTarget(storage, folder, settings, show_uuid(uuid.uuid4().bytes), console.now_ms())
    lock = storage.lock(f"{folder}/{LOCK_FILE}")
    try:
        return waiting.result(exporting.export(waiting.access, found, target, seen))
    finally:
        lock.release()


def document_of(found: FoundCluster, exported: Exported, *, is_dry: bool) -> dict[str, Any]:
    return {
        "cluster_id": found.cluster_id,
        "dry_run": is_dry,
        "topics": exported.topics,
        "partitions": exported.partitions,
        "size_bytes": exported.size_bytes,
        "findings": [one._asdict() for one in exported.findings],
        "is_whole": None if is_dry else not exported.findings,
    }


def show(document: dict[str, Any], folder: str, console: Console) -> None:
    for one in document["findings"]:
        console.print(f"{console.style('red', one['kind'].value)}: {one['name']}: {one['reason']}")
    verb = "would go" if document["dry_run"] else "went"
    end = "nothing was written" if document["dry_run"] else "nothing is missing or damaged"
    if document["findings"]:
        end = "the lines above list everything that is missing or damaged"
    console.print(
        f"cluster {document['cluster_id']}: {counted(document['topics'], 'topic')}, {counted(document['partitions'], 'partition')},"
        f" {counted(document['size_bytes'], 'byte')} {verb} into {folder}: {end}"
    )
