"""The first words on a connection: brokers of every age say which versions they serve, or that they do not know the question."""

import pytest

from horolog.client.values.errors import KafkaError, MalformedAnswer, RequestTimedOut
from horolog.client.wire.connection import connect
from horolog.client.wire.handshake import SOFTWARE_NAME, open_connection
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.compile import decode
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from tests.support.fake_peer import HangUp, fake_broker, response

NEWEST = API[ApiKey.API_VERSIONS].max_version


class Dialled:
    """Dials, and keeps the connections."""

    def __init__(self, address):
        self.host, _, self.port = address.rpartition(":")
        self.connections = []

    async def dial(self):
        made = await connect(self.host, int(self.port), "tester", 5000, 1 << 20)
        self.connections.append(made)
        return made

    def open_ones(self):
        return [one for one in self.connections if one.is_open]


def versions(*keys, error=0):
    return ApiVersionsResponse(
        error_code=error, api_keys=[ApiVersion(api_key=key, min_version=0, max_version=3) for key in keys]
    )


async def shake(answer, timeout_ms=5000):
    """What was found; whatever happens, no other connection is left than the one that is returned."""
    async with fake_broker(answer) as address:
        dialled = Dialled(address)
        try:
            connection, found = await open_connection(dialled.dial, "1.0", timeout_ms)
        except KafkaError:
            assert dialled.open_ones() == []
            raise
        assert dialled.open_ones() == [connection]
        connection.close()
        return found


async def test_a_new_broker():
    found = await shake(lambda *_: versions(3))
    assert found.ranges == {3: (0, 3)}
    assert found.told


@pytest.mark.parametrize("says_ranges", [True, False])
async def test_a_broker_that_does_not_know_the_newest_version(says_ranges):
    """It answers in v0 whatever was asked; from 2.4 on with the versions that it knows."""
    asked = []

    def answer(key, version, correlation_id, _body):
        asked.append(version)
        if version > (3 if says_ranges else 0):
            refusal = versions(ApiKey.API_VERSIONS, error=35) if says_ranges else versions(error=35)
            return response(key, version, correlation_id, refusal, 0)
        return versions(3)

    assert (await shake(answer)).ranges == {3: (0, 3)}
    assert asked == ([4, 3] if says_ranges else [4, 0])


async def test_a_broker_that_never_heard_of_it():
    def answer(key, *_):
        if key == ApiKey.API_VERSIONS:
            raise HangUp

    assert not (await shake(answer)).told


async def test_a_broker_that_hangs_up_on_the_newest_version_only():
    def answer(_key, version, *_):
        if version:
            raise HangUp
        return versions(3)

    assert (await shake(answer)).told


async def test_a_broker_that_refuses_for_good():
    with pytest.raises(KafkaError) as caught:
        await shake(lambda *_: versions(error=int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)))
    assert caught.value.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_a_broker_that_refuses_its_own_versions_ends_the_talk():
    def answer(key, version, correlation_id, _body):
        return response(key, version, correlation_id, versions(ApiKey.API_VERSIONS, error=35), 0)

    with pytest.raises(KafkaError) as caught:
        await shake(answer)
    assert caught.value.code == ErrorCode.UNSUPPORTED_VERSION


async def test_the_client_says_what_it_is():
    asked = []

    def answer(_key, version, _id, body):
        asked.append(decode(API[ApiKey.API_VERSIONS].request, version, body))
        return versions(3)

    await shake(answer)
    assert (asked[0].client_software_name, asked[0].client_software_version) == (SOFTWARE_NAME, "1.0")


@pytest.mark.parametrize(("is_old", "version"), [(False, NEWEST), (True, 0)])
async def test_an_answer_that_is_none_or_never_comes_leaves_no_connection(is_old, version):
    def answer(_key, asked, *_):
        if is_old and asked:
            raise HangUp
        assert asked == version
        return left.pop() if left else None

    left = [b"\0\0\0\1x"]
    with pytest.raises(MalformedAnswer):
        await shake(answer)
    with pytest.raises(RequestTimedOut):
        await shake(answer, 30)
