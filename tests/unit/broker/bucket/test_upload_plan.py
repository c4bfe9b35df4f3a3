"""Which segment goes into the bucket next: the first that does not lie there as it is here, with no gap behind it."""

from types import SimpleNamespace

import pytest

from horolog.broker.bucket.bucket_segment import described
from horolog.broker.bucket.covered import Covered
from horolog.broker.bucket.manifest import Page
from horolog.broker.bucket.names import SegmentName, segments
from horolog.broker.bucket.unread_pages import stand_in
from horolog.broker.bucket.upload_plan import (
    Due,
    InBucket,
    is_whole,
    local_segments,
    next_upload,
    sent_of,
    waiting_bytes,
)
from horolog.broker.log.integrity import Contents
from tests.support.log_model import small_config
from tests.support.shipping import TOPIC_ID

HERE, ELSEWHERE = SimpleNamespace(storage="disk"), SimpleNamespace(storage="bucket")
FOLDER = segments(TOPIC_ID, 0)


class Local:
    def __init__(self, base_offset, next_offset, size_bytes=9, folder=HERE):
        self.base_offset, self.next_offset, self.size_bytes, self.folder = base_offset, next_offset, size_bytes, folder


def partition(*closed, end=100, high_watermark=100, start=0):
    log = [*closed, Local(end, end)]
    return SimpleNamespace(folder=HERE, segments=log, high_watermark=high_watermark, log_start_offset=start)


def sent(base_offset, next_offset):
    name = SegmentName(0, base_offset, b"%16d" % base_offset)
    return described(FOLDER, name, Contents(9, next_offset), 0)


@pytest.mark.parametrize(
    ("topic", "changes", "wanted"),
    [("t", {}, False), ("t", {"compact": True}, True), ("__consumer_offsets", {}, True)],
)
def test_logs_that_are_whole(topic, changes, wanted):
    assert is_whole(topic, small_config(**changes)) is wanted


def test_only_closed_segments_whose_files_are_here_count():
    remote, empty, one = Local(0, 5, folder=ELSEWHERE), Local(5, 5, 0), Local(6, 9)
    log = partition(remote, empty, one)
    assert local_segments(log) == [one]
    assert sent_of(log, Covered(segments=(sent(0, 5), sent(6, 9)))) == {one: sent(6, 9)}
    page = Page(SegmentName(0, 6, b"p" * 16), 9, 1, 9)
    assert sent_of(log, Covered(segments=(stand_in(page, FOLDER),))) == {}


def test_the_first_one_that_is_not_there_is_next_and_ends_where_the_following_one_begins():
    first, second, third = Local(0, 10), Local(10, 18), Local(20, 100)
    log = partition(first, second, third)
    assert next_upload(log, InBucket({})) == Due(first, 10)
    assert next_upload(log, InBucket({first: sent(0, 10)})) == Due(second, 20)
    there = {first: sent(0, 10), second: sent(10, 20)}
    assert next_upload(log, InBucket(there)) == Due(third, 100)
    assert next_upload(log, InBucket({**there, third: sent(20, 100)})) is None
    assert next_upload(log, InBucket({**there, third: sent(20, 99)})) == Due(third, 100), (
        "the one behind it has vanished"
    )


def test_what_has_expired_stays_here_until_it_goes():
    first, second = Local(0, 10), Local(10, 100)
    assert next_upload(partition(first, second, start=10), InBucket({})) == Due(second, 100)
    assert next_upload(partition(first, second, start=9), InBucket({})) == Due(first, 10)


def test_the_bytes_that_wait():
    first, second, third = Local(0, 10, 5), Local(10, 20, 7), Local(20, 100, 11)
    log = partition(first, second, third, start=10)
    assert waiting_bytes(log, {second: sent(10, 20)}) == 11
    assert waiting_bytes(log, {}) == 18


def test_what_is_not_shipped_waits():
    first = Local(0, 10)
    assert next_upload(partition(first, Local(10, 20), high_watermark=9), InBucket({})) is None
    assert next_upload(partition(first, Local(10, 20), high_watermark=10), InBucket({})) == Due(first, 10)


def test_a_segment_that_could_not_be_read_keeps_its_place_until_another_holds_its_offsets():
    first, third = Local(0, 10), Local(20, 100)
    assert next_upload(partition(first, third), InBucket({first: sent(0, 10)}, (10,))) == Due(third, 100)
    whole = Local(0, 30)
    assert next_upload(partition(whole), InBucket({}, (10,))) == Due(whole, 100)


def test_what_pages_name_stays_and_nothing_leaves_a_gap_behind_them():
    paged, behind = Local(0, 10), Local(10, 100)
    known = InBucket({}, pages_end=10, end_offset=10)
    assert next_upload(partition(paged, behind), known) == Due(behind, 100)
    across = Local(0, 20)
    assert next_upload(partition(across, Local(20, 100)), known) is None
