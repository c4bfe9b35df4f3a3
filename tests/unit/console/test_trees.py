"""Values are folded open as trees of bounded size, and whatever is in them stays text."""

from decimal import Decimal

from horolog.client.decoding.values import Instant
from horolog.console.trees import DEEPEST, LONGEST_TEXT, tree_of

MANY = 100


def test_objects_and_lists_are_folded_and_the_rest_stands_beside_its_name():
    text = tree_of(
        {"id": 7, "items": [{"sku": "A"}, None, True], "none": {}, "at": Instant(0), "price": Decimal("2.50")}, MANY
    )
    assert text.count("<details") == 2
    assert text.count("<details open") == 1, "deeper ones begin folded"
    assert '<span class="field">id</span> <span class="bare">7</span>' in text
    assert '<span class="text">&#34;A&#34;</span>' in text
    assert '<span class="quiet">[3]</span>' in text
    assert "1970-01-01T00:00:00.000Z" in text
    assert "2.50" in text
    assert "{}" in text


def test_values_without_parts_have_no_tree():
    assert [tree_of(one, MANY) for one in ("text", 7, None, {}, [])] == [None] * 5


def test_markup_and_unseen_signs_are_text():
    text = tree_of({"<b>": "<i>\x1b\ud800"}, MANY)
    assert "&lt;b&gt;" in text
    assert "&lt;i&gt;" in text
    assert '<span class="sign">\\x1b</span>' in text
    text.encode()


def test_a_vast_value_is_cut_and_says_so():
    text = tree_of({"rows": list(range(10_000)), "after": 1}, MANY)
    assert text.count("<li>") == MANY
    assert "9,901 more are not shown" in text
    assert "1 more is not shown" in text
    assert len(tree_of({"a": "x" * 100_000}, MANY)) < LONGEST_TEXT + 200


def test_depth_has_an_end():
    value = []
    for _ in range(200):
        value = [value, 1]
    text = tree_of(value, 10_000)
    assert text.count("<details") == DEEPEST
    assert "deeper than is shown" in text
