"""The comparison of indexes: its yardstick is right, and the shipped index comes out exact."""

import pytest

from benchmarks import index_designs
from benchmarks.designs import Day


def test_missed_and_read_past_are_counted_from_the_right_answer():
    day = Day([10, 30, 20, 40], [10, 20, 30, 40], [0], 100)
    answers = {20: 0, 25: 2, 35: None}
    missed, past = index_designs.accuracy(day, answers.get, [20, 25, 35])
    assert past == [1, 0, 0]
    assert missed == [0, 1, 1]


@pytest.mark.slow
def test_the_index_that_ships_is_exact(monkeypatch):
    monkeypatch.setattr(index_designs, "RECORDS", 1500)
    monkeypatch.setattr(index_designs, "OPENED_PARTITIONS", 2)
    day = index_designs.make_day(1500, 3)
    found = index_designs.measure_shipped(day, range(day.appended[0], day.appended[-1], 40_013))
    assert not any(found.missed)
    assert not any(found.read_past)
    assert found.disk_bytes > 0


@pytest.mark.parametrize(("value", "text"), [(57e6, "57 MB"), (3.4e9, "3.4 GB"), (999, "999 B")])
def test_sizes_read_as_they_are_written(value, text):
    assert index_designs.size(value) == text
