"""`horolog store`: object stores that brokers share. `check` says whether one keeps what they rest on."""

import argparse

from horolog.commands.arguments import Parser, add_output, describe, positive_number
from horolog.commands.console import Console
from horolog.commands.errors import UsageError
from horolog.commands.exit_codes import ExitCode

_WRITERS = 20
_KEYS = 50
_MAX_WRITERS = 64


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    sentence = "test whether a store keeps two brokers apart"
    check = actions.add_parser("check", help=sentence)
    describe(
        parser,
        "Object stores that brokers can share: s3://BUCKET/PREFIX, gs://, az:// or file:///FOLDER.",
        "horolog store check s3://bucket/prefix",
    )
    describe(
        check,
        "Create keys below URL with many writers at once, and look whether one of them wins each, its bytes are read and listed at"
        " once, and the clocks agree. What was created is removed. Credentials come from the environment, a profile of ~/.aws, or"
        " this machine's own service.",
        "horolog store check s3://bucket/prefix",
        "horolog store check s3://bucket/prefix --endpoint http://127.0.0.1:7070 -o json",
    )
    check.add_argument("url", metavar="URL", help="s3://BUCKET/PREFIX, gs://, az:// or file:///FOLDER")
    check.add_argument("--endpoint", default="", metavar="URL", help="of an S3 that is not Amazon's")
    check.add_argument("--writers", type=positive_number, default=_WRITERS, help=f"at a time for each key ({_WRITERS})")
    check.add_argument("--keys", type=positive_number, default=_KEYS, help=f"to create ({_KEYS})")
    add_output(check)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.base.clock import SystemClock
    from horolog.stores import addresses, opening, self_test
    from horolog.stores.faults import StoreError

    if arguments.writers > _MAX_WRITERS:
        raise UsageError(f"--writers is at most {_MAX_WRITERS}")
    try:
        store = opening.open_store(arguments.url, arguments.endpoint, console.environ)
    except StoreError as error:
        raise UsageError(str(error)) from None
    faults = 0
    others = addresses.ways_to(store.place)[1:]
    for finding in self_test.self_test(store, SystemClock(), arguments.writers, arguments.keys, others):
        faults += bool(finding.fault)
        if console.as_json:
            console.json_line(finding._asdict())
        else:
            word = console.style("red", "fault") if finding.fault else console.style("green", "ok")
            console.print(f"{word}: {finding.tried}: {finding.fault or finding.found}")
    return ExitCode.FAILED if faults else ExitCode.OK
