"""SASL on listeners without authentication: there is nothing to choose, and the conversation goes on."""

import pytest

from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from tests.unit.broker.handlers.stand_ins import StandIn


@pytest.mark.parametrize(
    ("key", "version", "fields"),
    [
        *[(ApiKey.SASL_HANDSHAKE, version, {"mechanism": "PLAIN"}) for version in range(2)],
        *[(ApiKey.SASL_AUTHENTICATE, version, {"auth_bytes": b"x"}) for version in range(3)],
    ],
)
def test_nobody_is_asked_to_authenticate(key, version, fields):
    answer = StandIn().ask(key, version, **fields)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert not getattr(answer, "mechanisms", [])
