"""`horolog restore`: a moment of a backup as a data folder, or a drill in a temporary one."""

from __future__ import annotations

import argparse
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from horolog.base.readable import counted
from horolog.broker.backup.objects import PieceReader
from horolog.broker.backup.restoring import restore
from horolog.broker.backup.rounds import moment_at
from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.log.storage import LOCK_FILE, RealStorage, make_folder
from horolog.broker.on_record import cluster_file
from horolog.broker.transfer.whole_folder import ExportTarget
from horolog.client.cli.backing_up.places import no_moment, opened, speaking
from horolog.commands.errors import NotFoundError
from horolog.commands.exit_codes import ExitCode
from horolog.protocol.uuids import show_uuid

if TYPE_CHECKING:
    from horolog.broker.backup.moment import Moment
    from horolog.broker.backup.restoring import Restored
    from horolog.commands.console import Console


def run(arguments: argparse.Namespace, at_ms: int | None, console: Console) -> ExitCode:
    """`at_ms`: the newest moment up to then; None for the newest one."""
    store = opened(arguments.url, arguments.endpoint, console)
    with speaking(store.place.url):
        moment = moment_at(store, at_ms)
        if moment is None:
            raise no_moment(store.place.url, at_ms)
        topics = _topics(arguments.topics, moment)
        with _folder(arguments) as folder, console.progress("bytes", moment.size_bytes) as progress:
            restored = _restore(moment, PieceReader(store), folder, topics, console, progress.advance)
    found = document(moment, restored, console.now_ms())
    if console.as_json:
        console.json(found)
    else:
        _show(found, "" if arguments.check else arguments.data, console)
    return ExitCode.ALERT if restored.findings else ExitCode.OK


def _topics(text: str | None, moment: Moment) -> list[str]:
    names = [one.strip() for one in (text or "").split(",") if one.strip()]
    known = cluster_file.parse(moment.record).topics
    if unknown := [one for one in names if one not in known]:
        raise NotFoundError(f"the moment has no topic {', '.join(unknown)}")
    return names


@contextmanager
def _folder(arguments: argparse.Namespace) -> Iterator[str]:
    if not arguments.check:
        yield arguments.data.rstrip("/") or "/"
        return
    with tempfile.TemporaryDirectory(prefix="horolog-restore-", dir=arguments.data) as folder:
        yield folder


def _restore(
    moment: Moment, reader: PieceReader, folder: str, topics: list[str], console: Console, seen: Any
) -> Restored:
    storage = RealStorage()
    make_folder(storage, folder)
    settings = from_layers(Layers(static={"node.id": str(moment.node_id)}))
    target = ExportTarget(storage, folder, settings, show_uuid(uuid.uuid4().bytes), console.now_ms())
    lock = storage.lock(f"{folder}/{LOCK_FILE}")
    try:
        return restore(moment, reader, target, topics, seen)
    finally:
        lock.release()


def document(moment: Moment, restored: Restored, now_ms: int) -> dict[str, Any]:
    return {
        "cluster_id": moment.cluster_id,
        "moment": moment.number,
        "time_ms": moment.time_ms,
        "age_s": max(now_ms - moment.time_ms, 0) / 1000,
        "is_exact": moment.is_exact,
        "topics": restored.topics,
        "partitions": restored.partitions,
        "size_bytes": restored.size_bytes,
        "records_end": {
            f"{topic}-{index}": copied.end_offset for (topic, index), copied in sorted(restored.ends.items())
        },
        "findings": [one._asdict() for one in restored.findings],
        "is_whole": not restored.findings,
    }


def _show(found: dict[str, Any], folder: str, console: Console) -> None:
    for one in found["findings"]:
        console.print(f"{console.style('red', one['kind'].value)}: {one['name']}: {one['reason']}")
    end = (
        "the lines above list everything that is missing or damaged"
        if found["findings"]
        else "nothing is missing or damaged"
    )
    what = f"are in {folder}" if folder else "were restored and read"
    console.print(
        f"cluster {found['cluster_id']} as of {console.show_time(found['time_ms'])}: {counted(found['topics'], 'topic')},"
        f" {counted(found['partitions'], 'partition')}, {counted(found['size_bytes'], 'byte')} {what}: {end}."
        f" What was written in the {found['age_s']:.0f} s since then is not in it"
    )
