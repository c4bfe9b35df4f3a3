"""A connection and its peer: answers in order, in time, or an error that says what was wrong; never a request that hangs."""

import asyncio
import re
import ssl
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from horolog.client.values.errors import (
    ConnectionFailed,
    KafkaError,
    MalformedAnswer,
    RequestTimedOut,
    TlsFailed,
    UnsupportedVersion,
)
from horolog.client.wire.connection import MAX_CORRELATION_ID, Connection, connect
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.messages.groups import ListGroupsRequest, ListGroupsResponse
from horolog.protocol.messages.metadata import MetadataRequest, MetadataResponse
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.fake_peer import HangUp, fake_broker, response
from tests.support.waiting import until

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
        await until(lambda: asked)
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


# Without a socket


class Transport:
    """What a connection does to its socket."""

    def __init__(self):
        self.written = b""
        self.is_aborted = False

    def write(self, data):
        self.written += data

    def writelines(self, parts):
        self.written += b"".join(parts)

    def abort(self):
        self.is_aborted = True

    def get_extra_info(self, _name):
        return None


class Held:
    """A connection whose transport the test holds."""

    def __init__(self, *, is_tls=False):
        self.connection = Connection("b:1", "tester", LIMIT_BYTES, is_tls=is_tls)
        self.transport = Transport()
        self.connection.connection_made(self.transport)

    def send(self, api=METADATA, version=9, message=None):
        return self.connection.send(api, version, message or MetadataRequest(topics=[]))

    def receive(self, data):
        self.connection.data_received(data)


async def test_nothing_is_sent_while_the_socket_is_full():
    held = Held()
    held.connection.pause_writing()
    asking = [
        asyncio.create_task(held.connection.request(METADATA, 9, MetadataRequest(topics=[]), 5000)),
        asyncio.create_task(held.connection.send_unanswered(METADATA, 9, MetadataRequest(topics=[]))),
    ]
    await asyncio.sleep(0)
    assert held.transport.written == b""
    held.connection.resume_writing()
    await asking[1]
    assert held.transport.written.count(b"tester") == 2
    held.connection.close()
    with pytest.raises(ConnectionFailed, match="the connection to b:1 was closed"):
        await asking[0]


async def test_a_connection_that_is_held_stays_so_when_the_socket_has_room():
    held = Held()
    held.connection.pause_writing()
    async with held.connection.alone():
        held.connection.resume_writing()
        asking = asyncio.create_task(held.connection.send_unanswered(METADATA, 9, MetadataRequest(topics=[])))
        await asyncio.sleep(0)
        assert not asking.done()
    await asking


async def test_records_are_not_copied_into_the_request():
    held = Held()
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=b"r" * 5000)])
    held.send(API[ApiKey.PRODUCE], 9, ProduceRequest(acks=1, timeout_ms=5, topic_data=[data]))
    assert len(held.transport.written) == 4 + struct.unpack_from(">i", held.transport.written)[0]
    assert b"r" * 5000 in held.transport.written


async def test_a_connection_says_what_it_is():
    connection = Connection("b:1", "tester", LIMIT_BYTES)
    assert (connection.is_open, connection.certificate, repr(connection)) == (
        False,
        None,
        "<Connection b:1 closed, 0 waiting>",
    )
    with pytest.raises(ConnectionFailed, match="b:1 is not connected"):
        connection.send(METADATA, 9, MetadataRequest(topics=[]))
    connection.close()
    held = Held()
    held.send()
    assert repr(held.connection) == "<Connection b:1 open, 1 waiting>"
    assert held.connection.certificate is None


async def test_a_login_that_is_not_answered_in_time_ends_the_connection():
    held = Held()
    with pytest.raises(RequestTimedOut, match="b:1 did not answer Metadata within 10 ms"):
        await held.connection.request_ahead(METADATA, 9, MetadataRequest(topics=[]), 10)
    assert held.transport.is_aborted


async def test_the_end_cancels_the_next_login():
    held = Held()
    held.connection.renewal = asyncio.get_running_loop().call_later(1000, pytest.fail)
    held.connection.close()
    assert held.connection.renewal.cancelled()


@pytest.mark.parametrize(
    ("answered", "is_tls", "said"),
    [
        (0, False, "b:1 closed the connection at once: its listener may require TLS"),
        (0, True, "its listener may require a client certificate, or another one"),
        (1, False, "at the first request: its listener may require credentials"),
        (2, False, "b:1 closed the connection"),
    ],
)
async def test_when_a_broker_hangs_up_says_why_it_may(answered, is_tls, said):
    held = Held(is_tls=is_tls)
    answers = [held.send() for _ in range(3)]
    for number in range(answered):
        held.receive(response(ApiKey.METADATA, 9, number, MetadataResponse()))
    held.connection.connection_lost(None)
    assert held.connection.why_closed.message.endswith(said)
    assert answers[-1].exception() is held.connection.why_closed
    assert all(answer.done() for answer in answers)


async def test_what_the_socket_says_is_told():
    held = Held()
    held.connection.connection_lost(OSError("no route"))
    assert held.connection.why_closed.message == "b:1 closed the connection: no route"
    held.connection.connection_lost(None)
    assert held.connection.why_closed.message.endswith("no route"), "the first reason stays"


@pytest.mark.parametrize(
    ("error", "kind"), [(ConnectionResetError("reset"), ConnectionFailed), (RuntimeError("strange"), ConnectionFailed)]
)
async def test_a_connection_by_tls_says_what_its_end_means(error, kind):
    held = Held(is_tls=True)
    held.connection.connection_lost(error)
    assert isinstance(held.connection.why_closed, kind)
    assert "b:1" in held.connection.why_closed.message


async def test_an_answer_that_is_tls_names_the_setting():
    held = Held()
    held.send()
    held.receive(b"\x15\x03\x03\x00\x02\x02\x46")
    assert isinstance(held.connection.why_closed, TlsFailed)
    assert "set security.protocol=SSL or SASL_SSL" in held.connection.why_closed.message


async def test_an_answer_that_ends_inside_its_header():
    held = Held()
    answer = held.send()
    held.receive(struct.pack(">ii", 4, 0))
    assert isinstance(answer.exception(), MalformedAnswer)
    assert not held.connection.is_open


async def test_correlation_ids_begin_anew_at_the_largest():
    held = Held()
    held.connection._next_id = MAX_CORRELATION_ID
    last, first = held.send(), held.send()
    for number in (MAX_CORRELATION_ID, 0):
        held.receive(response(ApiKey.METADATA, 9, number, MetadataResponse(controller_id=number)))
    assert (last.result().controller_id, first.result().controller_id) == (MAX_CORRELATION_ID, 0)


async def test_a_place_that_does_not_accept_is_not_waited_for():
    with pytest.raises(
        ConnectionFailed, match=r"192\.0\.2\.1:9 did not accept a connection within 20 ms|cannot connect"
    ):
        await connect("192.0.2.1", 9, "tester", 20, LIMIT_BYTES)


async def test_a_host_that_is_not_known():
    with pytest.raises(ConnectionFailed, match=r"cannot connect to nowhere\.invalid:9: "):
        await connect("nowhere.invalid", 9, "tester", 5000, LIMIT_BYTES)


async def test_a_peer_without_tls_is_named_when_tls_is_wanted():
    async with fake_broker(lambda *_: b"HTTP/1.1 400 Bad Request\r\n\r\n") as address:
        host, _, port = address.rpartition(":")
        with pytest.raises(KafkaError, match=re.escape(address)):
            await connect(host, int(port), "tester", 500, LIMIT_BYTES, ssl.create_default_context())
