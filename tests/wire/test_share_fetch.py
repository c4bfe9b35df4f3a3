"""ShareFetch of a broker with real files: what a member gets is what was written, whether it was read here or sent from the file."""

from __future__ import annotations

import time

import pytest

from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.messages.share_fetch import (
    AcknowledgementBatch,
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchTopic,
)
from horolog.protocol.messages.share_groups import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from horolog.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from horolog.protocol.records.entries import iter_records
from tests.support.fixtures import BrokerStarter
from tests.support.log_model import encode
from tests.support.raw_wire import RawWire
from tests.support.waiting import wait_until

SIZES = (1, 300, 2_000, 1, 1, 900, 5, 1_500)
"""Records in each batch, of 100 bytes: some are long enough to be sent from the file."""
GROUP = "g"
PRODUCE, SHARE_FETCH = 9, 1


def values_of(sizes: tuple[int, ...]) -> list[bytes]:
    return [b"%06d" % number + b"v" * 94 for number in range(sum(sizes))]


def fill(wire: RawWire) -> bytes:
    """Write the batches; the id of their topic."""
    made = wire.ask(CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)]), 7)
    values, first = values_of(SIZES), 0
    for size in SIZES:
        data = encode(2, 0, [int(time.time() * 1000)] * size, values[first : first + size])
        part = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=data)])
        answer = wire.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[part]), PRODUCE)
        assert not answer.responses[0].partition_responses[0].error_code
        first += size
    return bytes(made.topics[0].topic_id)


def begins_at_the_start(wire: RawWire) -> bool:
    topic = AlterShareGroupOffsetsRequestTopic(
        topic_name="t", partitions=[AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)]
    )
    answer = wire.ask(AlterShareGroupOffsetsRequest(group_id=GROUP, topics=[topic]), 0)
    return not answer.error_code and not answer.responses[0].partitions[0].error_code


@pytest.mark.one_worker("its frames go to one worker, which may lead nothing of it")
def test_a_member_gets_every_record_once(start_broker: BrokerStarter) -> None:
    broker = start_broker()
    got: list[bytes] = []
    with RawWire(broker.address) as wire:
        topic_id = fill(wire)
        wait_until(lambda: begins_at_the_start(wire))
        held: list[AcknowledgementBatch] = []
        for epoch in range(100):
            part = ShareFetchPartition(partition_index=0, acknowledgement_batches=held)
            request = ShareFetchRequest(
                group_id=GROUP,
                member_id="m",
                share_session_epoch=epoch,
                max_wait_ms=0,
                min_bytes=1,
                max_bytes=1 << 20,
                max_records=(1, 250, 1_000)[epoch % 3],
                batch_size=1_000,
                topics=[ShareFetchTopic(topic_id=topic_id, partitions=[part])],
            )
            answer = wire.ask(request, SHARE_FETCH)
            (found,) = answer.responses[0].partitions if answer.responses else (None,)
            if found is None:
                break
            assert not found.error_code | found.acknowledge_error_code
            by_offset = {one.offset: bytes(one.value or b"") for one in iter_records(bytes(found.records))}
            held = []
            for one in found.acquired_records:
                got += [by_offset[offset] for offset in range(one.first_offset, one.last_offset + 1)]
                given = {"first_offset": one.first_offset, "last_offset": one.last_offset}
                held.append(AcknowledgementBatch(**given, acknowledge_types=[1]))
            if not held and epoch:
                break
    assert got == values_of(SIZES)
