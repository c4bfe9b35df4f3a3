"""What is cut and what is left: only damage with nothing good behind it is a tail."""

from horolog.broker.log.integrity import Known, survey
from tests.unit.broker.log.integrity.test_scanning import FAR, batch

LAST = Known(0, FAR, is_last=True)


def surveyed(data, known=LAST):
    absorbed = []
    found = survey(lambda size, at: data[at : at + size], len(data), known, absorbed.append)
    return found, [one.base_offset for one in absorbed]


def test_a_good_log_is_all_good():
    data = batch(0) + batch(2)
    found, absorbed = surveyed(data)
    assert (found.good_bytes, found.torn_bytes, found.holes, found.losses) == (len(data), 0, (), [])
    assert absorbed == [0, 2]


def test_a_tail_is_torn_and_a_middle_is_a_hole():
    one = len(batch(0))
    found, absorbed = surveyed(batch(0) + b"\xff" * 50 + batch(2) + b"\xff" * 9)
    assert absorbed == [0, 2]
    assert found.holes == ((one, one + 50),)
    assert (found.good_bytes, found.torn_bytes) == (2 * one + 50, 9)
    assert found.holes_to(found.file_bytes) == ((one, one + 50), (2 * one + 50, 2 * one + 59))
    assert len(found.losses) == 2


def test_nothing_good_is_all_torn():
    found, absorbed = surveyed(b"\xff" * 100)
    assert (absorbed, found.good_bytes, found.torn_bytes, found.holes) == ([], 0, 100, ())
    assert surveyed(b"")[0].torn_bytes == 0
