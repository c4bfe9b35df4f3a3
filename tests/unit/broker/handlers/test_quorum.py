"""DescribeQuorum: the one broker is the only voter of the one partition that has a quorum."""

import pytest

from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.quorum import DescribeQuorumRequest, PartitionData, TopicData
from tests.support.memory_broker import NOW_MS, MemoryBroker

TEXT = "a text"
"""Stands for any text that is not empty."""


UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


METADATA = "__cluster_metadata"


def kind(text):
    return TEXT if text else text


def of_partition(answer):
    return answer.topics[0].partitions[0]


def quorum(*wanted):
    names = dict.fromkeys(name for name, _ in wanted)
    return DescribeQuorumRequest(
        topics=[
            TopicData(topic_name=name, partitions=[PartitionData(partition_index=i) for n, i in wanted if n == name])
            for name in names
        ]
    )


@pytest.mark.parametrize("version", range(3))
async def test_the_only_broker_is_the_only_voter(version):
    async with MemoryBroker() as memory:
        memory.topic()
        answer = await memory.connect().ask(quorum((METADATA, 0)), version)
        found = of_partition(answer)
        (voter,) = found.current_voters
        assert (answer.error_code, found.error_code, found.leader_id, found.observers) == (0, 0, 1, [])
        assert found.high_watermark == voter.log_end_offset > 0
        assert voter.last_caught_up_timestamp == (NOW_MS if version else -1)
        if version == 2:
            assert [one.node_id for one in answer.nodes] == [1]
            assert voter.replica_directory_id != bytes(16)


@pytest.mark.parametrize("wanted", [[("t", 0)], [(METADATA, 1)], [(METADATA, 0), (METADATA, 1)]])
async def test_other_partitions_have_no_quorum(wanted):
    async with MemoryBroker() as memory:
        memory.topic()
        answer = await memory.connect().ask(quorum(*wanted), 2)
        partitions = [each for topic in answer.topics for each in topic.partitions]
        assert [(each.error_code, kind(each.error_message)) for each in partitions] == [(UNKNOWN, TEXT)] * len(wanted)
