"""Partitions that the log's half gives up: their files go in turns, unless they are made again, deleted, or the broker stops."""

import gc
import weakref
from itertools import pairwise

import pytest

from horolog.broker.bucket.log_side import BucketLog
from horolog.broker.bucket.seams import Opening, Stretch
from horolog.broker.bucket.short_turns import MOST_IN_TURN
from tests.support.log_model import read_all, small_config
from tests.support.shipping import append, put_object, run_at
from tests.unit.broker.bucket.test_log_side import ONE, TWO, side, store

__all__ = ["side", "store"]


def test_a_partition_that_is_led_again_at_once_keeps_its_new_files(store, side):
    put_object(store, ONE, 0, run_at(0, 0))
    place = side.open((0, ONE, 1), (1, TWO))
    side.loop.advance()
    side.log.give_up(place)
    side.open((0, ONE, 1), (3, TWO))
    side.loop.advance(1)
    again = side.opened[-1]
    assert (again.leader_epoch, again.high_watermark) == (3, 1)
    assert side.logs.resources.storage.is_dir(again.directory)
    assert len(read_all(again)) == 1


@pytest.mark.parametrize("leave", [BucketLog.remove, BucketLog.give_up])
def test_leaving_many_partitions_touches_no_file_before_the_next_turn(side, leave):
    places = [side.open((1, TWO), partition=number) for number in range(300)]
    side.loop.advance()
    storage = side.logs.resources.storage
    rename, renamed, counts = storage.rename, [], [0]
    storage.rename = lambda *paths: (renamed.append(paths), rename(*paths))
    for place in places:
        leave(side.log, place)
    assert renamed == []
    assert all(one.condition.is_deleted for one in side.opened)

    def note():
        counts.append(len(renamed))
        if counts[-1] < 300:
            side.loop.call_soon(note)

    side.loop.call_soon(note)
    side.loop.advance()
    assert max(after - before for before, after in pairwise(counts)) <= MOST_IN_TURN
    assert not any(storage.is_dir(one.directory) for one in side.opened)


def test_the_memory_of_partitions_that_are_given_up_is_free_without_a_full_collection(side):
    """Full collections hold the loop, so a broker hardly ever has one."""
    side.log.begin(TWO)
    places = [side.open((1, TWO), partition=number) for number in range(3)]
    side.loop.advance()
    fronts = [weakref.ref(one.front) for one in side.opened]
    append(side.opened[0], 1)
    side.log.ship_all(side.opened[:1], lambda _: None)
    side.loop.advance(10)
    gc.disable()
    try:
        for place in places:
            side.log.give_up(place)
        side.opened.clear()
        side.shown.clear()
        side.loop.advance(10)
        assert [one() for one in fronts] == [None] * 3
    finally:
        gc.enable()


def test_a_topic_of_the_same_name_as_a_deleted_one_keeps_its_files(store, side):
    place = side.open((1, TWO))
    side.loop.advance()
    side.log.remove(place)
    other = Opening("t", b"other topic's id", 0, small_config(), (Stretch(0, TWO),))
    put_object(store, TWO, 0, run_at(0, 0, topic_id=other.topic_id))
    side.log.open_from(other, side.opened.append)
    side.loop.advance(1)
    again = side.opened[-1]
    assert (again.topic_id, again.condition.fault) == (other.topic_id, None)
    assert side.logs.resources.storage.is_dir(again.directory)
    append(again, 5)


def test_nothing_is_cleared_after_a_stop(store, side):
    place = side.open((1, TWO))
    side.loop.advance()
    (partition,) = side.opened
    side.log.give_up(place)
    side.log.stop(is_fenced=True)
    side.loop.advance(1)
    assert side.logs.resources.storage.is_dir(partition.directory), "the next start removes it"
