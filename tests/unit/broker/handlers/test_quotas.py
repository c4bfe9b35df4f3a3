"""DescribeClientQuotas: there are none, and a request must make sense."""

import pytest

from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.quotas import ComponentData
from tests.unit.broker.handlers.stand_ins import StandIn


@pytest.mark.parametrize("version", [0, 1])
def test_there_are_no_quotas(version):
    answer = StandIn().ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, version, components=[], strict=False)
    assert (answer.error_code, answer.entries) == (0, [])


@pytest.mark.parametrize(
    ("version", "components", "code"),
    [
        (1, [("", 2, None)], ErrorCode.INVALID_REQUEST),
        (1, [("nobody", 2, None)], ErrorCode.UNSUPPORTED_VERSION),
        (0, [("user", 7, None)], ErrorCode.INVALID_REQUEST),
        (0, [("user", 0, None)], ErrorCode.INVALID_REQUEST),
        (0, [("user", 1, "u")], ErrorCode.INVALID_REQUEST),
        (1, [("user", 2, None), ("user", 0, "u")], ErrorCode.INVALID_REQUEST),
        (1, [("user", 2, None), ("ip", 2, None)], ErrorCode.INVALID_REQUEST),
        (1, [("user", 2, None), ("client-id", 1, None)], 0),
    ],
)
def test_what_is_asked_for_must_make_sense(version, components, code):
    wanted = [ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components]
    answer = StandIn().ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, version, components=wanted, strict=False)
    assert (answer.error_code, bool(answer.error_message)) == (code, bool(code))
