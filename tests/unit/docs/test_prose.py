"""Pages and texts in code: lines that fit, links that lead somewhere, files that are there, and no words that hide a noun."""

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Iterator

import pytest

from tests.support.pages import PAGES
from tests.support.style import PROJECT, python_files

WIDTH = 100
PROSE = [*PAGES, PROJECT / "CHANGELOG.md"]
BANNED = re.compile(
    r"\b(?:can not|what is|that which|likewise|mend(?:s|ed|ing)?|reviv\w+|puts? right)\b", re.IGNORECASE
)
"""`cannot` is one word; for the other phrases there is a noun, or a plainer clause. The log recovers (at a start), rescans (damage),
rewrites (after a failed sync), retries and corrects, and `doctor` repairs.
"""
HIDDEN_SUBJECT = re.compile(
    r"\b(?:whoever|made anew|answered with nothing|who is over|where it has one|nobody|somebody|is told|tells|tell (?:it|nothing)|by whom|is said|of a Kafka|a horolog|he may|who he is|as ever|put on record|counts as a crash|leapt ahead|was not let in|of ours|going on|goes on|went on|lies? behind|says of|ha(?:s|ve) gone|(?:is|are) to be|reckoned|comes? in by)\b",
    re.IGNORECASE,
)
"""In pages for users the broker reports, a client learns, and the reader is `you`."""
TRANSLATED = re.compile(
    r"\b(?:goes by|for so long|as of one|any more|st(?:ands?|ood) still|(?:is|are|was|were) away|anew|there again|for (?:its|their) age|for ever|took (?:it|these|them) for|tak(?:es?|ing) \w+ for (?:gone|lost)|as long as the store is away|broke[nr]* (?:alone|of ours)|is answered with|are answered once|is said to|has to follow|puts? it right)\b",
    re.IGNORECASE,
)
"""Clauses that are word by word those of another language: a broker pauses, a store is unreachable, and something exists again."""
LOOK_UP = re.compile(r"\blook-ups?\b", re.IGNORECASE)
"""The noun is `lookup`, the verb `look up`. Names of benchmark scenarios keep theirs: results of many runs are kept by name."""
NOT_A_THING = re.compile(
    r"(?<!there )(?<!that )\b(?:is|are) no (?:whole number|JSON|text|UTF-8|base64|time zone|regular expression|address|name|option|symbol|lock|commit|PKCS12|port|table of)\b"
)
"""In messages: `'x' is not a whole number`."""
FOR_CONTRIBUTORS = {"design.md", "measurements.md", "CHANGELOG.md"}
NAMES_OF_FORMATS = re.compile(r"segments_mended_total|`mended: \{findings, actions\}`|\"mended\"")
"""A metric, and a key of the document that `doctor --json` prints."""
FSTRING_MIDDLE = getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)  # before Python 3.12 an f-string was one string
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
    assert hidden(enumerate(text.splitlines(), 1)) == []


@pytest.mark.parametrize("path", [one for one in PAGES if one.name not in FOR_CONTRIBUTORS], ids=names)
def test_pages_for_users_name_who_does_what(path):
    text = without(path.read_text("utf-8"), GENERATED, FENCE, INDENTED)
    lines = enumerate(re.sub(r"`[^`\n]*`", "", text).splitlines(), 1)
    assert [f"line {n}: {one}" for n, one in lines if HIDDEN_SUBJECT.search(one)] == []


def unreleased() -> str:
    """The part of the changelog that is still being written."""
    return (PROJECT / "CHANGELOG.md").read_text("utf-8").partition("## [Unreleased]")[2].partition("\n## [")[0]


@pytest.mark.parametrize("path", [one for one in PAGES if one.name not in FOR_CONTRIBUTORS], ids=names)
def test_pages_for_users_have_no_clauses_of_another_language(path):
    assert translated(path.read_text("utf-8")) == []


def test_the_next_release_is_described_in_plain_english():
    text = unreleased()
    assert len(text) > 100
    assert translated(text) == []
    lines = enumerate(re.sub(r"`[^`\n]*`", "", text).splitlines(), 1)
    assert [f"line {n}: {one}" for n, one in lines if HIDDEN_SUBJECT.search(one)] == []


def translated(text: str) -> list[str]:
    """The paragraphs with such a clause; it may go over two lines."""
    plain = re.sub(r"`[^`\n]*`", "", without(text, GENERATED, FENCE, INDENTED))
    paragraphs = (" ".join(one.split()) for one in re.split(r"\n(?=\s*[-|#]|\s*\n)", plain))
    return [f"{found[0]}: {one}" for one in paragraphs if (found := TRANSLATED.search(one))]


ACTIONS_OF_DOCTOR = frozenset({"made anew"})
"""Values in the JSON of `doctor`, which programs compare."""


def test_messages_have_no_clauses_of_another_language():
    paths = [path for path in python_files() if PROJECT / "horolog" in path.parents]
    suspects = [(path, source) for path in paths if TRANSLATED.search(source := path.read_text("utf-8"))]
    assert [f"{path.name}: {one}" for path, source in suspects for one in said(source) if TRANSLATED.search(one)] == []
    assert said('def f():\n    """Made anew."""\n    raise E(f"{x} stands still")') == [" stands still"]
    assert len(paths) > 500


def said(source: str) -> list[str]:
    """The strings of a module that are no docstrings or other remarks."""
    tree = ast.parse(source)
    remarks = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    return [
        one.value
        for one in ast.walk(tree)
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
        if id(one) not in remarks and one.value not in ACTIONS_OF_DOCTOR
    ]


def hidden(lines):
    return [f"line {n}: {one}" for n, one in lines if BANNED.search(NAMES_OF_FORMATS.sub("", one))]


@pytest.mark.parametrize("path", PROSE, ids=names)
def test_pages_write_the_noun_lookup(path):
    """In tables of results a name is that of a scenario."""
    lines = prose(re.sub(r"`[^`\n]*`", "", path.read_text("utf-8")))
    assert [f"line {n}: {one}" for n, one in lines if LOOK_UP.search(one)] == []


def test_code_writes_the_noun_lookup():
    paths = [path for path in python_files() if PROJECT / "horolog" in path.parents]
    assert [path.name for path in paths if LOOK_UP.search(path.read_text("utf-8"))] == []
    assert len(paths) > 500


def texts(source: str) -> Iterator[tuple[int, str]]:
    """What a module says to people, with line numbers: comments, docstrings, messages."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in {tokenize.COMMENT, tokenize.STRING, FSTRING_MIDDLE}:
            yield from enumerate(token.string.splitlines(), token.start[0])


def hidden_in(source: str) -> list[str]:
    """What a module hides. Most have none of the phrases anywhere, and are not broken into tokens, which takes long."""
    return hidden(texts(source)) if BANNED.search(source) else []


def test_words_in_code_say_what_they_mean():
    packages = [PROJECT / name for name in ("horolog", "pyspark_horolog", "benchmarks", "tools", "tests")]
    here = PROJECT / "tests/unit/docs/test_prose.py"  # it has the words that it looks for
    paths = [path for path in python_files() if path != here and any(package in path.parents for package in packages)]
    found = [f"{path.relative_to(PROJECT)}: {one}" for path in paths for one in hidden_in(path.read_text("utf-8"))]
    assert not found, "\n" + "\n".join(found)
    assert len(paths) > 300


def test_messages_say_that_something_is_not_a_number():
    """`is no number` reads like a translation."""
    paths = [path for path in python_files() if PROJECT / "horolog" in path.parents]
    suspects = [(path, source) for path in paths if NOT_A_THING.search(source := path.read_text("utf-8"))]
    found = [
        f"{path.name}: line {n}: {one}"
        for path, source in suspects
        for n, one in texts(source)
        if NOT_A_THING.search(one)
    ]
    assert found == []
    assert len(paths) > 500


@pytest.mark.parametrize("name", ["Makefile", "pyproject.toml", ".ci/run", "config/server.properties"])
def test_words_beside_code_say_what_they_mean(name):
    assert hidden(enumerate((PROJECT / name).read_text("utf-8").splitlines(), 1)) == []


def test_names_of_tests_say_what_they_mean():
    """A name is a sentence; in names `what is` is short for a clause."""
    tests = [path for path in python_files() if PROJECT / "tests" in path.parents]
    names = [(path, name) for path in tests for name in re.findall(r"def (test_\w+)", path.read_text("utf-8"))]
    sentences = [(path, name.replace("_", " ").replace("what is", "")) for path, name in names]
    assert [f"{path.name}: {one}" for path, one in sentences if BANNED.search(one)] == []
    assert len(names) > 3000


def test_texts_of_a_module_are_found():
    source = '''
        # What is this?
        def mend(revive):
            "Can not"
            """
            be likewise."""
            log.info(f"{revive} is mended", "put right")
    '''
    found = [one.partition(":")[0] for one in hidden(texts(textwrap.dedent(source)))]
    assert found == ["line 2", "line 4", "line 6", *["line 7"] * 2]


def test_the_log_repairs_nothing():
    """It has a verb for each of the ways in which it does."""
    folder = PROJECT / "horolog" / "broker" / "log"
    found = [path for path in python_files() if folder in path.parents and "repair" in path.read_text("utf-8")]
    assert found == []


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
