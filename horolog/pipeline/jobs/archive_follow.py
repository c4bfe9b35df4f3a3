"""`horolog pipeline archive --follow`: the job keeps running, in rounds. Each adds new records in the steps and commits of a single run.

A round holds the table's lock only while it writes: between rounds another job may expire, compact or add, and this one continues from
the commit that is then the newest. So no job is starved, and a job that is killed while it waits leaves no lock. The round
plans before it takes the lock; a round without new records writes nothing, not even a lock. Only the first round may commit without rows:
where a topic begins that the table lacks, if `--since` says that, so that a restart with the same words goes on from there.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from horolog.base.readable import counted
from horolog.client.values.errors import KafkaError
from horolog.commands.arguments import duration, positive_number
from horolog.commands.console import Console
from horolog.commands.errors import UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.pipeline.base.positions import OptionError
from horolog.pipeline.jobs.common import JobProgress, Summary, progress_of, show_summary
from horolog.pipeline.jobs.ending import Ending, ending_when_told
from horolog.pipeline.jobs.passing import passing
from horolog.pipeline.tables.lock import LockHeld
from horolog.pipeline.tables.table import CommitLost
from horolog.stores.faults import StoreError

if TYPE_CHECKING:
    from horolog.client.values.types import TopicPartition
    from horolog.client.wire.client import Client
    from horolog.pipeline.jobs.archive import Job, RowsToAdd

EVERY = "1m"
MAX_DELAY = "15m"
"""As Spark's own `maxTriggerDelay`."""
COMPACT_COMMITS = 64
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
_DAY_SECONDS = 86_400
_LOCK_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Pace:
    """When a round begins, and how many new records make a commit."""

    every_ms: int = 60_000
    min_records: int = 1
    min_bytes: int = 1
    """Of Parquet, estimated from earlier rounds."""
    max_delay_ms: int = 900_000
    """Fewer records wait no longer than this."""
    compact: bool = False
    wait_ms: int = 0
    """For the lock of another job, at the start; later rounds wait for it anyway."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did, and how far the table is behind after it."""

    number: int
    records: int
    size_bytes: int
    commits: int
    files: int
    seconds: float
    lag_records: int
    lag_seconds: float | None
    """Now minus the time of the first record that the table lacks; None if that record has no time."""

    def as_json(self) -> dict[str, Any]:
        return {
            "job": "archive",
            "round": self.number,
            "records": self.records,
            "bytes": self.size_bytes,
            "commits": self.commits,
            "files": self.files,
            "seconds": round(self.seconds, 3),
            "lag_records": self.lag_records,
            "lag_seconds": self.lag_seconds,
        }

    def __str__(self) -> str:
        behind = counted(self.lag_records, "record")
        if self.lag_seconds is not None:
            behind += f", {self.lag_seconds:,.1f} s"
        added = f"{counted(self.records, 'record')}, {self.size_bytes / 1e6:,.1f} MB in {self.seconds:.1f} s"
        return f"round {self.number}: {added}, {counted(self.commits, 'commit')}; behind: {behind}"


class Following:
    """A job that runs until it is asked to end."""

    def __init__(
        self,
        job: "Job",
        pace: Pace,
        ending: Ending,
        tell: Callable[[str], None],
        progress_of: Callable[[int], JobProgress | None] = lambda _: None,
    ) -> None:
        self._job = job
        self._pace = pace
        self._ending = ending
        self._tell = tell
        self._progress_of = progress_of
        self._began = False
        self._trouble = ""
        self._pause = FIRST_PAUSE_SECONDS
        self._waiting_since: float | None = None
        self._compacted_on = _today()
        self._commits_since_compaction = 0
        self.summary = Summary("archive", details={"rounds": 0, "commits": 0, "files": 0})

    def rounds(self) -> Iterator[Round]:
        """Round after round; transient faults are retried with growing pauses, and reported once."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        faults = (KafkaError, PySparkException, Py4JError, OSError, StoreError, OptionError, LockHeld, CommitLost)
        began, before = time.monotonic(), self._counts()
        lock_by = began + self._pace.wait_ms / 1000
        while not self._is_over():
            try:
                lag_records, lag_seconds = self._once()
            except faults as error:
                if self._is_over():  # by a signal that Spark's own process has got, too
                    self._tell("Spark ended before a step was committed; nothing of that step was added")
                    return
                is_early = not self._began or (isinstance(error, LockHeld) and not self.summary.details["rounds"])
                self._wait_out(error, lock_by if is_early else None)
                continue
            self._recovered()
            self.summary.details["rounds"] += 1
            now, seen = time.monotonic(), self._counts()
            records, size_bytes, commits, files = (after - earlier for after, earlier in zip(seen, before, strict=True))
            self.summary.seconds += now - began
            number = self.summary.details["rounds"]
            yield Round(number, records, size_bytes, commits, files, now - began, lag_records, lag_seconds)
            before = seen
            self._ending.pause(self._pace.every_ms / 1000 - (time.monotonic() - began))
            began = time.monotonic()

    def _is_over(self) -> bool:
        return self._ending.wished

    def _counts(self) -> tuple[int, int, int, int]:
        details = self.summary.details
        return self.summary.records, self.summary.bytes, details["commits"], details["files"]

    def _once(self) -> tuple[int, float | None]:
        """One round; how far the table is behind at its end."""
        job = self._job
        wanted = job.plan()
        if not self._began:
            job.tell_first(wanted, self._tell)
        self._began = True
        ends = {place: start for place, (start, _) in wanted.ranges.items()}
        is_worth_it = self._is_worth_it(wanted.records)
        if not (is_worth_it or wanted.has_to_be_noted):
            return self._behind(ends) if wanted.records else (0, 0.0)
        with job.writing(0, self._tell):
            wanted = job.plan()  # another may have written before the lock was ours
            if not is_worth_it:
                wanted = wanted.beginning
            ends = {place: start for place, (start, _) in wanted.ranges.items()}
            self._add(wanted, ends)
            self._compact_if_due()
        if is_worth_it:
            self._waiting_since = None
        return self._behind(ends)

    def _add(self, wanted: "RowsToAdd", ends: "dict[TopicPartition, int]") -> None:
        before = self.summary.details["commits"]
        progress = self._progress_of(wanted.records)
        ends |= self._job.add(wanted, self.summary, progress, self._is_over)
        self._commits_since_compaction += self.summary.details["commits"] - before
        if progress is not None:
            progress.clear()

    def _is_worth_it(self, records: int) -> bool:
        """Enough records for a commit, or some that have waited long enough."""
        if not records:
            self._waiting_since = None
            return False
        now = time.monotonic()
        if self._waiting_since is None:
            self._waiting_since = now
        enough = records >= self._pace.min_records
        if self.summary.records:
            enough = enough and records * self.summary.bytes / self.summary.records >= self._pace.min_bytes
        return enough or (now - self._waiting_since) * 1000 >= self._pace.max_delay_ms

    def _compact_if_due(self) -> None:
        """Once a day's partition is over, and after so many commits that readers would open many files."""
        if not (self._pace.compact and self._commits_since_compaction):
            return
        if self._commits_since_compaction < COMPACT_COMMITS and _today() == self._compacted_on:
            return
        details = self.summary.details
        details["files_compacted_away"] = details.get("files_compacted_away", 0) + self._job.table.compact()
        self._commits_since_compaction, self._compacted_on = 0, _today()

    def _behind(self, ends: "dict[TopicPartition, int]") -> tuple[int, float | None]:
        from horolog.client.moments.lagging import next_timestamps
        from horolog.client.values.types import LATEST
        from horolog.client.wire.offsets import ends as ends_of

        async def ask(client: "Client") -> tuple[int, float | None]:
            last = await ends_of(client, dict.fromkeys(ends, LATEST), 1)
            records = sum(max(0, last[place] - offset) for place, offset in ends.items())
            found = await next_timestamps(client, ends, last)
            times = [time_ms for time_ms in found.values() if time_ms is not None]
            if not times:
                return records, 0.0 if not records else None
            return records, max(0, client.clock.wall_ms() - min(times)) / 1000

        return self._job.ask(ask)

    # -- transient faults

    def _wait_out(self, error: Exception, give_up_at: float | None) -> None:
        """Pause, or raise a fault that is not transient. At the start, as in a single run, it waits only for a lock."""
        if isinstance(error, LockHeld | CommitLost):
            if give_up_at is not None and time.monotonic() >= give_up_at:
                raise error
            reason: str | None = str(error)
        else:
            reason = passing(error) if give_up_at is None else None
        if reason is None:
            raise error
        if give_up_at is not None:
            self._ending.pause(_LOCK_POLL_SECONDS)
            return
        if not self._trouble:
            self._tell(f"{reason}; retrying")
        self._trouble = reason
        self._ending.pause(self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)

    def _recovered(self) -> None:
        if self._trouble:
            self._tell("the fault has passed; the job continues")
        self._trouble, self._pause = "", FIRST_PAUSE_SECONDS


def _today() -> int:
    """The date in UTC, as partitions have it."""
    return int(time.time() // _DAY_SECONDS)


# -- the command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `archive` takes for that."""
    parser.add_argument(
        "-f", "--follow", action="store_true", help="continue with new records, until Ctrl-C or SIGTERM"
    )
    parser.add_argument(
        "--every",
        type=_interval,
        metavar="DURATION",
        help=f"with --follow: time from the start of one round to the next; 0 is a single run (default: {EVERY})",
    )
    parser.add_argument(
        "--min-records",
        type=positive_number,
        metavar="N",
        help="with --follow: a round waits for this many new records (default: 1)",
    )
    parser.add_argument(
        "--min-bytes",
        type=positive_number,
        metavar="N",
        help="with --follow: a round waits for this many bytes of Parquet, estimated from earlier rounds (default: 1)",
    )
    parser.add_argument(
        "--max-delay",
        type=duration,
        metavar="DURATION",
        help=f"with --follow: the longest time that a round waits for more records (default: {MAX_DELAY})",
    )


def _interval(text: str) -> int:
    return 0 if text == "0" else duration(text)


def pace_of(arguments: argparse.Namespace, until_ms: int | None) -> Pace | None:
    """How a job follows; None for a single run."""
    given = {"--every": arguments.every, "--min-records": arguments.min_records}
    given |= {"--min-bytes": arguments.min_bytes, "--max-delay": arguments.max_delay}
    if not arguments.follow:
        for name, value in given.items():
            if value is not None:
                raise UsageError(f"{name} is for --follow")
        return None
    if arguments.every == 0:
        return None
    if until_ms is not None:
        raise UsageError("use either --follow or --until")
    return Pace(
        every_ms=arguments.every or duration(EVERY),
        min_records=arguments.min_records or 1,
        min_bytes=arguments.min_bytes or 1,
        max_delay_ms=duration(MAX_DELAY) if arguments.max_delay is None else arguments.max_delay,
        compact=arguments.compact,
        wait_ms=arguments.wait,
    )


def run(job: "Job", pace: Pace, arguments: argparse.Namespace, console: Console) -> ExitCode:
    """A line for each round, and the summary when the job was asked to end."""
    with ending_when_told() as ending:

        def progress(records: int) -> JobProgress:
            return progress_of(arguments, console, records)

        following = Following(job, pace, ending, console.note, progress)
        for each in following.rounds():
            if console.as_json:
                console.json_line(each.as_json())
                console.out.flush()
            else:
                console.note(str(each))
        console.note("stopped; the table has everything up to its last commit")
        show_summary(following.summary, console)
    return ExitCode.OK
