"""Faults that pass are told from those that stay, whoever met them."""

import pytest

from horolog.client.decoding.registry import RegistryUnavailable
from horolog.client.values.errors import KafkaError
from horolog.pipeline.base.positions import OptionError
from horolog.pipeline.jobs.passing import passing
from horolog.protocol.errors import ErrorCode

OF_A_TASK = "PythonException: Traceback\n  File x\n%s\n\nJVM stacktrace:\nat org.apache"


def test_of_a_broker():
    assert passing(KafkaError(ErrorCode.NETWORK_EXCEPTION, "gone")) == "NETWORK_EXCEPTION: gone"
    assert passing(KafkaError(ErrorCode.PRODUCER_FENCED)) is None
    for name in ("horolog.client.values.errors.RequestTimedOut", "horolog.pipeline.jobs.mirror_copy.MirrorFailed: t-0"):
        assert passing(Exception(OF_A_TASK % f"{name}: REQUEST_TIMED_OUT: no answer")) == "REQUEST_TIMED_OUT: no answer"
        assert passing(Exception(OF_A_TASK % f"{name}: INVALID_PRODUCER_EPOCH: no answer")) is None
    said = "no broker at 127.0.0.1:1 within 30s (kafka.request.timeout.ms): refused"
    assert passing(Exception(OF_A_TASK % f"horolog.pipeline.options.reaching.Unreachable: {said}")) == said


def test_of_a_registry():
    silent = OptionError("registry: it does not answer")
    silent.__cause__ = RegistryUnavailable("it does not answer")
    assert passing(silent) == "registry: it does not answer"
    assert passing(OptionError("registry: it has no such schema")) is None
    said = "http://127.0.0.1:1 does not answer"
    assert passing(Exception(OF_A_TASK % f"horolog.pipeline.typed.by_schema.NoRegistry: {said}")) == said
    changed = OF_A_TASK % "horolog.pipeline.base.positions.OptionError: the columns are fixed: struct<...>; select()"
    assert passing(Exception(changed)) == "the columns are fixed"


@pytest.mark.parametrize(
    ("said", "passes"),
    [
        ("s3a://lake/t: http://127.0.0.1:9 cannot be reached", True),
        ("s3a://lake/t: the store answers SlowDown", True),
        ("s3a://lake/t: the store answers NoSuchUpload", False),
        ("s3a://lake/t: access denied (SignatureDoesNotMatch)", False),
        ("s3a://lake/t: there is no bucket lake", False),
    ],
)
def test_of_a_store(said, passes):
    for text in (said, OF_A_TASK % f"horolog.stores.faults.StoreError: {said}"):
        found = passing(Exception(text))
        assert (found or "").endswith(said) == passes
        assert passes or found is None
