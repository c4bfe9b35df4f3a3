"""A refusal carries its code for the wire and its sentence for people."""

from horolog.broker.on_record.cluster_errors import ClusterError, not_registered, still_running
from horolog.protocol.errors import ErrorCode


def test_a_refusal_says_its_code_and_its_reason():
    error = ClusterError(ErrorCode.INVALID_PARTITIONS, "fewer than before")
    assert (error.code, error.message, str(error)) == (
        ErrorCode.INVALID_PARTITIONS,
        "fewer than before",
        "fewer than before",
    )
    assert repr(error) == "ClusterError(INVALID_PARTITIONS, 'fewer than before')"


def test_a_broker_that_cannot_be_unregistered_is_named():
    assert not_registered(7).code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert not_registered(7).message == "Broker ID 7 is not currently registered"
    assert still_running(2).message.startswith("broker 2 is running")
