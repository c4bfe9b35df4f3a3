"""Now and then one broker has the cluster let go of objects that no broker reads."""

from horolog.base.clock import ManualClock
from horolog.broker.bucket import store_upkeep
from horolog.broker.bucket.led_segments import SegmentCare
from horolog.broker.bucket.names import Wal, key, segments
from horolog.broker.bucket.store_upkeep import StoreUpkeep
from tests.support.log_model import NOW_MS
from tests.support.shipping import TOPIC_ID, ReadyStore, access_to, put_object, run_at

PLACE, ONE, TWO = (TOPIC_ID, 0), Wal(1, 10), Wal(2, 20)


class Cluster:
    def __init__(self):
        self.covered, self.asked = [], []

    def tails_covered(self, epochs):
        self.covered.append(epochs)

    def spent(self, wals):
        self.asked.append(set(wals))
        return wals

    def gone(self, topic_ids):
        self.asked.append(set(topic_ids))
        return topic_ids


class World:
    def __init__(self, history_ms=0):
        self.store, self.clock, self.cluster, self.tails = ReadyStore(), ManualClock(NOW_MS), Cluster(), {}
        care = SegmentCare(history_ms=lambda: history_ms)
        self.upkeep = StoreUpkeep(access_to(self.store), self.clock, lambda: b"n" * 16, self.cluster, care)

    def look(self, after_s):
        self.clock.advance(int(after_s * 1000))
        self.upkeep.look(lambda: self.tails)


def test_covered_tails_are_reported_now_and_then():
    world = World()
    world.look(store_upkeep.TAILS_EVERY_S)
    assert world.cluster.covered == []
    world.tails = {PLACE: 3}
    world.look(store_upkeep.TAILS_EVERY_S - 1)
    assert world.cluster.covered == []
    world.look(1)
    assert world.cluster.covered == [{PLACE: 3}]


def test_wals_are_swept_every_ten_minutes_and_topics_every_day():
    world = World()
    put_object(world.store, ONE, 0, run_at(0, 0))
    world.store.objects[f"{segments(TOPIC_ID, 0)}/a.log"] = b""
    world.look(store_upkeep.WALS_EVERY_S - 1)
    assert world.cluster.asked == []
    world.look(1)
    assert (world.cluster.asked, key(ONE.marks, 0) in world.store.objects) == ([{ONE}], True)
    world.look(store_upkeep.TOPICS_EVERY_S)
    assert world.cluster.asked[1:] == [set(), set(), {TOPIC_ID}]
    assert list(world.store.objects) == [key(ONE.marks, 0)]
    assert "sweeping" not in repr(world.upkeep)


def test_one_sweep_is_under_way_at_a_time():
    world, waiting = World(), []
    world.store.folders = lambda prefix, done: waiting.append(prefix)
    for _ in range(2):
        world.look(store_upkeep.TOPICS_EVERY_S)
    assert waiting == ["wal"]
    assert "sweeping" in repr(world.upkeep)


def test_a_wal_whose_mark_cannot_be_read_stays_and_the_others_go(caplog):
    world = World()
    for wal in (ONE, TWO):
        put_object(world.store, wal, 0, run_at(0, 0))
    world.store.objects[key(ONE.marks, 0)] = b"damaged"
    world.look(store_upkeep.WALS_EVERY_S)
    assert set(world.store.objects) == {key(ONE.folder, 0), key(ONE.marks, 0), key(TWO.marks, 0)}
    assert "wal/1-10 is not removed, because its mark cannot be read" in caplog.text
    assert "sweeping" not in repr(world.upkeep)


def test_a_wal_that_is_spent_stays_as_long_as_its_history():
    world = World(history_ms=int(store_upkeep.WALS_EVERY_S * 8_000))
    put_object(world.store, ONE, 0, run_at(0, 0))
    for _ in range(9):
        assert key(ONE.folder, 0) in world.store.objects
        world.look(store_upkeep.WALS_EVERY_S)
    assert list(world.store.objects) == [key(ONE.marks, 0)]


def test_a_topic_that_is_gone_stays_as_long_as_its_history():
    world = World(history_ms=int(store_upkeep.TOPICS_EVERY_S * 1_000))
    name = f"{segments(TOPIC_ID, 0)}/a.log"
    world.store.objects[name] = b""
    for _ in range(2):
        assert name in world.store.objects
        world.look(store_upkeep.WALS_EVERY_S)
        world.look(store_upkeep.TOPICS_EVERY_S)
    assert name not in world.store.objects


def test_the_history_of_a_topic_begins_when_it_is_deleted_not_when_a_broker_did_not_know_it_yet():
    day = store_upkeep.TOPICS_EVERY_S
    world, log = World(history_ms=int(2 * day * 1000)), f"{segments(TOPIC_ID, 0)}/a.log"
    world.store.objects[log] = b""
    world.look(day)
    world.cluster.gone = lambda _: ()
    world.look(day)
    del world.cluster.gone
    for _ in range(2):
        world.look(day)
        assert log in world.store.objects
    world.look(day)
    assert log not in world.store.objects
