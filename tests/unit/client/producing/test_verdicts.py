"""What each answer means for the records of a batch."""

import pytest

from horolog.client.producing.accumulator import Batch, Pending
from horolog.client.producing.verdicts import MAX_CORRUPT_ATTEMPTS, Verdict, halve, judge, refuse
from horolog.client.values.types import TopicPartition
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.produce import BatchIndexAndErrorMessage, PartitionProduceResponse

A = TopicPartition("t", 0)


def batch(count=3):
    made = Batch(1, A, 0.0)
    for index in range(count):
        made.add(Pending(A, None, b"%d" % index, (), 0, 10, None))
    return made


def answer(code, refused=(), message=None):
    errors = [BatchIndexAndErrorMessage(batch_index=each, batch_index_error_message=f"no {each}") for each in refused]
    return PartitionProduceResponse(index=0, error_code=code, record_errors=errors, error_message=message)


@pytest.mark.parametrize(
    ("code", "count", "expected"),
    [
        (ErrorCode.NONE, 3, Verdict.WRITTEN),
        (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, 3, Verdict.WRITTEN),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, 3, Verdict.AGAIN),
        (ErrorCode.NOT_ENOUGH_REPLICAS, 3, Verdict.AGAIN),
        (ErrorCode.MESSAGE_TOO_LARGE, 3, Verdict.HALVED),
        (ErrorCode.MESSAGE_TOO_LARGE, 1, Verdict.FAILED),
        (ErrorCode.RECORD_LIST_TOO_LARGE, 2, Verdict.HALVED),
        (ErrorCode.INVALID_TIMESTAMP, 3, Verdict.HALVED),  # an old version says not which record
        (ErrorCode.INVALID_TIMESTAMP, 1, Verdict.FAILED),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 3, Verdict.FAILED),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 3, Verdict.FAILED),
        (ErrorCode.UNKNOWN_PRODUCER_ID, 3, Verdict.NEW_PRODUCER),
    ],
)
def test_codes(code, count, expected):
    assert judge(batch(count), answer(code)).verdict == expected


def test_codes_that_nobody_knows_fail_the_batch():
    judged = judge(batch(), answer(31000, message="new in 9.0"))
    assert judged.verdict == Verdict.FAILED
    assert "31000" in judged.error.message
    assert "new in 9.0" in judged.error.message


def test_in_a_transaction_a_producer_does_not_change_its_id():
    assert judge(batch(), answer(ErrorCode.UNKNOWN_PRODUCER_ID), transactional=True).verdict == Verdict.FAILED


def test_refused_records_are_told_apart():
    judged = judge(batch(4), answer(ErrorCode.INVALID_TIMESTAMP, refused=[1, 3]))
    assert judged.verdict == Verdict.WITHOUT
    assert judged.refused == {1: "no 1", 3: "no 3"}
    (left,) = refuse(batch(4), judged.refused)
    assert [each.value for each in left.records] == [b"0", b"2"]
    assert left.producer is None, "the rest gets numbers when it is sent"


def test_nothing_is_left_when_all_are_refused():
    assert refuse(batch(2), {0: None, 1: None}) == []


def test_indexes_that_cannot_be_are_passed_over():
    judged = judge(batch(2), answer(ErrorCode.INVALID_RECORD, refused=[-1, 2, 1]))
    assert set(judged.refused) == {1}
    assert judge(batch(2), answer(ErrorCode.INVALID_RECORD, refused=[7])).verdict == Verdict.HALVED


def test_a_batch_that_arrives_damaged_again_and_again_fails():
    each = batch()
    assert judge(each, answer(ErrorCode.CORRUPT_MESSAGE)).verdict == Verdict.AGAIN
    each.attempts = MAX_CORRUPT_ATTEMPTS
    assert judge(each, answer(ErrorCode.CORRUPT_MESSAGE)).verdict == Verdict.FAILED


def test_halves_are_all_of_it():
    first, second = halve(batch(5))
    assert [each.value for each in first.records + second.records] == [b"0", b"1", b"2", b"3", b"4"]
    assert first.number == second.number == 1
