"""Error codes: Kafka's numbers and names, a sentence and a retry flag for each."""

from horolog.protocol.errors import OTHER_NAMES, DecodeError, EncodeError, ErrorCode, FrameError, ProtocolError


def test_codes_have_no_gaps_and_are_their_numbers() -> None:
    assert sorted(ErrorCode) == list(range(-1, len(ErrorCode) - 1))
    assert ErrorCode(32) is ErrorCode.INVALID_TIMESTAMP
    assert ErrorCode.INVALID_TIMESTAMP == 32


def test_error_32_is_known_by_both_of_its_names() -> None:
    assert ErrorCode.TIMESTAMP_EXCEEDED_THRESHOLD is ErrorCode.INVALID_TIMESTAMP
    assert ErrorCode["TIMESTAMP_EXCEEDED_THRESHOLD"] == 32
    assert ErrorCode(32).name == "INVALID_TIMESTAMP"
    assert [code for code in ErrorCode if code == 32] == [ErrorCode.INVALID_TIMESTAMP]
    assert OTHER_NAMES[ErrorCode(32)] == "TimestampExceededThreshold"


def test_every_code_says_something_of_its_own() -> None:
    messages = [code.message for code in ErrorCode]
    assert all(message.endswith(".") and len(message) > 8 for message in messages)
    assert len(set(messages)) == len(messages)


def test_clients_may_try_again_after_passing_faults_only() -> None:
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.retriable
    assert ErrorCode.KAFKA_STORAGE_ERROR.retriable
    assert not ErrorCode.INVALID_TIMESTAMP.retriable
    assert not ErrorCode.NONE.retriable


def test_faults_of_the_package_have_one_root() -> None:
    assert all(issubclass(fault, ProtocolError) for fault in (DecodeError, EncodeError, FrameError))
