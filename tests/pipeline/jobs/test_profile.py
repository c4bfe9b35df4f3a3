"""The profile of a topic is what a plain walk over its records finds."""

import itertools
import random
import time

import pytest

from horolog.commands.console import Console
from horolog.pipeline.jobs.profile import HOUR_MS, LATENESS_BOUNDS_MS, Profile, _every_hour, _no_fold, _show, profile
from tests.pipeline.reading.test_offline import log_of
from tests.support.names import unique

NOW_MS = time.time_ns() // 1_000_000


def records_out_of_order(count, partitions):
    """Times that go on by the minute, some late by up to two days, some of the future, a pause of nine hours; a few without."""
    rng = random.Random(7)
    base = NOW_MS - 40 * HOUR_MS
    for number in range(count):
        time_ms = base + number * 60_000 + (number > count // 2) * 9 * HOUR_MS
        if rng.random() < 0.3:
            time_ms -= rng.choice([1, 999, 1000, 1001, 60_000, 60_001, HOUR_MS, 48 * HOUR_MS])
        if rng.random() < 0.01:
            time_ms = NOW_MS + 10 * HOUR_MS
        yield {"value": "v", "timestamp": time_ms, "partition": rng.randrange(partitions)}


def expected_lateness(records, partition):
    """Of each record of a partition, in order."""
    latest = None
    for record in records:
        if record["partition"] == partition:
            time_ms = record["timestamp"]
            latest = time_ms if latest is None else max(latest, time_ms)
            yield latest - time_ms


@pytest.fixture(scope="module")
def topic():
    return unique("profiled")


@pytest.fixture
def records(topic, produce):
    records = list(records_out_of_order(1500, 2))
    produce(topic, records, partitions=2)
    return records


def test_a_profile_is_what_a_walk_over_the_records_finds(spark, session_broker, topic, records, run, tmp_path):
    found = profile(spark, topic, {"kafka.bootstrap.servers": session_broker.address}, now_ms=NOW_MS)
    lateness = {partition: list(expected_lateness(records, partition)) for partition in (0, 1)}
    everything = lateness[0] + lateness[1]
    assert (found.records, found.missing) == (len(records), 0)
    assert found.future == sum(record["timestamp"] > NOW_MS for record in records)
    assert found.late == sum(late > 0 for late in everything)
    assert found.largest_lateness_ms == max(everything)
    for each in found.partitions:
        assert (each.records, each.largest_lateness_ms) == (
            len(lateness[each.partition]),
            max(lateness[each.partition]),
        )
    for number, bar in enumerate(found.lateness):
        over = -1 if number == 0 else LATENESS_BOUNDS_MS[number - 1]
        up_to = bar["up_to_ms"] if bar["up_to_ms"] is not None else 2**63
        assert bar["records"] == sum(over < late <= up_to for late in everything), bar
    hours = {}
    for record in records:
        hour = record["timestamp"] // HOUR_MS * HOUR_MS
        hours[hour] = hours.get(hour, 0) + 1
    assert {each["hour_ms"]: each["records"] for each in found.hours} == hours
    minutes = sorted({record["timestamp"] // 60_000 for record in records})
    gaps = [(right - left - 1) * 60_000 for left, right in itertools.pairwise(minutes) if right - left > 1]
    assert [gap["to_ms"] - gap["from_ms"] for gap in found.gaps] == sorted(gaps, reverse=True)[:10]

    picture = tmp_path / "profile.png"
    typed = run("profile", "--topic", topic, "--png", picture, "-o", "json")
    assert typed.code == 0
    assert (typed.json["late"], typed.json["records"]) == (found.late, found.records)
    assert picture.read_bytes().startswith(b"\x89PNG")
    shown = run("profile", "--topic", topic).out
    assert "in order" in shown
    assert "no record for" in shown
    assert f"profile: {len(records):,} records" in shown


def test_a_range_is_a_range_of_offsets(spark, session_broker, produce):
    name = unique("range")
    times = [NOW_MS - 3 * HOUR_MS, NOW_MS - 2 * HOUR_MS, NOW_MS - HOUR_MS]
    produce(name, [{"value": "v", "timestamp": time_ms} for time_ms in times])
    where = {"kafka.bootstrap.servers": session_broker.address}
    found = profile(spark, name, where, now_ms=NOW_MS, since_ms=times[1], until_ms=times[2])
    assert (found.records, found.partitions[0].first_ms) == (1, times[1])
    assert profile(spark, name, where, now_ms=NOW_MS, since_ms=times[2] + 1).records == 0


def test_what_cannot_be_profiled_is_said_in_a_sentence(run, spark, produce):
    missing = run("profile", "--topic", unique("missing"))
    assert (missing.code, "there is no topic" in missing.err) == (4, True)
    assert run("profile").code == 2
    assert run("profile", "--topic", "t", "--since", "1h", "--until", "2h").code == 2
    assert run("profile", "--topic", "t", "-b", "127.0.0.1:1", "--timeout", "200ms").code == 5
    empty = unique("empty")
    produce(empty, [])
    assert run("profile", "--topic", empty).code == 4


def test_a_topic_without_hours_or_late_records_is_shown(capsys):
    bars = [{"over_ms": None, "up_to_ms": 0, "records": 0}, {"over_ms": 0, "up_to_ms": None, "records": 0}]
    found = Profile("t", 1, 1, 0, 0, 0, {}, bars, [], [])
    assert _every_hour(found, 48) == ([], [])
    _show(found, Console())
    said = capsys.readouterr().out
    assert "lateness" in said
    assert "of the late ones" not in said
    assert _no_fold(2, 4) == "nothing in 3 of the steps"


def test_only_the_last_hours_are_shown_with_those_between():
    hours = [{"hour_ms": hour * HOUR_MS, "records": hour} for hour in (1, 90, 100)]
    shown, counts = _every_hour(Profile("t", 3, 0, 0, 0, 0, {}, [], hours, []), 12)
    assert (shown[0], shown[-1], len(shown)) == (89 * HOUR_MS, 100 * HOUR_MS, 12)
    assert [count for count in counts if count] == [90, 100]


def test_files_without_records_of_a_range_are_told(spark, run, tmp_path):
    folder, _ = log_of(tmp_path, segments=1)
    refused = run("profile", "--topic", "topic", "--dir", folder, "--since", "2099-01-01")
    assert (refused.code, "has no records in that range" in refused.err) == (4, True), refused.err
