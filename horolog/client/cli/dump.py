"""`horolog dump`: the content of files of a data folder, horolog's or Kafka's, down to the records."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from horolog.commands.arguments import add_endpoint, add_output, add_zone, describe, is_store, positive_number
from horolog.commands.console import Console
from horolog.commands.errors import NotFoundError, UsageError
from horolog.commands.exit_codes import ExitCode

if TYPE_CHECKING:  # reading files is imported when files are read
    from horolog.client.cli.dumping.files import Question
    from horolog.client.cli.dumping.items import Item


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Show the content of files in a data folder of horolog or Kafka: logs (.log), indexes (.index, "
        ".timeindex, .txnindex), producer snapshots, checkpoints, meta.properties, horolog-seals, "
        "horolog-producers, horolog-cluster, and copies of damaged bytes. Each index is compared with its "
        "log. Damage is reported with its position, and the exit code is then 3.\n\n"
        "A cluster's prefix in an object store is read like a data folder, up to the end of the last "
        "segment; brokers may be running.",
        "horolog dump data/orders-0/00000000000000000000.log",
        "horolog dump --print-data-log data/orders-0/*.log",
        "horolog dump --verify-index-only data/orders-0/*.index data/orders-0/*.timeindex",
        "horolog dump data/orders-0 -o json | jq 'select(.type == \"damage\")'",
        "horolog dump --print-data-log data/__consumer_offsets-12         # decoded by the name of the folder",
        "horolog dump --deep s3://bucket/prefix orders-0",
    )
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="files, or folders with such files; or the URL of a prefix, then topics, partitions (orders-0) or their files",
    )
    add_endpoint(parser)
    records = parser.add_argument_group("records of logs")
    records.add_argument(
        "--deep", "--deep-iteration", action="store_true", help="also show records, without keys and values"
    )
    records.add_argument("--print-data-log", action="store_true", help="show records with keys and values")
    records.add_argument(
        "--offsets-decoder",
        action="store_true",
        help="decode records as those of __consumer_offsets",
    )
    records.add_argument(
        "--transaction-log-decoder", action="store_true", help="decode records as those of __transaction_state"
    )
    records.add_argument("--raw", action="store_true", help="do not decode records")
    records.add_argument(
        "--max-message-size", type=positive_number, metavar="BYTES", help="report larger batches as problems"
    )
    records.add_argument(
        "--max-bytes", type=positive_number, metavar="BYTES", help="read at most this much of each log"
    )
    checks = parser.add_argument_group("checks of indexes")
    checks.add_argument(
        "--verify-index-only", action="store_true", help="compare indexes with their logs, and show no entries"
    )
    checks.add_argument(
        "--index-sanity-check", action="store_true", help="check indexes without their logs, and show no entries"
    )
    add_output(parser)
    add_zone(parser)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    question = _question(arguments)
    if is_store(arguments.files[0]):
        trouble = _of_prefix(arguments.files, arguments.endpoint, question, console)
    else:
        trouble = _of_files(arguments.files, question, console)
    if not trouble:
        return ExitCode.OK
    console.error(
        f"{trouble} {'places are' if trouble > 1 else 'place is'} damaged or wrong; horolog doctor shows what recovery would do"
    )
    return ExitCode.ALERT


def _of_files(paths: list[str], question: "Question", console: Console) -> int:
    """Show files of this machine; returns the number of faults."""
    from horolog.client.cli.dumping.files import MissingFile, dump_file, files_of
    from horolog.client.cli.dumping.items import TROUBLE

    trouble = 0
    for path in paths:
        try:
            for file in files_of(path):
                trouble += _show(dump_file(file, question), console, TROUBLE)
        except MissingFile as missing:
            raise NotFoundError(str(missing), "name files of a data folder, or a partition's folder") from missing
    return trouble


def _of_prefix(words: list[str], endpoint: str, question: "Question", console: Console) -> int:
    """Show files of a prefix; returns the number of faults."""
    from horolog.client.cli.dumping.files import dump_file
    from horolog.client.cli.dumping.items import TROUBLE
    from horolog.client.cli.dumping.kinds import kind_of
    from horolog.client.cli.storing.prefix_folder import files_named, means, opened

    url, *names = words
    if not names:
        raise UsageError(f"name topics, partitions or files of {url}, such as orders, orders-0")
    trouble = 0
    with opened(url, endpoint, console, lambda *one: any(means(name, *one) for name in names)) as storage:
        for name in names:
            files = files_named(storage, name, lambda path: kind_of(path) is not None)
            if not files:
                raise NotFoundError(f"{url} has no {name}", "horolog store ls shows its topics")
            for file in files:
                trouble += _show(dump_file(file, question, storage), console, TROUBLE)
    return trouble


def _question(arguments: argparse.Namespace) -> "Question":
    from horolog.client.cli.dumping.files import Question

    chosen = [arguments.offsets_decoder, arguments.transaction_log_decoder, arguments.raw]
    if sum(chosen) > 1:
        raise UsageError("use only one of --offsets-decoder, --transaction-log-decoder and --raw")
    decoder = "offsets" if arguments.offsets_decoder else "transactions" if arguments.transaction_log_decoder else None
    return Question(
        deep=arguments.deep or arguments.print_data_log or decoder is not None,
        with_data=arguments.print_data_log,
        decoder="raw" if arguments.raw else decoder,
        max_batch_bytes=arguments.max_message_size,
        max_bytes=arguments.max_bytes,
        entries=not (arguments.verify_index_only or arguments.index_sanity_check),
        against_log=not arguments.index_sanity_check,
    )


def _show(items: "Iterator[Item]", console: Console, trouble: tuple[str, ...]) -> int:
    """Show the items of one file; returns how many of them are faults."""
    from horolog.client.cli.dumping.items import text_line

    count = 0
    path: Any = None
    for item in items:
        is_trouble = item["type"] in trouble
        count += is_trouble
        if item["type"] == "file":
            path = item["path"]
        if console.as_json:
            console.json_line(item if item["type"] == "file" else {**item, "file": path})
        else:
            line = text_line(item, console.show_time)
            console.print(console.style("red", line) if is_trouble else line)
    return count
