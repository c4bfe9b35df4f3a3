"""Which acknowledgements are taken, and in which segments."""

import pytest

from horolog.broker.share.acknowledging import AlikeOffsets, malformed_in, segments
from horolog.broker.share.partition import SharePartition
from horolog.broker.share.terms import Acknowledgement, AcknowledgeType, Fetched, Limits, Refused, Wish
from horolog.protocol.errors import ErrorCode

LIMITS = Limits()
ACCEPT, RELEASE, REJECT, RENEW = list(AcknowledgeType)[1:]


def partition(start=0):
    made = SharePartition(start)
    made.acquire("ann", Fetched(start, [(0, 9)]), Wish(100, 100), LIMITS, 0.0)
    return made


def test_segments_are_runs_of_one_type_above_the_start():
    given = [Acknowledgement(0, 4, [1]), Acknowledgement(5, 9, [1, 1, 2, 3, 3])]
    assert segments(partition(), "ann", given, LIMITS) == [
        AlikeOffsets(0, 4, ACCEPT), AlikeOffsets(5, 6, ACCEPT), AlikeOffsets(7, 7, RELEASE), AlikeOffsets(8, 9, REJECT),
    ]  # fmt: skip
    assert segments(partition(6), "ann", given, LIMITS) == [
        AlikeOffsets(6, 6, ACCEPT), AlikeOffsets(7, 7, RELEASE), AlikeOffsets(8, 9, REJECT),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "given",
    [
        [Acknowledgement(3, 2, [1])],
        [Acknowledgement(0, 3, [1]), Acknowledgement(3, 4, [1])],
        [Acknowledgement(4, 5, [1]), Acknowledgement(0, 1, [1])],
        [Acknowledgement(0, 3, [])],
        [Acknowledgement(0, 3, [1, 1])],
        [Acknowledgement(0, 0, [5])],
        [Acknowledgement(0, 0, [-1])],
    ],
)
def test_what_makes_no_sense_is_refused_as_a_whole(given):
    assert malformed_in(given).code == ErrorCode.INVALID_REQUEST
    assert segments(partition(), "ann", given, LIMITS).code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("member", "first", "last", "code"),
    [
        ("bob", 0, 9, ErrorCode.INVALID_RECORD_STATE),
        ("ann", 10, 11, ErrorCode.INVALID_REQUEST),
        ("ann", 5, 10, ErrorCode.INVALID_REQUEST),
    ],
)
def test_records_that_the_member_does_not_have_are_refused(member, first, last, code):
    refused = segments(partition(), member, [Acknowledgement(first, last, [1])], LIMITS)
    assert isinstance(refused, Refused)
    assert refused.code == code


def test_a_record_is_acknowledged_once():
    made = partition()
    made.acknowledge("ann", [Acknowledgement(0, 4, [1])], LIMITS, 1.0)
    assert segments(made, "ann", [Acknowledgement(4, 5, [1])], LIMITS).code == ErrorCode.INVALID_RECORD_STATE


def test_what_lies_before_the_start_is_of_no_interest_and_nothing_is_in_flight_without_runs():
    empty = SharePartition(5)
    assert segments(empty, "ann", [Acknowledgement(0, 4, [1])], LIMITS) == []
    assert segments(empty, "ann", [Acknowledgement(0, 5, [1])], LIMITS).code == ErrorCode.INVALID_RECORD_STATE


def test_a_lock_is_renewed_only_if_the_group_allows_it():
    given = [Acknowledgement(0, 9, [4])]
    assert segments(partition(), "ann", given, LIMITS) == [AlikeOffsets(0, 9, RENEW)]
    refused = segments(partition(), "ann", given, LIMITS._replace(may_renew=False))
    assert refused.code == ErrorCode.INVALID_RECORD_STATE
