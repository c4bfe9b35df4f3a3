"""Patterns mean what they mean to Python's `re`, and cost no more than their text is long."""

import random
import re
import time

import pytest

from horolog.base import patterns
from horolog.base.patterns import PatternError, compile_pattern

ATOMS = ["a", "b", "c", ".", "[ab]", "[^a]", r"\w", r"\W", r"\b", "^", "$", r"\s", r"[a-c\d]", "(?:a|bc)", r"\x61"]
COUNTS = ["*", "+", "?", "{2}", "{1,2}", "{0,1}", "{2,}", "*?", "{0}"]


def made(chosen: random.Random, depth: int = 0) -> str:
    kind = chosen.random()
    if depth > 3 or kind < 0.4:
        return chosen.choice(ATOMS)
    if kind < 0.6:
        return made(chosen, depth + 1) + made(chosen, depth + 1)
    if kind < 0.7:
        return f"({made(chosen, depth + 1)}|{made(chosen, depth + 1)})"
    return f"({made(chosen, depth + 1)}){chosen.choice(COUNTS)}"


def engines(pattern: str):
    """The automaton, and `re` with the pattern as it is handed to it."""
    source = patterns._Source(pattern)
    first, last = source.pattern()
    last.after.append(patterns._Node(is_end=True))
    plain = re.compile("".join(source.plain), re.IGNORECASE if source.any_case else 0)
    return patterns._Automaton(first).matches, lambda text: plain.search(text) is not None, compile_pattern(pattern)


@pytest.mark.parametrize("seed", range(10))
def test_all_ways_to_search_agree_with_python(seed):
    chosen = random.Random(seed)
    for _ in range(150):
        pattern = made(chosen)
        expected = re.compile(pattern.replace("$", r"\Z"))
        for text in ("", *("".join(chosen.choices("abc \n1", k=chosen.randrange(9))) for _ in range(4))):
            found = [search(text) for search in engines(pattern)]
            assert found == [expected.search(text) is not None] * 3, (pattern, text)


@pytest.mark.parametrize(
    ("pattern", "found", "missed"),
    [
        ("^7f", "7fab", "x7f"),
        (r"\d+-\d+", "a 10-20", "a 10-"),
        (r"\Bb", "ab", "b a"),
        ("(?i)straße|ÄRGER+", "ärgerr", "ärg"),
        ("(?i)[a-c]+[X]", "BBx", "dd"),
        (r"[\d\-\]x-]+y+z", "5-]x-yyz", "ay"),
        (r"\t\u00e4\.", "\tä.", "\taä."),
        ("[-a]b[a-]", "-b-", "cb-"),
        ("a{,2}", "a{,2}", "aa"),
        ("(a|b)(a|b)(a|b)c", "abac", "abc"),
        (r"\S\D", "ax", "1"),
    ],
)
def test_patterns(pattern, found, missed):
    for search in engines(pattern):
        assert search(found)
        assert not search(missed)


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a|a)*b",
        "(.*)(.*)(.*)x",
        "x.*y",
        "((a?){30}){5}a{30}b",
        "(x+x+)+y",
        "(x|x)" * 40 + "y",
        "x*" * 40 + "y",
    ],
)
def test_no_pattern_takes_long(pattern):
    matches = compile_pattern(pattern)
    began = time.process_time()
    for text in ("a" * 30_000, "x" * patterns.SHORT_TEXT, "x" * 30_000, "ax" * 15_000):
        assert matches(text) in (True, False)
    assert time.process_time() - began < 5


def test_states_are_forgotten_when_there_are_many(monkeypatch):
    monkeypatch.setattr(patterns, "MOST_STATES", 4)
    matches = compile_pattern("(a|b)*a(a|b){3}c+")
    for _ in range(2):
        assert matches("abbababbbabaaaababc")
        assert not matches("abbababbbabaaaabbbbc")


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", r"at 2: \) is expected"),
        ("a)", r"at 2: there is no \( for this \)"),
        ("[a", "] is expected"),
        ("[b-a]", "b-a is no range"),
        ("[[a]", "needs a backslash"),
        ("*a", r"there is nothing before \* to repeat"),
        ("a**", "a repetition of a repetition"),
        ("(?=a)", "is understood"),
        (r"(a)\1", r"\\1 means nothing"),
        ("a{3,2}", "below the first"),
        ("(a{1000}){1000}", "too long"),
        ("x" * 2000, "at most 1000 characters"),
        ("(" * 60, "at most 50 deep"),
        (r"\q", r"\\q means nothing"),
        ("\\", "means nothing"),
        (r"\x1", "2 hexadecimal digits"),
    ],
)
def test_what_is_no_pattern_is_named_with_its_place(pattern, said):
    with pytest.raises(PatternError, match=said):
        compile_pattern(pattern)
