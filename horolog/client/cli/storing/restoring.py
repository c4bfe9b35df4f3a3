"""`horolog store restore`: brings the prefix of a cluster, as it was at a moment, into an empty prefix."""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from horolog.base.readable import format_time
from horolog.broker.base.topic_names import INTERNAL_TOPICS
from horolog.broker.bucket.names import LOG, key
from horolog.broker.bucket.prefix_contents import FoundCluster, found_in
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.log.storage import StorageFault
from horolog.broker.transfer import exporting
from horolog.broker.transfer.moment_store import MomentStore
from horolog.broker.transfer.waiting_store import WaitingStore
from horolog.client.cli.storing import exporting as exporting_report
from horolog.client.cli.storing import importing
from horolog.commands.errors import CommandError, NotFoundError
from horolog.commands.exit_codes import ExitCode
from horolog.stores.faults import StoreError

if TYPE_CHECKING:
    from horolog.broker.config.settings import Settings
    from horolog.commands.console import Console
    from horolog.stores.bucket_store import BucketStore


def run(
    stores: tuple[BucketStore, BucketStore],
    at_ms: int,
    arguments: argparse.Namespace,
    settings: Settings,
    console: Console,
) -> ExitCode:
    """`stores` are the live prefix and the empty one."""
    live, target = stores
    try:
        _check_range(live, at_ms, settings, console)
        moment = MomentStore(live, at_ms)
        found = _chosen(_found_at(moment, live, at_ms, console), arguments.topics)
        waiting = WaitingStore(moment)
        try:
            document = _restored(waiting, found, target, arguments, settings, console)
        finally:
            waiting.close()
    except FormatError as error:
        raise CommandError(f"{live.place.url}: {error}") from error
    except (StorageFault, StoreError) as error:
        raise CommandError(str(error)) from error
    document["at_ms"] = at_ms
    if console.as_json:
        console.json(document)
    elif arguments.dry_run:
        exporting_report.show(document, target.place.url, console)
    else:
        importing.show(document, console)
    return ExitCode.ALERT if document["findings"] else ExitCode.OK


def _check_range(live: BucketStore, at_ms: int, settings: Settings, console: Console) -> None:
    try:
        founded_ms = live.stat(key(LOG, 0)).last_modified_ms
    except FileNotFoundError:
        raise CommandError(f"{live.place.url}: no broker has used this URL") from None
    now_ms = console.now_ms()
    earliest_ms = max(founded_ms, now_ms - settings.horolog_store_history_ms)
    if not earliest_ms <= at_ms <= now_ms:
        raise NotFoundError(
            f"{_shown(at_ms, console)} is outside the history of {live.place.url}",
            f"choose a time from {_shown(earliest_ms, console)} to {_shown(now_ms, console)}",
        )


def _found_at(moment: MomentStore, live: BucketStore, at_ms: int, console: Console) -> FoundCluster:
    found = found_in(moment)
    assert found is not None, "it was founded before"
    merged = moment.merged_since(found.state)
    if merged:
        raise NotFoundError(
            f"{live.place.url}: the history does not reach back to {_shown(at_ms, console)}: its records have been merged since, in"
            f" {', '.join(wal.folder for wal in merged)}",
            "choose a later time; a larger horolog.store.history.ms keeps more",
        )
    return found


def _shown(ms: int, console: Console) -> str:
    return format_time(ms, console.zone)


def _chosen(found: FoundCluster, names: str | None) -> FoundCluster:
    """With these topics alone, and internal ones."""
    if names is None:
        return found
    wanted = set(names.split(","))
    unknown = sorted(wanted - found.state.topics.keys())
    if unknown:
        raise NotFoundError(f"there was no topic {', '.join(unknown)} at that moment")
    topics = {name: one for name, one in found.state.topics.items() if name in wanted or name in INTERNAL_TOPICS}
    return found._replace(state=replace(found.state, topics=topics))


def _restored(
    waiting: WaitingStore,
    found: FoundCluster,
    target: BucketStore,
    arguments: argparse.Namespace,
    settings: Settings,
    console: Console,
) -> dict[str, Any]:
    if arguments.dry_run:
        with console.progress("bytes") as progress:
            weighed = waiting.result(exporting.weigh(waiting.access, found, settings, progress.advance))
        return exporting_report.document_of(found, weighed, is_dry=True)
    with tempfile.TemporaryDirectory(prefix="horolog-restore-", dir=arguments.work) as folder:
        with console.progress("bytes read") as progress:
            exported = exporting_report.copy_to(waiting, found, folder, settings, console, progress.advance)
        document = importing.bring(target, [folder], settings, console, dry_run=False)
    document["findings"] += [one._asdict() for one in exported.findings]
    document["is_whole"] = not document["findings"]
    return document
