"""The `.meta` of a segment is read as it was written, and every cut, flipped bit or wrong part is refused."""

import random
from dataclasses import replace

import pytest

from horolog.broker.bucket import closed_segment, sealed_lines, segment_meta
from horolog.broker.bucket.producers_behind import ProducersAt
from horolog.broker.bucket.sealed_lines import FormatError, NewerFormat, Sealed
from horolog.broker.bucket.upload_plan import Due
from horolog.broker.log.indexes import AbortedTransaction, transaction_index
from horolog.broker.log.integrity import Contents, IndexSum, Seal
from horolog.broker.log.producers import Remembered, SnapshotEntry
from horolog.broker.log.producers.producers_file import Appended
from tests.support import golden_objects
from tests.support.bucket_segments import filled
from tests.support.damage import cuts, flips
from tests.support.shipping import TOPIC_ID

NONCE = bytes(range(16))
OFFSETS, TIMES = bytes(range(8)), bytes(range(12))
ABORTED = transaction_index.encode([AbortedTransaction(7, 500, 503, 504)])
SEAL = Seal(
    500,
    Contents(90, 510, 1_750_000_000_000, 507, 1_740_000_000_000, 0x84),
    -1,
    0x1234,
    1_750_000_000_009,
    IndexSum.of(OFFSETS),
    IndexSum.of(TIMES),
    IndexSum.of(ABORTED),
    b"\1\2\3\4",
)
PRODUCERS = ProducersAt(
    510,
    [SnapshotEntry(7, 1, 5, 505, 2, 1_750_000_000_000, 0, -1)],
    [Remembered(7, 1, [Appended(0, 2, 500, 502, 1), Appended(3, 5, 503, 505, 2)])],
)
META = segment_meta.SegmentMeta(
    (bytes(range(16)), 3),
    NONCE,
    SEAL,
    OFFSETS,
    TIMES,
    ABORTED,
    PRODUCERS.snapshot(),
    PRODUCERS.batches(),
    b"0\n1\n2 0\n",
)


def test_it_is_read_as_it_was_written():
    data = META.encode()
    assert segment_meta.decode(data) == META
    assert data == golden_objects.read("segment-1.meta")
    assert META.leader_epochs == ((2, 0),)
    for hurt in (*cuts(data), *flips(data)):
        with pytest.raises(FormatError):
            segment_meta.decode(hurt)


def changed(**fields):
    sealed = sealed_lines.decode(META.encode(), "segment")
    return sealed_lines.encode(Sealed("segment", NONCE, {**sealed.fields, **fields}, sealed.body))


@pytest.mark.parametrize(
    "fields",
    [{"base": 501}, {"topic": "00"}, {"partition": -1}, {"parts": 7}, {"parts": {}}, {"parts": {"seal": 10**6}}],
)
def test_hostile_fields_are_refused(fields):
    with pytest.raises(FormatError):
        segment_meta.decode(changed(**fields))


def test_what_a_later_release_adds_is_not_passed_over():
    parts = sealed_lines.decode(META.encode(), "segment").fields["parts"]
    for fields in ({"more": 1}, {"parts": {**parts, "more": 0}}):
        with pytest.raises(NewerFormat):
            segment_meta.decode(changed(**fields))


@pytest.mark.parametrize(
    "change",
    [
        {"offset_index": OFFSETS[::-1]},
        {"time_index": b""},
        {"transaction_index": b""},
        {"producers": b"no snapshot"},
        {"batches": b""},
        {"epochs": b"0\n1\nx\n"},
        {"seal": replace(SEAL, transaction_index=IndexSum.of(b"x" * 34))},
    ],
)
def test_parts_that_are_not_those_of_the_seal_or_their_format_are_refused(change):
    with pytest.raises(FormatError):
        segment_meta.decode(replace(META, **change).encode())


def test_parts_of_another_size_are_refused():
    parts = sealed_lines.decode(META.encode(), "segment").fields["parts"]
    with pytest.raises(FormatError, match="in a body"):
        segment_meta.decode(changed(parts={**parts, "epochs": parts["epochs"] - 1}))


def test_one_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(segment_meta, "MAX_BYTES", 100)
    with pytest.raises(FormatError, match="bytes beside a segment"):
        segment_meta.decode(META.encode())


def test_it_has_what_a_local_segment_has():
    partition = filled(random.Random(1))
    segment = partition.segments[0]
    closed = closed_segment.found(partition, Due(segment, segment.next_offset), None)
    meta = segment_meta.decode(closed_segment.read(closed, ProducersAt(0), NONCE).meta)
    assert (meta.place, meta.seal) == ((TOPIC_ID, 0), segment.seal)
    storage = partition.folder.storage
    assert [storage.read_all(path) for path in segment.files.index_paths] == [meta.offset_index, meta.time_index]
