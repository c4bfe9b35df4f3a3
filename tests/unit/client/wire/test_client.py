"""Requests find their broker, learn from errors, pause between tries, and end."""

import asyncio
import random

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.consuming.consumer import Consumer
from horolog.client.producing.producer import Producer
from horolog.client.values.errors import (
    AuthenticationFailed,
    Closed,
    ConnectionFailed,
    KafkaError,
    UnsupportedVersion,
)
from horolog.client.values.types import Found, TopicPartition
from horolog.client.wire.client import Client
from horolog.client.wire.retry import RetryPolicy
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.compile import encode
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from horolog.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse
from tests.support.fake_peer import HangUp, Scripted, fake_broker, response
from tests.support.scripted_client import Time, client_of, in_turn, offsets
from tests.support.scripted_login import ScriptedLogin

A = TopicPartition("t", 0)


@pytest.fixture
def time():
    return Time()


def fetched(error_code=0, partition=0, records=None):
    data = PartitionData(partition_index=partition, error_code=error_code, high_watermark=0, records=records)
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[data])])


async def test_a_leader_that_moved_is_looked_for_again(time):
    broker = Scripted()
    wrong = offsets(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    broker.scripts[ApiKey.LIST_OFFSETS] = in_turn(wrong, wrong, wrong, wrong, offsets(5))
    async with broker.serving() as address, client_of(address, time) as client, Consumer(client) as consumer:
        assert await consumer.offsets_for_times({A: 1}) == {A: Found(5, 7)}
    assert broker.count(ApiKey.METADATA) == 5
    assert time.pauses_ms == [100, 200, 400, 400]


async def test_what_lasts_too_long_is_raised(time):
    broker = Scripted()
    broker.scripts[ApiKey.LIST_OFFSETS] = lambda _: offsets(-1, ErrorCode.LEADER_NOT_AVAILABLE)
    async with broker.serving() as address, client_of(address, time) as client, Consumer(client) as consumer:
        with pytest.raises(KafkaError) as caught:
            await consumer.end_offsets([A])
    assert caught.value.code == ErrorCode.LEADER_NOT_AVAILABLE
    assert 5000 <= sum(time.pauses_ms) < 5500


async def test_what_cannot_pass_is_raised_at_once(time):
    broker = Scripted()
    broker.scripts[ApiKey.LIST_OFFSETS] = lambda _: offsets(-1, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    async with broker.serving() as address, client_of(address, time) as client, Consumer(client) as consumer:
        with pytest.raises(KafkaError, match=r"not authorized for topic 't'$"):
            await consumer.end_offsets([A])
    assert time.pauses_ms == []


async def test_connections_that_end_are_made_again(time):
    broker = Scripted()
    calls = []

    def list_offsets(_request):
        calls.append(1)
        if len(calls) < 3:
            raise HangUp
        return offsets(9)

    broker.scripts[ApiKey.LIST_OFFSETS] = list_offsets
    async with broker.serving() as address, client_of(address, time) as client, Consumer(client) as consumer:
        assert await consumer.end_offsets([A]) == {A: 9}


async def test_metadata_is_asked_once_for_all_who_want_it_and_again_when_it_is_old(time):
    broker = Scripted()
    async with broker.serving() as address, client_of(address, time, metadata_max_age_ms=1000) as client:
        nodes = await asyncio.gather(*(client.leader(A) for _ in range(20)))
        assert {node.port for node in nodes} == {broker.port}
        assert broker.count(ApiKey.METADATA) == 1
        time.clock.advance(999)
        await client.leader(A)
        assert broker.count(ApiKey.METADATA) == 1
        time.clock.advance(1)
        await client.leader(A)
        assert broker.count(ApiKey.METADATA) == 2


async def test_one_connection_for_all_and_one_for_each_lane(time):
    broker = Scripted()
    broker.scripts[ApiKey.LIST_OFFSETS] = lambda _: offsets(5)
    async with broker.serving() as address, client_of(address, time) as client:
        await asyncio.gather(
            *(client.request(HeartbeatRequest(group_id="g"), lane="x") for _ in range(3)), return_exceptions=True
        )
        before = broker.count(ApiKey.API_VERSIONS)
        await asyncio.gather(*(Consumer(client).end_offsets([A]) for _ in range(20)))
        assert broker.count(ApiKey.API_VERSIONS) == before + 1


async def test_a_coordinator_that_moved_is_looked_for_again(time):
    broker = Scripted()
    broker.scripts[ApiKey.FIND_COORDINATOR] = in_turn(
        broker.coordinator(["g"], ErrorCode.COORDINATOR_NOT_AVAILABLE), None
    )
    lookups = []

    def find(request):
        lookups.append(1)
        return broker.coordinator(
            request.coordinator_keys, ErrorCode.COORDINATOR_NOT_AVAILABLE if len(lookups) == 1 else 0
        )

    broker.scripts[ApiKey.FIND_COORDINATOR] = find
    broker.scripts[ApiKey.HEARTBEAT] = lambda _: HeartbeatResponse(error_code=16)
    async with broker.serving() as address, client_of(address, time) as client:
        answer = await client.request(HeartbeatRequest(group_id="g"), coordinator_of=("group", "g"))
        assert answer.error_code == 16
        assert (time.pauses_ms, len(lookups)) == ([100], 2)
        await client.coordinator("group", "g")
        assert len(lookups) == 2
        client.learn_from(KafkaError(ErrorCode.NOT_COORDINATOR))
        await client.coordinator("group", "g")
        assert len(lookups) == 3


async def test_the_first_address_that_answers_will_do(time):
    broker = Scripted()
    async with broker.serving() as address, client_of(f"127.0.0.1:1,{address}", time) as client:
        assert (await client.metadata()).controller_id == 1
    async with client_of("127.0.0.1:1,127.0.0.1:2", time) as client:
        with pytest.raises(ConnectionFailed, match=r"127\.0\.0\.1:1.*127\.0\.0\.1:2|127\.0\.0\.1:2.*127\.0\.0\.1:1"):
            await client.metadata()


async def test_a_closed_client_refuses(time):
    broker = Scripted()
    async with broker.serving() as address:
        async with client_of(address, time) as client:
            await client.metadata()
        for call in (client.metadata, lambda: client.leader(A), lambda: client.fetch_raw(A, 0)):
            with pytest.raises(Closed):
                await call()


async def test_what_a_broker_does_not_serve(time):
    broker = Scripted()
    broker.versions = {ApiKey.METADATA: (0, 4), ApiKey.API_VERSIONS: (0, 3)}
    async with broker.serving() as address, client_of(address, time) as client:
        with pytest.raises(UnsupportedVersion, match="ListOffsets"):
            await Consumer(client).end_offsets([A])
        with pytest.raises(UnsupportedVersion, match="CreateTopics"):
            await Admin(client).create_topic("x")


@pytest.mark.parametrize("seed", range(40))
async def test_nonsense_never_makes_anybody_hang(seed):
    """Whatever a peer answers, producers, consumers and admins end with records or an error, in bounded time."""
    rng = random.Random(seed)
    broker = Scripted(partitions=2)
    sensible = dict(broker.scripts)

    def nonsense(key):
        def script(request):
            kind = rng.random()
            if key in sensible and kind < 0.7:
                return sensible[key](request)
            if kind < 0.8:
                return API[key].response()
            if kind < 0.9:
                raise HangUp
            body = bytearray(encode(API[key].response(), API[key].max_version) + rng.randbytes(rng.randrange(20)))
            body[rng.randrange(len(body))] = rng.randrange(256)
            return rng.choice([response(key, API[key].max_version, rng.randrange(3), API[key].response()), bytes(body)])

        return script

    broker.scripts = {key: nonsense(key) for key in API}
    policy = RetryPolicy(backoff_ms=1, backoff_max_ms=5, timeout_ms=50)

    async def consume(client):
        async with Consumer(
            client, group="g", heartbeat_ms=5, session_timeout_ms=100, max_poll_interval_ms=200
        ) as consumer:
            await consumer.subscribe(["t"])
            for _ in range(3):
                await consumer.poll(20)

    async def produce(client):
        async with Producer(client, delivery_timeout_ms=100, transactional_id="x" if seed % 2 else None) as producer:
            if seed % 2:
                async with producer.transaction():
                    await producer.send("t", b"x")
            else:
                await producer.send("t", b"x")

    async def administer(client):
        admin = Admin(client)
        await admin.create_topic("u")
        await admin.list_groups()
        await admin.group_offsets("g")

    async with (
        asyncio.timeout(20),
        broker.serving() as address,
        Client(address, retry=policy, request_timeout_ms=50, connect_timeout_ms=1000) as client,
    ):
        outcomes = await asyncio.gather(consume(client), produce(client), administer(client), return_exceptions=True)
    assert all(each is None or isinstance(each, KafkaError) for each in outcomes), outcomes


async def test_a_topic_that_a_list_leaves_out_is_asked_for_by_its_name(time):
    broker = Scripted()
    codes = {"hidden": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "bad name": ErrorCode.INVALID_TOPIC_EXCEPTION}

    def metadata(request):
        answer = broker.metadata(request)
        if request.topics is not None:
            assert not request.allow_auto_topic_creation
            answer.topics[0].name = request.topics[0].name
            answer.topics[0].error_code = int(codes.get(request.topics[0].name, 3))
        return answer

    broker.scripts[ApiKey.METADATA] = metadata
    async with broker.serving() as address, client_of(address, time) as client:
        refused = await client.withheld("hidden")
        assert (refused.code, refused.message) == (codes["hidden"], "not authorized for topic 'hidden'")
        assert await client.withheld("bad name") is None
        assert await client.withheld("absent") is None


async def test_a_broker_that_would_make_the_topic_is_not_asked_for_it(time):
    broker = Scripted()
    broker.versions[ApiKey.METADATA] = (0, 3)
    async with broker.serving() as address, client_of(address, time) as client:
        assert await client.withheld("t") is None
    assert broker.count(ApiKey.METADATA) == 0


async def test_partitions_are_known_without_a_request_once_they_were_asked_for(time):
    broker = Scripted(partitions=3)
    async with broker.serving() as address, client_of(address, time) as client:
        assert client.partitions_now("t") is None
        assert await client.topic("t") == client.partitions_now("t") == [0, 1, 2]
        assert repr(client) == f"<Client 'horolog' of {address}>"


async def test_the_controller_and_any_broker_can_be_asked(time):
    broker = Scripted()
    broker.scripts[ApiKey.HEARTBEAT] = lambda _: HeartbeatResponse(error_code=16)
    async with broker.serving() as address, client_of(address, time) as client:
        for where in ({"controller": True}, {"node_id": 1}, {"leader_of": A}, {}):
            assert (await client.request(HeartbeatRequest(group_id="g"), **where)).error_code == 16
        node = await client.leader(A)
        assert (await client.attempt_at(node, HeartbeatRequest(group_id="g"), timeout_ms=900)).error_code == 16
        assert (await client.versions(1)).serves(ApiKey.HEARTBEAT)
        with pytest.raises(UnsupportedVersion, match="Heartbeat"):
            await client.request(HeartbeatRequest(group_id="g"), at_least=90)


async def test_a_call_may_have_less_patience_than_the_client(time):
    async with client_of("127.0.0.1:1", time) as client:
        calls = []

        async def fail():
            calls.append(1)
            raise ConnectionFailed("gone")

        with pytest.raises(ConnectionFailed):
            await client.retry(fail, timeout_ms=250)
        assert (len(calls), time.pauses_ms) == (3, [100, 200])


async def test_an_error_that_a_retry_does_not_help_is_not_asked_of_another_broker(time):
    """Wrong credentials are refused by every broker alike, and may lock the user out."""
    broker = ScriptedLogin()
    async with broker.serving() as address:
        security = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": "wrong",
        }
        async with client_of(f"{address},localhost:{broker.port}", time, security=security) as client:
            with pytest.raises(AuthenticationFailed):
                await client.metadata()
    assert broker.count(ApiKey.SASL_HANDSHAKE) == 1


async def test_an_open_listener_needs_no_security(time):
    broker = Scripted()
    async with (
        broker.serving() as address,
        client_of(address, time, security={"security.protocol": "PLAINTEXT"}) as client,
    ):
        assert (await client.metadata()).controller_id == 1


async def test_a_broker_that_accepts_connections_and_never_answers_holds_up_no_command(time, caplog):
    """As one that SIGSTOP has stopped: the system accepts for it. The others are asked, and one line names it."""
    other = Scripted()
    async with (
        fake_broker(lambda *_: None) as silent,
        other.serving() as address,
        client_of(f"{silent},{address}", time, random=lambda: 0.0, patience_s=0.01) as client,
    ):
        assert (await client.metadata(["t"])).topics["t"].numbers == [0]
        await client.metadata(["t"])
    assert caplog.messages == [f"broker {silent} does not answer; trying the others"]
    assert other.count(ApiKey.METADATA) == 2
