"""Where a mirror goes on, and what it may lose by the rules of the topic on B."""

from dataclasses import replace

import pytest

from horolog.client.values.types import Committed, TopicPartition
from horolog.pipeline.jobs.loading import TopicRules
from horolog.pipeline.jobs.mirror_copy import Progress
from horolog.pipeline.jobs.mirror_target import Bounds, MirrorRefused, can_lose, from_first, go_on, stricter

PLACE = TopicPartition("t", 0)


def test_where_a_partition_goes_on():
    there = Bounds(10, 20, 15, has_records_on_target=True)
    empty = Bounds(10, 20, 15, has_records_on_target=False)
    assert go_on(PLACE, None, empty, force=False) == Progress(15, 15)
    assert go_on(PLACE, Progress(12, 3), there, force=False) == Progress(12, 3)
    assert go_on(PLACE, Progress(20, 3), there, force=False) == Progress(20, 3)
    assert go_on(PLACE, Progress(5, 3), there, force=True) == Progress(10, 3)
    assert go_on(PLACE, None, there, force=True) == Progress(15, 15)
    for have in (None, Progress(5, 3)):
        with pytest.raises(MirrorRefused):
            go_on(PLACE, have, there, force=False)
    for force in (True, False):
        with pytest.raises(MirrorRefused):
            go_on(PLACE, Progress(21, 3), there, force=force)


def test_a_topic_that_was_made_anew_is_not_gone_on_with():
    """Also if it has more records by now than were mirrored of the old one."""
    new = Bounds(0, 20, 0, has_records_on_target=True, topic_id="new")
    assert go_on(PLACE, Progress(12, 3, "new"), new, force=False) == Progress(12, 3, "new")
    with pytest.raises(MirrorRefused, match="deleted and made anew since: its id was old, and is new now"):
        go_on(PLACE, Progress(12, 3, "old"), new, force=False)
    assert go_on(PLACE, Progress(12, 3, "old"), new, force=True) == Progress(0, 0, "new")
    assert go_on(PLACE, Progress(12, 3), new, force=False) == Progress(12, 3, "new")  # noted by an older release
    assert go_on(PLACE, Progress(12, 3, "old"), replace(new, topic_id=None), force=False) == Progress(12, 3, "old")


@pytest.mark.parametrize("progress", [Progress(12, 3), Progress(12, 3, "AbC-_d")])
def test_progress_is_noted_and_read(progress):
    assert Progress.of(progress.committed()) == progress


def test_progress_that_was_set_by_hand_says_nothing_of_where_copying_began():
    assert Progress.of(Committed(7, "by hand")) == Progress(7, 0)


def test_since_is_for_a_topic_of_which_nothing_is_mirrored():
    bounds = {PLACE: Bounds(10, 20, 15, has_records_on_target=False)}
    added = TopicPartition("t", 1)
    grown = bounds | {added: Bounds(0, 9, 7, has_records_on_target=False)}
    assert from_first(bounds, ()) == bounds
    assert from_first(grown, [PLACE]) == bounds | {added: Bounds(0, 9, 0, has_records_on_target=False)}


def test_only_rules_that_are_stricter_count():
    longest = 2**63 - 1

    def rules(retention_ms=-1, retention_bytes=-1, deletes=True):
        return TopicRules(retention_ms, retention_bytes, longest, longest, False, deletes, 1)

    assert not can_lose(stricter(rules(7, 7), rules(7, 7)))
    assert not can_lose(stricter(rules(8, 8), rules(7, 7)))
    assert not can_lose(stricter(rules(), rules()))
    assert stricter(rules(6, 8), rules(7, 7)).retention_ms == 6
    assert can_lose(stricter(rules(7), rules()))
    assert can_lose(stricter(rules(7), rules(7, deletes=False)))
    assert not can_lose(stricter(rules(7, deletes=False), rules()))
