"""Rows go to a topic in tasks or from one process, what the topic would do to them is counted first, and progress is kept there."""

import argparse
import asyncio
import io
import json
import time
from concurrent.futures import Future
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

from horolog.commands.console import Console
from horolog.commands.errors import CommandError, NotFoundError
from horolog.pipeline.jobs import Settings, common, loading
from horolog.pipeline.jobs.lanes import Begun, Lanes, Noted, Row, SendFailed, send_lane
from horolog.pipeline.jobs.loading import (
    Gap,
    Load,
    NotSent,
    Share,
    carry_out,
    look_ahead,
    not_sent,
    refuse_losses,
    unsent,
)
from horolog.pipeline.jobs.topic_rules import Counts, TopicRules, outlook_of
from tests.support.names import unique

DAY_MS = 86_400_000
NOW_MS = time.time_ns() // 1_000_000
OUTLOOK_OF_FIVE = Counts(records=5, size_bytes=100, first_ms=NOW_MS - DAY_MS, last_ms=NOW_MS)

RULES = TopicRules(
    retention_ms=10 * DAY_MS,
    retention_bytes=-1,
    before_max_ms=20 * DAY_MS,
    after_max_ms=3_600_000,
    log_append_time=False,
    deletes=True,
    partitions=1,
)


class Rows:
    """Rows of one lane, which this process sends also where tasks would."""

    def __init__(self, count):
        self.count = count

    def here(self, numbers):
        for lane in numbers:
            yield lane, (Row(lane, n, None, b"%d" % n, None, None, NOW_MS - n) for n in range(self.count))

    def in_tasks(self, lanes, numbers):
        def collect():
            return [asyncio.run(send_lane(lanes, lane, members)) for lane, members in self.here(numbers)]

        return SimpleNamespace(collect=collect)


def asked(*words):
    parser = argparse.ArgumentParser()
    loading.add_sending(parser)
    common.add_common(parser)
    parser.set_defaults(rate=None)
    return parser.parse_args(words)


@pytest.fixture
def console():
    return Console(out=io.StringIO(), err=io.StringIO(), environ={"HOROLOG_TZ": "UTC"})


@pytest.fixture
def load_of(produce, session_broker):
    """`load_of(rows, ...)`: rows for a topic that has only these."""
    topic = unique("loaded")
    produce(topic, [])

    def make(count, gaps=(), **more):
        lanes = Lanes.of("replay", (topic,), session_broker.address, topic, 1)
        share = Share(Rows(count), lanes, range(1), {}, **more)
        return Load("replay", topic, "/x", [share], outlook_of(OUTLOOK_OF_FIVE, RULES), list(gaps))

    return make


@pytest.mark.parametrize("rate", [None, 10_000], ids=["in tasks", "at a rate"])
def test_rows_are_sent_once_and_what_was_found_is_reported(load_of, console, rate):
    arguments = asked("--step", "2")
    arguments.rate = rate
    done = carry_out(load_of(5, [Gap("t-0", 5, 9, 4)]), arguments, console)
    assert (done.records, done.details["sent_before"], done.details["sent_twice"], done.details["gone"]) == (5, 0, 0, 4)
    said = console.err.getvalue()
    assert "5 records, about 0.0 MB" in said
    assert "4 offsets are gone" in said
    again = carry_out(load_of(5, sent_before=5), arguments, console)
    assert (again.records, again.details["sent_before"], "gone" in again.details) == (0, 5, False)
    assert "already sent: 5 records; --again sends them again" in console.err.getvalue()
    assert load_of(5, sent_before=5).send(Settings(again=True)).details["sent_before"] == 0


def test_a_source_without_rows_is_an_error(load_of):
    with pytest.raises(NotFoundError, match="/x has no records in that range"):
        load_of(0).send(Settings())


def test_records_that_a_killed_run_had_sent_may_be_there_twice(load_of, console, monkeypatch):
    async def three(share):
        return 3

    monkeypatch.setattr(loading, "_finish", three)
    assert carry_out(load_of(5), asked(), console).details["sent_twice"] == 3
    assert "up to 3 records may be duplicates" in console.err.getvalue()


@pytest.mark.parametrize(("words", "losses"), [(("--dry-run",), []), ((), ["all of it"])])
def test_nothing_is_sent_in_a_dry_run_or_if_something_would_be_lost(console, words, losses):
    outlook = SimpleNamespace(records=1, size_bytes=5, first_ms=None, last_ms=None, losses=losses)
    assert carry_out(Load("replay", "t", "/x", [], outlook), asked(*words), console) is None
    assert "of - to -, for topic t" in console.err.getvalue()
    assert ("all of it" in console.err.getvalue()) == bool(losses)


@pytest.mark.parametrize(("expired", "code"), [(0, 0), (2, 3)])
def test_a_dry_run_ends_with_what_would_be_lost(console, expired, code):
    console.as_json = True
    outlook = outlook_of(OUTLOOK_OF_FIVE._replace(expired=expired), RULES)
    assert not_sent("replay", outlook, console, dry_run=True) == code
    said = json.loads(console.out.getvalue())
    assert (said["sent"], said["expired"], len(said["losses"])) == (False, expired, bool(expired))
    assert "--dry-run" in console.err.getvalue()


def test_a_job_that_would_lose_something_fails(console):
    outlook = outlook_of(OUTLOOK_OF_FIVE._replace(expired=2), RULES)
    with pytest.raises(CommandError, match="records would be lost, so nothing was sent"):
        not_sent("replay", outlook, console, dry_run=False)
    assert console.out.getvalue() == ""


def test_rows_before_the_position_of_their_lane_are_left_out(spark):
    rows = spark.createDataFrame(
        [(lane, position) for lane in (0, 1) for position in range(3)], "lane int, position long"
    )
    assert unsent(rows, {}) is rows
    found = [(row.lane, row.position) for row in unsent(rows, {0: 2}).collect()]
    assert sorted(found) == [(0, 2), (1, 0), (1, 1), (1, 2)]


@pytest.mark.parametrize(
    ("gap", "said"),
    [
        (Gap("t-0", 5, 9, 4), "t-0 was sent up to 5, but begins at 9 now: 4 offsets are gone"),
        (Gap("t-0", 5, None, 4), "t-0 was sent up to 5, and 4 records after that are no longer in the table"),
        (Gap("t-0", 5, 9, 0), "t-0 was sent up to 5, where its range ended, and begins at 9 now: records"),
    ],
)
def test_a_gap_is_told_in_one_sentence(gap, said):
    assert str(gap).startswith(said)


def test_losses_are_refused_and_nothing_else():
    refuse_losses(SimpleNamespace(losses=[]))
    with pytest.raises(NotSent, match="one; two; nothing was sent"):
        refuse_losses(SimpleNamespace(losses=["one", "two"]))


def test_a_row_that_is_refused_at_a_rate_ends_the_job_with_its_reason(monkeypatch):
    async def fails(lanes, lane, members, turn):
        raise SendFailed(f"topic t: lane {lane} is refused")

    monkeypatch.setattr(loading, "send_lane", fails)
    rows = SimpleNamespace(here=lambda numbers: iter([(lane, iter(())) for lane in numbers]))
    share = Share(rows, None, range(3, 4), {})
    load = Load("replay", "t", "/x", [share], None)
    with pytest.raises(CommandError, match="topic t: lane 3 is refused"):
        list(load._sent(share, Settings(rate=5), None))


def test_spark_counts_what_a_topic_would_do_to_rows(spark):
    """Of times on both sides of each bound; a record without a time has no age."""
    times = [NOW_MS, NOW_MS - 11 * DAY_MS, NOW_MS - 21 * DAY_MS, NOW_MS + DAY_MS, -1]
    rows = spark.createDataFrame([(None, b"value", ms) for ms in times], "key binary, value binary, ms long")
    rows = rows.selectExpr("key", "value", "timestamp_millis(ms) as timestamp")
    found = look_ahead(rows, RULES, NOW_MS)
    assert (found.records, found.size_bytes) == (5, 5 * (12 + 5))
    assert (found.first_ms, found.last_ms) == (NOW_MS - 21 * DAY_MS, NOW_MS + DAY_MS)
    assert (found.expired, found.too_early, found.too_late) == (2, 1, 1)
    assert look_ahead(rows.where("false"), RULES, NOW_MS) == outlook_of(Counts(), RULES)


@pytest.mark.parametrize("due", [None, 3, 4])
def test_as_many_rows_are_sent_as_were_counted(monkeypatch, due):
    async def three(lanes, numbers):
        return {0: Noted(2, 2, None), 1: Noted(1, 1, None)}

    monkeypatch.setattr(loading, "noted_of", three)
    load, share = Load("bootstrap", "t", "the dump", [], None), Share(None, None, range(2), {}, rows_due=due)
    if due != 4:
        load._check_all_were_sent(share)
        return
    with pytest.raises(CommandError, match="the dump has changed while it was sent: it had 4 rows, and 3 were sent"):
        load._check_all_were_sent(share)


def test_the_progress_of_tasks_is_read_from_the_target_until_they_end(monkeypatch, session_broker):
    """What an earlier run sent is not counted, and a look that fails is followed by another."""
    notes, sending = [4, None, 9], Future()
    progress = common.JobProgress(Console(err=io.StringIO()), None)

    async def noted(client, lanes, numbers, *, stable):
        if not notes:
            sending.set_result([])
            return {}
        sent = notes.pop(0)
        if sent is None:
            raise SendFailed("lane 0: its beginning was not recorded")
        return {0: Noted(sent, sent, Begun(0))}

    monkeypatch.setattr(loading, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(loading, "noted", noted)
    lanes = Lanes.of("replay", (), session_broker.address, "t", 1)
    load = Load("replay", "t", "/x", [], outlook_of(Counts(records=10, size_bytes=200), RULES))
    advanced = []
    monkeypatch.setattr(progress, "advance", lambda *more: advanced.append(more))
    asyncio.run(load._watch(Share(None, lanes, range(1), {}), sending, progress))
    assert advanced[:2] == [(0, 0), (5, 100)]


def test_what_is_held_for_a_load_is_let_go_at_its_end():
    ended, held = [], ExitStack()
    held.callback(ended.append, 1)
    with Load("replay", "t", "/x", [], None, held=held) as load:
        assert (load.sent_before, ended) == (0, [])
    assert ended == [1]
