"""Where a mirror goes on, and what it may lose by the rules of the topic on B."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

from horolog.client.values.errors import UnsupportedVersion
from horolog.client.values.types import EARLIEST, Committed, TopicPartition
from horolog.client.wire.offsets import LARGEST_TIMESTAMP
from horolog.pipeline.jobs import mirror_target
from horolog.pipeline.jobs.loading import TopicRules
from horolog.pipeline.jobs.mirror_copy import Link, Progress
from horolog.pipeline.jobs.mirror_target import (
    MirrorRefused,
    PartitionBounds,
    binding,
    bounds_of,
    can_lose,
    check_places,
    cluster_of,
    from_first,
    go_on,
    noted,
    own_settings,
    rules_or_none,
    stricter,
)

PLACE = TopicPartition("t", 0)


def test_where_a_partition_goes_on():
    there = PartitionBounds(10, 20, 15, has_records_on_target=True)
    empty = PartitionBounds(10, 20, 15, has_records_on_target=False)
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
    new = PartitionBounds(0, 20, 0, has_records_on_target=True, topic_id="new")
    assert go_on(PLACE, Progress(12, 3, "new"), new, force=False) == Progress(12, 3, "new")
    with pytest.raises(MirrorRefused, match="deleted and recreated since: its id was old, and is new now"):
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
    bounds = {PLACE: PartitionBounds(10, 20, 15, has_records_on_target=False)}
    added = TopicPartition("t", 1)
    grown = bounds | {added: PartitionBounds(0, 9, 7, has_records_on_target=False)}
    assert from_first(bounds, ()) == bounds
    assert from_first(grown, [PLACE]) == bounds | {added: PartitionBounds(0, 9, 0, has_records_on_target=False)}


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


class Cluster:
    """A client of a cluster: its id, and of each topic its partitions with the offsets of their start and end."""

    def __init__(self, cluster_id="a", **topics):
        self.topics = topics
        self.view = SimpleNamespace(
            cluster_id=cluster_id,
            topics={
                name: SimpleNamespace(numbers=list(range(len(ends))), error_code=0, id=bytes(15) + b"\x01")
                for name, ends in topics.items()
            },
        )

    async def metadata(self, topics=None):
        return self.view


@pytest.fixture
def offsets(monkeypatch):
    """Answers of clusters about offsets; the record after a time is the first with a larger offset."""

    async def ends(client, places, isolation=0):
        return {
            place: client.topics[place.topic][place.partition][which != EARLIEST] for place, which in places.items()
        }

    async def list_offsets(client, places, isolation=0):
        def at(place, ms):
            first, last = client.topics[place.topic][place.partition]
            if ms == LARGEST_TIMESTAMP:
                return SimpleNamespace(offset=last - 1, timestamp_ms=last - 1) if last > first else None
            return SimpleNamespace(offset=max(first, ms), timestamp_ms=ms) if ms < last else None

        return {place: at(place, ms) for place, ms in places.items()}

    monkeypatch.setattr(mirror_target, "ends", ends)
    monkeypatch.setattr(mirror_target, "list_offsets", list_offsets)


def test_a_cluster_without_an_id_is_its_address():
    assert asyncio.run(cluster_of(Cluster("c"), "h:1")) == "c"
    assert asyncio.run(cluster_of(Cluster(None), "h:1")) == "h-1"


def test_places_are_checked_before_anything_is_made(monkeypatch):
    source = Cluster("a", t=[(0, 1), (0, 1)])
    assert asyncio.run(check_places(source, Cluster("b", t=[(0, 0)] * 3), "t"))
    assert not asyncio.run(check_places(source, Cluster("b"), "t"))
    assert not asyncio.run(check_places(Cluster(None, t=[(0, 1)]), Cluster(None), "t"))
    with pytest.raises(MirrorRefused, match="both addresses belong to the cluster a"):
        asyncio.run(check_places(source, Cluster("a"), "t"))
    with pytest.raises(MirrorRefused, match="topic t has 2 partitions, and 1 on cluster B"):
        asyncio.run(check_places(source, Cluster("b", t=[(0, 0)]), "t"))

    async def why(client, topic):
        return LookupError(f"no {topic}")

    monkeypatch.setattr(mirror_target, "why_no_topic", why)
    with pytest.raises(LookupError, match="no x"):
        asyncio.run(check_places(source, Cluster("b"), "x"))


def setting(value, source=1, *, sensitive=False):
    return SimpleNamespace(value=value, source=source, sensitive=sensitive)


class FakeAdmin:
    def __init__(self, configs):
        self.configs = configs

    async def describe_configs(self, kind, name):
        if self.configs is None:
            raise UnsupportedVersion("too old")
        return self.configs

    async def group_offsets(self, group, places):
        return {place: Committed(12, "by hand") if place.partition == 0 else None for place in places}


def test_the_own_settings_of_a_topic_go_along_and_its_times_stay():
    configs = {
        "retention.ms": setting("7"),
        "segment.bytes": setting("1", source=5),
        "ssl.key": setting("x", sensitive=True),
        "message.format.version": setting("0.10"),
        "message.timestamp.type": setting("LogAppendTime"),
    }
    assert asyncio.run(own_settings(FakeAdmin(configs), "t")) == {"retention.ms": "7"}
    kept = {"message.timestamp.type": setting("CreateTime")}
    assert asyncio.run(own_settings(FakeAdmin(kept), "t")) == {"message.timestamp.type": "CreateTime"}
    assert asyncio.run(own_settings(FakeAdmin(None), "t")) == {}


def test_a_broker_that_is_too_old_to_say_has_no_rules():
    found = asyncio.run(rules_or_none(FakeAdmin(None), "t"))
    assert not can_lose(found)


@pytest.mark.parametrize(("now_ms", "bound"), [(0, 5), (4, 2**63 - 1)])
def test_a_bound_on_the_future_counts_only_if_a_record_may_be_beyond_it(offsets, now_ms, bound):
    rules = TopicRules(-1, -1, 2**63 - 1, 5, False, False, 1)
    found = asyncio.run(binding(rules, Cluster(t=[(0, 10)]), {PLACE: (0, 10)}, now_ms))
    assert found.after_max_ms == bound


def test_the_bound_stays_where_it_cannot_be_asked_for(offsets, monkeypatch):
    rules = TopicRules(-1, -1, 2**63 - 1, 5, False, False, 1)
    assert asyncio.run(binding(rules, Cluster(), {}, 0)) is rules
    unlimited = replace(rules, after_max_ms=2**63 - 1)
    assert asyncio.run(binding(unlimited, Cluster(), {PLACE: (0, 1)}, 0)) is unlimited

    async def too_old(client, places):
        raise UnsupportedVersion("too old")

    monkeypatch.setattr(mirror_target, "list_offsets", too_old)
    assert asyncio.run(binding(rules, Cluster(t=[(0, 9)]), {PLACE: (0, 9)}, 0)) is rules
    assert asyncio.run(binding(rules, Cluster(t=[(3, 3)]), {PLACE: (3, 3)}, 0)) is rules


def test_the_bounds_of_every_partition(offsets):
    source, target = Cluster("a", t=[(2, 9), (0, 4), (5, 5)]), Cluster("b", t=[(0, 3), (7, 7)])
    found = asyncio.run(bounds_of(source, target, "t", 6))
    said = "AAAAAAAAAAAAAAAAAAAAAQ"
    assert found == {
        TopicPartition("t", 0): PartitionBounds(2, 9, 6, True, said),
        TopicPartition("t", 1): PartitionBounds(0, 4, 4, False, said),
        TopicPartition("t", 2): PartitionBounds(5, 5, 5, False, said),
    }
    whole = asyncio.run(bounds_of(source, Cluster("b"), "t", None))
    assert [each.begin for each in whole.values()] == [2, 0, 5]
    assert asyncio.run(bounds_of(source, target, "gone", None)) == {}


def test_progress_is_what_the_target_has_of_the_mirror():
    link = Link("a:1", "b:1", "g")
    found = asyncio.run(noted(FakeAdmin({}), link, {PLACE: None, TopicPartition("t", 1): None}))
    assert found == {PLACE: Progress(12, 0)}
