"""A bounded number of records is held to be put in order."""

from hypothesis import given
from hypothesis import strategies as st

from horolog.client.moments.sorting import Hold, Placed, Sorter
from horolog.client.values.types import ConsumerRecord


def placed(time_ms, partition=0, offset=0, value=b""):
    return Placed(ConsumerRecord("t", partition, offset, time_ms, 0, None, value))


def place(one):
    return one.record.timestamp_ms, one.record.topic, one.record.partition, one.record.offset


records = st.lists(st.builds(placed, st.integers(0, 20), st.integers(0, 3), st.integers(0, 50)), max_size=60)


@given(records)
def test_all_that_fits_comes_in_order(given_ones):
    sorter = Sorter(Hold())
    sorter.put_all(given_ones)
    assert len(sorter) == len(given_ones)
    taken = [place(sorter.take()) for _ in given_ones]
    assert taken == sorted(place(one) for one in given_ones)
    assert sorter.out_of_place == 0
    assert not sorter


@given(records, st.integers(1, 10))
def test_what_comes_later_than_fits_is_handed_out_and_counted(given_ones, most):
    sorter = Sorter(Hold(records=most))
    taken = []
    for one in given_ones:
        if sorter.is_full:
            taken.append(place(sorter.take()))
        sorter.put(one)
    taken += [place(sorter.take()) for _ in range(len(sorter))]
    assert sorted(taken) == sorted(place(one) for one in given_ones)
    largest = (-1, "", -1, -1)
    behind = 0
    for one in taken:
        behind += one < largest
        largest = max(one, largest)
    assert sorter.out_of_place == behind


def test_bytes_fill_it_as_well():
    sorter = Sorter(Hold(records=10, size_bytes=1000))
    sorter.put(placed(1))
    assert not sorter.is_full
    sorter.put(placed(2, value=b"x" * 900))
    assert sorter.is_full
    sorter.take()
    assert sorter.is_full
    sorter.take()
    assert not sorter.is_full
    assert repr(sorter) == "<Sorter of 0 records>"
