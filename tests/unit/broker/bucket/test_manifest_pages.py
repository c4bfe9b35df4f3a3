"""Pages of manifests: long logs get them, and each is the one that its manifest names."""

import pytest

from horolog.broker.bucket import manifest, manifest_pages, sealed_lines
from horolog.broker.bucket.bucket_segment import described
from horolog.broker.bucket.manifest import Manifest, ManifestChange
from horolog.broker.bucket.manifest_pages import PageContent, check, turned
from horolog.broker.bucket.names import SegmentName, segments
from horolog.broker.bucket.sealed_lines import FormatError, NewerFormat, Sealed
from horolog.broker.log.integrity import Contents
from tests.support import golden_objects
from tests.support.damage import cuts, flips

ID, NONCE = bytes(range(16)), b"n" * 16


def segment(number):
    name = SegmentName(2, 10 * number, b"%16d" % number)
    return described(segments(ID, 3), name, Contents(9, 10 * number + 10), 5)


@pytest.fixture
def long(monkeypatch):
    monkeypatch.setattr(manifest_pages, "MOST_SEGMENTS", 4)
    monkeypatch.setattr(manifest_pages, "PAGE_SEGMENTS", 3)
    return Manifest(ID, 3, 7, 2, 0, NONCE, tuple(map(segment, range(5))))


def test_the_oldest_segments_of_a_long_log_get_a_page(long):
    shorter, content = turned(long, b"p" * 16)
    (page,) = shorter.pages
    assert (content.segments, shorter.segments) == (long.segments[:3], long.segments[3:])
    assert (page.segment_count, page.size_bytes, page.next_offset, page.name.base_offset) == (3, 27, 30, 0)
    assert check(page, content.encode()) == long.segments[:3]
    assert manifest.decode(shorter.encode()) == shorter
    assert turned(shorter, NONCE) is None
    assert shorter.end_offset == long.end_offset == 50
    assert page.name.page_key(shorter.folder) in manifest.named_by(shorter)


def test_the_pages_stay_until_all_of_them_has_expired(long):
    shorter, _ = turned(long, b"p" * 16)
    place = ID, 3
    for start, pages in ((29, 1), (30, 0)):
        after = manifest.following(shorter, place, 2, ManifestChange(start), NONCE)
        assert (len(after.pages), after.segments) == (pages, shorter.segments)
    gone = manifest.following(shorter, place, 2, ManifestChange(50), NONCE)
    assert (gone.segments, gone.end_offset) == ((), 0)


def test_a_page_is_read_as_it_was_written():
    content = PageContent(ID, 3, NONCE, (segment(0), segment(1)))
    data = content.encode()
    assert manifest_pages.decode(data) == content
    assert data == golden_objects.read("page-1")
    for hurt in (*cuts(data), *flips(data)):
        with pytest.raises(FormatError):
            manifest_pages.decode(hurt)


def test_a_page_that_is_another_one_is_refused(long):
    shorter, content = turned(long, b"p" * 16)
    other = PageContent(ID, 3, b"q" * 16, content.segments)
    with pytest.raises(FormatError, match="not the one that its manifest names"):
        check(shorter.pages[0], other.encode())


def test_a_page_of_a_later_release_or_without_segments_is_refused():
    fields = {"topic": ID.hex(), "partition": 3}
    with pytest.raises(NewerFormat):
        manifest_pages.decode(sealed_lines.encode(Sealed("page", NONCE, {**fields, "more": 1})))
    with pytest.raises(FormatError, match="without segments"):
        manifest_pages.decode(sealed_lines.encode(Sealed("page", NONCE, fields)))
