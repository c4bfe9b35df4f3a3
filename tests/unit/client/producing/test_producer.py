"""Records are sent one by one and written in batches; each future says where, or why not."""

import asyncio

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.consuming.consumer import Consumer
from horolog.client.producing.producer import Producer
from horolog.client.values.errors import Closed, KafkaError, RecordRefused
from horolog.client.values.types import Committed, Sent, TopicPartition
from horolog.client.wire.client import Client
from horolog.client.wire.retry import RetryPolicy
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from horolog.protocol.messages.transactions import InitProducerIdResponse
from horolog.testing import horolog_broker
from tests.support.fake_peer import Scripted
from tests.support.scripted_client import Time, client_of

NOW_MS = 1_700_000_000_000
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def time():
    return Time()


@pytest.fixture
async def broker():
    async with asyncio.timeout(60), horolog_broker(clock=NOW_MS, log_retention_ms=-1) as running:
        running.create_topic("t", 2)
        yield running


async def transact(producer, first, *others, topic="t", error=None):
    """The first record is written when the error is raised."""
    async with producer.transaction():
        await producer.send_and_wait(topic, first, partition=0)
        for value in others:
            await producer.send(topic, value, partition=0)
        if error is not None:
            raise error


def values(broker, topic="t", transaction=None):
    return [one.value for one in broker.records(topic) if transaction is None or one.transaction == transaction]


async def test_records_are_written_with_all_that_they_have(broker):
    async with Producer(broker.bootstrap, compression="gzip") as producer:
        sent = await producer.send_and_wait("t", b"v", key=b"k", headers=[(b"h", None)], timestamp_ms=7, partition=1)
    assert sent == Sent("t", 1, 0, 7)
    (found,) = broker.records("t")
    assert (found.key, found.value, found.timestamp_ms, found.partition) == (b"k", b"v", 7, 1)
    assert [tuple(header) for header in found.headers] == [(b"h", None)]


async def test_a_key_has_one_partition_and_records_without_one_share_a_batch(broker):
    async with Producer(broker.bootstrap, linger_ms=1000) as producer:
        keyed = [await producer.send("t", b"v", key=b"k") for _ in range(5)]
        others = [await producer.send("t", b"v") for _ in range(5)]
    assert len({future.result().partition for future in keyed}) == 1
    assert len({future.result().partition for future in others}) == 1


async def test_a_topic_is_made_by_the_first_record(broker):
    async with Producer(broker.bootstrap) as producer:
        assert (await producer.send_and_wait("made", b"v")).offset == 0
    assert "made" in broker.topics()


async def test_a_flush_waits_for_what_was_sent_before_it(broker):
    async with Producer(broker.bootstrap, linger_ms=60_000) as producer:
        future = await producer.send("t", b"v")
        await asyncio.sleep(0)
        assert not future.done()
        await producer.flush()
        assert future.done()
        await producer.flush()


@pytest.mark.parametrize("acks", [0, 1, "all"])
async def test_acknowledgements(broker, acks):
    async with Producer(broker.bootstrap, acks=acks) as producer:
        sent = await producer.send_and_wait("t", b"v", partition=0)
        assert sent.offset == (-1 if acks == 0 else 0)
        await broker.expect("t", count=1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"acks": 2}, "acks 2: expected 'all', 1 or 0"),
        ({"compression": "rar"}, "compression 'rar': expected one of"),
        ({"transactional_id": "x", "acks": 1}, "transactions need acks='all' and idempotent=True"),
        ({"transactional_id": "x", "idempotent": False}, "transactions need"),
    ],
)
def test_options_that_make_no_sense(options, said):
    with pytest.raises(ValueError, match=said):
        Producer("127.0.0.1:1", **options)


async def test_an_old_record_is_noticed(broker):
    found = []
    broker.create_topic("short", retention_ms=1000)
    client = Client(broker.bootstrap, clock=broker.clock)
    async with client, Producer(client, on_expired=found.append) as producer:
        await producer.send_and_wait("short", b"v", timestamp_ms=NOW_MS - 3_600_000)
    assert [one.topic for one in found] == ["short"]


async def test_a_client_that_is_shared_is_not_closed(broker):
    async with Client(broker.bootstrap) as client:
        async with Producer(client, on_expired=None) as producer:
            await producer.send("t", b"v", timestamp_ms=5)
        assert not client.closed
        await producer.close()
    own = Producer(broker.bootstrap)
    await own.close()
    assert own.client.closed


async def test_a_transaction_is_seen_as_a_whole_or_not_at_all(broker):
    async with Producer(broker.bootstrap, transactional_id="x") as producer:
        async with producer.transaction():
            await producer.send("t", b"a", partition=0)
            await producer.send("t", b"b", partition=1)
            await producer.send_offsets("g", {T0: 5})
            await producer.send_offsets("g", {})
        with pytest.raises(ZeroDivisionError):
            await transact(producer, b"c", b"d", error=ZeroDivisionError())
        assert (await Admin(producer.client).group_offsets("g"))[T0].offset == 5
    assert sorted(values(broker, transaction="committed")) == [b"a", b"b"]
    assert values(broker, transaction="aborted")[0] == b"c"


async def test_the_positions_of_a_consumer_are_part_of_a_transaction(broker):
    broker.create_topic("copy")
    async with Client(broker.bootstrap) as client:
        async with Producer(client) as producer:
            await producer.send_and_wait("t", b"v", partition=0)
        async with (
            Consumer(client, group="g", heartbeat_ms=50) as consumer,
            Producer(client, transactional_id="x") as producer,
        ):
            await consumer.subscribe(["t"])
            while not (records := await consumer.poll(200)):
                pass
            async with producer.transaction():
                await producer.send("copy", records[0].value)
                await producer.send_offsets(consumer)
            committed = await consumer.committed([T0])
            async with producer.transaction():
                await producer.send_offsets(consumer, {T0: Committed(0, "again")})
            assert committed[T0].offset == 1
            assert (await consumer.committed([T0]))[T0] == Committed(0, "again", -1)


async def test_a_record_that_is_lost_aborts_the_transaction_and_is_raised(broker):
    broker.create_topic("narrow", max_message_bytes=100)
    async with Producer(broker.bootstrap, transactional_id="x", linger_ms=0) as producer:
        with pytest.raises(KafkaError) as caught:
            await transact(producer, b"a", b"x" * 500, topic="narrow")
        assert caught.value.code in {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}
        async with producer.transaction():
            await producer.send("t", b"b", partition=0)
    assert values(broker, transaction="committed") == [b"b"]


async def test_records_and_offsets_outside_of_a_transaction_are_refused(broker):
    async with Producer(broker.bootstrap, transactional_id="x") as producer:
        with pytest.raises(KafkaError, match="can send only inside a transaction"):
            await producer.send("t", b"a")
    async with Producer(broker.bootstrap) as producer:
        with pytest.raises(ValueError, match="has no transactional_id"):
            await producer.send_offsets("g", {T0: 1})


async def test_an_abort_that_cannot_be_told_does_not_hide_why(broker):
    async with Client(broker.bootstrap, retry=RetryPolicy(1, 1, 10), request_timeout_ms=1000) as client:
        producer = Producer(client, transactional_id="x")
        with pytest.raises(ZeroDivisionError), broker.faults.refuse("INVALID_TXN_STATE", "end_txn"):
            await transact(producer, b"a", error=ZeroDivisionError())
        await producer.close()


async def test_a_full_buffer_makes_the_sender_wait_and_then_says_so(time):
    broker = Scripted()
    held = asyncio.Event()
    broker.scripts[ApiKey.PRODUCE] = lambda _: held.set()
    async with broker.serving() as address, client_of(address, time) as client:
        producer = Producer(client, idempotent=False, buffer_bytes=300, batch_bytes=100, delivery_timeout_ms=200)
        for _ in range(3):
            await producer.send("t", b"x" * 60)
        with pytest.raises(KafkaError, match="buffer was full"):
            await producer.send("t", b"x" * 60)
        await held.wait()
        await producer.close(flush=False)


async def test_a_full_buffer_has_room_again_once_records_are_written(broker):
    async with Producer(broker.bootstrap, buffer_bytes=200, batch_bytes=100, linger_ms=0) as producer:
        for _ in range(20):
            await producer.send("t", b"x" * 60)
    assert len(values(broker)) == 20


async def test_a_producer_that_ends_refuses_who_waits_for_room(time):
    broker = Scripted()
    broker.scripts[ApiKey.PRODUCE] = lambda _: None
    async with broker.serving() as address, client_of(address, time) as client:
        producer = Producer(client, idempotent=False, buffer_bytes=100, linger_ms=0)
        await producer.send("t", b"x" * 60)
        waiting = asyncio.create_task(producer.send("t", b"x" * 60))
        await asyncio.sleep(0)
        await producer.close(flush=False)
        with pytest.raises(Closed):
            await waiting


async def test_records_are_told_when_a_producer_ends_before_them(time):
    broker = Scripted()
    broker.scripts[ApiKey.PRODUCE] = lambda _: None
    async with broker.serving() as address, client_of(address, time) as client:
        producer = Producer(client, idempotent=False, linger_ms=0)
        futures = [await producer.send("t", b"x") for _ in range(3)]
        await asyncio.sleep(0)
        await producer.close(flush=False)
        assert {type(future.exception()).__name__ for future in futures} == {"RecordRefused"}
        with pytest.raises(Closed):
            await producer.send("t", b"x")


async def test_a_broker_without_producer_ids_is_written_to_without_them(time):
    broker = Scripted()
    del broker.versions[ApiKey.INIT_PRODUCER_ID]
    part = PartitionProduceResponse(index=0, base_offset=4)
    broker.scripts[ApiKey.PRODUCE] = lambda _: ProduceResponse(
        responses=[TopicProduceResponse(name="t", partition_responses=[part])]
    )
    async with (
        broker.serving() as address,
        client_of(address, time) as client,
        Producer(client, linger_ms=0) as producer,
    ):
        assert (await producer.send_and_wait("t", b"v")).offset == 4


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "not authorized to write to any topic"),
        (ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST.message),
    ],
)
async def test_a_producer_id_that_is_refused(time, code, said):
    broker = Scripted()
    broker.scripts[ApiKey.INIT_PRODUCER_ID] = lambda _: InitProducerIdResponse(error_code=int(code))
    async with (
        broker.serving() as address,
        client_of(address, time) as client,
        Producer(client, linger_ms=0) as producer,
    ):
        with pytest.raises(RecordRefused) as caught:
            await producer.send_and_wait("t", b"v")
        assert caught.value.message == said


async def test_a_record_that_cannot_be_written_is_refused_when_it_is_sent_and_stops_no_other(broker):
    async with Producer(broker.bootstrap) as producer:
        for wrong in ({"value": "text"}, {"key": 7}, {"headers": [("h", b"")]}, {"timestamp_ms": 2**63}):
            with pytest.raises((TypeError, ValueError)):
                await producer.send("t", **wrong)
        await producer.send("t", bytearray(b"x"), key=memoryview(b"k"), headers=[(b"trace", None)])
    assert values(broker) == [b"x"]
