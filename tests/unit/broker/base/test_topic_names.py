"""Which names a topic may have."""

import pytest

from horolog.broker.base.topic_names import MAX_NAME_LENGTH, collision_key, wrong_with


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "x" * MAX_NAME_LENGTH, "__consumer_offsets", "0"])
def test_legal(name):
    assert wrong_with(name) is None


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a b", "a:b", "t\u00e4", "a\n", "x" * (MAX_NAME_LENGTH + 1), "\u0661", "a\0"]
)
def test_illegal(name):
    assert wrong_with(name)


def test_dots_and_underscores_are_too_alike():
    assert collision_key("a.b_c") == collision_key("a_b.c")
    assert collision_key("a-b") != collision_key("a_b")
