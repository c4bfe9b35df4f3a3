"""Errors carry the code, a sentence, and whether trying again may help."""

import pytest

from horolog.client.values.errors import (
    AuthenticationFailed,
    Closed,
    ConnectionFailed,
    KafkaError,
    MalformedAnswer,
    PartialFailure,
    RecordRefused,
    RequestTimedOut,
    TimestampExceededThreshold,
    TlsFailed,
    UnsupportedVersion,
    check,
    error_of,
    first,
    named_error,
    only_partition,
    refusal,
)
from horolog.client.values.types import TopicPartition
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.list_offsets import ListOffsetsResponse, ListOffsetsTopicResponse


def test_codes_become_errors():
    check(0)
    with pytest.raises(KafkaError, match="UNKNOWN_MEMBER_ID: The group has no such member") as caught:
        check(25)
    assert not caught.value.retriable
    assert error_of(6).retriable


def test_unknown_codes_keep_their_number():
    error = error_of(31000, "from the future")
    assert error.code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert error.message == "error code 31000: from the future"


def test_several_failures_in_one():
    error = PartialFailure({"a": error_of(3), "b": error_of(29)}, {"c": 1})
    assert error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not error.retriable
    assert set(error.failures) == {"a", "b"}
    assert error.results == {"c": 1}
    assert "a: " in str(error)
    assert "b: " in str(error)


def test_each_of_several_failures_has_its_name_once():
    place = TopicPartition("t", 3)
    error = PartialFailure({place: named_error(place, 1), "u": error_of(29, topic="u")})
    assert error.message == f"t-3: {ErrorCode.OFFSET_OUT_OF_RANGE.message}, u: not authorized for topic 'u'"


@pytest.mark.parametrize(
    ("error", "code", "retriable"),
    [
        (ConnectionFailed("m"), ErrorCode.NETWORK_EXCEPTION, True),
        (TlsFailed("m"), ErrorCode.NETWORK_EXCEPTION, False),
        (AuthenticationFailed("m"), ErrorCode.SASL_AUTHENTICATION_FAILED, False),
        (RequestTimedOut("m"), ErrorCode.REQUEST_TIMED_OUT, True),
        (MalformedAnswer("m"), ErrorCode.CORRUPT_MESSAGE, False),
        (UnsupportedVersion("m"), ErrorCode.UNSUPPORTED_VERSION, False),
        (Closed("client"), ErrorCode.INVALID_REQUEST, False),
    ],
)
def test_failures_of_the_client_itself_have_a_code_and_say_whether_to_try_again(error, code, retriable):
    assert (error.code, error.retriable) == (code, retriable)
    assert error.message in {"m", "the client is closed"}


def test_an_error_has_the_name_that_other_clients_use_too():
    assert str(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)).startswith("NOT_LEADER_OR_FOLLOWER")
    assert str(KafkaError(ErrorCode.CORRUPT_MESSAGE, "m", retriable=False)).endswith(": m")


def test_a_record_that_is_refused_is_in_its_error():
    refused = refusal(error_of(int(ErrorCode.INVALID_TIMESTAMP)), "too old", "record")
    assert type(refused) is TimestampExceededThreshold
    assert (refused.message, refused.record) == ("too old", "record")
    other = refusal(ConnectionFailed("gone"), None, "record")
    assert type(other) is RecordRefused
    assert (other.message, other.retriable) == ("gone", True)


@pytest.mark.parametrize(
    ("code", "asked", "said"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, {"topic": "t"}, "not authorized for topic 't'"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, {"group": "g", "topic": "t"}, "not authorized for group 'g'"),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, {"topic": "t"}, "not authorized for the cluster"),
        (
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            {"transactional_id": "x"},
            "not authorized for transactional id 'x'",
        ),
    ],
)
def test_a_missing_right_names_its_thing(code, asked, said):
    with pytest.raises(KafkaError) as caught:
        check(int(code), "whatever the broker says", **asked)
    assert caught.value.message == said


def test_an_error_about_a_thing_begins_with_its_name():
    place = TopicPartition("t", 3)
    assert named_error(place, int(ErrorCode.OFFSET_OUT_OF_RANGE)).message.startswith("t-3: ")
    assert named_error("g", 31000, "why").message == "g: error code 31000: why"
    assert named_error(place, int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)).message == "not authorized for topic 't'"


def test_an_answer_that_leaves_out_its_only_thing_is_malformed():
    assert first([7, 8], "groups") == 7
    with pytest.raises(MalformedAnswer, match="an answer without any groups"):
        first([], "groups")
    for answer, missing in (
        (ListOffsetsResponse(), "topics"),
        (ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t")]), "partitions"),
    ):
        with pytest.raises(MalformedAnswer, match=missing):
            only_partition(answer)
