"""`horolog pipeline replay`: sends the records of an archive or of segment files to a topic, with their original times."""

import argparse
import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from horolog.broker.log.manager import partition_of
from horolog.broker.log.segments import LOG_SUFFIX
from horolog.commands.arguments import positive_number
from horolog.commands.console import Console
from horolog.commands.errors import CommandError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.pipeline.base.positions import parse_moment
from horolog.pipeline.jobs.at_table import known_as, told
from horolog.pipeline.jobs.common import (
    Summary,
    add_catalogue,
    add_common,
    add_range,
    brokers_of,
    catalogue_table,
    one_topic,
    require_topics,
    show_summary,
    spark_of,
    times_of,
)
from horolog.pipeline.jobs.lanes import Lanes, Noted, before_of, noted_of
from horolog.pipeline.jobs.loading import (
    Gap,
    Load,
    Settings,
    Share,
    add_sending,
    carry_out,
    not_sent,
    nothing_there,
    refuse_losses,
    settings_of,
)
from horolog.pipeline.jobs.topic_rules import Counts, TopicRules, outlook_of, rules_at
from horolog.pipeline.options.brokers import Where
from horolog.pipeline.stores.object_stores import Place, is_url
from horolog.pipeline.stores.store import OWN, files_of, place_of
from horolog.pipeline.tables.layout import DATE
from horolog.pipeline.tables.table import TableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from horolog.pipeline.jobs.replayed import ReplayedTopic
    from horolog.pipeline.tables.catalogues import CatalogueTable

Source = Union[str, "CatalogueTable"]

_DAY_MS = 86_400_000


def kind_of(folder: str | Place) -> str:
    """The content of a folder: a table of some kind, or "segments"; TableError if it is neither."""
    if isinstance(folder, Place):
        return _kind_of_place(folder)
    return _kind_of_folder(Path(folder.removeprefix("file://")))


def _kind_of_place(place: Place) -> str:
    files = files_of(place)
    folders = files.folders("")
    if "_delta_log" in folders:
        return "delta"
    if OWN in folders or any(name.startswith(f"{DATE}=") for name in folders):
        return "parquet"
    partitions = (name for name in folders if partition_of(name) is not None)
    if any(name.endswith(LOG_SUFFIX) for folder in ("", *partitions) for name in files.names(folder)):
        return "segments"
    raise TableError(f"{place.url} holds neither an archive nor segment files")


def _kind_of_folder(folder: Path) -> str:
    if not folder.is_dir():
        raise TableError(f"{folder} is not a folder")
    if (folder / "_delta_log").is_dir():
        return "delta"
    if (folder / "catalog.db").is_file():
        return "iceberg"
    if (folder / OWN).is_dir() or any(folder.glob(f"{DATE}=*/**/*.parquet")):
        return "parquet"
    if any(folder.glob("*.log")) or any(folder.glob("*-*/*.log")):
        return "segments"
    raise TableError(f"{folder} holds neither an archive nor segment files")


def _opened(spark: "SparkSession", source: Source) -> "tuple[str | Place | CatalogueTable, str]":
    """Where the source is, and what it is."""
    if not isinstance(source, str):
        return source, "iceberg"
    place = place_of(source, spark)
    kind = kind_of(place)
    is_plain = kind == "parquet" and OWN not in files_of(place).folders("")
    return place, "plain" if is_plain else kind


class Range(NamedTuple):
    """The times that are asked for."""

    since_ms: int | None = None
    until_ms: int | None = None


def replay(
    spark: "SparkSession",
    bootstrap: Where,
    source: Source,
    topic: str,
    *,
    from_topic: str | None = None,
    since: str | int | None = None,
    until: str | int | None = None,
    settings: Settings | None = None,
    now_ms: int | None = None,
) -> Summary:
    """Send the records of an archive or a folder of segment files to the topic; resumes where a run for the same range ended.

    Times are milliseconds or the command line's, in UTC; relative ones count from `now_ms`, by default now. Raises `NotSent` if
    something would be lost.
    """
    moment_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    asked = Range(
        *(
            None if each is None else parse_moment(name, str(each), moment_ms).value
            for name, each in (("since", since), ("until", until))
        )
    )
    chosen = settings or Settings()
    rules = asyncio.run(rules_at(bootstrap, topic))
    with prepare(spark, bootstrap, source, topic, rules, from_topic=from_topic, asked=asked, settings=chosen) as made:
        if not chosen.force:
            refuse_losses(made.outlook)
        return made.send(chosen)


def prepare(
    spark: "SparkSession",
    bootstrap: Where,
    source: Source,
    topic: str,
    rules: TopicRules,
    *,
    from_topic: str | None,
    asked: Range,
    settings: Settings,
    dry_run: bool = False,
) -> Load:
    """Look at what there is, at what was sent before, and at how the topic would treat the rest."""
    from horolog.pipeline.jobs.merging import Times
    from horolog.pipeline.jobs.replayed import WantedRows, topics_in

    made = Load("replay", topic, known_as(source), [], outlook_of(Counts(), rules))
    try:
        found = topics_in(WantedRows(spark, *_opened(spark, source), from_topic, Times(*asked)), made.held)
        names = sorted({one.topic for one in found})
        if not names:
            raise nothing_there(made.source)
        if len(names) > 1:
            raise UsageError(f"{source} holds {', '.join(names)}", "choose one with --from-topic")
        counts = Counts()
        for one in found:
            if not settings.force and one.is_in_files_of(rules.topic_id):
                raise CommandError(
                    f"{made.source} has the files of topic {topic} itself: each record would be there twice",
                    "name another --topic, or use --force",
                )
            lanes = Lanes.of(
                "replay",
                (known_as(source), one.topic, one.topic_id, rules.topic_id, *asked),
                bootstrap,
                topic,
                rules.partitions,
                exactly_once=settings.exactly_once,
                note_records=settings.step_records,
            )
            before = None if settings.again else asyncio.run(before_of(lanes))
            settled: dict[str, Any] = {"since": asked[0], "until": asked[1], "partitions": rules.partitions}
            if before is not None:
                settled = before.settled
                lanes = replace(lanes, partitions=settled["partitions"])
            lanes = replace(lanes, reach=one.reach)
            numbers = range(one.partitions)
            have = {} if before is None else asyncio.run(noted_of(lanes, range(max(one.partitions, one.known))))
            due, taken = one.due(have)
            lanes = replace(lanes, due=due)
            gaps = [*_gaps(one, have), *taken]
            if not settings.force:
                _refuse(gaps)
            made.gaps += gaps
            rows = one.unsent({lane: each.position for lane, each in have.items()}, rules.partitions)
            counts = counts.plus(rows.counts(rules, time.time_ns() // 1_000_000, exactly=dry_run))
            made.shares.append(Share(rows, lanes, numbers, settled, sum(each.sent for each in have.values())))
        made.outlook = outlook_of(counts, rules)
        if dry_run and not counts.records and not made.sent_before:
            raise nothing_there(made.source)
    except BaseException:
        made.held.close()
        raise
    return made


def _gaps(one: "ReplayedTopic", have: Mapping[int, Noted]) -> Iterator[Gap]:
    """What an earlier run did not reach may be gone by now."""
    for lane, each in have.items():
        first, upto = one.firsts.get(lane, 0), each.begun.upto
        if first > each.position:
            gone = (first if upto is None else min(first, upto)) - each.position
            yield Gap(f"{one.topic}-{lane}", each.position, first, max(0, gone))


def _refuse(gaps: Iterable[Gap]) -> None:
    for gap in gaps:
        if gap.gone:
            raise CommandError(str(gap), "use --force to continue with the rest")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from", dest="source", metavar="DIR|URL", help="an archive, or a folder of segment files; or give --catalog"
    )
    add_catalogue(parser)
    parser.add_argument("--from-topic", metavar="TOPIC", help="the topic in the folder (default: the only one)")
    parser.add_argument(
        "--rate", type=positive_number, metavar="N", help="maximum records per second (default: unlimited)"
    )
    add_sending(parser)
    add_range(parser)
    add_common(parser)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    topic = one_topic(arguments)
    named = catalogue_table(arguments)
    if (named is None) == (arguments.source is None):
        raise UsageError("give either --from, or --catalog and --table")
    source: Source = named or arguments.source
    asked = Range(*times_of(arguments, console))
    tell_of_range(arguments, asked, console)
    asyncio.run(require_topics(arguments, [topic]))
    with told(arguments, known_as(source)):
        rules = asyncio.run(rules_at(brokers_of(arguments), topic))
        if isinstance(source, str) and not is_url(source):
            kind_of(source)
        with (
            spark_of(arguments) as spark,
            prepare(
                spark,
                brokers_of(arguments),
                source,
                topic,
                rules,
                from_topic=arguments.from_topic,
                asked=asked,
                settings=settings_of(arguments),
                dry_run=arguments.dry_run,
            ) as made,
        ):
            summary = carry_out(made, arguments, console)
            if summary is None:
                return not_sent("replay", made.outlook, console, dry_run=arguments.dry_run)
    summary.details["partitions_kept"] = all(len(share.numbers) <= rules.partitions for share in made.shares)
    summary.details |= {"since_ms": asked.since_ms, "until_ms": asked.until_ms}
    show_summary(summary, console)
    return ExitCode.OK


def tell_of_range(arguments: argparse.Namespace, asked: Range, console: Console) -> None:
    """Relative times that mean another range tomorrow do not resume this run: print those that do."""
    from horolog.client.values.time_ranges import parse_range

    tomorrow = parse_range(arguments.since, arguments.until, now_ms=console.now_ms() + _DAY_MS, zone=console.zone)
    if (tomorrow.since_ms, tomorrow.until_ms) != asked:
        said = " ".join(
            f"--{name} @{ms}ms" for name, ms in (("since", asked.since_ms), ("until", asked.until_ms)) if ms is not None
        )
        console.note(f"progress is kept for this range: to resume after a kill, use {said}")
