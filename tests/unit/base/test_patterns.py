"""Patterns mean what they mean to Python's `re`, in both dialects, and cost no more than their text is long."""

import random
import re
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from horolog.base import patterns
from horolog.base.patterns import PYTHON, RE2, PatternError, Regex, compile_pattern
from tests.support.processor_time import at_most

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
    reader = patterns._Reader(pattern, PYTHON)
    plain = re.compile(patterns._plain(reader.pattern()), re.IGNORECASE if reader.any_case else 0)
    automaton = Regex(pattern, PYTHON, anywhere=True)
    return automaton.matches, lambda text: plain.search(text) is not None, compile_pattern(pattern)


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
        ("^*a$+", "ba", "ab"),
        ("x()*y", "xy", "x-y"),
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


def test_sets_are_forgotten_when_there_are_many(monkeypatch):
    monkeypatch.setattr(patterns, "MOST_REMEMBERED_ALONE", 20)
    matches = compile_pattern("(a|b)*a(a|b){3}c+")
    for _ in range(2):
        assert matches("abbababbbabaaaababc")
        assert not matches("abbababbbabaaaabbbbc")


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", r"at 2: expected \)"),
        ("a)", r"at 2: there is no \( for this \)"),
        ("[a", "expected ]"),
        ("[b-a]", "b-a is not a range"),
        ("[[a]", "needs a backslash"),
        ("*a", r"there is nothing before \* to repeat"),
        ("a**", "a repetition of a repetition"),
        ("(?=a)", "is understood"),
        (r"(a)\1", r"\\1 means nothing"),
        ("a{3,2}", "below the first"),
        ("a{1001}", "at most 1000"),
        ("(a{1000}){1000}", "too long"),
        ("x" * 2000, "at most 1000 characters"),
        ("(" * 60, "at most 50 deep"),
        (r"\q", r"\\q means nothing"),
        (r"\Qa\E", r"\\Q means nothing"),
        (r"\Aa", r"\\A means nothing"),
        ("\\", "means nothing"),
        (r"\x1", "2 hexadecimal digits"),
    ],
)
def test_what_is_no_pattern_is_named_with_its_place(pattern, said):
    with pytest.raises(PatternError, match=said):
        compile_pattern(pattern)


# -- RE2's dialect, which the whole text has to match

re2_atoms = st.sampled_from(
    ["a", "b", "-", "\\.", ".", "[ab]", "[^a]", "[a-c]", "\\d", "\\w", "\\D", "\\b", "[\\w.]", "[-a]", "[]a]"]
)
re2_patterns = st.recursive(
    re2_atoms,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{1,}", "*?"])).map(
            lambda p: f"({p[0]}){p[1]}"
        ),
    ),
    max_leaves=6,
)


@given(re2_patterns, st.text("abc.-1", max_size=8))
def test_matches_what_python_matches(pattern, text):
    assert Regex(pattern).matches(text) == bool(re.fullmatch(pattern, text, re.ASCII))


@given(re2_patterns, st.lists(st.text("abc.-1", max_size=8), min_size=2, max_size=10), st.sampled_from([0, 20, 5_000]))
def test_texts_before_it_change_nothing(pattern, texts, bound):
    regex = Regex(pattern, most_remembered=bound)
    for text in texts:
        assert regex.matches(text) == bool(re.fullmatch(pattern, text, re.ASCII))


@pytest.mark.parametrize("pattern", [".*a.{8}", "(a|b|.)*", "[a-z]+-[0-9]{1,9}", "^a|b$"])
def test_what_is_remembered_is_bounded(pattern):
    regex = Regex(pattern)
    for number in range(3_000):
        regex.matches(f"{number:b}".replace("0", "a").replace("1", chr(98 + number % 900)))
        assert regex._remembered <= patterns.MOST_REMEMBERED + 100
        assert len(regex._states) <= patterns.MOST_REMEMBERED + 1


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("", "", True),
        ("", "a", False),
        ("^foo.*$", "foobar", True),
        ("^foo$|^bar$", "bar", True),
        (r"\Afoo\z", "foo", True),
        ("foo", "xfoo", False),
        ("a|", "", True),
        ("(?i)orders-[a-z]", "ORDERS-X", True),
        ("(?i)[[:upper:]]+", "ab", True),
        ("[[:alpha:]]+[[:digit:]]", "ab1", True),
        ("[[:punct:]]", "a", False),
        ("[[a]", "[", True),
        (r"\w", "é", False),
        (r"\s", "\v", False),
        (r"\Qa.b\E.", "a.bc", True),
        (r"\Qa.b", "axb", False),
        (r"\Qab\E+", "abb", True),
        (r"\Qab\E+", "abab", False),
        (r"\x41\a", "A\a", True),
        ("a{,2}", "a{,2}", True),
        (r"\x", None, None),
        (r"\u0041", None, None),
        ("(", None, None),
        (")", None, None),
        ("[a", None, None),
        ("[b-a]", None, None),
        ("*", None, None),
        ("a**", None, None),
        (r"(a)\1", None, None),
        ("(?=a)", None, None),
        ("(?P<n>a)", None, None),
        ("[[:nonsense:]]", None, None),
        ("[[:alpha", None, None),
        ("a{1001}", None, None),
        ("a{3,2}", None, None),
        ("(" * 51 + ")" * 51, None, None),
        ("a" * 1001, None, None),
        ("((a{100}){100}){100}", None, None),
        ("a\\", None, None),
    ],
)
def test_re2_by_example(pattern, text, matches):
    if matches is None:
        with pytest.raises(PatternError):
            Regex(pattern)
    else:
        assert Regex(pattern).matches(text) is matches


@given(st.text(st.sampled_from("ab(|)[]^$*+?{}1,2\\.:-QEd"), max_size=12), st.sampled_from([PYTHON, RE2]))
def test_any_text_is_a_pattern_or_is_refused(text, dialect):
    try:
        regex = Regex(text, dialect)
    except PatternError:
        assume(False)
    regex.matches("ab12")


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|a)*b", "(a+)+b", "(.*)*(.*)*x", "(a?){50}a{50}b"])
def test_patterns_that_explode_elsewhere_do_not_here(pattern):
    with at_most(1.0):
        assert not Regex(pattern).matches("a" * 249)


@pytest.mark.parametrize(
    "pattern",
    ["((((a{0}){1000}){1000}){1000}){1000}", "((((){1000}){1000}){1000})b{0}", "(" + "()" * 400 + "b{0}){0,1000}"],
)
def test_nothing_repeated_is_nothing_however_often(pattern):
    with at_most(0.5):
        assert Regex(pattern).matches("")
        assert not Regex(pattern).matches("a")
        assert compile_pattern(pattern)("a")
