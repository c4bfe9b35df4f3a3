"""The language of topic patterns: it matches what Python's own does where both know it, and no pattern makes it slow."""

import re
from unittest import mock

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from horolog.base import linear_regex
from horolog.base.linear_regex import PatternError, Regex
from tests.support.processor_time import at_most

atoms = st.sampled_from(
    ["a", "b", "-", "\\.", ".", "[ab]", "[^a]", "[a-c]", "\\d", "\\w", "\\D", "[\\w.]", "[-a]", "[]a]"]
)
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{1,}", "*?"])).map(
            lambda p: f"({p[0]}){p[1]}"
        ),
    ),
    max_leaves=6,
)


@given(patterns, st.text("abc.-1", max_size=8))
def test_matches_what_python_matches(pattern, text):
    assert Regex(pattern).matches(text) == bool(re.fullmatch(pattern, text, re.ASCII))


@given(patterns, st.lists(st.text("abc.-1", max_size=8), min_size=2, max_size=10), st.sampled_from([0, 20, 5_000]))
def test_texts_before_it_change_nothing(pattern, texts, bound):
    regex = Regex(pattern)
    with mock.patch.object(linear_regex, "MAX_REMEMBERED", bound):
        for text in texts:
            assert regex.matches(text) == bool(re.fullmatch(pattern, text, re.ASCII))


@pytest.mark.parametrize("pattern", [".*a.{8}", "(a|b|.)*", "[a-z]+-[0-9]{1,9}", "^a|b$"])
def test_what_is_remembered_is_bounded(pattern):
    regex = Regex(pattern)
    for number in range(3_000):
        regex.matches(f"{number:b}".replace("0", "a").replace("1", chr(98 + number % 900)))
        assert regex._remembered <= linear_regex.MAX_REMEMBERED + 100
        assert len(regex._places) <= linear_regex.MAX_REMEMBERED + 1


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("", "", True),
        ("", "a", False),
        ("^foo.*$", "foobar", True),
        ("^foo$|^bar$", "bar", True),
        ("foo", "xfoo", False),
        ("a|", "", True),
        ("[[:alpha:]]+[[:digit:]]", "ab1", True),
        ("[[:punct:]]", "a", False),
        (r"\Qa.b\E.", "a.bc", True),
        (r"\Qa.b", "axb", False),
        ("a{,2}", "a{,2}", True),
        (r"\x", None, None),
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
        ("a{1001}", None, None),
        ("a{3,2}", None, None),
        ("(" * 51 + ")" * 51, None, None),
        ("a" * 1001, None, None),
        ("((a{100}){100}){100}", None, None),
        ("a\\", None, None),
    ],
)
def test_by_example(pattern, text, matches):
    if matches is None:
        with pytest.raises(PatternError):
            Regex(pattern)
    else:
        assert Regex(pattern).matches(text) is matches


@given(st.text(st.sampled_from("ab(|)[]^$*+?{}1,2\\.:-QEd"), max_size=12))
def test_any_text_is_a_pattern_or_is_refused(text):
    try:
        regex = Regex(text)
    except PatternError:
        assume(False)
    regex.matches("ab12")


@pytest.mark.parametrize("pattern", ["(a*)*b", "(a|a)*b", "(a+)+b", "(.*)*(.*)*x", "(a?){50}a{50}b"])
def test_patterns_that_explode_elsewhere_do_not_here(pattern):
    with at_most(1.0):
        assert not Regex(pattern).matches("a" * 249)
