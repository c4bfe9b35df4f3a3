"""One partition as segments and a manifest, or as runs."""

import pytest

from horolog.broker.bucket import manifest, manifest_pages, segment_meta
from horolog.broker.bucket.manifest_reader import paged
from horolog.broker.bucket.producers_behind import known_at
from horolog.broker.transfer import partition_import
from horolog.broker.transfer.partition_import import Partway, PrefixTaken, bring_segments, put, runs_of, segments_of
from horolog.protocol.records.head import heads_in
from tests.support import transactional
from tests.support.imported import EVENTS, TABLE, Folder, Target
from tests.support.log_model import NEW, NOW_MS

NONCE = b"n" * 16


@pytest.fixture
def target():
    made = Target()
    yield made
    made.waiting.close()


@pytest.fixture
def folder():
    return Folder()


def partway(folder, topic):
    return Partway(folder.partitions[topic.name, 0], (topic.id, 0), NONCE)


def brought(target, one, there=frozenset()):
    sizes = []
    target.result(bring_segments(target.waiting.access, one, there, sizes.append))
    return manifest.decode(target.store.get(f"manifest/{one.place[0].hex()}/0/{0:020}")), sizes


def test_the_manifest_names_the_segments(target, folder):
    found, sizes = brought(target, partway(folder, EVENTS))
    logs = [target.store.get(one.log_key) for one in found.segments]
    assert [len(one) for one in logs] == sizes
    assert [head.base_offset for one in logs for head in heads_in(one)] == list(range(12))
    assert (found.start_offset, found.epoch, found.end_offset) == (0, 0, 12)
    assert all(segment_meta.decode(target.store.get(one.meta_key)).place == (EVENTS.id, 0) for one in found.segments)


def test_what_an_earlier_attempt_has_made_is_not_sent_again(target, folder):
    one = partway(folder, EVENTS)
    first = brought(target, one)[0]
    there = frozenset(target.objects())
    for segment in first.segments:
        target.store.delete(segment.log_key)
    again, _ = brought(target, one, there)
    assert again == first
    assert not {segment.log_key for segment in first.segments} & target.objects().keys()


def test_a_long_log_has_pages(target, folder, monkeypatch):
    monkeypatch.setattr(manifest_pages, "MOST_SEGMENTS", 2)
    monkeypatch.setattr(manifest_pages, "PAGE_SEGMENTS", 1)
    all_of_it = [one.segment for one in segments_of(partway(folder, EVENTS))]
    found, _ = brought(target, partway(folder, EVENTS))
    assert (len(found.pages), len(found.segments)) == (len(all_of_it) - 2, 2)
    assert [*target.result(paged(target.waiting.access, found)), *found.segments] == all_of_it


def test_a_partition_without_records_has_a_manifest_for_its_start(target, folder):
    folder.partitions["events", 0] = folder.new(
        TABLE.__class__("other", b"o" * 16, 1, {}), folder.partitions["events", 0].config
    )
    found, sizes = brought(target, partway(folder, EVENTS))
    assert (found.segments, sizes) == ((), [])


def test_the_last_segment_has_the_producers_of_the_partition(folder):
    partition = folder.partitions["events", 0]
    partition.append(transactional.batch([b"v"], 7, 0, 0), NOW_MS, produce_version=NEW)
    partition.flush()
    *_, last = segments_of(partway(folder, EVENTS))
    assert last.producers == known_at(partition.producers, 13)


def test_runs_follow_one_another_in_one_epoch_each(folder):
    numbers = []
    runs = list(runs_of(partway(folder, TABLE), lambda size: numbers.append(size) or len(numbers) - 1))
    assert [(one.base_offset, one.next_offset, one.leader_epoch, one.number) for one in runs] == [
        (0, 5, 4, 0),
        (5, 8, 4, 1),
    ]
    assert [next(heads_in(one.pieces[0])).leader_epoch for one in runs] == [0, 4]
    assert numbers == [len(one.pieces[0]) for one in runs]


def test_runs_cover_what_compaction_has_removed(folder, monkeypatch):
    pieces = list(partition_import.pieces_of(folder.partitions["table", 0], 1, is_of_one_epoch=True))
    monkeypatch.setattr(partition_import, "pieces_of", lambda *_, **__: [pieces[0], *pieces[3:]])
    runs = list(runs_of(partway(folder, TABLE), lambda _: 0))
    assert [(one.base_offset, one.next_offset) for one in runs][:2] == [(0, 1), (1, 4)]


def test_other_content_under_a_key_is_refused(target):
    target.store.create("a", b"1")
    assert target.result(put(target.waiting.access, "a", b"1")) is None
    with pytest.raises(PrefixTaken, match="a has other content"):
        target.result(put(target.waiting.access, "a", b"2"))
