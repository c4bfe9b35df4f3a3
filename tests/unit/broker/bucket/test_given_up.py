"""Partitions that the log's half gives up: their files go in turns, unless they are made again, deleted, or the broker stops."""

from tests.support.log_model import read_all
from tests.support.shipping import put_object, run_at
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


def test_files_of_a_deleted_topic_go_at_once_also_after_it_was_given_up(store, side):
    place = side.open((1, TWO))
    side.loop.advance()
    (partition,) = side.opened
    side.log.give_up(place)
    side.log.remove(place)
    assert not side.logs.resources.storage.is_dir(partition.directory)


def test_nothing_is_cleared_after_a_stop(store, side):
    place = side.open((1, TWO))
    side.loop.advance()
    (partition,) = side.opened
    side.log.give_up(place)
    side.log.stop(is_fenced=True)
    side.loop.advance(1)
    assert side.logs.resources.storage.is_dir(partition.directory), "the next start removes it"
