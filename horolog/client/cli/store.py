"""`horolog store`: object stores that brokers share.

`check` tests whether one keeps two brokers apart, `ls`, `du` and `verify` show its content, `import` brings data folders into it, and
`export` writes its content as a data folder. `restore` brings what was there at a moment into another prefix.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from horolog.commands.arguments import (
    Parser,
    add_broker_settings,
    add_endpoint,
    add_output,
    add_zone,
    describe,
    positive_number,
)
from horolog.commands.console import Console
from horolog.commands.errors import UsageError
from horolog.commands.exit_codes import ExitCode

if TYPE_CHECKING:
    from horolog.broker.prefix.month_forecast import MonthForecast
    from horolog.stores.bucket_store import BucketStore

_WRITERS = 20
_KEYS = 50
_MAX_WRITERS = 64
_AT_ONCE = 8
_MAX_AT_ONCE = 64


PRICES = (
    ("writes", 5.0, "a million writes and lists"),
    ("reads", 0.4, "a million reads"),
    ("storage", 0.023, "a month of 10^9 bytes"),
)
"""What Amazon takes."""


def price(text: str) -> float:
    """For `type=`: dollars."""
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount in dollars")
    return found


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    sentence = "test whether brokers can safely share a store"
    check = actions.add_parser("check", help=sentence)
    describe(
        parser,
        "Object stores that brokers can share: s3://BUCKET/PREFIX, gs://, az:// or file:///FOLDER.",
        "horolog store check s3://bucket/prefix",
    )
    describe(
        check,
        "Write keys under URL from many writers at the same time. Check that one writer wins each key, that its bytes can be read and listed at once, and that the clocks agree. Then remove the keys. Credentials come from the environment, a profile of ~/.aws, or the machine's instance metadata.",
        "horolog store check s3://bucket/prefix",
        "horolog store check s3://bucket/prefix --endpoint http://127.0.0.1:7070 -o json",
    )
    _add_place(check)
    check.add_argument(
        "--writers", type=positive_number, default=_WRITERS, help=f"writers for each key (default: {_WRITERS})"
    )
    check.add_argument("--keys", type=positive_number, default=_KEYS, help=f"keys to create (default: {_KEYS})")
    add_output(check)
    _configure_contents(actions)


def _configure_contents(actions: Any) -> None:
    ls = actions.add_parser("ls", help="show the brokers, topics and leaders of the cluster in a store")
    text = "Show the brokers of the cluster at URL, and the leaders of its partitions, from the journal in the store."
    describe(ls, text, "horolog store ls s3://bucket/prefix")
    du = actions.add_parser("du", help="show the size of a store by kind of object")
    text = (
        "List all objects at URL, and show the number and the bytes of each kind, and of those that are kept "
        "for restores alone (horolog.store.history.ms). To tell these apart, it reads the journal, and a "
        "small object of each partition and of each write-ahead log. With --month, also show what a month "
        "costs if brokers continue as they do now: their requests, without those of consumers that read old "
        "data, and the storage of all objects."
    )
    describe(du, text, "horolog store du s3://bucket/prefix", "horolog store du s3://bucket/prefix --month")
    du.add_argument("--month", action="store_true", help="forecast the requests and dollars of 30 days")
    for name, dollars, what in PRICES:
        du.add_argument(
            f"--price-{name}",
            type=price,
            default=dollars,
            metavar="USD",
            help=f"dollars for {what} (default: {dollars})",
        )
    policy = actions.add_parser("policy", help="print a bucket policy that forbids overwriting")
    text = "Print a policy for the bucket of URL in Amazon's format. It refuses every write without If-None-Match."
    describe(policy, text, "horolog store policy s3://bucket/prefix")
    verify = actions.add_parser(
        "verify", help="read all objects, and report those that are missing, damaged or left over"
    )
    text = (
        "Read all that brokers have written at URL, and compare it with the journal there: report objects and records that are"
        " missing or damaged, and objects that are left over. It changes nothing, and brokers may be running. It sends one"
        " read request for each object, and one for every 8 MiB of a segment.\n\n"
        "exit codes: 0 nothing is missing or damaged, 3 something is, 1 the store cannot be read"
    )
    describe(verify, text, "horolog store verify s3://bucket/prefix", "horolog store verify s3://bucket/prefix -o json")
    verify.add_argument(
        "--at-once",
        type=positive_number,
        default=_AT_ONCE,
        metavar="N",
        help=f"concurrent requests (default: {_AT_ONCE})",
    )
    for one in (ls, du, policy, verify):
        _add_place(one)
        add_output(one)
    _configure_import(actions)


def _configure_import(actions: Any) -> None:
    bring = actions.add_parser("import", help="import a broker's data folders into an empty prefix")
    text = (
        "Import the data folders of a broker, horolog or Kafka, into the empty prefix at URL. The broker must have stopped, and no"
        " broker may use the prefix. The import keeps topics with their ids and settings, records with their offsets and times,"
        " committed offsets of groups, transactions, users, ACLs and quotas, and does not change the folders. At the end, it"
        " reads and verifies all objects.\n\n"
        "To continue an interrupted import, run the same command again. No broker starts on the prefix until the import is"
        " complete. Give --config and --set as to `horolog serve`.\n\n"
        "exit codes: 0 everything is imported, 3 the verification found a fault, 1 the import failed"
    )
    describe(
        bring,
        text,
        "horolog store import /var/lib/kafka/data s3://bucket/prefix --dry-run",
        "horolog store import /var/lib/kafka/data s3://bucket/prefix",
    )
    bring.add_argument("data_folders", metavar="DIR", nargs="+", help="all folders of log.dirs")
    bring.add_argument("-n", "--dry-run", action="store_true", help="read everything, and write nothing")
    _add_place(bring)
    add_broker_settings(bring)
    add_output(bring)
    _configure_export(actions)


def _configure_export(actions: Any) -> None:
    export = actions.add_parser("export", help="export a prefix as a data folder")
    text = (
        "Write all topics of the cluster at URL into the empty folder DIR, as a single broker keeps them: Kafka's segments with"
        " their indexes, checkpoints, topics, settings and users. Brokers may be running: each partition is written as it was"
        " when it was read. Every block and every batch is verified.\n\n"
        "To continue an interrupted export, run the same command again. The folder belongs to node.id=1 unless --set says"
        " otherwise.\n\n"
        "exit codes: 0 everything is exported, 3 something in the store is missing or damaged, 1 the export failed"
    )
    describe(
        export,
        text,
        "horolog store export s3://bucket/prefix /var/lib/horolog",
        "horolog store export s3://bucket/prefix /var/lib/horolog --dry-run -o json",
    )
    _add_place(export)
    export.add_argument("folder", metavar="DIR", help="an empty folder, created if it does not exist")
    export.add_argument("-n", "--dry-run", action="store_true", help="show how much there is, and write nothing")
    add_broker_settings(export)
    add_output(export)
    _configure_restore(actions)


def _configure_restore(actions: Any) -> None:
    restore = actions.add_parser("restore", help="restore the state at a moment into an empty prefix")
    text = (
        "Restore the cluster at URL, as it was at a moment, into the empty prefix URL2: topics with their ids and settings,"
        " records with their offsets and times, committed offsets of groups, transactions, users, ACLs and quotas. Topics that"
        " were deleted since then are restored too. URL is only read, and its brokers may be running. Start other brokers on"
        " URL2.\n\n"
        "You can go back by horolog.store.history.ms, a day by default; if the brokers have another value, pass it with --set."
        " The command needs a temporary folder for a copy of the records; --work chooses where.\n\n"
        "exit codes: 0 everything is restored, 3 something is missing or damaged, 4 the history does not have that moment or"
        " topic, 1 the restore failed"
    )
    describe(
        restore,
        text,
        "horolog store restore s3://bucket/prefix --at 'yesterday 10:05' --to s3://bucket/then --dry-run",
        "horolog store restore s3://bucket/prefix --at 'yesterday 10:05' --to s3://bucket/then --topics orders,payments",
    )
    _add_place(restore)
    restore.add_argument("--at", metavar="TIME", required=True, help="the moment")
    restore.add_argument(
        "--to", metavar="URL2", required=True, help="an empty prefix of a store with the same endpoint"
    )
    restore.add_argument(
        "--topics", metavar="NAMES", help="only these topics, separated by commas, and internal topics"
    )
    restore.add_argument("--work", metavar="DIR", help="the parent of the temporary folder")
    restore.add_argument("-n", "--dry-run", action="store_true", help="show how much there is, and write nothing")
    add_broker_settings(restore)
    add_output(restore)
    add_zone(restore)


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", help="s3://BUCKET/PREFIX, gs://, az:// or file:///FOLDER")
    add_endpoint(parser)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.client.cli.adopt import broker_settings
    from horolog.client.cli.storing import exporting, importing, verify

    if arguments.action == "restore":
        return _restore(arguments, console)
    store = _opened(arguments.url, arguments, console)
    if arguments.action == "check":
        return _check(store, arguments, console)
    if arguments.action == "policy":
        return _print_policy(store, console)
    if arguments.action == "verify":
        return verify.run(store, arguments.at_once, console)
    if arguments.action == "import":
        return importing.run(store, arguments, broker_settings(arguments, arguments.data_folders[0], console), console)
    if arguments.action == "export":
        return exporting.run(store, arguments, broker_settings(arguments, arguments.folder, console), console)
    return _show_contents(store, arguments, console)


def _opened(url: str, arguments: argparse.Namespace, console: Console) -> BucketStore:
    from horolog.stores import opening
    from horolog.stores.faults import StoreError

    try:
        return opening.open_store(url, arguments.endpoint, console.environ)
    except StoreError as error:
        raise UsageError(str(error)) from None


def _restore(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.client.cli.adopt import broker_settings
    from horolog.client.cli.storing import restoring

    at = console.time(arguments.at, "--at")
    console.note(f"--at is {at.understood}")
    live, target = (_opened(url, arguments, console) for url in (arguments.url, arguments.to))
    settings = broker_settings(arguments, arguments.work or ".", console)
    return restoring.run((live, target), at.ms, arguments, settings, console)


def _print_policy(store: BucketStore, console: Console) -> ExitCode:
    if store.place.root.partition("://")[0] != "s3":
        raise UsageError(f"{store.place.url}: the policy is in Amazon's format, for s3://BUCKET/PREFIX")
    console.json(policy_of(store.place.bucket, store.place.folder))
    return ExitCode.OK


def policy_of(bucket: str, folder: str) -> dict[str, Any]:
    """A bucket policy in Amazon's form."""
    refused = {
        "Sid": "HorologCreatesOnly",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:PutObject",
        "Resource": f"arn:aws:s3:::{bucket}/{folder}/*" if folder else f"arn:aws:s3:::{bucket}/*",
        "Condition": {"Null": {"s3:if-none-match": "true"}},
    }
    return {"Version": "2012-10-17", "Statement": [refused]}


def _show_contents(store: BucketStore, arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.broker.bucket.sealed_lines import FormatError
    from horolog.stores.faults import StoreError

    try:
        return _amounts(store, arguments, console) if arguments.action == "du" else _cluster(store, console)
    except (StoreError, FormatError) as error:
        console.error(str(error))
        return ExitCode.FAILED


def _amounts(store: BucketStore, arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.broker.bucket.prefix_contents import Amount, amounts, found_in
    from horolog.broker.bucket.sealed_lines import FormatError
    from horolog.broker.prefix.history_objects import history_objects
    from horolog.broker.prefix.month_forecast import MonthPrices, forecast
    from horolog.broker.prefix.prefix_reader import PrefixReader

    objects = list(store.list())
    try:
        cluster = found_in(store)
    except FormatError as error:
        if arguments.month:
            raise
        console.warn(f"the kinds include objects kept for restores, because the journal cannot be read: {error}")
        cluster = None
    with PrefixReader(store, _AT_ONCE) as reader:
        history = [] if cluster is None else history_objects(reader, cluster.state, objects)
    found = amounts(objects, history)
    month = None
    if arguments.month:
        prices = MonthPrices(arguments.price_writes, arguments.price_reads, arguments.price_storage)
        brokers = 0 if cluster is None else len(cluster.state.members)
        month = forecast(objects, history, brokers, console.now_ms(), prices)
    if console.as_json:
        contents = [one._asdict() for one in found]
        console.json(contents if month is None else {"contents": contents, "month": month._asdict()})
        return ExitCode.OK
    total = Amount("all", sum(one.objects for one in found), sum(one.size_bytes for one in found))
    console.table(("what", "objects", "bytes"), [*found, total])
    if month is not None:
        _show_month(month, console)
    return ExitCode.OK


def _show_month(month: MonthForecast, console: Console) -> None:
    rows = [
        ("requests that write", month.writes, None),
        ("requests that read the journal", month.reads, None),
        ("all requests", month.writes + month.reads, f"{month.requests_dollars:.2f}"),
        ("storage of the bytes above", None, f"{month.storage_dollars:.2f}"),
        ("kept for restores, included", None, f"{month.history_dollars:.2f}"),
    ]
    console.table(("in 30 days", "requests", "dollars"), rows)


def _cluster(store: BucketStore, console: Console) -> ExitCode:
    from horolog.broker.bucket.prefix_contents import found_in

    found = found_in(store)
    if found is None:
        console.error(f"{store.place.url}: no broker has used this URL")
        return ExitCode.FAILED
    state = found.state
    brokers = [
        (
            node,
            one.host,
            ",".join(f"{at.name}://{at.host}:{at.port}" for at in one.listeners),
            one.rack,
            len(state.led_by(node)),
        )
        for node, one in sorted(state.members.items())
    ]
    partitions = [
        (name, index, state.leader(topic.id, index), state.epoch(topic.id, index))
        for name, topic in sorted(state.topics.items())
        for index in range(topic.partition_count)
    ]
    of_brokers, of_partitions = (
        ("broker", "host", "listeners", "rack", "leads"),
        ("topic", "partition", "leader", "epoch"),
    )
    if console.as_json:
        console.json(
            {
                "cluster_id": found.cluster_id,
                "journal_entries": state.number,
                "brokers": [dict(zip(of_brokers, one, strict=True)) for one in brokers],
                "partitions": [dict(zip(of_partitions, one, strict=True)) for one in partitions],
            }
        )
        return ExitCode.OK
    console.print(f"cluster {found.cluster_id}, entry {state.number} of its journal")
    console.table(of_brokers, brokers)
    shown = [(name, index, leader if leader >= 0 else None, epoch) for name, index, leader, epoch in partitions]
    console.table(of_partitions, shown)
    return ExitCode.OK


def _check(store: BucketStore, arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.base.clock import SystemClock
    from horolog.stores import addresses, self_test

    if arguments.writers > _MAX_WRITERS:
        raise UsageError(f"--writers is at most {_MAX_WRITERS}")
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
