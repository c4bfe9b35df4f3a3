"""Produce requests of transactions that wait for a coordinator at another broker: appended in the order in which they came, answered in it,
whatever the connection between the brokers does meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.messages.transactions import InitProducerIdRequest
from horolog.protocol.records.batch import read_header
from tests.support.memory_peers import Loop
from tests.support.transactional import batch
from tests.support.two_brokers import TOPIC, TwoBrokers, name_in, stopped

LEADER = 2
PARTITIONS = (1, 3)
SENT_BACK = {ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.CONCURRENT_TRANSACTIONS}

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 1), st.sets(st.sampled_from(PARTITIONS), min_size=1)),
        st.tuples(st.just("time"), st.integers(1, 3)),
        st.tuples(st.just("step"), st.integers(1, 9)),
        st.tuples(st.just("cut")),
        st.tuples(st.just("away")),
    ),
    max_size=25,
)


class Sender:
    """One producer: every record carries the next sequence of its partition."""

    def __init__(self, pair: TwoBrokers, number: int) -> None:
        self.name = name_in(0, f"{number}-")
        self._pair = pair
        self._client = 200 + number
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=600_000)
        answer = pair.ask(1, request, 5)
        self.id, self.epoch = answer.producer_id, answer.producer_epoch
        self.next = dict.fromkeys(PARTITIONS, 0)
        self.answers: list[tuple[dict[int, int], list[Any]]] = []

    def send(self, indexes: set[int]) -> None:
        data, sequences = [], {}
        for index in sorted(indexes):
            sequences[index] = self.next[index]
            records = batch([b"v"], self.id, self.epoch, self.next[index])
            data.append(PartitionProduceData(index=index, records=records))
            self.next[index] += 1
        topics = [TopicProduceData(name=TOPIC, partition_data=data)]
        request = ProduceRequest(transactional_id=self.name, acks=1, timeout_ms=1000, topic_data=topics)
        self.answers.append((sequences, self._pair.begin(LEADER, request, 12, self._client)))


def slow(pair: TwoBrokers, delays: st.DataObject) -> Callable[[Loop, Callable[[bytes], None], bytes], None]:
    """Bytes take their time, and arrive in order at each end."""
    last: dict[object, float] = {}

    def deliver(loop: Loop, receive: Callable[[bytes], None], data: bytes) -> None:
        due = max(pair.clock.monotonic() + delays.draw(st.sampled_from([0, 0, 0.02, 0.05])), last.get(receive, 0.0))
        last[receive] = due
        loop.call_later(due - pair.clock.monotonic(), receive, data)

    return deliver


@settings(max_examples=40, deadline=None)
@given(STEPS, st.data())
def test_requests_that_wait_are_never_overtaken(steps: list[tuple[Any, ...]], data: st.DataObject) -> None:
    pair = TwoBrokers()
    senders = [Sender(pair, number) for number in range(2)]
    at_once = pair.network.deliver
    pair.network.deliver = slow(pair, data)
    for step in steps:
        match step:
            case ("send", number, indexes):
                senders[number].send(indexes)
            case ("time", ticks):
                pair.pass_time(20 * ticks)
            case ("step", count):
                for _ in range(count):
                    pair.step()
            case ("cut",):
                pair.network.cut(LEADER, 1)
            case ("away",):
                pair.restart(1)
    pair.network.deliver = at_once
    pair.pass_time(6_000)
    for sender in senders:
        check(pair, sender)
    stopped(pair)


def check(pair: TwoBrokers, sender: Sender) -> None:
    taken: dict[int, list[int]] = {index: [] for index in PARTITIONS}
    for sequences, answers in sender.answers:
        (answer,) = answers
        for one in answer.responses[0].partition_responses:
            if not one.error_code:
                taken[one.index].append(sequences[one.index])
            else:
                # Behind one that was sent back, none but the next in order is taken.
                assert one.error_code in SENT_BACK | {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER}
    for index in PARTITIONS:
        assert in_log(pair, index, sender.id) == taken[index] == list(range(len(taken[index])))


def in_log(pair: TwoBrokers, index: int, producer_id: int) -> list[int]:
    """The sequences of a producer's batches, in the order of offsets."""
    partition = pair.partition(index)
    data = partition.read(0, 1 << 20)
    found, position = [], 0
    while position < len(data):
        header = read_header(data, position)
        if header.producer_id == producer_id and not header.is_control:
            found.append(header.base_sequence)
        position += header.size_bytes
    return found
