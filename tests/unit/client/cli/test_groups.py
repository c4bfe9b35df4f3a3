"""`horolog groups` as a user types it: groups are listed, described, moved by time and watched for lag."""

import asyncio
import time

import pytest

from horolog import Consumer
from tests.support.names import unique
from tests.support.online_commands import TIMES, values


def test_a_group_is_moved_by_time_after_a_look(run, hourly):
    group = unique("group")
    assert run("consume", hourly, "--group", group, "-o", "json").code == 0
    reset = ["groups", "reset", group, "--to", f"@{TIMES[3]}ms"]
    (looked,) = run(*reset, "--dry-run", "-o", "json").json
    assert (looked["from"], looked["to"], looked["timestamp"]) == (5, 3, TIMES[3])
    assert values(run("consume", hourly, "--group", group, "-o", "json")) == []
    assert run(*reset).code == 0
    assert values(run("consume", hourly, "--group", group, "-o", "json")) == ["v3", "v4"]
    assert run("groups", "reset", group, "--by=-1", "-o", "json").json[0]["to"] == 4
    ranged = run("groups", "reset", group, "--to", "10:05..")
    assert (ranged.code, ranged.out) == (2, "")
    assert "--to '10:05..' is a range: a group stores where to continue, not where to stop" in ranged.err
    assert "--to '10:05' goes to its beginning" in ranged.err
    beyond = run("groups", "reset", group, "--to-offset", "1000", "-o", "json")
    assert (beyond.json[0]["to"], f"{hourly}-0 ends at 5: offset 1000 is beyond its end" in beyond.err) == (5, True)


def test_a_new_group_can_be_put_where_it_shall_begin(run, hourly):
    group = unique("new")
    ended = run("groups", "reset", group, "--topic", hourly, "--to", f"@{TIMES[4]}ms", "-o", "json")
    assert (ended.code, ended.json[0]["from"], ended.json[0]["to"]) == (0, None, 4)
    assert values(run("consume", hourly, "--group", group, "-o", "json")) == ["v4"]


def test_lag_is_shown_in_records_and_seconds_and_can_alert(run, hourly):
    group = unique("group")
    assert run("consume", hourly, "--group", group, "--max", "3").code == 0
    (lag,) = run("groups", "lag", group, "-o", "json").json
    assert (lag["lag_records"], lag["next_timestamp"]) == (2, TIMES[3])
    assert lag["lag_seconds"] == pytest.approx((time.time() * 1000 - TIMES[3]) / 1000, abs=60)
    alert = run("groups", "lag", group, "--alert", "1h")
    assert (alert.code, "more than 1h behind" in alert.err) == (3, True)
    assert run("groups", "lag", group, "--alert", "3h").code == 0
    assert run("groups", "lag", group, "--watch", "--alert", "1h", "-o", "json").code == 3
    assert run("consume", hourly, "--group", group).code == 0
    assert run("groups", "lag", group, "-o", "json").json[0]["lag_seconds"] == 0


def test_a_member_that_has_not_committed_is_not_up_to_date(run, hourly, address):
    group = unique("group")

    async def looked_at_while_it_reads():
        async with Consumer(address, group=group) as consumer:
            await consumer.subscribe([hourly])
            await consumer.poll()
            words = ("groups", "lag", group)
            return [await asyncio.to_thread(run, *words, "--alert", alert) for alert in ("1h", "9h")]

    late, early = asyncio.run(looked_at_while_it_reads())
    assert (late.code, f"group {group} has no commit yet on {hourly}-0" in late.err) == (3, True), late
    assert ("no commit yet" in late.out, "up to 5" in late.out) == (True, True)
    assert early.code == 0


def test_an_alert_does_not_pass_because_nothing_was_looked_at(run, hourly):
    group = unique("group")
    assert run("consume", hourly, "--group", group).code == 0
    assert run("groups", "lag", group, "--topic", hourly, "--alert", "3h").code == 0
    for words in ((group,), ()):
        ended = run("groups", "lag", *words, "--topic", f"{hourly}x", "--alert", "3h")
        meant = f"there is no topic '{hourly}x'; do you mean {hourly!r}?"
        assert (ended.code, meant in ended.err) == (4, True), ended
    both = run("groups", "lag", group, "--topic", hourly, "--topic", f"{hourly}x", "--alert", "3h")
    assert (both.code, both.out) == (4, "")
    ended = run("groups", "lag", f"{group}x", "--alert", "3h")
    assert (ended.code, f"there is no group '{group}x'; do you mean {group!r}?" in ended.err) == (4, True), ended


def test_groups_are_listed_described_and_deleted(run, hourly):
    group = unique("group")
    assert run("consume", hourly, "--group", group).code == 0
    assert group in {each["group"] for each in run("groups", "list", "-o", "json").json}
    assert run("groups", "describe", group, "-o", "json").json[0]["state"] == "Empty"
    assert run("groups", "delete", group, "--yes").code == 0
    for action in ("describe", "lag", "delete"):
        ended = run("groups", action, group)
        assert (ended.code, f"no group {group!r}" in ended.err) == (4, True)
    assert run("groups", "reset", group).code == 2


def test_a_share_group_is_reset_before_it_has_members(run, hourly):
    group = unique("share")
    reset = run("groups", "reset", group, "--share", "--topic", hourly, "--to", f"@{TIMES[3]}ms", "-o", "json").json
    assert [(each["from"], each["to"]) for each in reset] == [(None, 3)]
    assert {each["group"]: each["kind"] for each in run("groups", "list", "-o", "json").json}[group] == "share"
    described = run("groups", "describe", group, "-o", "json").json[0]
    assert (described["state"], described["protocol_type"]) == ("Empty", "share")
    (lag,) = run("groups", "lag", group, "-o", "json").json
    assert (lag["committed"], lag["lag_records"], lag["lag_seconds"] > 0) == (3, len(TIMES) - 3, True)
    assert run("groups", "reset", group, "--by=-1", "-o", "json").json[0]["to"] == 2
    assert run("groups", "delete", group, "--topic", hourly, "--yes").code == 0
    assert run("groups", "describe", group).code == 0
    assert run("groups", "delete", group, "--yes").code == 0
    assert run("groups", "describe", group).code == 4
