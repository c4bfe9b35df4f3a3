"""Segments out of use: when their files go."""

from types import SimpleNamespace

import pytest

from horolog.broker.log.partition.doomed import Doomed

DELAY_MS = 5000


@pytest.fixture
def removed():
    return []


@pytest.fixture
def segments(removed):
    return [
        SimpleNamespace(files=SimpleNamespace(remove=lambda number=number: removed.append(number)))
        for number in range(3)
    ]


def test_each_waits_for_its_time(segments):
    doomed = Doomed()
    doomed.add(segments[0], 100 + DELAY_MS)
    doomed.add(segments[1], 200 + DELAY_MS)
    assert repr(doomed) == "<Doomed: 2 segments>"
    assert doomed.take(99 + DELAY_MS, DELAY_MS) == []
    assert doomed.take(100 + DELAY_MS, DELAY_MS) == [segments[0]]
    assert doomed.take(999 + DELAY_MS, DELAY_MS) == [segments[1]]
    assert doomed.take(999 + DELAY_MS, DELAY_MS) == []


def test_a_clock_that_was_set_back_keeps_nothing(segments):
    doomed = Doomed()
    doomed.add(segments[0], 1_000_000 + DELAY_MS)
    assert doomed.take(1_000_000, DELAY_MS) == []
    assert doomed.take(999_999, DELAY_MS) == [segments[0]]


def test_at_the_end_all_go_at_once_or_with_their_folder(segments, removed):
    doomed = Doomed()
    for segment in segments:
        doomed.add(segment, DELAY_MS)
    doomed.remove_all()
    assert removed == [0, 1, 2]
    doomed.add(segments[0], DELAY_MS)
    doomed.forget()
    doomed.remove_all()
    assert removed == [0, 1, 2]
