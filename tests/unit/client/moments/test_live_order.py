"""New records are held for a moment and handed out by time."""

from hypothesis import given
from hypothesis import strategies as st

from horolog.client.moments.live_order import Window
from horolog.client.moments.sorting import Hold
from horolog.client.values.types import ConsumerRecord


def record(time_ms, offset=0, partition=0):
    return ConsumerRecord("t", partition, offset, time_ms, 0, None, b"")


def times(records):
    return [each.timestamp_ms for each in records]


def test_records_wait_for_earlier_ones_that_come_within_the_window():
    window = Window(1000)
    assert window.poll_ms(5000) == 5000
    window.put([record(20), record(30)], 0)
    assert window.poll_ms(5000) == 1000
    assert window.poll_ms(500) == 500
    assert window.take(999) == []
    window.put([record(10), record(40)], 999)
    assert times(window.take(1000)) == [10, 20, 30]
    assert times(window.take(1998)) == []
    assert times(window.take(1999)) == [40]
    window.put([record(5)], 2000)
    assert repr(window) == "<Window of 1 records>"
    assert times(window.rest()) == [5]
    assert window.out_of_place == 1
    assert window.take(9000) == []


def test_no_more_is_held_than_there_is_room():
    window = Window(1000, Hold(records=3))
    window.put([record(5), record(3), record(4), record(1)], 0)
    assert times(window.take(0)) == [1, 3]
    assert times(window.rest()) == [4, 5]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 100)), max_size=50), st.integers(0, 60))
def test_each_is_handed_out_once_and_in_order_if_none_is_later_than_the_window(steps, length):
    """Each record comes within the window after the time that it has."""
    window = Window(length)
    now, found = 0, []
    for offset, (pause, late) in enumerate(steps):
        now += pause
        found += window.take(now)
        window.put([record(now - min(late, length), offset)], now)
    found += window.take(now + length)
    assert sorted(each.offset for each in found) == list(range(len(steps)))
    assert times(found) == sorted(times(found)) or length == 0
