"""What to clean and how to group it: the bounds of the dirty part, when a pass is due, what fits together."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.config.settings import load
from horolog.broker.config.topic_settings import resolve
from horolog.broker.log.compaction.clean_plan import SegmentFacts, group, plan, tombstone_horizon_ms

NOW = 1_700_000_000_000
CONFIG = replace(
    resolve({}, load(None, {}, {})[0]),
    compact=True,
    min_cleanable_dirty_ratio=0.5,
    min_compaction_lag_ms=0,
    max_compaction_lag_ms=2**63 - 1,
    delete_retention_ms=100,
)


def segments(*sizes, timestamp=NOW - 5000):
    return [
        SegmentFacts(10 * n, 10 * n + 10, size, first_timestamp=timestamp, largest_timestamp=timestamp)
        for n, size in enumerate(sizes)
    ]


def run(some, config=CONFIG, *, checkpoint=None, start=0, stable=10**9, now_ms=NOW):
    return plan(some, config, checkpoint=checkpoint, log_start_offset=start, last_stable_offset=stable, now_ms=now_ms)


def test_everything_but_the_active_segment_is_dirty_at_first():
    made = run(segments(100, 100, 100))
    assert [one.base_offset for one in made.segments] == [0, 10]
    assert (made.first_dirty_offset, made.end_offset, made.dirty_ratio) == (0, 20, 1.0)


@pytest.mark.parametrize(("clean", "dirty", "due"), [(100, 100, False), (100, 101, True), (0, 0, False)])
def test_due_when_more_than_the_ratio_is_dirty(clean, dirty, due):
    assert (run(segments(clean, dirty, 5), checkpoint=10) is not None) is due


def test_a_pass_takes_the_clean_part_along():
    made = run(segments(10, 100, 5), checkpoint=10)
    assert [one.base_offset for one in made.segments] == [0, 10]
    assert made.first_dirty_offset == 10


@pytest.mark.parametrize("checkpoint", [-1, 9, 31, 10**12])
def test_a_checkpoint_outside_of_the_log_is_no_checkpoint(checkpoint):
    made = run(segments(100, 100, 100, 5), checkpoint=checkpoint, start=10)
    assert made.checkpoint_was_wrong
    assert made.first_dirty_offset == 10


def test_nothing_at_or_behind_the_last_stable_offset():
    assert run(segments(100, 100, 100, 5), stable=29).end_offset == 20
    assert run(segments(100, 100, 100, 5), stable=30).end_offset == 30
    assert run(segments(100, 100, 100, 5), stable=5) is None


def test_what_is_too_young_waits_with_everything_behind_it():
    some = segments(100, 100, 100, 5)
    some[1] = replace(some[1], largest_timestamp=NOW - 999)
    assert run(some, replace(CONFIG, min_compaction_lag_ms=1000)).end_offset == 10
    some[1] = replace(some[1], largest_timestamp=NOW - 1000)
    assert run(some, replace(CONFIG, min_compaction_lag_ms=1000)).end_offset == 30
    some[1] = replace(some[1], largest_timestamp=-1, modified_ms=NOW - 5)
    assert run(some, replace(CONFIG, min_compaction_lag_ms=1000)).end_offset == 10


def test_what_waited_too_long_is_cleaned_whatever_the_ratio():
    lazy = replace(CONFIG, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=5000)
    assert run(segments(100, 100, 5), lazy) is None
    made = run(segments(100, 100, 5), lazy, now_ms=NOW + 1)
    assert made.overdue


def test_tombstones_of_old_formats_go_by_the_last_clean_segment():
    some = segments(100, 100, 100, 5)
    some[0] = replace(some[0], largest_timestamp=NOW - 700)
    made = run(some, checkpoint=10)
    assert tombstone_horizon_ms(made, CONFIG, NOW) == NOW - 800
    assert tombstone_horizon_ms(run(some), CONFIG, NOW) == -1
    some[0] = replace(some[0], largest_timestamp=4_102_444_800_000)
    assert tombstone_horizon_ms(run(some, checkpoint=10), CONFIG, NOW) == NOW - 100
    some[0] = replace(some[0], largest_timestamp=-1, modified_ms=NOW - 900)
    assert tombstone_horizon_ms(run(some, checkpoint=10), CONFIG, NOW) == NOW - 1000


sizes = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 40), st.integers(0, 40), st.integers(1, 2**30)), max_size=12
)


@given(sizes, st.integers(50, 200), st.integers(30, 100))
def test_groups_are_neighbours_within_bounds_and_as_few_as_greed_makes_them(rows, max_size, max_index):
    some, offset = [], 0
    for size, index, times, span in rows:
        some.append(SegmentFacts(offset, offset + span, size, index, times))
        offset += span
    groups = group(some, max_size, max_index, offset)
    assert [one for members in groups for one in members] == some
    for members in groups:
        assert len(members) == 1 or fits(members, max_size, max_index)
    for members, following in pairwise(groups):
        assert not fits([*members, following[0]], max_size, max_index)


def fits(members, max_size, max_index):
    last = members[-1]
    return (
        sum(one.size_bytes for one in members) <= max_size
        and sum(one.index_bytes for one in members) <= max_index
        and sum(one.time_index_bytes for one in members) <= max_index
        and (last.size_bytes == 0 or last.next_offset - 1 - members[0].base_offset <= 2**31 - 1)
    )
