"""The table of APIs agrees with the declarations it points to."""

import subprocess
import sys

import pytest

from horolog.protocol.apis import API, NEVER, Api, ApiKey

by_key = pytest.mark.parametrize("api", API.values(), ids=lambda api: api.name)


def test_rows_lie_under_their_numbers() -> None:
    assert set(API) <= set(ApiKey)
    assert all(key == api.key for key, api in API.items())


@by_key
def test_rows_agree_with_the_messages(api: Api) -> None:
    for message in (api.request, api.response):
        assert (message.VERSIONS.first, message.VERSIONS.last) == (api.min_version, api.max_version)
        flexible_from = message.FLEXIBLE.first if message.FLEXIBLE.last > 0 else NEVER
        assert flexible_from == api.flexible_from
    assert api.request.__name__ == api.name + "Request"


@by_key
def test_flexible_versions_have_flexible_headers(api: Api) -> None:
    for version in range(api.min_version, api.max_version + 1):
        flexible = version >= api.flexible_from
        assert api.request_header_version(version) == (2 if flexible else 1)
        assert api.response_header_version(version) == (1 if flexible and api.key != ApiKey.API_VERSIONS else 0)


def test_families_are_imported_when_they_are_asked_for() -> None:
    """The start of a broker pays for the messages that it uses."""
    code = (
        "import sys, horolog.protocol.framing, horolog.protocol.messages.produce; from horolog.protocol.apis import API\n"
        "print([each for each in sys.modules if each.startswith('horolog.protocol.messages.')])\n"
        "API[1].request; print([each for each in sys.modules if each.startswith('horolog.protocol.messages.')])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert shown == [
        "['horolog.protocol.messages.produce']",
        "['horolog.protocol.messages.produce', 'horolog.protocol.messages.fetch']",
    ]


def test_a_row_tells_what_it_is() -> None:
    assert repr(API[ApiKey.PRODUCE]) == "Api(PRODUCE, v0 to v13)"


def test_messages_are_found_by_family_and_name() -> None:
    fresh = Api(ApiKey.METADATA, "metadata", (0, 13), flexible_from=9)
    assert fresh.request is fresh.request is API[ApiKey.METADATA].request
    assert fresh.response is fresh.response is API[ApiKey.METADATA].response
