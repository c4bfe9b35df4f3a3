"""ApiVersions: the truth about the table, and an answer that even an unknown version can read."""

import pytest

from horolog.broker.handlers import HANDLERS
from horolog.broker.handlers.api_versions import handle_unsupported, is_software_name
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.compile import decode, encode
from horolog.protocol.errors import ErrorCode
from tests.unit.broker.handlers.stand_ins import StandIn

SOFTWARE = {"client_software_name": "apache-kafka-java", "client_software_version": "4.4.0"}


@pytest.mark.parametrize("version", range(5))
def test_lists_exactly_what_is_served(version):
    answer = StandIn().ask(ApiKey.API_VERSIONS, version, **(SOFTWARE if version >= 3 else {}))
    assert answer.error_code == 0
    listed = [(each.api_key, each.min_version, each.max_version) for each in answer.api_keys]
    assert listed == sorted((key, handler.min_version, handler.max_version) for key, handler in HANDLERS.items())


@pytest.mark.parametrize("key", HANDLERS)
def test_everything_served_has_messages_and_a_handler(key):
    api, handler = API[key], HANDLERS[key]
    assert api.min_version <= handler.min_version <= handler.max_version <= api.max_version
    assert callable(handler.function)


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(
    "software", [{}, {**SOFTWARE, "client_software_name": "-x"}, {**SOFTWARE, "client_software_version": ""}]
)
def test_software_has_to_have_a_name(version, software):
    answer = StandIn().ask(ApiKey.API_VERSIONS, version, **software)
    assert (answer.error_code, answer.api_keys) == (ErrorCode.INVALID_REQUEST, [])


@pytest.mark.parametrize(
    ("name", "good"), [("a", True), ("a-b.c1", True), ("a.", False), ("a b", False), ("a" * 256, False)]
)
def test_software_names(name, good):
    assert is_software_name(name) is good


def test_an_unknown_version_is_told_the_range():
    answer = handle_unsupported(None, None, None)
    decoded = decode(API[ApiKey.API_VERSIONS].response, 0, encode(answer, 0))
    assert decoded.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(each.api_key, each.min_version, each.max_version) for each in decoded.api_keys] == [(18, 0, 4)]
