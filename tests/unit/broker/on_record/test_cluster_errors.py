"""A refusal carries its code for the wire and its sentence for people."""

from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.protocol.errors import ErrorCode


def test_a_refusal_says_its_code_and_its_reason():
    error = ClusterError(ErrorCode.INVALID_PARTITIONS, "fewer than before")
    assert (error.code, error.message, str(error)) == (
        ErrorCode.INVALID_PARTITIONS,
        "fewer than before",
        "fewer than before",
    )
    assert repr(error) == "ClusterError(INVALID_PARTITIONS, 'fewer than before')"
