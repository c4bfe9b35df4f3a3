"""What a hand-over asks of the store: few requests for a WAL, and two for each partition, or four if it has segments."""

from collections import Counter

import pytest

from horolog.broker.base.answers import run
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.seams import Stretch
from horolog.broker.bucket.store_upkeep import LetGo
from horolog.broker.bucket.wal_merger import LEAST_NUMBERS
from tests.support.log_model import NOW_MS, read_all
from tests.support.shipping import TOPIC_ID, ReadyStore, StillLoop, access_to, append
from tests.unit.broker.bucket.test_log_side import ONE, TWO, Side

PARTITIONS = 12
THREE = Wal(3, 30)


class Counting(ReadyStore):
    """Counts its reads by their kind and the first folder of the key."""

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def _read(self, key, *more):
        self.counts["get", key.partition("/")[0]] += 1
        super()._read(key, *more)

    def list(self, prefix, *more, **options):
        self.counts["list", prefix.partition("/")[0]] += 1
        super().list(prefix, *more, **options)


def led(store, wal, *line):
    """A broker that leads all partitions, whose lineage is that line and its own stretch."""
    side = Side(StillLoop(), access_to(store))
    whole_line = tuple(Stretch(*one) for one in (*line, (len(line), wal)))
    side.cluster.lineages = lambda: {(TOPIC_ID, partition): whole_line for partition in range(PARTITIONS)}
    side.log.begin(wal)
    for partition in range(PARTITIONS):
        side.open(*line, (len(line), wal), partition=partition)
    side.loop.advance()
    assert len(side.opened) == PARTITIONS
    return side


def written(side, times):
    """Each partition takes a record in each number of the WAL; returns where the WAL ends."""
    ends = []
    for _ in range(times):
        for partition in side.opened:
            append(partition, 7)
        side.log.ship_all(side.opened, ends.append)
    return ends[-1]


@pytest.mark.parametrize("has_segments", [False, True])
@pytest.mark.parametrize("rounds", [0, 2])
def test_a_planned_stop_costs_its_heir_few_requests(has_segments, rounds):
    store = Counting()
    before = led(store, ONE)
    written(before, 1)
    if has_segments:
        for partition in before.opened:
            partition.roll(NOW_MS)
        before.loop.advance(10)
    merged_end = written(before, LEAST_NUMBERS)
    before.log.merge_rest(5.0, lambda _: None)
    end = written(before, rounds) if rounds else merged_end
    store.counts.clear()
    heir = led(store, TWO, (0, ONE, end))
    assert [one.log_end_offset for one in heir.opened] == [1 + LEAST_NUMBERS + rounds] * PARTITIONS
    asked = {("list", "mark"): 1, ("get", "mark"): 1, ("list", "merged"): 1, ("get", "merged"): 1}
    asked["list", "manifest"] = 2 * PARTITIONS
    if rounds:
        asked["get", "wal"] = end - merged_end
    if has_segments:
        asked |= {("get", "manifest"): PARTITIONS, ("get", "data"): PARTITIONS}
    assert store.counts == asked
    assert has_segments or len(read_all(heir.opened[-1])) == 1 + LEAST_NUMBERS + rounds


def test_a_planned_stop_after_others_costs_its_heir_no_request_for_their_wals():
    """Whatever earlier leaders have written lies in segments by then."""
    store = Counting()
    before = led(store, ONE)
    end = written(before, LEAST_NUMBERS)
    stops = led(store, TWO, (0, ONE, end))
    lineages = dict(stops.cluster.lineages())
    stops.cluster.lineages = lambda: lineages

    def let_go(epochs):
        lineages.update({place: lineages[place][-1:] for place in epochs})

    stops.log._upkeep._cluster = LetGo(tails_covered=let_go)
    merged_end = written(stops, LEAST_NUMBERS)
    run(stops.log.tails.shorten(list(lineages), 2.0))
    stops.loop.advance(1)
    assert {len(line) for line in lineages.values()} == {1}
    stops.log.merge_rest(5.0, lambda _: None)
    end = written(stops, 2)
    store.counts.clear()
    heir = led(store, THREE, (1, TWO, end))
    assert [one.log_end_offset for one in heir.opened] == [2 * LEAST_NUMBERS + 2] * PARTITIONS
    assert store.counts == {
        ("list", "mark"): 1,
        ("get", "mark"): 1,
        ("list", "merged"): 1,
        ("get", "wal"): end - merged_end,
        ("list", "manifest"): 2 * PARTITIONS,
        ("get", "manifest"): PARTITIONS,
        ("get", "data"): PARTITIONS,
    }
