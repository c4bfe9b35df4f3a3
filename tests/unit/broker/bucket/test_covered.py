"""What the bucket holds of a partition ends where its last segment does."""

from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.covered import NOTHING, Covered
from horolog.broker.log.integrity import Contents


def test_it_ends_with_its_last_segment():
    segments = [BucketSegment(base, Contents(9, base + 10), 0, "x.log", "x.meta") for base in (0, 10)]
    assert (Covered(3, tuple(segments)).end_offset, Covered(3).end_offset, NOTHING.end_offset) == (20, 0, 0)
