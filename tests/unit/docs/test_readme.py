"""The README is one page: short, with one picture that loads quickly, and without a detour before the first record."""

import re
import struct

import pytest

from horolog.client.cli.starting.sample_data import GROUP, PARTITIONS
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


def test_a_newcomer_can_read_the_first_pages_with_one_broker_that_has_sample_data():
    """A topic of two pages exists already at the second, and a group of two pages has other offsets than shown."""
    pages = [TEXT, *((PROJECT / "docs" / name).read_text("utf-8") for name in ("tutorial.md", "recipes.md"))]
    topics = [re.findall(r"^ *\$ horolog topics create (\S+)", page, re.MULTILINE) for page in pages]
    assert all(topics)
    made = [*PARTITIONS, *(name for page in topics for name in page)]
    assert sorted(made) == sorted(set(made))
    groups = [set(re.findall(r"--group (\S+)", page)) for page in pages]
    assert any(groups)
    assert all(GROUP not in page for page in groups)
    deleted = [set(re.findall(r"^ *\$ horolog groups delete (\S+)", page, re.MULTILINE)) for page in pages]
    for number, page in enumerate(groups):
        earlier = set().union(*(used - gone for used, gone in zip(groups[:number], deleted, strict=False)))
        assert page & earlier == set()
