"""Rows that are the same in another order or other batches have the same digest; any other rows have another."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from horolog.pipeline.writing.tally import Tally

TEXT = st.one_of(st.none(), st.text(max_size=4))
TIMES = st.one_of(
    st.none(), st.integers(-(10**9), 10**9).map(lambda n: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(0, n))
)
HEADERS = st.one_of(
    st.none(), st.lists(st.fixed_dictionaries({"key": st.text(max_size=2), "value": st.binary(max_size=2)}), max_size=2)
)
ROW = st.tuples(
    TEXT, st.one_of(st.none(), st.binary(max_size=4)), TEXT, st.one_of(st.none(), st.integers(0, 9)), TIMES, HEADERS
)
KINDS = {
    "key": pa.string(),
    "value": pa.binary(),
    "topic": pa.large_string(),
    "partition": pa.int32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "headers": pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()})),
    "ignored": pa.float64(),
}


def told(rows, pieces=1):
    tally = Tally()
    for start in range(pieces):
        columns = list(zip(*rows[start::pieces], strict=True)) or [[]] * 6
        arrays = [pa.array(column, kind) for column, kind in zip([*columns, columns[3]], KINDS.values(), strict=True)]
        batch = pa.record_batch(arrays, list(KINDS))
        assert [each.num_rows for each in tally.of([batch])] == [batch.num_rows]
    return tally.rows, tally.digest


@given(st.lists(ROW, max_size=20), st.integers(1, 4), st.randoms())
def test_order_and_batches_do_not_count(rows, pieces, random):
    shuffled = random.sample(rows, len(rows))
    assert told(rows) == told(shuffled, pieces)
    assert told(rows)[0] == len(rows)
    assert 0 <= told(rows)[1] < 2**63


@given(st.lists(ROW, min_size=1, max_size=9), ROW, st.data())
def test_another_row_is_another_digest(rows, other, data):
    at = data.draw(st.integers(0, len(rows) - 1))
    changed = [*rows[:at], other, *rows[at + 1 :]]
    assert (told(changed) == told(rows)) == (rows[at] == other)


def test_values_swapped_between_rows_or_columns_are_told():
    nothing = (None, None, None)
    one = told([("a", b"1", None, *nothing), ("b", b"2", None, *nothing)])
    assert one != told([("a", b"2", None, *nothing), ("b", b"1", None, *nothing)])
    assert told([("a", b"b", None, *nothing)]) != told([("b", b"a", None, *nothing)])
    assert told([("", b"", None, *nothing)]) != told([(None, b"", None, *nothing)])


def test_columns_that_are_no_part_of_a_record_do_not_count():
    tally, same = Tally(), Tally()
    tally.add(pa.record_batch([pa.array([b"v"]), pa.array([1.5])], ["value", "price"]))
    same.add(pa.record_batch([pa.array(["v"])], ["value"]))
    assert (tally.rows, tally.digest) == (same.rows, same.digest)
    assert np.uint64(tally.digest) > 0
