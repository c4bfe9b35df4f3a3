"""Compacted and internal topics over a bucket: whatever is compacted, uploaded and taken over, each key has its last value, and no offset is used twice."""

import itertools
import random
from dataclasses import replace

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.bucket import segment_uploader
from horolog.broker.bucket.log_side import Around, BucketLog
from horolog.broker.bucket.manifest import decode
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.seams import Opening, Stretch
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.shipped_safety import ShippedSafety, ShippingLimits
from horolog.broker.log.compaction import Compactor
from horolog.broker.log.manager import LogManager
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.entries import iter_records
from horolog.protocol.records.record import Record
from tests.support.log_model import NEW, NOW_MS, new_storage, read_all, small_config
from tests.support.logs import broker_settings
from tests.support.shipping import TOPIC_ID, ReadyStore, StillLoop, access_to

PLACE = TOPIC_ID, 0
COMPACTED = small_config(
    compact=True, delete=False, segment_bytes=600, min_cleanable_dirty_ratio=0.0, delete_retention_ms=0
)
LIMITS = ShippingLimits(flush_ms=20, flush_bytes=600, unsafe_bytes=1 << 20)


class Clock(ManualClock):
    """Goes with a loop."""

    def __init__(self, loop):
        super().__init__(NOW_MS)
        self.monotonic = lambda: loop.now


class Leader:
    """One broker over the store, with an empty disk."""

    def __init__(self, cluster, node):
        self.cluster, self.loop, self.fences = cluster, StillLoop(), []
        self.clock = Clock(self.loop)
        self.storage = new_storage()
        self.logs = LogManager(["/data"], self.storage, self.clock, broker_settings(), kind=ShippedPartition)
        self.safety = ShippedSafety(self.loop, lambda: LIMITS, lambda _: None, lambda: 0.0)
        around = Around(self.loop, self.clock, cluster.new_nonce)
        self.log = BucketLog(around, access_to(cluster.store), self.logs, self.safety, self)
        self.compactor = Compactor(self.storage, self.storage, ["/data"])
        self.wal = Wal(node, node)
        self.log.begin(self.wal)
        opened = []
        cluster.line.append(Stretch(len(cluster.line), self.wal))
        opening = Opening(cluster.topic, TOPIC_ID, 0, cluster.config, tuple(cluster.line))
        self.log.open_from(opening, opened.append)
        self.loop.advance()
        (self.partition,) = opened

    def fenced(self, fence):
        self.fences.append(fence)

    def proof_of_life(self, sent_s):
        pass

    def lineages(self):
        return {PLACE: tuple(self.cluster.line)}

    def append(self, key, value):
        at_ms = NOW_MS - 10_000
        data = bytes(encode_batch([Record(0, at_ms, 0, key, value)]))
        offset = self.partition.append(data, NOW_MS, produce_version=NEW).base_offset
        self.partition.flush()
        self.log.ship_all([self.partition], lambda _: None)
        self.loop.advance(0.1)
        return offset

    def compact(self):
        """Whether there was something to clean."""
        task = self.compactor.next_pass([self.partition], self.clock.wall_ms(), 1 << 20)
        return task is not None and self.compactor.finish(task, self.compactor.run(task), self.clock.wall_ms())

    def look(self):
        self.log.of_bucket.look()
        self.log.merger.look()
        self.loop.advance(0.1)

    def end(self):
        self.cluster.line[-1] = self.cluster.line[-1]._replace(end=self.log.writer.safe_end)
        self.log.stop(is_fenced=False)


class Cluster:
    """Its leaders, one after the other, and what clients were told."""

    def __init__(self, topic="t", config=COMPACTED):
        self.store, self.line, self.topic, self.config = ReadyStore(), [], topic, config
        nonces, self._nodes = itertools.count(), itertools.count(1)
        self.new_nonce = lambda: b"%16d" % next(nonces)
        self.values, self.end_offset = {}, 0
        self.leader = Leader(self, next(self._nodes))

    def append(self, key, value):
        offset = self.leader.append(key, value)
        assert offset == self.end_offset, "no offset is used twice, none is left out"
        self.end_offset, self.values[key] = offset + 1, value

    def take_over(self):
        self.leader.end()
        self.leader = Leader(self, next(self._nodes))

    def kept(self):
        """The last value of each key, deleted ones left out, as the log has them."""
        found = {}
        for offset, _, key, value, *_ in read_rows(self.leader.partition):
            found[key] = offset, value
        return {key: value for key, (_, value) in found.items() if value is not None}

    @property
    def wanted(self):
        return {key: value for key, value in self.values.items() if value is not None}

    def check(self):
        assert self.kept() == self.wanted
        assert self.leader.partition.log_end_offset == self.end_offset

    @property
    def manifest(self):
        found = [decode(data) for key, data in self.store.objects.items() if key.startswith("manifest/")]
        return max(found, key=lambda one: one.number, default=None)

    def keys(self, folder):
        return {key for key in self.store.objects if key.startswith(f"{folder}/")}


def read_rows(partition):
    offset, found = partition.log_start_offset, []
    while offset < partition.high_watermark:
        data = partition.read(offset, 1 << 20)
        records = [one for one in iter_records(data) if one.offset >= offset]
        if not records:
            break  # the last ones were compacted away
        found += [(one.offset, one.timestamp, one.key, one.value) for one in records]
        offset = records[-1].offset + 1
    return found


@pytest.fixture
def small_merges(monkeypatch):
    monkeypatch.setattr("horolog.broker.bucket.wal_merger.MOST_NUMBERS", 3)
    monkeypatch.setattr("horolog.broker.bucket.wal_merger.LEAST_NUMBERS", 1)


@pytest.mark.usefixtures("small_merges")
@pytest.mark.parametrize("seed", range(8))
def test_each_key_keeps_its_last_value_through_compactions_uploads_and_takeovers(seed):
    chance = random.Random(seed)
    cluster = Cluster()
    for _ in range(60):
        step = chance.choice(["append"] * 5 + ["roll", "compact", "look", "look", "take over"])
        if step == "append":
            for _ in range(chance.randrange(1, 6)):
                value = None if chance.random() < 0.3 else bytes([chance.randrange(256)]) * chance.randrange(1, 60)
                cluster.append(b"%d" % chance.randrange(4), value)
        elif step == "roll" and cluster.leader.partition.segments[-1].size_bytes:
            cluster.leader.partition.roll(NOW_MS)
        elif step == "compact":
            larger = replace(COMPACTED, segment_bytes=chance.choice([600, 3_000]), segment_index_bytes=10_000)
            cluster.leader.partition.configure(larger)
            cluster.leader.compact()
        elif step == "look":
            cluster.leader.look()
        elif step == "take over":
            cluster.take_over()
        cluster.check()
    cluster.take_over()
    cluster.check()


def test_a_compacted_segment_takes_the_place_of_its_sources_and_their_objects_go_later():
    cluster = Cluster()
    for number in range(30):
        cluster.append(b"k", b"%d" % number * 20)
    cluster.leader.partition.roll(NOW_MS)
    cluster.leader.look()
    sources = cluster.manifest.segments
    assert len(sources) > 3
    cluster.leader.partition.configure(replace(COMPACTED, segment_bytes=100_000, segment_index_bytes=10_000))
    assert cluster.leader.compact()
    cluster.leader.look()
    (kept,) = cluster.manifest.segments
    assert (kept.base_offset, kept.next_offset) == (0, sources[-1].next_offset)
    assert kept.contents.size_bytes < sum(one.contents.size_bytes for one in sources) // 3
    assert {one.log_key for one in sources} < cluster.keys("data")
    cluster.leader.loop.advance(3_600)
    assert cluster.keys("data") == {kept.log_key, kept.meta_key}
    cluster.take_over()
    cluster.check()
    before = cluster.manifest
    cluster.leader.look()
    assert cluster.manifest == before, "what was brought here is not uploaded again"


def test_the_wal_of_a_compacted_topic_does_not_grow_for_ever(small_merges):
    cluster = Cluster()
    for number in range(200):
        cluster.append(b"%d" % (number % 3), b"%d" % number * 10)
        if number % 10 == 9:
            cluster.leader.compact()
            cluster.leader.look()
    left = sum(len(data) for key, data in cluster.store.objects.items() if key.startswith(("wal/", "merged/")))
    assert left < 3_000
    cluster.take_over()
    cluster.check()


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state", "__share_group_state"])
def test_topics_of_coordinators_are_here_as_a_whole_whoever_leads_them(topic, monkeypatch):
    monkeypatch.setattr(segment_uploader, "LEAST_BYTES", 200)
    cluster = Cluster(topic, small_config(segment_bytes=600))
    for number in range(30):
        cluster.append(b"%d" % number, b"v" * 30)
    cluster.leader.partition.roll(NOW_MS)
    cluster.leader.look()
    assert cluster.manifest.end_offset == 30
    cluster.take_over()
    assert cluster.leader.partition.front.end_offset == 0
    assert len(read_all(cluster.leader.partition)) == 30, "without waiting for the store"
    cluster.check()


def test_a_segment_that_is_lost_keeps_its_place_and_nothing_else_is_lost(caplog):
    cluster = Cluster("__consumer_offsets", small_config(segment_bytes=600))
    for number in range(30):
        cluster.append(b"%d" % number, b"v" * 30)
    cluster.leader.partition.roll(NOW_MS)
    cluster.leader.look()
    lost = cluster.manifest.segments[1]
    data = cluster.store.objects.pop(lost.log_key)
    cluster.take_over()
    assert "are lost unless it is restored" in caplog.text
    rows = read_rows(cluster.leader.partition)
    assert [one[0] for one in rows] == [one for one in range(30) if not lost.base_offset <= one < lost.next_offset]
    cluster.append(b"x", b"v")
    cluster.leader.partition.roll(NOW_MS)
    cluster.leader.look()
    assert lost in cluster.manifest.segments
    assert cluster.manifest.end_offset == 31
    cluster.store.objects[lost.log_key] = data
    cluster.take_over()
    cluster.check()


def test_a_topic_that_becomes_compacted_is_so_with_the_next_leader():
    """Its first part lies in the bucket alone: a tombstone must not go while what it deletes stays."""
    cluster = Cluster(config=small_config(segment_bytes=600))
    for number in range(30):
        cluster.append(b"k", b"%d" % number * 20)
    cluster.leader.partition.roll(NOW_MS)
    cluster.leader.look()
    cluster.take_over()
    assert cluster.leader.partition.front.end_offset == 30
    cluster.config = COMPACTED
    cluster.leader.partition.configure(COMPACTED)
    cluster.append(b"k", None)
    cluster.leader.partition.roll(NOW_MS)
    assert not cluster.leader.compact()
    cluster.leader.look()
    cluster.take_over()
    assert cluster.leader.compact()
    cluster.leader.look()
    cluster.check()
    cluster.take_over()
    cluster.check()
