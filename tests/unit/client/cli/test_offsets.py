"""`horolog offsets` as a user types it: times and ranges become offsets, with warnings of disorder."""

import json

from tests.support.online_commands import HOUR_MS, NOW_MS, TIMES


def test_a_topic_that_is_not_there_is_answered_with_one_that_is_spelled_alike(run, topic):
    for command in ("consume", "offsets", "produce"):
        ended = run(command, topic[:-1] + "~")
        assert ended.code == 4
        assert f"do you mean {topic!r}?" in ended.err
    assert run("consume", topic, "--partition", "7").code == 4


def test_a_time_is_resolved_with_the_timestamp_found(run, hourly):
    ended = run("offsets", hourly, f"@{TIMES[2] - 5}ms", "now", "earliest", "-o", "json")
    found, nothing, earliest = ended.json
    assert (found["offset"], found["timestamp"], found["records_to_end"]) == (2, TIMES[2], 3)
    assert (nothing["offset"], nothing["timestamp"]) == (None, None)
    assert (earliest["offset"], earliest["asked_ms"]) == (0, -2)
    assert "nothing at or after it" in run("offsets", hourly, "now").out


def test_a_range_has_two_borders_and_what_lies_between(run, hourly):
    text = f"@{TIMES[1] - 5}ms..@{TIMES[3]}ms"
    found, everything, rest = run("offsets", hourly, text, "earliest..latest", f"@{TIMES[2]}ms..now", "-o", "json").json
    assert (found["asked_ms"], found["until_ms"]) == (TIMES[1] - 5, TIMES[3])
    assert (found["offset"], found["timestamp"], found["until_offset"], found["records"]) == (1, TIMES[1], 3, 2)
    assert (everything["offset"], everything["until_offset"], everything["records"]) == (0, 5, 5)
    assert (rest["offset"], rest["until_offset"], rest["records"], rest["records_to_end"]) == (2, 5, 3, 3)
    ended = run("offsets", hourly, text, "now", "latest..latest")
    assert f"{text} is " in ended.err
    assert "nothing at or after it" in ended.out
    assert [line.split()[-1] for line in ended.out.splitlines() if line.startswith(hourly)] == ["0", "2", "0"]


def test_a_range_is_warned_of_at_both_borders(run, topic, tmp_path):
    path = tmp_path / "lines"
    times = [NOW_MS - 5 * HOUR_MS, NOW_MS - HOUR_MS, NOW_MS - 3 * HOUR_MS]
    path.write_text("".join(json.dumps({"value": "v", "timestamp": time_ms}) + "\n" for time_ms in times))
    assert run("produce", topic, path, "--format", "json").code == 0
    ended = run("offsets", topic, "6h-ago..2h-ago", "-o", "json")
    assert ended.json[0]["records"] == 1
    assert "earlier times in 1 of the next 2 records" in ended.json[0]["warnings"][0]
    assert "times are out of order" in run("offsets", topic, "6h-ago..2h-ago").err


def test_disorder_and_the_future_are_warned_of(run, topic, tmp_path):
    path = tmp_path / "lines"
    times = [NOW_MS - HOUR_MS, NOW_MS + HOUR_MS // 2, NOW_MS - 3 * HOUR_MS]
    path.write_text("".join(json.dumps({"value": "v", "timestamp": time_ms}) + "\n" for time_ms in times))
    assert run("produce", topic, path, "--format", "json").code == 0
    ended = run("offsets", topic, "2h-ago")
    assert "times are out of order: earlier times in 1 of the next 3 records" in ended.err
    assert "offset 1 is" in ended.err
    assert "in the future" in ended.err
    assert len(run("offsets", topic, "2h-ago", "-o", "json").json[0]["warnings"]) == 2
