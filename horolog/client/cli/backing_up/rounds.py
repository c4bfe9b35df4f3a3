"""`horolog backup run`: one round of a backup, of the folders of a broker that may be running."""

from __future__ import annotations

import argparse
import time
import uuid
from typing import TYPE_CHECKING, Any

from horolog.base.readable import counted
from horolog.broker.backup.looking import SourceFolders
from horolog.broker.backup.pacing import BytePace
from horolog.broker.backup.rounds import Means, Rounds
from horolog.broker.log.storage import ReadOnlyStorage
from horolog.client.cli.backing_up.places import opened, speaking
from horolog.client.cli.examining.given_folders import check_given
from horolog.commands.exit_codes import ExitCode

if TYPE_CHECKING:
    from horolog.broker.backup.rounds import Done
    from horolog.commands.console import Console


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    paths = [one.rstrip("/") or "/" for one in arguments.data_folders]
    check_given(ReadOnlyStorage(), paths)
    store = opened(arguments.url, arguments.endpoint, console)
    pace = BytePace(arguments.rate, time.monotonic, time.sleep)
    means = Means(pace, lambda: uuid.uuid4().hex, time.sleep, arguments.history)
    with speaking(store.place.url):
        done = Rounds(SourceFolders(paths, ReadOnlyStorage, console.now_ms), store, means).run()
    found = document(done)
    if console.as_json:
        console.json(found)
    else:
        _show(found, console)
    return ExitCode.OK


def document(done: Done) -> dict[str, Any]:
    moment = done.moment
    return {
        "number": moment.number,
        "time_ms": moment.time_ms,
        "cluster_id": moment.cluster_id,
        "partitions": len(moment.partitions),
        "size_bytes": moment.size_bytes,
        "shipped_bytes": done.shipped_bytes,
        "removed_objects": done.removed_objects,
        "is_exact": moment.is_exact,
    }


def _show(found: dict[str, Any], console: Console) -> None:
    console.print(
        f"moment {found['number']}, {console.show_time(found['time_ms'])}: {counted(found['partitions'], 'partition')},"
        f" {counted(found['size_bytes'], 'byte')}, of which {found['shipped_bytes']:,} were copied now"
    )
    if not found["is_exact"]:
        console.note(
            "records were written while the folders were read: a transaction that ended meanwhile may be incomplete"
        )
