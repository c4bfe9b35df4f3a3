"""The README is one page: short, with one picture that loads quickly, and without a detour before the first record."""

import struct

import pytest

from tests.support.style import PROJECT

TEXT = (PROJECT / "README.md").read_text("utf-8")
LINES_AT_MOST = 120
PICTURE_BYTES_AT_MOST = 150_000
PICTURES = sorted((PROJECT / "docs" / "images").glob("*.png"))


def test_it_is_short():
    assert len(TEXT.splitlines()) <= LINES_AT_MOST


def test_it_has_one_picture():
    assert [line.partition("](")[2] for line in TEXT.splitlines() if line.startswith("![")] == [
        "docs/images/console-moment.png)"
    ]


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_pictures_load_quickly(path):
    data = path.read_bytes()
    assert len(data) <= PICTURE_BYTES_AT_MOST
    width, height = struct.unpack(">II", data[16:24])
    assert width >= 1_000
    assert height >= 400


@pytest.mark.parametrize("heading", ["Status", "Install", "Your first records", "Where to go next"])
def test_it_has_what_a_reader_looks_for(heading):
    assert f"\n## {heading}\n" in TEXT


def test_every_page_of_docs_can_be_reached_from_it():
    pages = {path.name for path in (PROJECT / "docs").glob("*.md")}
    assert {name for name in pages if f"(docs/{name})" not in TEXT} == {"states.md", "measurements.md"}
