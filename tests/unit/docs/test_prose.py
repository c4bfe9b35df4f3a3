"""The pages that people read: lines that fit, links that lead somewhere, files that are there, and none of the words that hide a noun."""

import re
from collections.abc import Iterator

import pytest

from tests.support.pages import PAGES
from tests.support.style import PROJECT

WIDTH = 100
PROSE = [*PAGES, PROJECT / "CHANGELOG.md"]
BANNED = re.compile(r"\b(?:can not|what is|that which|likewise)\b", re.IGNORECASE)
"""`cannot` is one word; for the others there is a noun, or a plainer clause."""
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n(?:[ \t]*\n(?= {4}))*)+")
GENERATED = re.compile(r"<!-- (?!end)[a-z: -]+ -->\n.*?<!-- (?:end|[a-z-]+:end) -->", re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
NAMED = re.compile(r"`((?:horolog|pyspark_horolog|tests|tools|config|docs|benchmarks|requirements)/[\w./-]*\w/?)`")
"""Files of the repository; names in capitals stand for others: `horolog/client/NAME.py`."""


def names(path):
    return path.name


def without(text: str, *patterns: re.Pattern[str]) -> str:
    """The text with what the patterns find blanked out, so that lines keep their numbers."""
    for pattern in patterns:
        text = pattern.sub(lambda found: re.sub(r"[^\n]", "", found[0]), text)
    return text


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Lines of running text with their numbers: no code, no tables, nothing that code writes."""
    for number, line in enumerate(without(text, GENERATED, FENCE, INDENTED).splitlines(), 1):
        if not line.lstrip().startswith("|"):
            yield number, line


def can_be_broken(line: str) -> bool:
    """Whether there is a place for a break: spans of code and links are left whole."""
    return " " in re.sub(r"`[^`]*`|\[[^\]]*\]\([^)]*\)", "x", line).strip().lstrip("-*# ")


def anchors(text: str) -> set[str]:
    """What GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", without(text, FENCE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_lines_of_prose_are_told_from_code_and_tables():
    text = (
        "# head\n\nwords\n\n    code\n\n```sh\nmore code\n```\n| a | b |\n<!-- x -->\nwritten\n<!-- end -->\n- item\n"
    )
    assert [line for _, line in prose(text) if line] == ["# head", "words", "- item"]
    assert not can_be_broken("- [a long link](to/some/where.md#far-away)")
    assert can_be_broken("- two words")
    assert anchors("# One `two`: three\n") == {"one-two-three"}


@pytest.mark.parametrize("path", PROSE, ids=names)
def test_lines_fit(path):
    long = [
        f"line {n}: {len(one)}" for n, one in prose(path.read_text("utf-8")) if len(one) > WIDTH and can_be_broken(one)
    ]
    assert long == []


@pytest.mark.parametrize("path", PROSE, ids=names)
def test_words_say_what_they_mean(path):
    text = without(path.read_text("utf-8"), GENERATED, FENCE, INDENTED)
    lines = [f"line {n}: {one}" for n, one in enumerate(text.splitlines(), 1) if BANNED.search(one)]
    assert lines == []


@pytest.mark.parametrize("path", PROSE, ids=names)
def test_links_lead_somewhere(path):
    lost = []
    for target in LINK.findall(without(path.read_text("utf-8"), FENCE)):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        page = (path.parent / file).resolve() if file else path
        if not page.exists() or (anchor and anchor not in anchors(page.read_text("utf-8"))):
            lost.append(target)
    assert lost == []


@pytest.mark.parametrize("path", [one for one in PROSE if one.name != "CHANGELOG.md"], ids=names)
def test_files_that_are_named_are_there(path):
    named = NAMED.findall(without(path.read_text("utf-8"), GENERATED, FENCE, INDENTED))
    assert [one for one in named if not (PROJECT / one).exists() and not re.search(r"/[A-Z]+\.py$", one)] == []
