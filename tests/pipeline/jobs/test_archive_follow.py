"""An archive that goes on: rounds that add the news, wait for enough, outlast faults that pass, and end when they are told to."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from horolog.client.values.errors import KafkaError
from horolog.client.values.types import TopicPartition
from horolog.commands.console import Console
from horolog.commands.errors import UsageError
from horolog.pipeline.jobs import archive_follow
from horolog.pipeline.jobs.archive import Have, Job, RowsToAdd, plan
from horolog.pipeline.jobs.archive_follow import Following, Pace
from horolog.pipeline.jobs.common import Summary
from horolog.pipeline.jobs.ending import Ending
from horolog.pipeline.tables.lock import LockHeld, writing
from horolog.pipeline.tables.table import FORMATS, CommitLost, open_table
from horolog.protocol.errors import ErrorCode
from tests.pipeline.jobs.test_archive import BASE_MS, DAY_MS, FakeTable, archived, consumed, days_of_records
from tests.pipeline.jobs.test_expire import kept
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique
from tests.support.style import PROJECT

PLACE = TopicPartition("t", 0)


class FakeJob:
    """A topic that grows by `news` at each look, and a table that has `have` of it; `faults` are raised by looks, in order."""

    def __init__(self, news=(), faults=(), lock_faults=()):
        self.end = self.have = 0
        self.news, self.faults, self.lock_faults = list(news), list(faults), list(lock_faults)
        self.commits, self.compactions = [], 0
        self.table = SimpleNamespace(compact=self._compact)

    def _compact(self):
        self.compactions += 1
        return 2

    def plan(self):
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault
        return RowsToAdd(Have({PLACE: self.have}, {}), {PLACE: (self.have, self.end)})

    def tell_first(self, wanted, tell): ...

    def writing(self, wait_ms, tell):
        fault = self.lock_faults.pop(0) if self.lock_faults else None
        if fault is not None:
            raise fault
        return writing_nothing()

    def add(self, wanted, summary, progress, is_over):
        start, end = wanted.ranges[PLACE]
        if end > start and not is_over():
            self.have = end
            self.commits.append(end - start)
            summary.records += end - start
            summary.bytes += 10 * (end - start)
            summary.details["commits"] += 1
            summary.details["files"] += 1
        return {PLACE: self.have}

    def ask(self, question):
        return self.end - self.have, 0.0 if self.end == self.have else 1.5


class writing_nothing:  # noqa: N801 - a context that does nothing
    def __enter__(self): ...
    def __exit__(self, *_): ...


class Clock(Ending):
    """Pauses cost nothing: the topic grows in them, and after the last of its news the end is wished for."""

    def __init__(self, job):
        super().__init__(lambda _: None)
        self.job, self.paused = job, []

    def pause(self, seconds):
        self.paused.append(seconds)
        if self.job.news:
            self.job.end += self.job.news.pop(0)
        else:
            self.wished = True


def followed(job, **pace):
    ending, told = Clock(job), []
    following = Following(job, Pace(**pace), ending, told.append)
    return list(following.rounds()), told, ending, following


def test_a_round_without_news_makes_no_commit_and_takes_no_lock():
    job = FakeJob([5, 0, 0, 7, 0])
    job.lock_faults = [None, None, AssertionError("a third lock")]
    rounds, told, _, following = followed(job, every_ms=1000)
    assert (job.commits, told) == ([5, 7], [])
    assert [each.records for each in rounds] == [0, 5, 0, 0, 7, 0]
    assert [each.commits for each in rounds] == [0, 1, 0, 0, 1, 0]
    assert {each.lag_records for each in rounds} == {0}
    assert (following.summary.records, following.summary.details["rounds"]) == (12, 6)
    assert rounds[1].as_json()["lag_seconds"] == 0.0
    assert str(rounds[1]).startswith("round 2: 5 records, 0.0 MB in 0.0 s, 1 commit; behind: 0 records, 0.0 s")


def test_few_records_wait_for_more_but_not_for_ever(monkeypatch):
    job = FakeJob([3, 3, 3, 3, 3, 3, 0])
    rounds, *_ = followed(job, every_ms=1000, min_records=9)
    assert job.commits == [9, 9]
    assert [each.lag_records for each in rounds] == [0, 3, 6, 0, 3, 6, 0, 0]
    job = FakeJob([9, 3, 3, 3, 0])
    followed(job, every_ms=1000, min_bytes=90)
    assert job.commits == [9, 9], "nine records were 90 bytes before"
    job = FakeJob([3, 0, 0])
    followed(job, every_ms=1000, min_records=9, max_delay_ms=0)
    assert job.commits == [3]
    now = [0.0]
    monkeypatch.setattr(archive_follow.time, "monotonic", lambda: now.append(now[-1] + 100) or now[-1])
    job = FakeJob([3, 0, 0, 0, 0, 0])
    followed(job, every_ms=1000, min_records=9, max_delay_ms=500_000)
    assert job.commits == [3]


def test_what_passes_is_told_once_and_waited_for_with_growing_pauses_up_to_a_bound():
    gone = KafkaError(ErrorCode.NETWORK_EXCEPTION, "gone")
    job = FakeJob([5] + [0] * 10, faults=[None, *[gone] * 8, None, None, gone, None])
    _, told, ending, _ = followed(job, every_ms=1000)
    assert ending.paused[1:9] == [1, 2, 4, 8, 16, 30, 30, 30]
    assert job.commits == [5]
    assert told == ["NETWORK_EXCEPTION: gone; retrying", "the fault has passed; the job continues"] * 2


def test_spark_may_be_ended_together_with_the_job():
    """A signal to all processes of a service: the one that waits for Spark has it as a wish, and Spark is gone."""
    job = FakeJob([0, 0])
    job.end = 5
    ending, told = Clock(job), []

    def gone(*_):
        ending.wished = True
        raise ConnectionRefusedError

    job.add = gone
    following = Following(job, Pace(), ending, told.append)
    assert list(following.rounds()) == []
    assert told == ["Spark ended before a step was committed; nothing of that step was added"]


def test_what_stays_ends_the_job_and_so_does_a_broker_that_was_never_there():
    for faults in (
        [KafkaError(ErrorCode.NETWORK_EXCEPTION, "gone")],
        [None, KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED)],
    ):
        with pytest.raises(KafkaError):
            followed(FakeJob([0, 0, 0], faults=faults), every_ms=1000)


def test_another_job_at_the_table_is_waited_for():
    held = LockHeld("bob is writing")
    with pytest.raises(LockHeld):
        followed(_with_news(held), every_ms=1000)
    job = _with_news(held, held)
    _, told, ending, _ = followed(job, every_ms=1000, wait_ms=60_000)
    assert (job.commits, told, ending.paused[:2]) == ([5], [], [0.5, 0.5])
    job = FakeJob([0, 5, 0, 0, 0], lock_faults=[held, CommitLost("overtaken")])
    _, told, *_ = followed(job, every_ms=1000)
    assert job.commits == [5]
    assert told == ["bob is writing; retrying", "the fault has passed; the job continues"]


def _with_news(*lock_faults):
    job = FakeJob([0] * 6, lock_faults=lock_faults)
    job.end = 5
    return job


def test_files_are_put_together_after_so_many_commits_and_when_a_day_is_over(monkeypatch):
    monkeypatch.setattr(archive_follow, "COMPACT_COMMITS", 3)
    job = FakeJob([1] * 7)
    *_, following = followed(job, every_ms=1000, compact=True)
    assert (job.compactions, following.summary.details["files_compacted_away"]) == (2, 4)
    job = FakeJob([1] * 7)
    followed(job, every_ms=1000)
    assert job.compactions == 0
    monkeypatch.setattr(archive_follow, "COMPACT_COMMITS", 100)
    days = iter([0, 0, 0, 1, 1, *[1] * 99])
    monkeypatch.setattr(archive_follow, "_today", lambda: next(days))
    job = FakeJob([1] * 7)
    followed(job, every_ms=1000, compact=True)
    assert job.compactions == 1


class PlannedJob(Job):
    """At a broker, without Spark: the table is one that counts its rows by offsets."""

    def plan(self):
        have = Have(self.table.offsets, {})
        return self.ask(lambda client: plan(client, self.topics, have, self.since_ms, None))

    def writing(self, wait_ms, tell):
        return writing_nothing()


@pytest.fixture
def follow_since(session_broker, monkeypatch):
    """`follow_since(table, topics, since_ms)`: a job that is started, does one round and is ended; what it has added, and its commits."""
    monkeypatch.setattr(sys.modules[Job.__module__], "read_step", lambda _, __, step, ___: step)

    def started(table, topics, since_ms, **pace):
        job = PlannedJob(None, session_broker.address, topics, table, since_ms)
        before = len(table.ranges)
        one = next(Following(job, Pace(**pace), Ending(), lambda _: None).rounds())
        return sorted(table.ranges[before:]), one.commits

    return started


def test_a_quiet_topic_goes_on_from_where_the_first_start_began(follow_since, produce):
    """`--since 5m` is another time at each start: nothing but the first commit says where the topic began."""
    topic, table = unique("quiet"), FakeTable()
    produce(topic, [{"value": "old", "timestamp": BASE_MS}])
    assert follow_since(table, [topic], BASE_MS + DAY_MS) == ([], 1)
    assert follow_since(table, [topic], BASE_MS + 2 * DAY_MS) == ([], 0)
    produce(topic, [{"value": "between", "timestamp": BASE_MS + 2 * DAY_MS}])
    assert follow_since(table, [topic], BASE_MS + 3 * DAY_MS) == ([(0, 1, 2)], 1)


def test_few_records_that_wait_do_not_let_the_beginning_wait(follow_since, produce):
    topic, table = unique("few"), FakeTable()
    produce(topic, [{"value": "v", "timestamp": BASE_MS + n * DAY_MS} for n in range(3)])
    assert follow_since(table, [topic], BASE_MS + DAY_MS, min_records=9) == ([], 1)
    assert follow_since(table, [topic], BASE_MS + 5 * DAY_MS, min_records=2) == ([(0, 1, 3)], 1)


def test_a_quiet_topic_beside_one_of_the_table_is_noted_too(follow_since, produce):
    known, quiet, table = unique("known"), unique("quiet"), FakeTable()
    produce(known, [{"value": "v", "timestamp": BASE_MS}])
    produce(quiet, [{"value": "old", "timestamp": BASE_MS}])
    assert follow_since(table, [known], BASE_MS) == ([(0, 0, 1)], 1)
    assert follow_since(table, [known, quiet], BASE_MS + DAY_MS) == ([], 1)
    produce(quiet, [{"value": "between", "timestamp": BASE_MS + DAY_MS}])
    assert follow_since(table, [known, quiet], BASE_MS + 2 * DAY_MS) == ([(0, 1, 2)], 1)


# -- with Spark and a broker


@pytest.mark.parametrize("kind", FORMATS)
def test_what_comes_is_added_in_rounds_new_partitions_too(spark, session_broker, run, produce, tmp_path, kind):
    topic = unique("followed")
    produce(topic, list(days_of_records(20)), partitions=2)
    table = open_table(kind, str(tmp_path / "table"), spark)
    job = Job(spark, session_broker.address, [topic], table)
    ending = Ending()
    rounds = Following(job, Pace(every_ms=1), ending, lambda _: None).rounds()
    assert next(rounds).records == 20
    assert next(rounds).commits == 0
    assert run("alter", topic, "--partitions", "3", command=("topics",)).code == 0
    produce(topic, list(days_of_records(30, seed=2, partitions=3)), partitions=3)
    found = next(rounds)
    assert (found.records, found.lag_records, found.lag_seconds) == (30, 0, 0.0)
    with writing(open_table(kind, str(tmp_path / "table"), spark)):  # between rounds the table is free
        ending.wished = True
        assert list(rounds) == []
    assert archived(spark, kind, tmp_path / "table") == consumed(run, topic)


def test_options_that_make_no_sense_together(run, tmp_path):
    for words, said in (
        (("--every", "1m"), "--every is for --follow"),
        (("--min-records", "1"), "--min-records is for --follow"),
        (("--follow", "--until", "now"), "use either --follow or --until"),
    ):
        ended = run("archive", "--topic", "t", "--to", tmp_path, *words)
        assert (ended.code, said in ended.err) == (2, True), ended


def test_an_interval_of_zero_is_a_single_run(spark, run, produce, tmp_path):
    topic = unique("single")
    produce(topic, list(days_of_records(10)), partitions=2)
    ended = run("archive", "--topic", topic, "--to", tmp_path / "t", "--follow", "--every", "0", "-o", "json")
    assert (ended.code, ended.json["records"], ended.json["commits"]) == (0, 10, 1)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_a_job_outlasts_its_broker_and_ends_cleanly_when_it_is_told_to(spark, produce, run, monkeypatch, tmp_path):
    topic, folder = unique("outlast"), tmp_path / "table"
    broker = BrokerProcess(tmp_path / "broker")
    broker.start()
    monkeypatch.setenv("HOROLOG_BOOTSTRAP", broker.address)
    produce(topic, list(days_of_records(300)), partitions=2)
    expire = ("expire", "--to", folder, "--older-than", "2025-11-18", "--wait", "1m", "-o", "json")
    command = [sys.executable, "-m", "horolog", "pipeline", "archive", "--topic", topic, "--to", str(folder)]
    command += ["--follow", "--every", "300ms", "--step", "40", "--quick", "--master", "local[1]", "-o", "json"]
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("wb") as lines, err.open("wb") as said:
        job = subprocess.Popen(command, cwd=PROJECT, stdout=lines, stderr=said, start_new_session=True)

    def wait_until(holds):
        deadline = time.monotonic() + 400
        while not holds():
            assert job.poll() is None, err.read_text()
            assert time.monotonic() < deadline, err.read_text()
            time.sleep(0.1)

    def added():
        return sum(json.loads(line)["records"] for line in out.read_text().splitlines() if '"round"' in line)

    try:
        wait_until(lambda: list(folder.glob("_horolog/commits/*.json")))
        broker.kill()
        wait_until(lambda: "retrying" in err.read_text())
        broker.start()
        wait_until(lambda: added() == 300)
        produce(topic, list(days_of_records(400, seed=2)), partitions=2)
        for other in (expire, ("vacuum", "--to", folder, "--older-than", "0ms", "--force", "--wait", "1m")):
            ended = run(*other)  # beside the one that follows
            assert ended.code == 0, ended.err
        wait_until(lambda: len(list(folder.glob("_horolog/commits/*.json"))) > 10)
        os.kill(job.pid, signal.SIGTERM)
        assert job.wait(60) == 0, err.read_text()
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        assert [line["round"] for line in lines[:-1]] == list(range(1, len(lines)))
        assert lines[-1]["rounds"] == len(lines) - 1
        assert lines[-1]["records"] == sum(line["records"] for line in lines[:-1])
        assert (
            err.read_text().count("retrying") == err.read_text().count("the fault has passed; the job continues") == 1
        )
        rest = run("archive", "--topic", topic, "--to", folder, "-o", "json")
        assert rest.json["records"] == 700 - lines[-1]["records"]
        there, everything = archived(spark, "parquet", folder), consumed(run, topic)
        assert kept(there) == kept(everything)
        assert set(map(repr, there)) <= set(map(repr, everything))
        assert len(there) == len(set(map(repr, there))) < len(everything)
        assert run(*expire).code == 0
        assert archived(spark, "parquet", folder) == kept(everything)
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
        broker.stop()


@pytest.mark.parametrize(("seconds", "said"), [(None, "behind: 1,200 records"), (3.25, "behind: 1,200 records, 3.2 s")])
def test_a_round_is_one_line(seconds, said):
    line = str(archive_follow.Round(3, 5000, 2_000_000, 2, 4, 1.5, 1200, seconds))
    assert line.startswith("round 3: 5,000 records, 2.0 MB in 1.5 s, 2 commits; ")
    assert line.endswith(said)


def follow_of(*words):
    parser = argparse.ArgumentParser()
    archive_follow.add_arguments(parser)
    parser.add_argument("--compact", action="store_true")
    parser.add_argument("--wait", default=0)
    return parser.parse_args(list(words))


def test_how_a_job_follows():
    assert archive_follow.pace_of(follow_of(), 5) is None
    assert archive_follow.pace_of(follow_of("--follow", "--every", "0s"), None) is None
    pace = archive_follow.pace_of(follow_of("--follow"), None)
    assert (pace.min_records, pace.min_bytes, pace.compact) == (1, 1, False)
    own = archive_follow.pace_of(
        follow_of("--follow", "--every", "2s", "--max-delay", "0s", "--min-records", "9"), None
    )
    assert (own.every_ms, own.max_delay_ms, own.min_records) == (2000, 0, 9)
    with pytest.raises(UsageError, match="use either --follow or --until"):
        archive_follow.pace_of(follow_of("--follow"), 5)
    with pytest.raises(UsageError, match="--min-records is for --follow"):
        archive_follow.pace_of(follow_of("--min-records", "9"), None)


@pytest.mark.parametrize("as_json", [True, False])
def test_each_round_is_shown_and_the_summary_at_the_end(monkeypatch, capsys, as_json):
    one = archive_follow.Round(1, 5, 10, 1, 1, 0.5, 0, None)

    class Rounds:
        summary = Summary("archive", 5)

        def __init__(self, job, pace, ending, tell, progress):
            assert progress(7).records == 0

        def rounds(self):
            return iter([one])

    monkeypatch.setattr(archive_follow, "Following", Rounds)
    console = Console()
    console.as_json = as_json
    assert archive_follow.run(None, None, argparse.Namespace(progress=False), console) == 0
    said = capsys.readouterr()
    if as_json:
        first, last = map(json.loads, said.out.splitlines())
        assert (first, last["job"]) == (one.as_json(), "archive")
    else:
        assert str(one) in said.err
        assert said.out.startswith("archive: 5 records")
    assert "stopped; the table has" in said.err
