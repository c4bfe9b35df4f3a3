"""A clean stop: all that was appended is answered, nothing else was appended, and nobody is waited for in vain."""

import struct
import threading
import time
from collections.abc import Iterator

import pytest

from benchmarks.peer import Peer
from horolog.protocol.apis import API
from horolog.protocol.compile import decode, encode
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record
from horolog.protocol.wire import Message
from tests.support.broker_process import BrokerProcess
from tests.support.fixtures import BrokerStarter
from tests.support.processor_time import quickest
from tests.support.witness import wait_until

ALL, LEADER = -1, 1
PRODUCE_VERSION, FETCH_VERSION = 9, 11
MORE_THAN_WORKERS = 8


def leader_of(address: str, topic: str) -> str:
    """The address of the one of several workers that leads the only partition."""
    with Peer(address) as peer:
        placed = peer.placement([topic])
    return placed.addresses[placed.leaders[topic][0]]


def make_two(address: str) -> tuple[str, int]:
    """Make the topics `t`, of one partition, and `empty`; who leads `t`, and a partition of `empty` that it leads, too."""
    with Peer(address) as peer:
        peer.create_topics(["t"], 1, {})
        peer.create_topics(["empty"], MORE_THAN_WORKERS, {})
    return leader_of_two(address)


def leader_of_two(address: str) -> tuple[str, int]:
    with Peer(address) as peer:
        placed = peer.placement(["t", "empty"])
    leader = placed.leaders["t"][0]
    return placed.addresses[leader], next(one for one, node in placed.leaders["empty"].items() if node == leader)


def frame(request: Message, version: int, correlation_id: int) -> bytes:
    api = next(api for api in API.values() if api.name + "Request" == type(request).__name__)
    head = struct.pack(">hhih", api.key, version, correlation_id, -1)
    body = head + b"\0" * (api.request_header_version(version) - 1) + encode(request, version)
    return struct.pack(">i", len(body)) + body


def produce(topic: str, number: int, acks: int) -> bytes:
    records = bytes(encode_batch([Record(0, int(time.time() * 1000), 0, None, b"%d" % number)]))
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])
    request = ProduceRequest(transactional_id=None, acks=acks, timeout_ms=1000, topic_data=[data])
    return frame(request, PRODUCE_VERSION, number)


def fetch(topic: str, partition: int, number: int) -> bytes:
    """One that waits for longer than any test takes."""
    place = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1000)
    topics = [FetchTopic(topic=topic, partitions=[place])]
    request = FetchRequest(max_wait_ms=600_000, min_bytes=1, max_bytes=1000, topics=topics)
    return frame(request, FETCH_VERSION, number)


def answers(peer: Peer) -> Iterator[tuple[int, bytes]]:
    """Correlation ids and answers until the broker closes the connection as one closes it who has said everything."""
    received = bytearray()
    while data := peer.socket.recv(1 << 20):
        received += data
        while len(received) >= 4 and len(received) >= (end := 4 + struct.unpack_from(">i", received)[0]):
            yield struct.unpack_from(">i", received, 4)[0], bytes(received[4:end])
            del received[:end]
    assert not received, "half an answer"


def base_offset(answer: bytes) -> int:
    start = 4 + API[0].response_header_version(PRODUCE_VERSION)
    response = decode(API[0].response, PRODUCE_VERSION, answer, start)
    (told,) = response.responses[0].partition_responses
    assert told.error_code == 0
    return int(told.base_offset)


class Flood:
    """Sends batches without waiting for answers, and notes the offsets of those that were answered."""

    def __init__(self, address: str, topic: str, acks: int) -> None:
        self.peer = Peer(address)
        self.topic = topic
        self.acks = acks
        self.offsets: list[int] = []
        self.fault: Exception | None = None
        self._threads = [threading.Thread(target=one, daemon=True) for one in (self._send, self._receive)]
        for thread in self._threads:
            thread.start()

    def _send(self) -> None:
        number = 0
        try:
            while True:
                self.peer.socket.sendall(produce(self.topic, number, self.acks))
                number += 1
        except OSError:
            return  # the broker has closed

    def _receive(self) -> None:
        try:
            for _, answer in answers(self.peer):
                self.offsets.append(base_offset(answer))
        except OSError as error:
            self.fault = error
        self.peer.socket.close()

    def end(self) -> None:
        for thread in self._threads:
            thread.join(20)


@pytest.mark.one_broker("it speaks to one leader, which moves")
@pytest.mark.parametrize("acks", [ALL, LEADER])
def test_what_was_appended_is_answered_and_nothing_else_was(start_broker: BrokerStarter, acks: int) -> None:
    broker = start_broker()
    with Peer(broker.address) as peer:
        peer.create_topics(["t"], 1, {})
    leader = leader_of(broker.address, "t")
    floods = [Flood(leader, "t", acks) for _ in range(3)]
    wait_until(lambda: all(len(one.offsets) > 50 for one in floods), 20, "batches are answered")
    assert broker.stop() == 0
    for flood in floods:
        flood.end()
    assert [one.fault for one in floods] == [None, None, None], "connections end, they are not reset"
    assert "Traceback" not in broker.log()
    broker.start()
    with Peer(leader_of(broker.address, "t")) as peer:
        end_offset = peer.offset_at("t", -1)
    assert sorted(offset for flood in floods for offset in flood.offsets) == list(range(end_offset))


def test_answers_that_wait_behind_a_parked_fetch_are_given(broker: BrokerProcess) -> None:
    address, parked = make_two(broker.address)
    with Peer(address) as peer, Peer(address) as other:
        peer.socket.sendall(fetch("empty", parked, 1) + produce("t", 2, ALL) + produce("t", 3, LEADER))
        wait_until(lambda: other.offset_at("t", -1) == 2, 60, "both batches are written")
        assert broker.stop() == 0
        assert [(number, base_offset(answer)) for number, answer in answers(peer) if number > 1] == [(2, 0), (3, 1)]


def stop_among_hangers_on(broker: BrokerProcess) -> float:
    """How long a broker takes to stop that is asked for more than its peers read, and for more than there is."""
    if not broker.running:
        broker.start()
    address, partition = leader_of_two(broker.address)
    with Peer(address) as greedy, Peer(address) as silent, Peer(address) as parked:
        parked.socket.sendall(fetch("empty", partition, 1))
        written = silent.offset_at("t", -1)
        greedy.socket.sendall(b"".join(produce("t", number, LEADER) for number in range(2000)))
        wait_until(lambda: silent.offset_at("t", -1) > written + 100, 60, "some batches are written")
        began = time.monotonic()
        assert broker.stop() == 0
        return time.monotonic() - began


def test_a_peer_that_does_not_read_and_one_that_does_not_close_are_not_waited_for(broker: BrokerProcess) -> None:
    make_two(broker.address)
    assert quickest(lambda: stop_among_hangers_on(broker), below=5, times=5) < 5


def test_an_idle_broker_stops_at_once(broker: BrokerProcess) -> None:
    with Peer(broker.address) as peer:
        peer.create_topics(["t"], 1, {})

    def stopped() -> float:
        if not broker.running:
            broker.start()
        began = time.monotonic()
        assert broker.stop() == 0
        return time.monotonic() - began

    assert quickest(stopped, below=2) < 2
