"""The states of share partitions, as other brokers ask for them."""

import pytest

from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import FindCoordinatorRequest
from horolog.protocol.messages.share_state import (
    DeleteShareGroupStateRequest,
    DeleteStateTopic,
    InitializeShareGroupStateRequest,
    InitializeStatePartition,
    InitializeStateTopic,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    ReadStatePartition,
    ReadStateTopic,
    ShareStateBatch,
    StatePartition,
    WriteShareGroupStateRequest,
    WriteStatePartition,
    WriteStateTopic,
)
from horolog.protocol.uuids import show_uuid
from tests.support.share_broker import share_broker


class Asker:
    def __init__(self, broker):
        self.wire = broker.connect()
        self.topic_id = broker.broker.cluster.topics["t"].id

    async def ask(self, request, topic, part, version, topic_id=None, group="g", **fields):
        topics = [topic(topic_id=topic_id or self.topic_id, partitions=[part(**fields)])]
        answer = await self.wire.ask(request(group_id=group, topics=topics), version)
        return answer.results[0].partitions[0] if answer.results else None

    async def initialize(self, partition=0, **more):
        fields = {"partition": partition, "state_epoch": 2, "start_offset": 0} | more
        return await self.ask(
            InitializeShareGroupStateRequest, InitializeStateTopic, InitializeStatePartition, 0, **fields
        )

    async def write(self, partition=0, **more):
        batch = ShareStateBatch(first_offset=0, last_offset=4, delivery_state=2, delivery_count=1)
        fields = {"state_epoch": 2, "leader_epoch": 0, "start_offset": 0, "delivery_complete_count": 5} | more
        return await self.ask(
            WriteShareGroupStateRequest, WriteStateTopic, WriteStatePartition, 1,
            partition=partition, state_batches=[batch], **fields,
        )  # fmt: skip

    async def read(self, partition=0, leader_epoch=0, **more):
        fields = {"partition": partition, "leader_epoch": leader_epoch} | more
        return await self.ask(ReadShareGroupStateRequest, ReadStateTopic, ReadStatePartition, 0, **fields)

    async def summary(self, partition=0, **more):
        fields = {"partition": partition, "leader_epoch": -1} | more
        return await self.ask(ReadShareGroupStateSummaryRequest, ReadStateTopic, ReadStatePartition, 1, **fields)

    async def delete(self, partition=0, **more):
        return await self.ask(
            DeleteShareGroupStateRequest, DeleteStateTopic, StatePartition, 0, partition=partition, **more
        )


@pytest.fixture
async def asker():
    async with share_broker() as broker:
        broker.topic("t", 1)
        yield Asker(broker)


async def test_a_state_is_begun_written_read_and_deleted(asker):
    assert (await asker.summary()).start_offset == -1
    assert (await asker.initialize()).error_code == ErrorCode.NONE
    assert (await asker.write()).error_code == ErrorCode.NONE
    read = await asker.read(leader_epoch=3)
    assert (read.state_epoch, read.start_offset) == (2, 0)
    assert [(one.first_offset, one.last_offset, one.delivery_state) for one in read.state_batches] == [(0, 4, 2)]
    told = await asker.summary()
    assert (told.state_epoch, told.leader_epoch, told.start_offset, told.delivery_complete_count) == (2, 3, 0, 5)
    assert (await asker.write(leader_epoch=2)).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (await asker.read(leader_epoch=2)).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (await asker.delete()).error_code == ErrorCode.NONE
    assert (await asker.delete()).error_code == ErrorCode.NONE
    assert (await asker.read()).error_code == ErrorCode.INVALID_REQUEST


async def test_what_cannot_be_is_refused(asker):
    assert (await asker.write()).error_code == ErrorCode.INVALID_REQUEST
    assert (await asker.initialize()).error_code == ErrorCode.NONE
    assert (await asker.initialize(state_epoch=1)).error_code == ErrorCode.FENCED_STATE_EPOCH
    assert (await asker.write(state_epoch=1)).error_code == ErrorCode.FENCED_STATE_EPOCH
    for ask in (asker.initialize, asker.write, asker.read, asker.summary, asker.delete):
        assert (await ask(partition=-1)).error_code == ErrorCode.INVALID_REQUEST
        assert await ask(group="") is None
    for ask in (asker.initialize, asker.summary):
        assert (await ask(partition=9)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        refused = await ask(topic_id=b"x" * 16)
        assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert refused.error_message


async def test_the_keeper_of_a_state_is_found_by_its_key(asker):
    keys = [f"g:{show_uuid(asker.topic_id)}:0", f"a:b:{show_uuid(asker.topic_id)}:12", "g", "g:x:0", ":x:0"]
    keys += [f"g:{show_uuid(asker.topic_id)}:-1", f":{show_uuid(asker.topic_id)}:0"]
    answer = await asker.wire.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=keys), 6)
    assert [one.error_code for one in answer.coordinators] == [0, 0, 42, 42, 42, 42, 42]
    early = await asker.wire.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=keys[:1]), 5)
    assert early.coordinators[0].error_code == ErrorCode.INVALID_REQUEST
