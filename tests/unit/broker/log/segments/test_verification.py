"""Each block of a log is held against its sum once, before it is read from."""

import pytest

from horolog.broker.log.integrity import BLOCK_BYTES, BeingRescanned
from horolog.broker.log.segments import Segment
from horolog.broker.log.segments.verification import verify
from tests.support.log_model import NOW_MS, small_config
from tests.support.segments import append, new_folder, reopened

LARGE = small_config(segment_bytes=1 << 24, segment_index_bytes=1 << 16)


@pytest.fixture
def segment():
    """Three blocks, the last one shorter."""
    written = Segment.create(new_folder(), 0, LARGE, NOW_MS)
    for timestamp in range(5):
        append(written, 2, [timestamp], size=BLOCK_BYTES // 2, config=LARGE)
    written.flush()
    written.complete()
    return reopened(written)


def test_blocks_are_verified_as_they_are_read(segment):
    assert list(segment.unverified) == [1, 1, 1]
    verify(segment, 10, 20)
    assert list(segment.unverified) == [0, 1, 1]
    verify(segment, BLOCK_BYTES, BLOCK_BYTES + 1)
    assert list(segment.unverified) == [0, 0, 1]
    verify(segment, 0, segment.size_bytes)
    assert segment.unverified is None
    verify(segment, 0, segment.size_bytes)


def test_a_block_that_is_another_is_reported_and_stays_unverified(segment):
    segment.log.pwritev([b"flipped"], BLOCK_BYTES + 100)
    verify(segment, 0, BLOCK_BYTES)
    with pytest.raises(BeingRescanned, match=f"bytes {BLOCK_BYTES} to {2 * BLOCK_BYTES} are not what was written"):
        verify(segment, 0, segment.size_bytes)
    assert list(segment.unverified) == [0, 1, 1]
    assert len(segment.folder.rescan_queue) == 1


def test_a_verified_block_is_not_read_again(segment):
    verify(segment, 0, 1)
    segment.log.pwritev([b"flipped"], 100)
    verify(segment, 0, 1)
