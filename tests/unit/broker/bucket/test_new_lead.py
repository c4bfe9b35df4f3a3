"""The first seconds of a lead, and the batches of which the first one is missing."""

import pytest

from horolog.broker.bucket.new_lead import IS_NEW_FOR_MS, NewLead, is_second
from horolog.broker.log.producers import ProducerBatch, ProducerStates
from tests.support import raw_records as raw


def test_the_seconds_count_from_the_first_batch_on():
    lead = NewLead()
    assert "never" in repr(lead)
    assert lead.holds(1_000)
    assert "at 1000" in repr(lead)
    assert lead.holds(1_000 + IS_NEW_FOR_MS - 1)
    assert not lead.holds(1_000 + IS_NEW_FOR_MS)


def test_a_clock_that_is_set_back_ends_them():
    lead = NewLead()
    assert lead.holds(1_000)
    assert not lead.holds(999)


@pytest.mark.parametrize(
    ("producer", "expected"),
    [((7, 0, 1), True), ((7, 0, 0), False), ((8, 0, 5), False), ((-1, -1, -1), False), ((-1, -1, 5), False)],
)
def test_only_a_producer_that_is_not_known_has_a_second_batch_without_a_first(producer, expected):
    known = ProducerStates(1_000)
    known.update(ProducerBatch(8, 0, 0, 0, 0, 0, 5), 5)
    assert is_second(known, raw.batch([raw.record()], producer=producer)) is expected
    assert is_second(known, memoryview(raw.batch([raw.record()], producer=producer))) is expected


@pytest.mark.parametrize("data", [b"", raw.message(b"v" * 60), raw.batch([raw.record()], producer=(7, 0, 1))[:60]])
def test_other_formats_and_fragments_have_none(data):
    assert not is_second(ProducerStates(1_000), data)
