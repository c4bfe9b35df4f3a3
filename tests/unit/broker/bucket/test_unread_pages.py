"""Segments whose page cannot be read: they keep their place, their age and their size, and readers get an error that they may retry."""

import random

import pytest

from horolog.broker.bucket import names
from horolog.broker.bucket.manifest import Page
from horolog.broker.bucket.names import SegmentName
from horolog.broker.bucket.unread_pages import aged, is_unread, stand_in, unread_offsets
from horolog.broker.log.partition import lookups
from horolog.broker.log.storage import NotHere, StorageFault
from horolog.protocol.records.head import heads_in
from tests.support.bucket_segments import CONFIG, CountingStore, Reader, filled, upload
from tests.support.shipping import TOPIC_ID

FOLDER = names.segments(TOPIC_ID, 0)


def page_of(several):
    name = SegmentName(0, several[0].base_offset, b"p" * 16)
    return Page(name, several[-1].next_offset, len(several), sum(one.contents.size_bytes for one in several))


@pytest.fixture
def store():
    return CountingStore()


@pytest.fixture
def described(store):
    found = upload(filled(random.Random(3)), store)
    assert len(found) > 2
    return found


def test_it_has_the_offsets_and_the_size_of_its_page_and_the_age_of_the_segment_behind_it(described):
    page = page_of(described[:2])
    (first, *rest) = aged([stand_in(page, FOLDER), *described[2:]])
    behind = described[2]
    assert rest == described[2:]
    assert (first.base_offset, first.next_offset, first.contents.size_bytes) == (0, page.next_offset, page.size_bytes)
    assert (first.contents.max_timestamp, first.created_ms) == (behind.contents.max_timestamp, behind.created_ms)
    assert (is_unread(first), is_unread(behind)) == (True, False)
    assert unread_offsets([first, *rest]) == [range(page.next_offset)]


def test_several_in_a_row_are_as_old_as_the_first_segment_that_is_known_and_one_alone_has_no_age(described):
    first, second = (stand_in(page_of([one]), FOLDER) for one in described[:2])
    found = aged([first, second, described[2]])
    assert {one.contents.max_timestamp for one in found} == {described[2].contents.max_timestamp}
    assert aged([first]) == [first]


def test_its_records_are_an_error_that_asks_for_nothing_and_others_are_served(described, store):
    reader = Reader(store)
    remote = reader.open(aged([stand_in(page_of(described[:2]), FOLDER), *described[2:]]), CONFIG)
    assert remote.log_start_offset == 0
    for attempt in (
        lambda: remote.read(0, 1 << 20),
        lambda: remote.read(described[1].base_offset, 1 << 20),
        lambda: lookups.first_at_or_after(remote, 0),
    ):
        with pytest.raises(StorageFault, match="page, which names the segments") as caught:
            attempt()
        assert not isinstance(caught.value, NotHere)
    assert store.gets == 0
    start = described[2].base_offset
    data = reader.served(lambda: remote.read(start, 1 << 20))
    assert next(iter(heads_in(data))).base_offset == start
    late = max(one.contents.max_timestamp for one in described)
    assert reader.served(lambda: lookups.first_at_or_after(remote, late)).timestamp == late
