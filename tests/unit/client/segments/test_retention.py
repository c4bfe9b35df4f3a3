"""What retention does next, as far as bounds tell."""

import pytest

from horolog.client.segments.retention import (
    DAY_MS,
    FOR_EVER_MS,
    Cause,
    Next,
    PartitionFacts,
    RetentionResult,
    Rules,
    holds_of,
    left_by_lookup,
    next_by_bounds,
    unknown_of,
)

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def rules(**settings):
    return Rules.of({key.replace("_", "."): value for key, value in settings.items()})


def facts(**changes):
    found = PartitionFacts(0, 100, 1100, 1_000_000, NOW_MS - 6 * DAY_MS, NOW_MS, 1099)
    for name, value in changes.items():
        setattr(found, name, value)
    return found


def test_settings_are_those_of_a_topic_or_the_defaults():
    assert Rules.of({}) == Rules(True, False, 7 * DAY_MS, -1, 7 * DAY_MS, 1 << 30, -1)
    both = rules(cleanup_policy="compact, delete", retention_ms="-1", retention_bytes="5", segment_ms="6")
    assert (both.deletes, both.compacts, both.retention_ms, both.retention_bytes, both.segment_ms) == (
        True,
        True,
        -1,
        5,
        6,
    )
    with pytest.raises(ValueError, match=r"retention\.ms=x: expected a whole number"):
        rules(retention_ms="x")


def test_the_first_segment_goes_between_the_times_of_its_first_and_its_last_possible_record():
    found = next_by_bounds(rules(segment_ms=str(DAY_MS)), facts(), 100, NOW_MS)
    assert found == Next(Cause.TIME, NOW_MS + DAY_MS, NOW_MS + 2 * DAY_MS)
    no_later = next_by_bounds(rules(), facts(), 100, NOW_MS)
    assert no_later == Next(Cause.TIME, NOW_MS + DAY_MS, NOW_MS + 7 * DAY_MS)
    due = next_by_bounds(rules(retention_ms=str(HOUR_MS), segment_ms=str(HOUR_MS)), facts(), 900, NOW_MS)
    assert due == Next(Cause.TIME, NOW_MS, NOW_MS)
    everything = next_by_bounds(rules(retention_ms="1"), facts(largest_ms=NOW_MS - 5), 1100, NOW_MS)
    assert everything == Next(Cause.TIME, NOW_MS, NOW_MS, 1100)


def test_nothing_goes_where_nothing_is_or_nothing_may():
    assert next_by_bounds(rules(), facts(end_offset=100), 100, NOW_MS) is None
    assert next_by_bounds(rules(cleanup_policy="compact"), facts(), 100, NOW_MS) is None
    assert next_by_bounds(rules(retention_ms="-1"), facts(), None, NOW_MS) is None
    assert next_by_bounds(rules(), facts(first_ms=None), None, NOW_MS) is None


def test_what_is_too_much_goes_first():
    over = rules(retention_bytes="900000")
    assert next_by_bounds(over, facts(), 100, NOW_MS) == Next(Cause.SIZE, NOW_MS, FOR_EVER_MS)
    much_over = rules(retention_bytes="900000", segment_bytes="50000")
    assert next_by_bounds(much_over, facts(), 100, NOW_MS) == Next(Cause.SIZE, NOW_MS, NOW_MS)
    assert next_by_bounds(rules(retention_bytes="2000000"), facts(), 100, NOW_MS).cause == Cause.TIME
    assert next_by_bounds(over, facts(size_bytes=None), 100, NOW_MS).cause == Cause.TIME


def test_what_keeps_records():
    assert holds_of(rules(), facts(), NOW_MS) == []
    assert holds_of(rules(retention_ms="-1"), facts(), NOW_MS) == [
        "no record is deleted by age (retention.ms=-1)",
        "no record is deleted by size (retention.bytes=-1)",
    ]
    (compacted,) = holds_of(rules(cleanup_policy="compact"), facts(), NOW_MS)
    assert compacted.endswith("nothing is deleted by age or size (cleanup.policy=compact)")
    (also,) = holds_of(rules(cleanup_policy="compact,delete"), facts(), NOW_MS)
    assert also.endswith("when the cleaner runs")


def test_a_record_of_the_future_keeps_what_is_behind_it():
    far = facts(largest_ms=NOW_MS + 400 * DAY_MS, largest_offset=7)
    (said,) = holds_of(rules(), far, NOW_MS)
    assert said.startswith("the record at offset 7 is 57w1d in the future")
    assert "stays until 2024-12-25" in said
    (believed_not,) = holds_of(
        Rules.of({"horolog.future.timestamp.max.ms": str(DAY_MS)}),
        facts(largest_ms=far.largest_ms, largest_offset=None),
        NOW_MS,
    )
    assert believed_not.startswith("a record is")
    assert "use the age of the segment's file" in believed_not


def test_what_the_wire_does_not_tell():
    assert unknown_of(rules(), facts()) == []
    vague = facts(size_bytes=None, largest_ms=None, next=Next(Cause.TIME, 1, 2))
    assert len(unknown_of(rules(cleanup_policy="compact"), vague)) == 4


def test_what_other_settings_would_leave():
    assert left_by_lookup(rules(), facts(), 100, None) == RetentionResult(
        100, 1000, 1_000_000, NOW_MS - 6 * DAY_MS, exact=True
    )
    assert left_by_lookup(rules(retention_ms="1"), facts(), 850, 5) == RetentionResult(
        850, 250, 250_000, 5, exact=False
    )
    assert left_by_lookup(rules(retention_ms="1"), facts(), None, None) == RetentionResult(
        1100, 0, 0, None, exact=False
    )
    halved = left_by_lookup(rules(retention_ms="-1", retention_bytes="500000"), facts(), None, None)
    assert halved == RetentionResult(600, 500, 500_000, None, exact=False)
    assert left_by_lookup(rules(retention_ms="-1"), facts(size_bytes=None), None, None).size_bytes is None
    assert left_by_lookup(rules(), facts(end_offset=100), 100, None).records == 0


def test_bytes_a_day():
    assert facts(first_ms=NOW_MS - 2 * DAY_MS).bytes_a_day == 500_000
    assert facts(first_ms=NOW_MS).bytes_a_day == 1_000_000
    assert facts(size_bytes=None).bytes_a_day is None
