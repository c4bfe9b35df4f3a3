"""Errors carry the code, a sentence, and whether trying again may help."""

import pytest

from horolog.client.values.errors import KafkaError, PartialFailure, check, error_of
from horolog.protocol.errors import ErrorCode


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
