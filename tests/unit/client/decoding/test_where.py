"""Expressions choose records by their fields; what cannot be read is refused with its place, and what cannot be compared is false."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.client.decoding import where
from horolog.client.decoding.values import Instant
from horolog.client.decoding.where import WhereError, compile_where
from horolog.client.values.types import ConsumerRecord

TIME_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z
NOW_MS = TIME_MS + 3_600_000


class Contents(NamedTuple):
    key: Any
    value: Any


VALUE = {
    "id": 7,
    "price": Decimal("9.99"),
    "name": "O'Brien",
    "tags": ["new", "big", 3],
    "customer": {"id": 70, "x-y": 1.5, "none": None, "0": "zero"},
    "ok": True,
    "no": False,
    "at": Instant.of_ms(TIME_MS),
    "fine": Instant(TIME_MS * 1_000_000 + 1),
    "data": b"\x00\xff",
    "nan": Decimal("NaN"),
    "digits": "42",
}
RECORD = ConsumerRecord(
    "orders", 2, 7, TIME_MS, 0, b"42", b"{}", (("trace", b"7fab"), ("n", b"12"), ("null", None), ("raw", b"\xff"))
)
if isinstance(RECORD.headers[0][0], str):
    RECORD = RECORD._replace(headers=tuple((name.encode(), value) for name, value in RECORD.headers))


def holds(text: str, value: Any = VALUE, key: Any = "42", record: ConsumerRecord = RECORD) -> bool:
    return compile_where(text, NOW_MS, UTC)(record, Contents(key, value))


@pytest.mark.parametrize(
    "text",
    [
        "value.id = 7",
        "value.id == 7.0",
        "7 = value.id",
        "value.id < 8 and value.id <= 7 and value.id > 6 and value.id >= 7",
        "value.id != 8",
        "value.id != '7'",
        "value.price > 9.98 and value.price < 1e1 and value.price = 9.99",
        "value.name = 'O\\'Brien' and value.name = \"O'Brien\"",
        "value.name = '\\u004f\\'Brien'",
        "value.name < 'P'",
        "value.tags[0] = 'new' and value.tags[-1] = 3 and value.tags.1 = 'big'",
        "value.customer.x-y = 1.5 and value['customer'][\"x-y\"] = 1.5 and value.customer[0] = 'zero'",
        "value.ok",
        "value.ok = true and value.no = false",
        "not value.no and not value.customer",
        "value.customer.none = null and value.id != null",
        "exists value.customer.none and not exists value.customer.gone",
        "'big' in value.tags and 3 in value.tags and 4 not in value.tags",
        "'id' in value.customer and 'Bri' in value.name",
        "value.id in (1, 7) and value.id in [7] and value.id not in (1, 2)",
        "value.name ~ \"^O'B\" and value.name !~ 'x' and value.id ~ '^7$'",
        r"value.name ~ '^\w'",
        "value ~ '\"id\":70'",
        "value.data = '00ff' and value.data ~ '^00'",
        "value.at = '2023-11-14T22:13:20Z' and value.at < 'now' and value.at > 'now-2h'",
        "value.at = 1700000000000 and value.fine > 1700000000000 and value.fine > value.at",
        "value.at ~ '^2023-11-14T22'",
        "value.at in ('2023-11-14 22:13:20', '10:05')",
        "key = 42 and key = '42' and key < 42.5 and key != 'x'",
        "headers.trace ~ '^7f' and headers.n = 12 and headers['n'] > 11 and headers.raw = 'ff' and headers.null = null",
        "topic = 'orders' and partition = 2 and offset = 7 and offset in (7)",
        "timestamp >= '2023-11-14T22:13:20Z' and timestamp < 'now' and '21:00' < timestamp and timestamp = 1700000000000",
        "timestamp in ('2023-11-14 22:13:20')",
        "value.id = 1 or value.id = 2 or value.id = 7",
        "value.id = 7 or value.id = 1 and value.id = 2",
        "(value.id = 7 or value.id = 1) and not (value.id = 2)",
        "value.name != value.gone or true = true",
        "null = null",
    ],
)
def test_what_holds(text):
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    [
        "value.gone = 1",
        "value.gone != 1",
        "value.gone = null",
        "value.gone ~ ''",
        "value.gone !~ 'x'",
        "value.gone in (1)",
        "value.gone not in (1)",
        "1 in value.gone",
        "1 not in value.id",
        "value.gone",
        "value.id",
        "value.id.deeper = 1",
        "value.tags[3] = 1",
        "value.tags.new = 1",
        "value.tags.99999999999 = 1",
        "value.id = '7'",
        "value.digits = 42",
        "value.id < '8'",
        "value.ok = 1",
        "value.ok < true",
        "value.customer < value.customer",
        "value.customer.none < 1",
        "value.customer.none ~ 'null'",
        "value.nan = 1",
        "value.nan < 1",
        "value.name > 1",
        "key = 'x'",
        "key = 'now'",
        "headers.trace = 7",
        "headers.gone = ''",
        "value.id = 7 and value.id = 8",
        "5 in value.name",
        "value.at = 'some day'",
    ],
)
def test_what_does_not_hold(text):
    assert not holds(text)


def test_a_record_without_a_time_is_in_no_range():
    record = RECORD._replace(timestamp_ms=-1)
    assert not holds("timestamp < 'now'", record=record)
    assert not holds("timestamp >= 0", record=record)
    assert not holds("exists timestamp", record=record)


def test_times_are_read_in_the_zone_that_is_given():
    zone = timezone(timedelta(hours=2))
    text = "timestamp = '2023-11-15 00:13:20'"
    assert compile_where(text, NOW_MS, zone)(RECORD)
    assert not compile_where(text, NOW_MS, UTC)(RECORD)
    assert datetime.fromtimestamp(TIME_MS / 1000, zone).hour == 0


def test_decoding_is_asked_for_only_where_it_is_needed():
    assert not compile_where("offset > 5 and headers.trace ~ '7'", NOW_MS, UTC).needs_decoding
    assert compile_where("offset > 5 or exists key", NOW_MS, UTC).needs_decoding
    assert not compile_where("value.id = 7", NOW_MS, UTC)(RECORD, None)


def test_values_that_are_text_are_numbers_beside_numbers():
    assert holds("value > 41.5", value=" 42 ")
    assert holds("value = 4.2e1", value="42")
    assert not holds("value > 41", value="abc")
    assert not holds("value > 41", value="9" * 500)
    assert holds("value ~ 'b'", value="abc")
    assert holds("value = key", value=b"42", key="42")
    assert holds("value = key", value=b"\xff", key=b"\xff")


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("", 1, "a path such as value.id"),
        ("value.", 7, "expected the name of a field"),
        ("foo=1", 1, "put text in quotes"),
        ("value.id = or", 12, "a path that begins with key"),
        ("value =", 8, "but the text ends"),
        ("value = 'x", 9, "a text without a closing quote"),
        ("value.id = 7 and", 17, "but the text ends"),
        ("(value.id=7", 12, r"expected \)"),
        ("value ~ 'a('", 9, "the regular expression"),
        ("value ~ 5", 9, "a regular expression in quotes"),
        ("offset.x=1", 1, "offset has no fields"),
        ("value.a[", 9, "a whole number or a name in quotes"),
        ("value.a[1", 10, "expected ]"),
        ("1", 2, "=, !=, <"),
        ("value in 3", 10, "a list such as"),
        ("value in (3", 12, r"expected , or \)"),
        ("value not 3", 11, "expected `in`"),
        ("value=='\\q'", 8, "as an escape"),
        ("value=5x", 7, "a path such as"),
        ("value.id = 7 8", 14, "`and`, `or` or the end"),
        ("value = $", 9, r"found '\$'"),
        ("(" * 200, 101, "at most 100 levels"),
    ],
)
def test_what_is_no_expression_is_refused_with_its_place(text, place, said):
    with pytest.raises(WhereError, match=f"^at {place}: .*{said}"):
        compile_where(text, NOW_MS, UTC)


def test_a_text_beside_a_timestamp_must_be_a_time():
    for text in ("timestamp > 'foo'", "'foo' < timestamp", "timestamp in ('foo')"):
        with pytest.raises(WhereError, match=r"timestamp is compared with a time: 'foo'"):
            compile_where(text, NOW_MS, UTC)


def test_an_expression_has_a_longest_length():
    with pytest.raises(WhereError, match="at most 10000 characters"):
        compile_where("a" * (where.LONGEST_TEXT + 1), NOW_MS, UTC)


WORDS = [
    "value",
    "key",
    ".",
    "a",
    "[",
    "]",
    "(",
    ")",
    "1",
    "-2.5",
    "'x'",
    "and",
    "or",
    "not",
    "in",
    "~",
    "=",
    "<",
    "exists",
    ",",
]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.decimals()
    | st.builds(Instant, st.integers()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
    max_leaves=5,
)


@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join) | st.text(max_size=30), VALUES)
def test_any_text_is_an_expression_or_refused(text, value):
    try:
        test = compile_where(text, NOW_MS, UTC)
    except WhereError:
        return
    assert test(RECORD, Contents(value, value)) in (True, False)


@given(VALUES, VALUES, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
def test_any_two_values_can_be_compared(one, other, sign):
    """At most one of <, = and > holds, and the two sides may be swapped."""
    contents = Contents(one, other)

    def found(text):
        return compile_where(text, NOW_MS, UTC)(RECORD, contents)

    swapped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(sign, sign)
    assert found(f"key {sign} value") is found(f"value {swapped} key")
    assert sum(found(f"key {each} value") for each in ("<", "=", ">")) <= 1
    assert found("key = value") is not found("key != value")
