"""Refusals for a time are counted record by record, by what was wrong with it."""

from horolog.broker.log.counters import LogCounters
from horolog.broker.log.validation import RefusedSet
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.timestamps import Accepted, describe_refusal

TIMES = Accepted(1_000_000, 100, 100)


def counted(refused):
    counters = LogCounters()
    counters.note_refusal(refused)
    return (
        counters.timestamps_too_early.value,
        counters.timestamps_too_late.value,
        counters.timestamps_invalid.value,
    )


def test_every_record_counts_under_its_reason():
    errors = [(n, describe_refusal(time, TIMES)) for n, time in enumerate((1, 2, 2_000_000, -5))]
    errors.append((4, "a message inside a wrapper cannot have the timestamp type LogAppendTime"))
    assert counted(RefusedSet(ErrorCode.INVALID_TIMESTAMP, "several", errors)) == (3, 1, 1)


def test_a_refusal_of_the_whole_set_counts_once():
    assert counted(RefusedSet(ErrorCode.INVALID_TIMESTAMP, "a producer cannot set the type")) == (0, 0, 1)


def test_other_refusals_do_not_count():
    assert counted(RefusedSet(ErrorCode.INVALID_RECORD, "no key", [(0, "no key")])) == (0, 0, 0)
