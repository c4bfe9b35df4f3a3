"""A connection and its peer: answers in order, in time, or an error that says what was wrong; never a request that hangs."""

import asyncio
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from horolog.client.values.errors import (
    ConnectionFailed,
    KafkaError,
    MalformedAnswer,
    RequestTimedOut,
    UnsupportedVersion,
)
from horolog.client.wire.connection import connect
from horolog.client.wire.handshake import open_connection
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from horolog.protocol.messages.groups import ListGroupsRequest, ListGroupsResponse
from horolog.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.fake_peer import HangUp, fake_broker, response

METADATA = API[ApiKey.METADATA]
LIMIT_BYTES = 1 << 20


async def dial(address, timeout_ms=5000):
    host, _, port = address.rpartition(":")
    return await connect(host, int(port), "tester", timeout_ms, LIMIT_BYTES)


async def ask(address, version=9, timeout_ms=5000):
    connection = await dial(address)
    try:
        return await connection.request(METADATA, version, MetadataRequest(topics=[]), timeout_ms)
    finally:
        connection.close()


@pytest.mark.parametrize("version", range(METADATA.max_version + 1))
async def test_requests_and_answers_of_every_version(version):
    def answer(key, got_version, _correlation_id, _body):
        assert (key, got_version) == (ApiKey.METADATA, version)
        return MetadataResponse(controller_id=7)

    async with fake_broker(answer) as address:
        assert (await ask(address, version)).controller_id == (7 if version else -1)


async def test_many_at_once_get_their_own_answers():
    async with fake_broker(lambda _key, version, _id, _body: MetadataResponse(throttle_time_ms=version)) as address:
        connection = await dial(address)
        versions = [3 + index % 6 for index in range(200)]
        answers = await asyncio.gather(
            *(connection.request(METADATA, version, MetadataRequest(topics=[]), 5000) for version in versions)
        )
        connection.close()
    assert [each.throttle_time_ms for each in answers] == versions


async def test_no_answer_ends_the_connection_for_all_who_wait():
    async with fake_broker(lambda *_: None) as address:
        connection = await dial(address)
        waiting = [
            asyncio.create_task(connection.request(METADATA, 9, MetadataRequest(topics=[]), limit_ms))
            for limit_ms in (50, 60_000)
        ]
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in outcomes] == [RequestTimedOut, RequestTimedOut]
    assert not connection.is_open
    with pytest.raises(RequestTimedOut):
        await connection.request(METADATA, 9, MetadataRequest(topics=[]), 1000)


async def test_a_peer_that_hangs_up():
    def answer(*_):
        raise HangUp

    async with fake_broker(answer) as address:
        with pytest.raises(ConnectionFailed, match="closed the connection"):
            await ask(address)


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        struct.pack(">i", -5),
        struct.pack(">i", LIMIT_BYTES + 1),
        struct.pack(">ih", 2, 0),
        struct.pack(">ii", 4, 12345),
        struct.pack(">ii", 4, 0),
        struct.pack(">iiBB", 6, 0, 0x7F, 0x7F),
        struct.pack(">iiBiI", 13, 0, 0, 0, 0xFFFFFFFF),
    ],
)
async def test_answers_that_are_none(reply):
    async with fake_broker(lambda *_: reply) as address:
        with pytest.raises(MalformedAnswer):
            await ask(address)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=60), framed=st.booleans())
async def test_no_bytes_make_a_request_hang(body, framed):
    reply = struct.pack(">ii", 4 + len(body), 0) + body if framed else body
    async with fake_broker(lambda *_: reply) as address:
        try:
            await ask(address, timeout_ms=30)
        except KafkaError:
            return
        assert framed, "only an answer can be taken for one"


async def test_cancelled_requests_leave_the_others_alone():
    asked = asyncio.Event()
    replies: list[int] = []

    def answer(_key, version, correlation_id, _body):
        replies.append(correlation_id)
        asked.set()
        if len(replies) == 1:
            return None
        return b"".join(response(ApiKey.METADATA, version, each, MetadataResponse(controller_id=5)) for each in replies)

    async with fake_broker(answer) as address:
        connection = await dial(address)
        first = asyncio.create_task(connection.request(METADATA, 9, MetadataRequest(topics=[]), 5000))
        await asked.wait()
        first.cancel()
        assert (await connection.request(METADATA, 9, MetadataRequest(topics=[]), 5000)).controller_id == 5
        connection.close()


async def test_alone_is_behind_what_was_asked_and_before_what_comes():
    waiting: list[int] = []

    def answer(_key, version, correlation_id, _body):
        """The first request is answered with the second."""
        waiting.append(correlation_id)
        if len(waiting) == 1:
            return None
        due = waiting if len(waiting) == 2 else waiting[-1:]
        return b"".join(response(ApiKey.METADATA, version, each, MetadataResponse(controller_id=each)) for each in due)

    events = []

    async def ask(connection, request, name):
        await request(METADATA, 9, MetadataRequest(topics=[]), 5000)
        events.append(name)

    async def be_alone(connection):
        async with connection.alone():
            events.append("alone")
            await ask(connection, connection.request_ahead, "ahead")
            await asyncio.sleep(0.02)
            events.append("end")

    async with fake_broker(answer) as address:
        connection = await dial(address)
        first = asyncio.create_task(ask(connection, connection.request, "first"))
        await asyncio.sleep(0.02)
        alone = asyncio.create_task(be_alone(connection))
        await asyncio.sleep(0.02)
        later = asyncio.create_task(ask(connection, connection.request, "later"))
        await asyncio.sleep(0.02)
        assert events == []
        await connection.request_ahead(METADATA, 9, MetadataRequest(topics=[]), 5000)
        await asyncio.gather(first, alone, later)
        connection.close()
    assert events == ["first", "alone", "ahead", "end", "later"]


async def test_an_unanswered_request_waits_for_its_turn():
    asked = []
    async with fake_broker(lambda key, *_: asked.append(key)) as address:
        connection = await dial(address)
        async with connection.alone():
            sending = asyncio.create_task(connection.send_unanswered(METADATA, 9, MetadataRequest(topics=[])))
            await asyncio.sleep(0.05)
            assert not sending.done()
        await sending
        async with asyncio.timeout(60):
            while not asked:  # noqa: ASYNC110 - it says nothing
                await asyncio.sleep(0.01)
        connection.close()


async def test_what_a_version_cannot_say_is_not_sent():
    async with fake_broker(lambda *_: ListGroupsResponse()) as address:
        connection = await dial(address)
        with pytest.raises(UnsupportedVersion, match="v1"):
            await connection.request(API[ApiKey.LIST_GROUPS], 1, ListGroupsRequest(states_filter=["Empty"]), 5000)
        await connection.request(API[ApiKey.LIST_GROUPS], 1, ListGroupsRequest(), 5000)
        connection.close()


async def test_nobody_listens():
    with pytest.raises(ConnectionFailed, match=r"127\.0\.0\.1:1"):
        await dial("127.0.0.1:1")


# The first words


def versions(*keys, error=0):
    return ApiVersionsResponse(
        error_code=error, api_keys=[ApiVersion(api_key=key, min_version=0, max_version=3) for key in keys]
    )


async def shake(answer):
    async with fake_broker(answer) as address:
        connection, found = await open_connection(lambda: dial(address), "1.0", 5000)
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
