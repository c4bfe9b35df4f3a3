"""`horolog consume` as a user types it: where it begins and ends, in which order and form it shows records."""

import json
import random
import time

import pytest

from tests.support.names import unique
from tests.support.online_commands import HOUR_MS, NOW_MS, TIMES, values


def test_a_range_of_time_is_what_it_says(run, hourly):
    for since, until, expected in [(0, 5, 5), (1, 3, 2), (1, 2, 1), (4, 5, 1)]:
        end = TIMES[until] if until < 5 else NOW_MS
        ended = run("consume", hourly, "--since", f"@{TIMES[since]}ms", "--until", f"@{end}ms", "-o", "json")
        assert values(ended) == [f"v{n}" for n in range(since, since + expected)]
        ended = run("consume", hourly, "--since", f"@{TIMES[since] - 1}ms", "--until", f"@{end - 1}ms", "-o", "json")
        assert values(ended) == [f"v{n}" for n in range(since, min(until, 5))]
    assert values(run("consume", hourly, "--since", "150m-ago", "-o", "json")) == ["v3", "v4"]
    ended = run("consume", hourly, "--since", "30m")
    assert (ended.out, ended.code) == ("", 0)
    assert "no records" in ended.err


def test_records_that_came_late_are_told_of_and_read_on_demand(run, hourly, tmp_path):
    path = tmp_path / "late"
    path.write_text(json.dumps({"value": "late", "timestamp": TIMES[1] + 1}) + "\n")
    assert run("produce", hourly, path, "--format", "json").code == 0
    times = ["--since", f"@{TIMES[1]}ms", "--until", f"@{TIMES[2]}ms"]
    ended = run("consume", hourly, *times, "-o", "json", "--merge", "none")
    assert values(ended) == ["v1"]
    assert "at least 1 record of the range arrived late" in ended.err
    assert values(run("consume", hourly, *times, "--late", "--merge", "none", "-o", "json")) == ["v1", "late"]
    for more in ([], ["--late"], ["--look-ahead", "4h"], ["--look-ahead", "1MiB"], ["--look-ahead", "all"]):
        assert values(run("consume", hourly, *times, "-o", "json", *more)) == ["v1", "late"]


def test_a_moment_of_all_partitions_is_shown_in_the_order_of_time(run, tmp_path):
    """Against the same records sorted here; their times are far out of order."""
    name = unique("moment")
    assert run("topics", "create", name, "--partitions", "3", "--config", "segment.bytes=1048576").code == 0
    rolled = random.Random(7)
    lines = [
        {
            "value": f"v{n}",
            "partition": rolled.randrange(3),
            "timestamp": NOW_MS - HOUR_MS + rolled.randrange(3_000_000),
        }
        for n in range(2000)
    ]
    path = tmp_path / "lines"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run("produce", name, path, "--format", "json", "--codec", "gzip").code == 0
    read = run("consume", name, "-o", "json").lines
    largest: dict[int, int] = {}
    for each in read:
        largest[each["partition"]] = max(each["timestamp"], largest.get(each["partition"], 0))
        each["late_ms"] = largest[each["partition"]] - each["timestamp"]
    read.sort(key=lambda each: (each["timestamp"], each["partition"], each["offset"]))
    borders = [each["timestamp"] for each in read]
    for first, last in [(0, 1999), (700, 705), (700, 701), (1200, 1900)]:
        since, until = borders[first], borders[last]
        expected = [each for each in read if since <= each["timestamp"] < until]
        ended = run("at", name, f"@{since}ms..@{until}ms", "-o", "json")
        assert ended.lines == expected
        merged = run("consume", name, "--since", f"@{since}ms", "--until", f"@{until}ms", "-o", "json")
        assert values(merged) == [each["value"] for each in expected]


def test_a_moment_by_key_and_by_words(run, hourly):
    begin = f"@{TIMES[0]}ms"
    assert values(run("at", hourly, begin, "--for", "5h", "--key", "k3", "-o", "json")) == ["v3"]
    assert values(run("at", hourly, begin, "--for", "5h", "--grep", "v[13]", "-o", "json")) == ["v1", "v3"]
    assert values(run("at", hourly, f"@{TIMES[2]}ms", "--around", "90m", "-o", "json")) == ["v1", "v2", "v3"]
    shown = run("at", hourly, begin)
    assert shown.out.endswith(f"{hourly}-0@0  k0  v0\n")
    assert shown.out.count("\n") == 1
    assert "+00:00 to 20" in shown.err


def test_following_can_merge(run, hourly):
    ended = run(
        *("consume", hourly, "--since", "earliest", "--follow", "--merge", "time", "--merge-window", "100ms"),
        *("--until", f"@{TIMES[3]}ms", "-o", "json"),
    )
    assert values(ended) == ["v0", "v1", "v2"]


def test_formats(run, hourly):
    def first(*options):
        return run("consume", hourly, "-n", "1", *options).out

    shown = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(TIMES[0] / 1000)) + f".{TIMES[0] % 1000:03}+00:00"
    assert first() == f"{shown}  {hourly}-0@0  k0  v0\n"
    assert first("--format", "raw") == "v0\n"
    assert first("--format", "%t/%p/%o %k=%s %T %K %S %%\\t\\x41\\n") == f"{hourly}/0/0 k0=v0 {TIMES[0]} 2 2 %\tA\n"
    assert first("--format", "%D") == shown
    assert json.loads(first("--format", "json"))["timestamp_type"] == "CreateTime"


def test_where_to_begin_and_when_to_end(run, hourly):
    assert values(run("consume", hourly, "--offset", "3", "-o", "json")) == ["v3", "v4"]
    assert values(run("consume", hourly, "--tail", "2", "-o", "json")) == ["v3", "v4"]
    assert values(run("consume", hourly, "--max", "2", "-o", "json")) == ["v0", "v1"]
    for text in ("latest", "end", "latest..latest"):
        assert values(run("consume", hourly, "--since", text, "-o", "json")) == []
    assert values(run("consume", hourly, "--partition", "0", "-o", "json")) == [f"v{n}" for n in range(5)]


def test_an_offset_beyond_the_ends_is_told(run, hourly):
    ended = run("consume", hourly, "--offset", "100")
    assert (ended.code, ended.out) == (0, "")
    assert f"warning: {hourly}-0 ends at 5: offset 100 is beyond its end" in ended.err
    assert "ends at" not in run("consume", hourly, "--offset", "5").err
    soon = run("consume", hourly, "--offset", "100", "--follow", "--until", "now+1s")
    assert (soon.code, soon.out, f"{hourly}-0 ends at 5" in soon.err) == (0, "", True)
    assert run("topics", "trim", hourly, "--offset", "2", "--yes").code == 0
    ended = run("consume", hourly, "--offset", "1", "-o", "json")
    assert values(ended) == ["v2", "v3", "v4"]
    assert f"{hourly}-0 begins at 2: offset 1 lies before it" in ended.err


def test_following_ends_with_the_range(run, hourly):
    ended = run("consume", hourly, "--since", "earliest", "--follow", "--until", f"@{TIMES[3]}ms", "-o", "json")
    assert values(ended) == ["v0", "v1", "v2"]


def test_a_group_goes_on_where_it_was(run, hourly):
    group = unique("group")
    assert values(run("consume", hourly, "--group", group, "--max", "2", "-o", "json")) == ["v0", "v1"]
    assert values(run("consume", hourly, "--group", group, "-o", "json")) == ["v2", "v3", "v4"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--since", "foo"], "--since: 'foo'"),
        (["--since", "1h", "--offset", "3"], "both set the start"),
        (["--since", "1h", "--until", "2h"], "is not after the start"),
        (["--group", "g", "--partition", "0"], "--partition cannot be used with --group"),
        (["--format", "%q"], "%q is not a field"),
        (["--format", "xml"], "text, json, raw or a template"),
        (["--format", "raw", "-o", "json"], "are both given"),
        (["--late"], "--late looks past --until, which is missing"),
        (["--look-ahead", "1h"], "--look-ahead looks past --until, which is missing"),
        (["--until", "1h", "--late", "--look-ahead", "1h"], "--late is the same as --look-ahead all"),
        (["--merge", "time", "--offset", "1"], "--merge time cannot be used"),
        (["--since", "23:55", "--until", "00:05"], "is not after the start"),
        (["--until", "+5m"], "counts from the start"),
    ],
)
def test_what_makes_no_sense_is_refused(run, words, said):
    ended = run("consume", "no-matter", *words)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
