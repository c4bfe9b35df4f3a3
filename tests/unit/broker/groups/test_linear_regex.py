"""The language of topic patterns: it matches what Python's own does where both know it, and no pattern makes it slow."""

import re
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from horolog.broker.groups.linear_regex import PatternError, Regex

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
    began = time.perf_counter()
    assert not Regex(pattern).matches("a" * 249)
    assert time.perf_counter() - began < 1.0
