"""Producers of the simulation: plain ones of every version, and idempotent ones that send again what was not answered."""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Any

from horolog.broker.base.principal import ANONYMOUS
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.messages.transactions import InitProducerIdRequest
from horolog.protocol.records import message_set
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.head import TRANSACTIONAL_BIT
from horolog.protocol.records.record import Record
from tests.simulation.model import Attempt, Level, PartitionModel, Sent
from tests.simulation.world import Answered, Client

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

MOST_IN_FLIGHT = 4
NOT_KNOWN_AGAIN = {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.DUPLICATE_SEQUENCE_NUMBER}
MOST_KNOWN = 5
"""So many batches of a producer in a partition the broker knows again."""
FIRST_VERSION_BY_ID = 13
FIRST_VERSION_WITH_TIMES = 2
FIRST_VERSION_WITH_MESSAGES = 8
ANY_BEFORE_MS = (0, 0, 1000, 2000, 5000, 10_000, 30_000)
KEYS = (b"a", b"b", b"c", b"d")
FAR_FUTURE_MS = 40 * 86_400_000
SEGMENT = re.compile(r"/(\d{20})\.")
"""The base offset of the segment that a message of an error names."""
STORAGE_ERRORS = {ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER}


class Actor:
    """Someone who talks to the broker on a connection of their own, and makes another when that is gone."""

    principal = ANONYMOUS
    weight = 14
    """How often it does something, beside others."""

    def __init__(self, simulation: Simulation, name: str) -> None:
        self.simulation = simulation
        self.world = simulation.world
        self.chance = simulation.world.chance
        self.name = name
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        if self._client is None or self._client.closed:
            self._client = self.world.connect(self.principal)
        return self._client

    def step(self) -> None:
        raise NotImplementedError

    def make_records(self, *, with_times: bool, with_headers: bool, keyed: bool) -> list[Sent]:
        now_ms = self.world.clock.wall_ms()
        records = []
        for _ in range(self.chance.choice((1, 1, 2, 3, 5))):
            timestamp = now_ms - self.chance.choice(ANY_BEFORE_MS) if with_times else -1
            if with_times and self.chance.random() < 0.01:
                timestamp = now_ms + FAR_FUTURE_MS
            key = self.chance.choice(KEYS) if keyed or self.chance.random() < 0.5 else None
            headers = ((b"h", b"1"), (b"h", None)) if with_headers and self.chance.random() < 0.2 else ()
            value = b"%d:" % self.simulation.next_value() + b"x" * self.chance.choice((0, 10, 40))
            records.append(Sent(timestamp, key, value, headers))
        return records


def encode_records(records: list[Sent], magic: int, codec: Codec, **producer: int) -> bytes:
    """The bytes that a producer sends."""
    numbered = [Record(place, one.timestamp, 0, one.key, one.value, one.headers) for place, one in enumerate(records)]
    if magic == 2:
        return bytes(encode_batch(numbered, codec, **producer))
    if codec != Codec.NONE:
        return message_set.encode_wrapper(numbered, magic, codec)
    return message_set.encode_set(numbered, magic)


def produce_request(
    partition: PartitionModel, records: bytes, acks: int, version: int, topic_id: bytes | None, transaction: str | None
) -> ProduceRequest:
    data = [PartitionProduceData(index=partition.index, records=records)]
    if version >= FIRST_VERSION_BY_ID:
        topic = TopicProduceData(topic_id=topic_id, partition_data=data)
    else:
        topic = TopicProduceData(name=partition.topic, partition_data=data)
    return ProduceRequest(transactional_id=transaction, acks=acks, timeout_ms=1000, topic_data=[topic])


def note_answer(simulation: Simulation, partition: PartitionModel, attempt: Attempt, acks: int, answer: Any) -> int:
    """What a producer was told becomes a promise; the error code, -1 if there was no answer."""
    if answer is None:
        simulation.world.note("produce unanswered", attempt.number)
        return -1
    told = answer.responses[0].partition_responses[0]
    code = int(told.error_code)
    simulation.world.note("produce answered", attempt.number, code, told.base_offset)
    if code == ErrorCode.NONE:
        attempt.level = max(attempt.level, Level.DURABLE if acks == -1 else Level.WRITTEN)
        if attempt.base_offset not in (None, told.base_offset) and attempt.base_offset not in partition.damaged:
            simulation.fail(f"{attempt} of {partition} is acknowledged at {told.base_offset}")
        attempt.base_offset = told.base_offset
        simulation.was_acknowledged(partition, attempt)
        if acks == -1 and not simulation.pages_may_be_lost:
            partition.synced_before(told.base_offset)
    elif attempt.level == Level.UNKNOWN and simulation.is_refused(partition, attempt, code, told.error_message):
        attempt.level, attempt.taken_back = Level.REFUSED, code in STORAGE_ERRORS
        segment = SEGMENT.search(told.error_message or "")
        attempt.refused_from = int(segment[1]) if segment else 0
        simulation.world.note("produce refused", attempt.number)
    return code


class PlainProducer(Actor):
    """Sends in any version and format, with any acks, and never the same thing twice."""

    def __init__(self, simulation: Simulation, name: str) -> None:
        super().__init__(simulation, name)
        self._in_flight = 0

    def step(self) -> None:
        topic, partition = self.simulation.any_partition()
        if partition is None or self._in_flight >= MOST_IN_FLIGHT:
            return
        version = self.chance.choice((0, 1, 2, 2, 3, 5, 7, 9, 11, 12, 13))
        magic = 2 if version > 2 else self.chance.choice((0, 1)) if version == FIRST_VERSION_WITH_TIMES else 0
        acks = self.chance.choice((-1, -1, 1, 1, 0))
        codecs = (Codec.NONE, Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4 if magic else Codec.GZIP)
        records = self.make_records(with_times=magic > 0, with_headers=magic == 2, keyed=partition.was_compacted)
        codec = self.chance.choice(codecs)
        data = encode_records(records, magic, codec)
        divisible = magic < 2 and codec == Codec.NONE
        attempt = Attempt(self.simulation.next_attempt(), self.name, records, divisible=divisible)
        partition.attempt(attempt)
        self.world.note(f"produce v{magic}", attempt.number, partition, version, acks, len(data))
        self.world.counts[f"acks={acks}"] += 1
        request = produce_request(partition, data, acks, version, topic.id, None)
        self._in_flight += bool(acks)

        def answered(answer: Any) -> None:
            self._in_flight -= 1
            code = note_answer(self.simulation, partition, attempt, acks, answer)
            if not code and version >= FIRST_VERSION_WITH_TIMES:
                attempt.append_time = answer.responses[0].partition_responses[0].log_append_time_ms

        self.client.send(request, version, self._watched(partition, attempt, answered if acks else None))

    def _watched(self, partition: PartitionModel, attempt: Attempt, answered: Answered | None) -> Answered | None:
        """What to call with the answer; the request is about to leave."""
        return answered


class IdempotentProducer(Actor):
    """One batch at a time in each partition; unanswered ones are sent again as it was."""

    def __init__(self, simulation: Simulation, name: str) -> None:
        super().__init__(simulation, name)
        self._id = self._epoch = -1
        self._sequences: dict[PartitionModel, int] = {}
        self._latest: dict[PartitionModel, Attempt] = {}
        """What was acknowledged last."""
        self._unanswered: dict[PartitionModel, tuple[Attempt, bytes, int]] = {}
        self._acknowledged: dict[PartitionModel, tuple[Attempt, bytes, int]] = {}
        self._recent: dict[PartitionModel, deque[tuple[Attempt, bytes, int]]] = {}
        """The last that were acknowledged."""
        self._older: tuple[Attempt, bytes, int] | None = None
        """The one of them that was sent again last."""
        self._waiting: set[PartitionModel] = set()

    def step(self) -> None:
        if self._id < 0:
            self._initialize()
            return
        topic, partition = self.simulation.any_partition()
        if partition is None or partition in self._waiting:
            return
        again = self._unanswered.get(partition)
        if again is None and self.simulation.theme.sends_again and self.chance.random() < 0.5:
            again = self._acknowledged.get(partition)
        if again is None and self.simulation.knows_older_batches and self.chance.random() < 0.5:
            known = [one for one in self._recent.get(partition, ()) if not partition.may_have_forgotten(one[0])]
            again = self._older = self.chance.choice(known) if known else None
        if again is not None:
            attempt, data, acks = again
            self.simulation.sent_again(attempt, partition)
            self.world.note("idempotent retry", attempt.number, partition)
        else:
            attempt, data, acks = self._new_batch(partition)
        version = self.chance.choice((3, 7, 9, 11, 12, 13))
        self._waiting.add(partition)
        request = produce_request(partition, data, acks, version, topic.id, None)
        self.client.send(request, version, lambda answer: self._answered(partition, attempt, acks, answer))

    def _initialize(self) -> None:
        answer = self.world.ask(InitProducerIdRequest(transaction_timeout_ms=1000), 4)
        self.world.note("producer id", answer.error_code, answer.producer_id)
        if not answer.error_code:
            if answer.producer_id in self.simulation.producer_ids:
                self.simulation.fail(f"producer id {answer.producer_id} was given out twice")
            self.simulation.producer_ids.add(answer.producer_id)
            self._id, self._epoch = answer.producer_id, answer.producer_epoch
            self._sequences = {}
            self._latest = {}

    def _new_batch(self, partition: PartitionModel) -> tuple[Attempt, bytes, int]:
        records = self.make_records(with_times=True, with_headers=True, keyed=partition.was_compacted)
        sequence = self._sequences.get(partition, 0)
        producer = {"producer_id": self._id, "producer_epoch": self._epoch, "base_sequence": sequence}
        data = encode_records(records, 2, Codec.NONE, **producer)
        attempt = Attempt(self.simulation.next_attempt(), self.name, records)
        partition.attempt(attempt)
        acks = self.chance.choice((-1, -1, 1))
        self._unanswered[partition] = attempt, data, acks
        self.world.note("produce idempotent", attempt.number, partition, sequence, acks)
        return self._unanswered[partition]

    def _answered(self, partition: PartitionModel, attempt: Attempt, acks: int, answer: Any) -> None:
        self._waiting.discard(partition)
        code = note_answer(self.simulation, partition, attempt, acks, answer)
        if self._older is not None and self._older[0] is attempt and code in NOT_KNOWN_AGAIN:
            self.simulation.fail(f"{attempt} of {partition} is not known again after a clean stop: {code}")
        if self._unanswered.get(partition, (None,))[0] is not attempt:
            return
        if code == ErrorCode.NONE:
            self._acknowledged[partition] = self._unanswered.pop(partition)
            self._recent.setdefault(partition, deque(maxlen=MOST_KNOWN)).append(self._acknowledged[partition])
            self._sequences[partition] = self._sequences.get(partition, 0) + len(attempt.records)
            self._latest[partition] = attempt
        elif code > 0 and code not in STORAGE_ERRORS:
            # Out of sequence after a loss, a topic that is gone, a refused record: begin with another id.
            if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                self._check_loss(partition, attempt)
            self._unanswered.clear()
            self._acknowledged.clear()
            self._recent.clear()
            self._id = -1

    def _check_loss(self, partition: PartitionModel, attempt: Attempt) -> None:
        """A refusal ends real producers: it is harm unless what came before has been lost."""
        latest = self._latest.get(partition)
        if not partition.damaged and (latest is None or latest.level >= Level.WRITTEN):
            self.simulation.fail(f"{attempt} of {partition} is refused as out of sequence, and {latest} is there")


def transactional(records: list[Sent], producer_id: int, epoch: int, sequence: int) -> bytes:
    """A batch of a transaction."""
    producer = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence}
    return encode_records(records, 2, Codec.NONE, attributes=TRANSACTIONAL_BIT, **producer)
