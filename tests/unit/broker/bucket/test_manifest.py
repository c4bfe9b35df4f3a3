"""Manifests: each is read as it was written, damage is refused, and the next one is never before the last."""

import pytest

from horolog.broker.bucket import manifest, sealed_lines
from horolog.broker.bucket.bucket_segment import described
from horolog.broker.bucket.manifest import Manifest, ManifestChange, Page
from horolog.broker.bucket.names import SegmentName, segments
from horolog.broker.bucket.sealed_lines import FormatError, NewerFormat, Sealed
from horolog.broker.log.integrity import Contents
from tests.support import golden_objects
from tests.support.damage import cuts, flips

ID = bytes(range(16))
FIRST = Manifest(ID, 3, 7, 2, 500, bytes(range(16)))
PLACE = ID, 3
FIELDS = {"topic": ID.hex(), "partition": 3, "number": 7, "epoch": 2, "start": 500}


def sealed(body=b"", form=1, **changed):
    return sealed_lines.encode(Sealed("manifest", FIRST.nonce, FIELDS | changed, body, form))


def segment(base, next_offset, epoch=2):
    name = SegmentName(epoch, base, b"%8d%8d" % (epoch, base))
    return described(segments(*PLACE), name, Contents(9, next_offset, 77, base, 70, 4), 5)


def page(base, next_offset):
    return Page(SegmentName(1, base, b"p" * 16), next_offset, 3, 27)


LONG = Manifest(
    *PLACE, 7, 2, 500, FIRST.nonce, (segment(600, 700), segment(700, 900)), (page(400, 550), page(550, 600))
)


def test_a_manifest_is_read_as_it_was_written():
    data = FIRST.encode()
    assert manifest.decode(data) == FIRST
    assert data == golden_objects.read("manifest-1") == sealed()
    assert FIRST.key == f"manifest/{ID.hex()}/3/00000000000000000007"
    for hurt in (*cuts(data), *flips(data)):
        with pytest.raises(FormatError):
            manifest.decode(hurt)


@pytest.mark.parametrize(
    "changed",
    [{"topic": "00"}, {"topic": None}, {"topic": "x" * 32}, {"topic": ID.hex().upper()}, {"start": -1}, {"epoch": "2"}],
)
def test_hostile_manifests_are_refused(changed):
    with pytest.raises(FormatError):
        manifest.decode(sealed(**changed))


def test_a_manifest_of_a_later_release_is_not_read_as_if_it_were_one_of_this():
    for data in (sealed(segments=[]), sealed(body=b"pages")):
        with pytest.raises(NewerFormat):
            manifest.decode(data)


def test_a_manifest_with_segments_is_read_as_it_was_written():
    data = LONG.encode()
    assert manifest.decode(data) == LONG
    assert data == golden_objects.read("manifest-2")
    assert (LONG.end_offset, FIRST.end_offset) == (900, 0)
    for hurt in (*cuts(data), *flips(data)):
        with pytest.raises(FormatError):
            manifest.decode(hurt)


@pytest.mark.parametrize(
    "changed",
    [
        {"segments": 1},
        {"segments": None},
        {"pages": None},
        {"pages": [[]]},
        {"pages": [["x", 600, 1, 1]]},
        {"pages": [[str(page(0, 1).name), 0, 1, 1]]},
        {"pages": [[str(page(0, 1).name), 601, 1, 1]]},
        {"pages": [[str(page(0, 1).name), 20, 1, 1], [str(page(10, 1).name), 30, 1, 1]]},
        {"more": 1},
    ],
)
def test_hostile_manifests_with_segments_are_refused(changed):
    known = sealed_lines.decode(LONG.encode(), "manifest", 2)
    fields = {**known.fields, **changed}
    with pytest.raises(FormatError):
        manifest.decode(sealed_lines.encode(Sealed("manifest", FIRST.nonce, fields, known.body, 2)))


def following(known, start, *added, epoch=4):
    return manifest.following(known, PLACE, epoch, ManifestChange(start, added), b"n" * 16)


def test_the_next_manifest_never_starts_before_the_last():
    nonce = b"n" * 16
    assert following(None, 10) == Manifest(*PLACE, 0, 4, 10, nonce)
    assert following(FIRST, 600) == Manifest(*PLACE, 8, 4, 600, nonce)
    assert following(FIRST, 10) == Manifest(*PLACE, 8, 4, 500, nonce)


def test_the_next_manifest_names_more_segments_and_leaves_out_those_before_the_start():
    added = segment(900, 950, 4)
    after = following(LONG, 0, added)
    assert (after.number, after.pages, after.segments) == (8, LONG.pages, (*LONG.segments, added))
    after = following(LONG, 700, added)
    assert (after.pages, after.segments) == ((), (LONG.segments[1], added))
    assert following(None, 0, added).segments == (added,)
    assert following(FIRST, 960, added).segments == ()


def test_segments_of_an_earlier_leader_are_replaced_once_as_much_is_covered():
    """A leader that was has named segments that begin where this one's local log begins."""
    first, second = segment(700, 820, 4), segment(820, 910, 4)
    assert not manifest.takes(LONG, (first,))
    assert following(LONG, 0, first).segments == LONG.segments, "it waits for more"
    assert manifest.takes(LONG, (first, second))
    assert following(LONG, 0, first, second).segments == (LONG.segments[0], first, second)


def test_a_compacted_segment_takes_the_place_of_those_that_it_was_made_from():
    known = following(None, 0, segment(0, 10), segment(10, 20), segment(20, 30), segment(30, 40))
    middle = segment(10, 30, 4)
    after = following(known, 0, middle)
    assert [(one.base_offset, one.next_offset) for one in after.segments] == [(0, 10), (10, 30), (30, 40)]
    assert not manifest.takes(after, (segment(20, 40, 4),)), "it has a part of another"
    again = following(after, 0, segment(20, 40, 5), segment(10, 20, 5), segment(40, 50, 5))
    assert [one.base_offset for one in again.segments] == [0, 10, 20, 40], "in any order"
    assert again.end_offset == 50


def test_segments_that_fit_nowhere_are_not_named():
    assert not manifest.takes(LONG, ())
    assert not manifest.takes(LONG, (segment(650, 950, 4),)), "it begins inside of another"
    assert not manifest.takes(LONG, (segment(560, 950, 4),)), "it begins inside of a page"


def test_the_keys_that_a_manifest_names():
    folder = segments(*PLACE)
    one = segment(600, 700)
    named = manifest.named_by(Manifest(*PLACE, 7, 2, 0, b"", (one,), (page(0, 600),)))
    assert named == {one.log_key, one.meta_key, f"{folder}/{page(0, 600).name}.page"}
    assert manifest.named_by(None) == set()


@pytest.mark.parametrize(
    ("before", "is_superseded"), [(None, False), ((6, 1), False), ((7, 2), False), ((8, 2), True), ((8, 1), False)]
)
def test_the_first_manifest_of_each_epoch_stays(before, is_superseded):
    before = before and Manifest(ID, 3, *before, 0, FIRST.nonce)
    assert manifest.is_superseded(before, 7, Manifest(ID, 3, 9, 2, 0, FIRST.nonce)) is is_superseded
