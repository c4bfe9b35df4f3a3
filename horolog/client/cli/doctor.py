"""`horolog doctor`: checks a data folder offline, shows what recovery would do about its faults, and does it on request."""

import argparse
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from horolog.base.readable import counted
from horolog.commands.arguments import add_endpoint, add_output, add_zone, describe, is_store
from horolog.commands.console import Console
from horolog.commands.errors import CommandError, NotFoundError, UsageError
from horolog.commands.exit_codes import ExitCode

if TYPE_CHECKING:  # reading files is imported when files are read
    from horolog.broker.log.storage import ReadOnlyStorage
    from horolog.client.cli.dumping.items import Item
    from horolog.client.cli.examining.folder_check import PartitionReport

MESSAGES_SHOWN = 20


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Check every log, index and checkpoint of a data folder. Report damage with its offsets and times, "
        "and what recovery would do. Only --repair changes files: it runs that recovery. Damaged bytes are "
        "copied before anything is cut; inside a log they also stay in place. If a broker runs on the "
        "folder, the command only reads, and batches that are being written may look torn.\n\n"
        "A cluster's prefix in an object store is checked like a data folder, up to the end of the last "
        "segment. It is never repaired; `horolog store verify` compares its objects with their checksums.\n\n"
        "exit codes: 0 nothing is wrong, or all is repaired; 3 damage was found; 1 it could not be repaired",
        "horolog doctor /var/lib/horolog",
        "horolog doctor /var/lib/horolog --topic orders -o json",
        "horolog doctor /var/lib/horolog --repair",
        "horolog doctor s3://bucket/prefix --topic orders",
    )
    parser.add_argument("data_folder", metavar="DATA_FOLDER", help="the data folder (log.dirs), or the URL of a prefix")
    parser.add_argument("--topic", action="append", default=[], metavar="NAME", help="only this topic; repeatable")
    parser.add_argument("--repair", action="store_true", help="repair the damage; no broker may be running")
    add_endpoint(parser)
    add_output(parser)
    add_zone(parser)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.client.cli.examining.folder_check import is_in_use

    if is_store(arguments.data_folder):
        return _of_prefix(arguments, console)
    folder = arguments.data_folder.rstrip("/") or "/"
    _check_is_folder(folder)
    in_use = is_in_use(folder)
    if in_use and arguments.repair:
        raise CommandError(
            f"{folder} is in use by a running broker",
            "stop it before --repair; a running broker repairs the damage that it finds by itself",
        )
    if in_use:
        console.note(
            "a broker runs on this folder: doctor only reads it, and batches that are being written may look torn"
        )
    reports, others = _examine(folder, arguments.topic, console)
    stamp = datetime.fromtimestamp(console.now_ms() / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
    if not in_use:
        _rehearse(folder, reports, stamp)
    document = _document(folder, in_use, reports, others)
    if arguments.repair and _is_damaged(reports, others):
        document = _repair(folder, arguments.topic, (reports, others), document, stamp, console)
    document["pins"] = _pins(folder, console.now_ms())
    return _report(document, console, verbose=not in_use)


def _of_prefix(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Check the segments of a prefix, with nothing rehearsed: no broker recovers them."""
    from horolog.client.cli.storing.prefix_folder import opened

    url, topics = arguments.data_folder, arguments.topic
    if arguments.repair:
        raise UsageError(f"{url}: objects of a prefix are never changed; restore them from versions of the bucket")
    with opened(url, arguments.endpoint, console, lambda topic, _: not topics or topic in topics) as storage:
        reports = _checked(storage, storage.root, topics, console)
    return _report(_document(url, False, reports, []) | {"pins": []}, console, verbose=False)


def _report(document: dict[str, Any], console: Console, *, verbose: bool) -> ExitCode:
    if console.as_json:
        console.json(document)
    else:
        _show(document, console, verbose=verbose)
    return ExitCode.ALERT if document["summary"]["damaged"] or document["findings"] else ExitCode.OK


def _check_is_folder(folder: str) -> None:
    from horolog.broker.log.storage import ReadOnlyStorage
    from horolog.client.cli.examining.given_folders import check_given

    check_given(ReadOnlyStorage(), [folder], "name the data folder above it, and --topic")


def _examine(folder: str, topics: list[str], console: Console) -> "tuple[list[PartitionReport], list[Item]]":
    from horolog.broker.log.storage import ReadOnlyStorage
    from horolog.client.cli.examining.folder_check import check_small_files

    storage = ReadOnlyStorage()
    return _checked(storage, folder, topics, console), check_small_files(storage, folder)


def _checked(storage: "ReadOnlyStorage", folder: str, topics: list[str], console: Console) -> "list[PartitionReport]":
    """The reports on all partitions of these topics; of all topics if there are none."""
    from horolog.client.cli.examining.folder_check import check_partition, partitions_in

    chosen = [one for one in partitions_in(storage, folder) if not topics or one[0] in topics]
    missing = set(topics) - {topic for topic, _, _ in chosen}
    if missing:
        raise NotFoundError(
            f"no folder of topic {', '.join(sorted(missing))} is in {folder}",
            "horolog doctor without --topic lists all",
        )
    total = sum(
        storage.stat(f"{directory}/{name}")[0]
        for _, _, directory in chosen
        for name in storage.list_dir(directory)
        if name.endswith(".log")
    )
    with console.progress("bytes", total) as bar:
        return [check_partition(storage, *one, bar.advance) for one in chosen]


def _rehearse(folder: str, reports: "list[PartitionReport]", stamp: str) -> None:
    from horolog.broker.log.storage import ReadOnlyStorage
    from horolog.client.cli.examining.rehearsal import circumstances, configurations, rehearse

    storage = ReadOnlyStorage()
    config_of, known = configurations(storage, folder), circumstances(storage, folder)
    for report in reports:
        if report.is_damaged:
            rehearse(report, config_of(report.topic), known(report.topic, report.index), stamp)


def _is_damaged(reports: "list[PartitionReport]", others: "list[Item]") -> bool:
    return bool(others) or any(report.is_damaged for report in reports)


def _repair(
    folder: str,
    topics: list[str],
    found: "tuple[list[PartitionReport], list[Item]]",
    before: dict[str, Any],
    stamp: str,
    console: Console,
) -> dict[str, Any]:
    """Repair, look again, and report the state before and after."""
    from horolog.broker.log.storage import StorageFault
    from horolog.client.cli.examining.rehearsal import repair

    reports, others = found
    try:
        repair(folder, reports, others, stamp)
    except StorageFault as error:
        raise CommandError(f"{folder} could not be repaired: {error}") from error
    again, others = _examine(folder, topics, console)
    after = _document(folder, False, again, others)
    for document in after["partitions"]:
        old = next((one for one in before["partitions"] if one["name"] == document["name"]), None)
        if old is not None and old["state"] == "damaged":
            document["mended"] = {"findings": old["findings"], "actions": old["actions"]}
            document["messages"] = next(one.messages for one in reports if one.name == document["name"])
    after["repaired"] = True
    return after


def _document(folder: str, in_use: bool, reports: "list[PartitionReport]", others: "list[Item]") -> dict[str, Any]:
    """The report as documented in docs/cli.md."""
    partitions = [_partition(report) for report in reports]
    return {
        "data_folder": folder,
        "in_use": in_use,
        "repaired": False,
        "findings": others,
        "partitions": partitions,
        "summary": {
            "partitions": len(partitions),
            "damaged": sum(one["state"] == "damaged" for one in partitions),
            "segments": sum(one["segments"] for one in partitions),
            "size_bytes": sum(one["size_bytes"] for one in partitions),
        },
    }


def _pins(folder: str, now_ms: int) -> "list[Item]":
    """The pins of scans of the folder: the next scan sweeps those of finished ones."""
    from pathlib import Path

    from horolog.base.pins import folder_of, scans_in

    return [
        {
            "folder": str(scan.folder),
            "owner": None if scan.owner is None else f"{scan.owner.user}, pid {scan.owner.pid}",
            "files": scan.files,
            "held_bytes": scan.held_bytes,
            "is_over": scan.is_over(now_ms),
        }
        for scan in scans_in(folder_of(Path(folder)))
    ]


def pin_line(one: "Item") -> str:
    """One scan's pins in a sentence."""
    state = "has ended (the next read removes it, or remove the folder)" if one["is_over"] else "is in progress"
    return (
        f"pinned: {one['folder']}: {counted(one['files'], 'file')} of a scan of {one['owner'] or 'an unknown user'}, which {state};"
        f" only this scan keeps {one['held_bytes']} bytes"
    )


def _partition(report: "PartitionReport") -> dict[str, Any]:
    latest = max(report.segments, key=lambda one: one.latest, default=None)
    return {
        "name": report.name,
        "topic": report.topic,
        "partition": report.index,
        "directory": report.directory,
        "state": "damaged" if report.is_damaged else "known damage" if report.findings else "ok",
        "segments": len(report.segments),
        "size_bytes": sum(one.size_bytes for one in report.segments),
        "first_offset": report.segments[0].base_offset if report.segments else None,
        "next_offset": report.segments[-1].next_offset if report.segments else None,
        "largest_timestamp": latest.latest if latest is not None and latest.latest >= 0 else None,
        "findings": report.findings,
        "actions": report.actions,
        "messages": report.messages,
        "set_aside": report.set_aside,
    }


def _show(document: dict[str, Any], console: Console, *, verbose: bool) -> None:
    rows = [
        [
            one["name"],
            one["state"],
            one["segments"],
            one["size_bytes"],
            one["first_offset"],
            one["next_offset"],
            _time(one, console),
        ]
        for one in document["partitions"]
    ]
    if rows:
        console.table(["PARTITION", "STATE", "SEGMENTS", "BYTES", "FIRST", "NEXT", "LATEST TIME"], rows)
    for finding in document["findings"]:
        console.print(console.style("red", finding_line(finding, console)))
    for one in document["partitions"]:
        if one["findings"] or one.get("mended"):
            _show_partition(one, console, verbose=verbose)
    for one in document["pins"]:
        console.print(pin_line(one))
    summary = document["summary"]
    console.print(
        f"\n{counted(summary['partitions'], 'partition')}, {counted(summary['segments'], 'segment')},"
        f" {summary['size_bytes']} bytes read:"
        f" {summary['damaged'] or 'none'} damaged"
    )


def _show_partition(one: dict[str, Any], console: Console, *, verbose: bool) -> None:
    console.print(f"\n{console.style('bold', one['name'])} in {one['directory']}")
    if one.get("mended"):
        for finding in one["mended"]["findings"]:
            console.print(f"  was: {finding_line(finding, console)}")
        for line in action_lines(one["mended"]["actions"]):
            console.print(console.style("green", f"  done: {line}"))
    for finding in one["findings"]:
        console.print(
            console.style("dim" if finding["kind"] == "known damage" else "red", f"  {finding_line(finding, console)}")
        )
    for line in action_lines(one["actions"]):
        console.print(f"  recovery would: {line}")
    if verbose:
        for message in one["messages"][:MESSAGES_SHOWN]:
            console.print(console.style("dim", f"  recovery says: {message}"))


def _time(one: dict[str, Any], console: Console) -> str | None:
    return None if one["largest_timestamp"] is None else console.show_time(one["largest_timestamp"])


def finding_line(finding: "Item", console: Console) -> str:
    """A finding as one sentence: what, where, between which offsets and times."""
    name = finding["file"].rpartition("/")[2]
    if "position" not in finding:
        return f"{finding['kind']}: {name}: {finding['problem']}"
    last = "the end" if finding["last_offset"] is None else finding["last_offset"]
    times = [
        f"{word} {console.show_time(finding[key])}"
        for word, key in (("after", "time_before"), ("before", "time_after"))
        if finding[key] is not None
    ]
    return (
        f"{finding['kind']}: {name}: {finding['size_bytes']} bytes at {finding['position']} are not records ({finding['problem']}):"
        f" offsets {finding['first_offset']} to {last}" + (f", written {' and '.join(times)}" if times else "")
    )


def action_lines(actions: "list[Item]") -> list[str]:
    """Recovery's actions, file by file; index files, of which there may be thousands, in one line."""
    lines = [action_line(one) for one in actions if one["action"] != "made anew"]
    indexes = [one for one in actions if one["action"] == "made anew"]
    if len(indexes) == 1:
        lines.append(action_line(indexes[0]))
    elif indexes:
        lines.append(f"rebuild {len(indexes)} index files from their logs")
    return lines


def action_line(action: "Item") -> str:
    name = action["file"].rpartition("/")[2]
    kind = action["action"]
    if kind == "cut":
        return f"cut {name} from {action['from_bytes']} to {action['to_bytes']} bytes"
    if kind == "corrected":
        return f"correct {sum(one['size_bytes'] for one in action['places'])} bytes of {name}"
    if kind == "set aside":
        return f"set {action['size_bytes']} bytes aside in {name}"
    if kind == "removed":
        return (
            f"remove {name} ({action['reason']}, a copy is kept)"
            if action["reason"] != "left over"
            else f"remove {name} (left over)"
        )
    verb = {"made anew": "rebuild", "written": "write"}.get(kind, "create")
    return f"{verb} {name}"
