"""Runs are divided where a part changes, and joined where parts are alike again."""

import pytest

from horolog.broker.share.runs import MOST_SHARED, AcquiredBatch, Before, OffsetRun, OffsetRuns
from horolog.broker.share.state_batches import DeliveryState

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = DeliveryState
WHOLE = AcquiredBatch(0, 9)


def run(first, last, state=AVAILABLE, count=0, **more):
    return OffsetRun(first, last, state, count, WHOLE, **more)


def runs_of(*them):
    runs = OffsetRuns()
    for one in them:
        runs.append(one)
    return runs


def shape(runs):
    return [(one.first, one.last, one.state) for one in runs.all]


def test_a_run_is_divided_at_several_points_at_once():
    runs = runs_of(run(0, 4), run(5, 9, ACQUIRED))
    runs.divide((0, 2, 4, 7, 20))
    assert [(one.first, one.last) for one in runs.all] == [(0, 1), (2, 3), (4, 4), (5, 6), (7, 9)]
    runs.divide(())
    assert len(runs) == 5


@pytest.mark.parametrize("start", [1_000_000, 1_000_000 - MOST_SHARED - 500])
def test_runs_of_one_record_share_their_numbers(start):
    batch = AcquiredBatch(start, start + 2 * MOST_SHARED)
    ones = [OffsetRun(offset, offset, AVAILABLE, 0, batch) for offset in range(1_000_000, 1_000_003)]
    assert [(one.first, one.last, one.size) for one in ones] == [(one, one, 1) for one in range(1_000_000, 1_000_003)]
    others = [
        OffsetRun(one + 77, one + 77, AVAILABLE, 0, AcquiredBatch(start + 77, one + 77))
        for one in range(1_000_000, 1_000_003)
    ]
    shared = [mine._first is mine._last is theirs._first for mine, theirs in zip(ones, others, strict=True)]
    assert shared == [start == 1_000_000] * 3


def test_a_run_keeps_its_offsets_in_another_batch():
    one = run(3, 5)
    one.move_to(AcquiredBatch(3, 9))
    assert (one.first, one.last, one.size, one.batch) == (3, 5, 3, (3, 9))


def test_nothing_is_divided_where_there_is_nothing():
    runs = OffsetRuns()
    runs.divide((3,))
    assert not runs
    assert runs.between(0, 9) == []
    assert repr(runs) == "<OffsetRuns []>"


def test_runs_are_isolated_from_what_lies_beside_them():
    runs = runs_of(run(0, 9))
    isolated = runs.isolate(3, 5)
    assert [(one.first, one.last) for one in isolated] == [(3, 5)]
    assert [(one.first, one.last) for one in runs.between(3, 6)] == [(3, 5), (6, 9)]


@pytest.mark.parametrize(
    "other",
    [
        run(5, 9, ACQUIRED),
        run(5, 9, count=1),
        run(5, 9, member="m"),
        run(5, 9, deadline=1.0),
        run(5, 9, before=Before(AVAILABLE, "")),
        OffsetRun(5, 9, AVAILABLE, 0, AcquiredBatch(5, 9)),
    ],
)
def test_only_runs_that_are_alike_are_joined(other):
    runs = runs_of(run(0, 4), other)
    runs.join(0, 9)
    assert len(runs) == 2
    alike = runs_of(run(0, 4), run(5, 9))
    alike.join(5, 5)
    assert shape(alike) == [(0, 9, AVAILABLE)]


def test_settled_runs_in_front_are_dropped():
    changing = run(6, 7, ACKNOWLEDGED, before=Before(ACQUIRED, "m"))
    runs = runs_of(run(0, 3, ACKNOWLEDGED), run(4, 5, ARCHIVED), changing, run(8, 9))
    assert runs.drop_settled() == 6
    assert [one.first for one in runs.all] == [6, 8]
    assert not changing.is_settled
    assert not changing.is_available
    assert "in change" in repr(changing)


def test_everything_before_an_offset_is_dropped():
    runs = runs_of(run(0, 4), run(5, 9, ACQUIRED, member="m", deadline=2.0))
    assert [(one.first, one.last) for one in runs.drop_before(7)] == [(0, 4), (5, 6)]
    assert shape(runs) == [(7, 9, ACQUIRED)]
    assert "of m until 2.0" in repr(runs.all[0])
