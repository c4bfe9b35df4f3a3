"""Batches go to the leaders of their partitions; each record is settled by what the broker answers, or by the time that is left."""

import asyncio

import pytest

from horolog.client.producing.accumulator import Accumulator, Pending
from horolog.client.producing.sender import Sender
from horolog.client.producing.sequences import Sequences
from horolog.client.values.errors import Closed, KafkaError, MalformedAnswer, RecordRefused, TimestampExceededThreshold
from horolog.client.values.types import Sent, TopicPartition
from horolog.client.wire.client import Client
from horolog.client.wire.retry import RetryPolicy
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from horolog.protocol.records.batch import read_header
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.entries import iter_records
from tests.support.fake_peer import HangUp, Scripted

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def answer(code=0, base_offset=0, index=0, **more):
    part = PartitionProduceResponse(index=index, error_code=int(code), base_offset=base_offset, **more)
    return ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=[part])])


class Gate:
    """What a transaction would hear."""

    def __init__(self):
        self.added, self.errors = [], []

    async def before_send(self, partitions):
        self.added += partitions

    def failed(self, error):
        self.errors.append(error)


class Place:
    """A sender at a scripted broker; `requests` has the values of each batch that arrived, with its producer and sequence."""

    def __init__(self, *answers, delivery_timeout_ms=5000, batch_bytes=1000, **options):
        self.broker = Scripted(partitions=2)
        self.answers = list(answers)
        self.requests = []
        self.broker.scripts[ApiKey.PRODUCE] = self.produce
        self.accumulator = Accumulator(batch_bytes, 0, 10_000)
        self.sequences = Sequences() if options.pop("idempotent", False) else None
        self.producer_ids = iter(range(70, 99))
        self.options = {
            "acks": -1,
            "codec": Codec.NONE,
            "delivery_timeout_ms": delivery_timeout_ms,
            "sequences": self.sequences,
            "begin_producer": self.begin,
            **options,
        }

    async def begin(self):
        self.sequences.begin(next(self.producer_ids), 0)

    def produce(self, request):
        data = request.topic_data[0].partition_data[0].records
        header = read_header(data)
        values = [record.value.decode() for record in iter_records(data)]
        self.requests.append((values, header.producer_id, header.base_sequence))
        given = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if given is HangUp:
            raise HangUp
        return given

    async def __aenter__(self):
        self.serving = self.broker.serving()
        self.client = Client(await self.serving.__aenter__(), retry=RetryPolicy(1, 3, 5000), request_timeout_ms=5000)
        self.sender = Sender(self.client, self.accumulator, **self.options)
        return self

    async def __aexit__(self, *error):
        await self.sender.stop(Closed("producer"))
        await self.client.close()
        await self.serving.__aexit__(*error)

    def put(self, *values, partition=A):
        """Records of one batch."""
        futures = []
        for value in values:
            future = asyncio.get_running_loop().create_future()
            record = Pending(partition, None, value.encode(), (), 5, 10 + len(value), future)
            self.accumulator.append(partition, record, self.client.clock.monotonic())
            futures.append(future)
        return futures

    async def send(self, *values, partition=A):
        """What became of each record."""
        futures = self.put(*values, partition=partition)
        self.sender.start()
        self.sender.wake()
        async with asyncio.timeout(30):
            return await asyncio.gather(*futures, return_exceptions=True)


async def test_records_have_their_places():
    async with Place(answer(0, 7)) as place:
        assert await place.send("a", "b") == [Sent("t", 0, 7, 5), Sent("t", 0, 8, 5)]
        place.answers = [answer(0, 9, log_append_time_ms=99)]
        assert await place.send("c") == [Sent("t", 0, 9, 99)]
        place.answers = [answer(ErrorCode.DUPLICATE_SEQUENCE_NUMBER, -1)]
        assert await place.send("d") == [Sent("t", 0, -1, 5)], "it is written, the broker does not know where"
        assert place.accumulator.used_bytes == 0


async def test_without_acknowledgements_a_record_has_no_place():
    async with Place(None, acks=0) as place:
        assert await place.send("a", "b") == [Sent("t", 0, -1, 5)] * 2


@pytest.mark.parametrize(
    "fault", [HangUp, answer(ErrorCode.NOT_LEADER_OR_FOLLOWER), answer(ErrorCode.REQUEST_TIMED_OUT)]
)
async def test_what_may_pass_is_tried_again(fault):
    async with Place(fault, fault, answer(0, 3)) as place:
        assert await place.send("a") == [Sent("t", 0, 3, 5)]
        assert [values for values, _, _ in place.requests] == [["a"]] * 3


async def test_what_does_not_pass_fails_at_once():
    async with Place(answer(ErrorCode.TOPIC_AUTHORIZATION_FAILED)) as place:
        (error,) = await place.send("a")
        assert isinstance(error, RecordRefused)
        assert (error.message, error.record.value) == ("not authorized for topic 't'", b"a")
        assert len(place.requests) == 1


async def test_a_fault_of_the_client_itself_fails_the_records_instead_of_keeping_them():
    class Broken(Gate):
        async def before_send(self, partitions):
            raise RuntimeError("no partition")

    async with Place(None, gate=Broken(), idempotent=True) as place:
        (error,) = await place.send("a")
        assert isinstance(error, RecordRefused)
        assert "the producer failed: RuntimeError: no partition" in error.message
        assert place.accumulator.used_bytes == 0


async def test_time_runs_out_for_all_that_waited_as_long():
    async with Place(answer(ErrorCode.NOT_LEADER_OR_FOLLOWER), delivery_timeout_ms=40, batch_bytes=20) as place:
        errors = await place.send("first", "second", "third")
        assert [error.code for error in errors] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3
        assert {tuple(values) for values, _, _ in place.requests} == {("first",)}


async def test_a_partition_without_a_leader_fails_alone():
    async with Place(answer(0, 4, 1), delivery_timeout_ms=40) as place:
        place.broker.scripts[ApiKey.METADATA] = lambda request: without_leader(place.broker.metadata(request))
        lost = place.put("lost")
        assert await place.send("kept", partition=B) == [Sent("t", 1, 4, 5)]
        (error,) = await asyncio.gather(*lost, return_exceptions=True)
        assert error.code == ErrorCode.LEADER_NOT_AVAILABLE


def without_leader(metadata):
    metadata.topics[0].partitions[0].leader_id = -1
    return metadata


async def test_a_topic_that_is_not_there_is_named_when_the_time_is_over():
    async with Place(answer(), delivery_timeout_ms=40) as place:
        (error,) = await place.send("a", partition=TopicPartition("none", 0))
        assert (error.code, error.message) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no topic 'none'")


async def test_a_refused_record_fails_alone_and_the_others_go_again():
    wrong = [BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="too old")]
    refusal = answer(ErrorCode.INVALID_TIMESTAMP, record_errors=wrong)
    gate = Gate()
    async with Place(refusal, answer(0, 5), gate=gate) as place:
        a, b, c = await place.send("a", "b", "c")
        assert (a, c) == (Sent("t", 0, 5, 5), Sent("t", 0, 6, 5))
        assert isinstance(b, TimestampExceededThreshold)
        assert (b.message, b.record.value) == ("too old", b"b")
        assert gate.errors == [b]
        assert [values for values, _, _ in place.requests] == [["a", "b", "c"], ["a", "c"]]


async def test_where_all_are_refused_nothing_goes_again():
    wrong = [BatchIndexAndErrorMessage(batch_index=0, batch_index_error_message=None)]
    async with Place(answer(ErrorCode.INVALID_RECORD, record_errors=wrong)) as place:
        (error,) = await place.send("a")
        assert error.code == ErrorCode.INVALID_RECORD
        assert (len(place.requests), place.accumulator.oldest()) == (1, None)


async def test_a_batch_keeps_its_number_when_it_goes_again():
    async with Place(HangUp, answer(0, 0), idempotent=True) as place:
        await place.send("a", "b")
        await place.send("c")
        assert place.requests == [(["a", "b"], 70, 0), (["a", "b"], 70, 0), (["c"], 70, 2)]


async def test_a_producer_that_is_forgotten_begins_anew():
    async with Place(answer(0, 0), idempotent=True) as place:
        await place.send("a")
        place.answers = [answer(ErrorCode.UNKNOWN_PRODUCER_ID), answer(0, 1)]
        assert await place.send("b") == [Sent("t", 0, 1, 5)]
        assert place.requests == [(["a"], 70, 0), (["b"], 70, 1), (["b"], 71, 0)]


async def test_numbers_that_do_not_follow_are_not_used_again():
    async with Place(answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), idempotent=True) as place:
        (error,) = await place.send("a")
        assert error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        place.answers = [answer(0, 0)]
        await place.send("b")
        assert place.requests[-1] == (["b"], 71, 0)


async def test_the_numbers_of_a_batch_that_may_be_written_are_not_used_again():
    async with Place(answer(ErrorCode.REQUEST_TIMED_OUT), idempotent=True, delivery_timeout_ms=20) as place:
        (error,) = await place.send("a")
        assert error.code == ErrorCode.REQUEST_TIMED_OUT
        place.answers = [answer(0, 0)]
        await place.send("b")
        assert place.requests[-1] == (["b"], 71, 0)


@pytest.mark.parametrize("passes", [True, False])
async def test_without_a_producer_id_nothing_is_sent(passes):
    codes = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if passes else ErrorCode.CLUSTER_AUTHORIZATION_FAILED]

    async def begin():
        if codes:
            raise KafkaError(codes.pop())
        place.sequences.begin(5, 0)

    async with Place(answer(0, 1), idempotent=True, begin_producer=begin) as place:
        (outcome,) = await place.send("a")
        assert (outcome == Sent("t", 0, 1, 5)) is passes
        assert [number for _, number, _ in place.requests] == ([5] if passes else [])


async def test_a_transaction_is_asked_first_and_hears_of_what_is_lost():
    gate = Gate()
    options = {"gate": gate, "transactional_id": "x", "idempotent": True}
    async with Place(answer(ErrorCode.INVALID_PRODUCER_EPOCH), **options) as place:
        (error,) = await place.send("a")
        assert gate.added == [A]
        assert [each.code for each in gate.errors] == [error.code] == [ErrorCode.INVALID_PRODUCER_EPOCH]


async def test_a_batch_that_cannot_be_encoded_fails_and_the_others_go():
    async with Place(answer(0, 2), codec=Codec.ZSTD) as place:
        place.broker.versions[ApiKey.PRODUCE] = (0, 6)
        (error,) = await place.send("a")
        assert error.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        assert place.requests == []


async def test_an_answer_to_produce_that_leaves_something_out_fails_the_records():
    async with Place(ProduceResponse()) as place:
        (error,) = await place.send("x")
        assert isinstance(error, RecordRefused)
        assert (error.code, error.retriable) == (MalformedAnswer("").code, False)


async def test_batches_are_cut_until_the_record_that_is_too_large_is_alone():
    """Also by brokers that do not say which record is wrong."""
    async with Place() as place:
        place.broker.scripts[ApiKey.PRODUCE] = lambda request: answer(
            ErrorCode.MESSAGE_TOO_LARGE if b"x" * 50 in bytes(request.topic_data[0].partition_data[0].records) else 0
        )
        outcomes = await place.send(*(("x" * 50 if index == 5 else "small") for index in range(8)))
        assert [index for index, each in enumerate(outcomes) if isinstance(each, KafkaError)] == [5]


async def test_giving_up_fails_what_waits_and_what_would_be_tried_again():
    held = asyncio.Event()
    async with Place(answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)) as place:
        right = place.broker.scripts[ApiKey.PRODUCE]

        def first(request):
            held.set()
            place.sender.give_up_retrying(KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED, "aborted"))
            return right(request)

        place.broker.scripts[ApiKey.PRODUCE] = first
        waiting = place.put("waits", partition=B)
        place.accumulator.take(B)  # as if another request were on its way
        behind = place.put("behind", partition=B)
        (sent,) = await place.send("on its way")
        assert sent.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert behind[0].exception().message == "aborted"
        assert not waiting[0].done()


async def test_the_end_fails_all_that_is_not_settled():
    asked = asyncio.Event()
    async with Place() as place:
        place.broker.scripts[ApiKey.PRODUCE] = lambda _: asked.set()
        futures = place.put("a") + place.put("b", partition=B)
        place.sender.start()
        await asked.wait()
        await place.sender.stop(Closed("producer"))
        assert [future.exception().message for future in futures] == ["the producer is closed"] * 2


async def test_a_sender_waits_until_a_batch_is_due():
    async with Place(answer()) as place:
        place.accumulator._linger_seconds = 0.03
        assert await place.send("a") == [Sent("t", 0, 0, 5)]
