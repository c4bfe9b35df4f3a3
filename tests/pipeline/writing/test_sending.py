"""Batches are written once: sent again with their sequence, and without the records that the broker refuses."""

import asyncio
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from horolog.client.values.errors import ConnectionFailed, KafkaError
from horolog.client.values.types import TopicPartition
from horolog.pipeline.options.options import parse_write
from horolog.pipeline.writing.exactly_once import WriteFailed
from horolog.pipeline.writing.outgoing import Outgoing
from horolog.pipeline.writing.sending import Sending
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.produce import BatchIndexAndErrorMessage
from horolog.protocol.records.batch import iter_batch, read_header

PLACE = TopicPartition("t", 0)


class FakeBroker:
    """A client whose broker takes batches, refuses the records that `refuses` names, or gives scripted answers."""

    def __init__(self, refuses=(), *, names_them=True, code=ErrorCode.INVALID_TIMESTAMP, answers=()):
        self.refuses, self.names_them, self.code = set(refuses), names_them, code
        self.answers = list(answers)
        self.requests = []
        self.written = []

    async def retry(self, attempt, timeout_ms=None):
        while True:
            try:
                return await attempt()
            except KafkaError as error:
                if not error.retriable:
                    raise

    async def attempt(self, request, **more):
        if not hasattr(request, "topic_data"):
            return SimpleNamespace(error_code=0, producer_id=7, producer_epoch=2)
        (topic,) = request.topic_data
        (data,) = topic.partition_data
        values = [record.value for record in iter_batch(bytes(data.records))]
        header = read_header(bytes(data.records))
        self.requests.append((header.base_sequence, values, request.transactional_id, more["at_least"]))
        answer = self.answers.pop(0) if self.answers else self._judge(values)
        if isinstance(answer, Exception):
            raise answer
        count = answer if isinstance(answer, int) else 1
        answer = self._answer(0) if isinstance(answer, int) else answer
        return SimpleNamespace(responses=[SimpleNamespace(partition_responses=[answer] * count)])

    def _judge(self, values):
        bad = [row for row, value in enumerate(values) if value in self.refuses]
        if not bad:
            self.written += values
            return self._answer(ErrorCode.NONE)
        named = [BatchIndexAndErrorMessage(batch_index=row, batch_index_error_message=None) for row in bad]
        return self._answer(self.code, named if self.names_them else [])

    def _answer(self, code, errors=()):
        return SimpleNamespace(
            error_code=code, error_message="it is too old" if code else None, record_errors=list(errors)
        )


def outgoing(*values):
    count = len(values)
    return Outgoing(pa.nulls(count, pa.binary()), pa.array(values, pa.binary()), np.zeros(count, np.int64), None)


def sent(broker, *batches, transaction=None, **options):
    given = {"kafka.bootstrap.servers": "h:1", **options}

    async def send():
        sending = Sending(broker, parse_write(given), transaction)
        await sending.begin()
        refused = [one for batch in batches for one in await sending.send(PLACE, batch)]
        return sending, refused

    return asyncio.run(send())


LETTERS = (b"a", b"b", b"c", b"d", b"e")


def test_sequences_count_the_records_that_were_written():
    broker = FakeBroker()
    sending, refused = sent(broker, outgoing(b"a", b"b"), outgoing(b"c"), outgoing(b"d"))
    assert [request[:2] for request in broker.requests] == [(0, [b"a", b"b"]), (2, [b"c"]), (3, [b"d"])]
    assert (sending.written, refused) == (4, [])


@pytest.mark.parametrize("code", [ErrorCode.INVALID_TIMESTAMP, ErrorCode.INVALID_RECORD])
def test_a_batch_is_sent_again_without_the_records_that_are_refused(code):
    broker = FakeBroker({b"b", b"d"}, code=code)
    sending, refused = sent(broker, outgoing(*LETTERS), outgoing(b"f"))
    assert [request[:2] for request in broker.requests] == [(0, [*LETTERS]), (0, [b"a", b"c", b"e"]), (3, [b"f"])]
    assert [one.record.values.to_pylist() for one in refused] == [[b"b"], [b"d"]]
    assert [(one.topic, one.code, one.reason) for one in refused] == [("t", code, "it is too old")] * 2
    assert sending.written == 4


def test_where_the_broker_does_not_say_which_halves_find_them():
    broker = FakeBroker({b"b", b"e"}, names_them=False)
    sending, refused = sent(broker, outgoing(*LETTERS))
    assert broker.written == [b"a", b"c", b"d"]
    assert [one.record.values.to_pylist() for one in refused] == [[b"b"], [b"e"]]
    assert sending.written == 3


def test_a_batch_that_is_too_large_is_cut_and_a_record_that_is_fails():
    broker = FakeBroker(answers=[FakeBroker()._answer(ErrorCode.MESSAGE_TOO_LARGE)])
    sent(broker, outgoing(b"a", b"b"))
    assert broker.written == [b"a", b"b"]
    broker = FakeBroker({b"huge"}, names_them=False, code=ErrorCode.MESSAGE_TOO_LARGE)
    with pytest.raises(WriteFailed, match="t-0: MESSAGE_TOO_LARGE"):
        sent(broker, outgoing(b"a", b"huge"))


def test_a_lost_response_is_asked_for_again_with_the_same_sequence():
    broker = FakeBroker(
        answers=[
            ConnectionFailed("reset"),
            FakeBroker()._answer(ErrorCode.NOT_LEADER_OR_FOLLOWER),
            FakeBroker()._answer(ErrorCode.DUPLICATE_SEQUENCE_NUMBER),
        ]
    )
    sending, _ = sent(broker, outgoing(b"a", b"b"), outgoing(b"c"))
    assert [request[0] for request in broker.requests] == [0, 0, 0, 2]
    assert sending.written == 3


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "you may not write"), "t-0: .*you may not write"),
        (FakeBroker()._answer(ErrorCode.INVALID_PRODUCER_EPOCH), "t-0: INVALID_PRODUCER_EPOCH"),
        (2, "t-0: .*2 answers to a batch"),
    ],
)
def test_other_errors_end_the_task(answer, said):
    with pytest.raises(WriteFailed, match=said):
        sent(FakeBroker(answers=[answer] * 3), outgoing(b"a"))


def test_a_batch_of_zstd_needs_a_broker_that_knows_it():
    broker = FakeBroker()
    sent(broker, outgoing(b"a"), **{"kafka.compression.type": "zstd"})
    sent(broker, outgoing(b"a"))
    assert [request[3] for request in broker.requests] == [7, 3]


def test_what_is_in_a_transaction_names_it():
    added = []

    class FakeTransaction:
        transactional_id, owner = "load-0", (9, 1)

        async def begin(self):
            added.append("begun")

        async def add(self, partition):
            added.append(partition)

    broker = FakeBroker()
    sent(broker, outgoing(b"a"), transaction=FakeTransaction())
    assert broker.requests[0][2] == "load-0"
    assert added == ["begun", PLACE]
