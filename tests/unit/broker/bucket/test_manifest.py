"""Manifests: each is read as it was written, damage is refused, and the next one is never before the last."""

import pytest

from horolog.broker.bucket import manifest, sealed_lines
from horolog.broker.bucket.manifest import Manifest
from horolog.broker.bucket.sealed_lines import FormatError, NewerFormat, Sealed
from tests.support import golden_objects
from tests.support.damage import cuts, flips

ID = bytes(range(16))
FIRST = Manifest(ID, 3, 7, 2, 500, bytes(range(16)))
FIELDS = {"topic": ID.hex(), "partition": 3, "number": 7, "epoch": 2, "start": 500}


def sealed(body=b"", **changed):
    return sealed_lines.encode(Sealed("manifest", FIRST.nonce, FIELDS | changed, body))


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


def test_the_next_manifest_never_starts_before_the_last():
    nonce, place = b"n" * 16, (ID, 3)
    assert manifest.following(None, place, 4, 10, nonce) == Manifest(ID, 3, 0, 4, 10, nonce)
    assert manifest.following(FIRST, place, 4, 600, nonce) == Manifest(ID, 3, 8, 4, 600, nonce)
    assert manifest.following(FIRST, place, 4, 10, nonce) == Manifest(ID, 3, 8, 4, 500, nonce)


@pytest.mark.parametrize(
    ("before", "is_superseded"), [(None, False), ((6, 1), False), ((7, 2), False), ((8, 2), True), ((8, 1), False)]
)
def test_the_first_manifest_of_each_epoch_stays(before, is_superseded):
    before = before and Manifest(ID, 3, *before, 0, FIRST.nonce)
    assert manifest.is_superseded(before, 7, Manifest(ID, 3, 9, 2, 0, FIRST.nonce)) is is_superseded
