"""`horolog store verify`: prints the report on a prefix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from horolog.base.readable import counted
from horolog.broker.prefix.verifying import Verified, verify
from horolog.commands.exit_codes import ExitCode
from horolog.stores.faults import StoreError

if TYPE_CHECKING:
    from horolog.commands.console import Console
    from horolog.stores.bucket_store import BucketStore


def run(store: BucketStore, at_once: int, console: Console) -> ExitCode:
    try:
        with console.progress("objects") as progress:
            found = verify(store, at_once, lambda _: progress.advance())
    except StoreError as error:
        console.error(f"the check is not complete: {error}")
        return ExitCode.FAILED
    if found is None:
        console.error(f"{store.place.url}: no broker has used this URL")
        return ExitCode.FAILED
    if console.as_json:
        console.json(document(found))
    else:
        _show(found, console)
    return ExitCode.OK if found.is_whole else ExitCode.ALERT


def document(found: Verified) -> dict[str, Any]:
    return {
        "cluster_id": found.cluster_id,
        "journal_entries": found.journal_entries,
        "topics": found.topics,
        "partitions": found.partitions,
        "contents": [one._asdict() for one in found.contents],
        "findings": [one._asdict() for one in found.findings],
        "is_whole": found.is_whole,
    }


def _show(found: Verified, console: Console) -> None:
    for one in found.findings:
        style = "yellow" if one.kind == "left over" else "red"
        console.print(f"{console.style(style, one.kind.value)}: {one.name}: {one.reason}")
    objects, size_bytes = sum(one.objects for one in found.contents), sum(one.size_bytes for one in found.contents)
    outcome = (
        "nothing is missing or damaged"
        if found.is_whole
        else "the lines above list everything that is missing or damaged"
    )
    console.print(
        f"cluster {found.cluster_id}, entry {found.journal_entries} of its journal, {counted(found.topics, 'topic')},"
        f" {counted(found.partitions, 'partition')}, {counted(objects, 'object')}, {counted(size_bytes, 'byte')}: {outcome}"
    )
