"""What the next leader of a partition would copy is closed, uploaded and let go of, before it moves or while it is led."""

import pytest

from horolog.broker.base.answers import run
from horolog.broker.bucket import led_tails
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.seams import Stretch
from horolog.broker.bucket.store_upkeep import LetGo
from tests.support.shipping import TOPIC_ID, ReadyStore, StillLoop, access_to, append, put_object, run_at
from tests.unit.broker.bucket.test_log_side import ONE, TWO, Side

WITHIN_S = 2.0


@pytest.fixture
def store():
    return ReadyStore()


@pytest.fixture
def side(store):
    return Side(StillLoop(), access_to(store))


@pytest.mark.parametrize("stretches", [led_tails.MOST_STRETCHES, led_tails.MOST_STRETCHES + 1])
def test_the_small_segment_of_a_long_lineage_is_closed_once_so_that_no_earlier_wal_is_read(store, stretches):
    side = Side(StillLoop(), access_to(store))
    wals = [Wal(node, node * 10) for node in range(1, stretches)]
    for offset, wal in enumerate(wals):
        put_object(store, wal, 0, run_at(offset, 0, epoch=offset))
    line = [*((epoch, wal, 1) for epoch, wal in enumerate(wals)), (stretches, TWO)]
    side.cluster.lineages = lambda: {(TOPIC_ID, 0): tuple(Stretch(*one) for one in line)}
    side.log.begin(TWO)
    place = side.open(*line)
    side.loop.advance(70)
    (partition,) = side.opened
    is_long = stretches > led_tails.MOST_STRETCHES
    assert side.cluster.covered[:1] == [{place: stretches}] * is_long
    assert len(partition.segments) == 1 + is_long
    assert sum(name.endswith(".log") for name in store.objects) == is_long
    append(partition, 7)
    side.log.ship_all([partition], lambda _: None)
    side.loop.advance(30)
    assert len(partition.segments) == 1 + is_long, "the segment that this broker alone has written stays open"


@pytest.mark.parametrize("count", [led_tails.MOST_OBJECTS, led_tails.MOST_OBJECTS + 1])
def test_the_small_segment_of_many_small_objects_is_closed_so_that_the_next_leader_reads_one(store, side, count):
    for number in range(count):
        put_object(store, ONE, number, run_at(number, number))
    line = [(0, ONE, count), (1, TWO)]
    side.cluster.lineages = lambda: {(TOPIC_ID, 0): tuple(Stretch(*one) for one in line)}
    side.log.begin(TWO)
    place = side.open(*line)
    side.loop.advance(4)
    are_many = count > led_tails.MOST_OBJECTS
    assert side.cluster.covered[:1] == [{place: 1}] * are_many
    store.asked.clear()
    other = Side(StillLoop(), access_to(store))
    other.open(*([(1, TWO, 0)] if are_many else [(0, ONE, count), (1, TWO, 0)]), (2, Wal(3, 30)))
    other.loop.advance()
    assert other.opened[0].log_end_offset == count
    assert len([one for one in store.asked if one.startswith("wal/")]) == (0 if are_many else count)


class Moving:
    """Partitions that a broker leads after others, and that are to move."""

    def __init__(self, store, earlier=1, partitions=1):
        self.side = Side(StillLoop(), access_to(store))
        wals = [Wal(node, node * 10) for node in range(3, 3 + earlier)]
        for offset, wal in enumerate(wals):
            put_object(store, wal, 0, *(run_at(offset, 0, epoch=offset, partition=one) for one in range(partitions)))
        self.before = [(epoch, wal, 1) for epoch, wal in enumerate(wals)]
        self.lineages = {}
        self.side.cluster.lineages = lambda: self.lineages
        self.side.log._upkeep._cluster = LetGo(tails_covered=self._let_go)
        self.covered = []
        self.side.log.begin(TWO)
        for partition in range(partitions):
            line = [*self.before, (earlier, TWO)]
            place = self.side.open(*line, partition=partition)
            self.lineages[place] = tuple(Stretch(*one) for one in line)
        self.side.loop.advance()
        self.places = list(self.lineages)

    def _let_go(self, epochs):
        """`TailsCovered` is in the journal."""
        self.covered.append(epochs)
        for place in epochs:
            self.lineages[place] = self.lineages[place][-1:]

    def shorten(self, *places):
        ended = []

        async def steps():
            await self.side.log.tails.shorten(places or self.places, WITHIN_S)
            ended.append(self.side.loop.now)

        run(steps())
        return ended


def test_a_partition_that_moves_leaves_its_heir_no_wal_of_earlier_leaders(store):
    moving = Moving(store, partitions=3)
    assert repr(moving.side.log.tails) == "<LedTails of 3 partitions>"
    first, second, _ = moving.places
    ended = moving.shorten(first, second)
    moving.side.loop.advance(0.1)
    assert moving.covered == [{first: 1, second: 1}]
    assert ended
    assert ended[0] < WITHIN_S
    assert [len(one.segments) for one in moving.side.opened] == [2, 2, 1]
    store.asked.clear()
    heir = Side(StillLoop(), access_to(store))
    heir.open((1, TWO, 0), (2, Wal(7, 70)))
    heir.loop.advance()
    assert [one.log_end_offset for one in heir.opened] == [1]
    assert not [one for one in store.asked if one.startswith(("wal/", "merged/"))]


def test_a_long_tail_of_one_leader_is_covered_and_a_short_one_is_not(store, monkeypatch):
    moving = Moving(store, earlier=0)
    (partition,) = moving.side.opened
    append(partition, 7)
    moving.side.log.ship_all([partition], lambda _: None)
    assert moving.shorten() == [0.0]
    assert len(partition.segments) == 1
    monkeypatch.setattr(led_tails, "LONG_BYTES", 1)
    moving.shorten()
    moving.side.loop.advance(0.1)
    assert moving.side.log.of_bucket.manifests.covered_end(partition) == 1
    assert moving.covered == []


def test_a_move_that_is_cancelled_half_way_leaves_uploads_as_they_were(store, monkeypatch):
    moving = Moving(store)
    uploader, asked = moving.side.log.of_bucket.uploader, []
    monkeypatch.setattr(uploader, "look", lambda *at_once: asked.append(at_once))
    steps = moving.side.log.tails.shorten(moving.places, WITHIN_S)
    steps.send(None)
    steps.close()
    moving.side.log.of_bucket.look()
    assert asked == [(led_tails.MOVING_AT_ONCE,), ()]


def test_what_cannot_be_uploaded_in_time_is_not_waited_for(store, monkeypatch):
    moving = Moving(store)
    monkeypatch.setattr(moving.side.log.of_bucket.uploader, "look", lambda *_: None)
    ended = moving.shorten()
    moving.side.loop.advance(WITHIN_S - 0.1)
    assert ended == []
    moving.side.loop.advance(0.2)
    assert len(ended) == 1
    assert moving.covered == []


def test_a_partition_that_moves_on_meanwhile_is_not_waited_for(store, monkeypatch):
    moving = Moving(store)
    monkeypatch.setattr(moving.side.log.of_bucket.uploader, "look", lambda *_: None)
    ended = moving.shorten()
    moving.side.log.give_up(moving.places[0])
    moving.side.loop.advance(0.1)
    assert len(ended) == 1


def test_a_partition_whose_disk_fails_is_left_as_it_is(store):
    moving = Moving(store)
    moving.side.opened[0].condition.go_offline("the disk failed")
    assert moving.shorten() == [0.0]
    assert moving.shorten((b"x" * 16, 0)) == [0.0]


def test_what_is_on_its_way_to_the_store_is_covered_as_well(store):
    moving = Moving(store)
    (partition,) = moving.side.opened
    append(partition, 7)
    ended = moving.shorten()
    moving.side.loop.advance(0.1)
    assert ended == []
    moving.side.log.ship_all([partition], lambda _: None)
    moving.side.loop.advance(0.1)
    assert len(ended) == 1
    assert moving.side.log.of_bucket.manifests.covered_end(partition) == 2
    assert moving.covered == [{moving.places[0]: 1}]


def test_of_many_partitions_some_are_covered_a_few_at_a_time(store, monkeypatch):
    monkeypatch.setattr(led_tails, "CLOSED_AT_ONCE", 2)
    monkeypatch.setattr(led_tails, "MOST_MOVING", 5)
    moving = Moving(store, partitions=7)
    closed = []
    monkeypatch.setattr(moving.side.log.of_bucket.uploader, "close", closed.append)
    moving.shorten()
    assert len(closed) == 2
    moving.side.loop.advance()
    assert len(closed) == 5


def test_records_that_arrive_behind_a_closed_segment_are_not_waited_for(store, monkeypatch):
    monkeypatch.setattr(led_tails, "CLOSED_AT_ONCE", 1)
    moving = Moving(store, partitions=2)
    ended = moving.shorten()
    append(moving.side.opened[0], 7)
    moving.side.loop.advance(0.1)
    assert len(ended) == 1
    assert list(moving.covered[0]) == moving.places
