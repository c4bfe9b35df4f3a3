"""`horolog backup list` and `horolog backup verify`: the moments of a backup, and whether all of their bytes are there."""

from __future__ import annotations

import argparse
from itertools import islice
from typing import TYPE_CHECKING, Any

from horolog.base.readable import counted
from horolog.broker.backup.rounds import moments_in
from horolog.broker.backup.verifying import verify
from horolog.client.cli.backing_up.places import no_moment, opened, speaking
from horolog.commands.exit_codes import ExitCode

if TYPE_CHECKING:
    from horolog.broker.backup.moment import Moment
    from horolog.broker.backup.verifying import VerifiedBackup
    from horolog.commands.console import Console


def show_moments(arguments: argparse.Namespace, console: Console) -> ExitCode:
    store = opened(arguments.url, arguments.endpoint, console)
    with speaking(store.place.url):
        found = list(moments_in(store))
    if not found:
        raise no_moment(store.place.url)
    if console.as_json:
        console.json([_described(one) for one in found])
        return ExitCode.OK
    rows = [
        (
            one.number,
            console.show_time(one.time_ms),
            len(one.partitions),
            one.size_bytes,
            "yes" if one.is_exact else "no",
        )
        for one in found
    ]
    console.table(("MOMENT", "TIME", "PARTITIONS", "BYTES", "EXACT"), rows)
    return ExitCode.OK


def run_verify(arguments: argparse.Namespace, console: Console) -> ExitCode:
    store = opened(arguments.url, arguments.endpoint, console)
    with speaking(store.place.url), console.progress("bytes") as progress:
        moments = list(islice(moments_in(store), None if arguments.all else 1))
        if not moments:
            raise no_moment(store.place.url)
        found = verify(store, moments, progress.advance)
    if console.as_json:
        console.json(document(moments, found))
    else:
        _show(moments, found, console)
    return ExitCode.ALERT if found.findings else ExitCode.OK


def document(moments: list[Moment], found: VerifiedBackup) -> dict[str, Any]:
    return {
        "moments": [one.number for one in moments],
        "objects": found.objects,
        "size_bytes": found.size_bytes,
        "findings": [one._asdict() for one in found.findings],
        "is_whole": not found.findings,
    }


def _described(one: Moment) -> dict[str, Any]:
    return {
        "number": one.number,
        "time_ms": one.time_ms,
        "cluster_id": one.cluster_id,
        "partitions": len(one.partitions),
        "size_bytes": one.size_bytes,
        "is_exact": one.is_exact,
    }


def _show(moments: list[Moment], found: VerifiedBackup, console: Console) -> None:
    for one in found.findings:
        console.print(f"{console.style('red', one.kind.value)}: {one.name}: {one.reason}")
    end = (
        "the lines above list everything that is missing or damaged"
        if found.findings
        else "nothing is missing or damaged"
    )
    count = f"{len(moments)} moments" if len(moments) > 1 else f"moment {moments[0].number}"
    console.print(f"{count}, {counted(found.objects, 'object')}, {counted(found.size_bytes, 'byte')}: {end}")
