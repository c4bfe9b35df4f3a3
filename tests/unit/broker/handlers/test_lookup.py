"""The first checks of handlers: is the partition here, is the client's leader epoch the right one, what does a failed disk read as."""

import logging

import pytest

from horolog.broker.handlers.lookup import (
    Leadership,
    epoch_error,
    find_partition,
    leadership,
    storage_error,
    storage_error_for,
)
from horolog.broker.log.storage import StorageFault
from horolog.protocol.errors import ErrorCode
from tests.support.memory_broker import MemoryBroker


async def test_a_partition_is_found_by_topic_and_index():
    async with MemoryBroker() as memory:
        topic = memory.topic("t", 2)
        assert find_partition(memory.broker.cluster, "t", 1) is topic.find(1)


@pytest.mark.parametrize(("name", "index"), [("nowhere", 0), ("t", 2), ("t", -1)])
async def test_what_is_not_there_is_unknown(name, index):
    async with MemoryBroker() as memory:
        memory.topic("t", 2)
        assert find_partition(memory.broker.cluster, name, index) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_partition_whose_disk_failed_is_a_storage_error():
    async with MemoryBroker() as memory:
        partition = memory.topic().find(0)
        partition.condition.go_offline("the disk is gone")
        assert find_partition(memory.broker.cluster, "t", 0) == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize(
    ("believed", "error"),
    [(-1, None), (5, None), (4, ErrorCode.FENCED_LEADER_EPOCH), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
async def test_the_epoch_that_a_client_believes_in_must_be_the_leaders(believed, error):
    async with MemoryBroker() as memory:
        partition = memory.topic().find(0)
        partition.leader_epoch = 5
        assert epoch_error(partition, believed) == error


async def test_a_fault_of_the_disk_is_logged(caplog):
    async with MemoryBroker() as memory:
        partition = memory.topic().find(0)
        with caplog.at_level(logging.ERROR):
            assert storage_error(partition, StorageFault("no space left")) == ErrorCode.KAFKA_STORAGE_ERROR
    assert "no space left" in caplog.text


def test_clients_that_do_not_know_the_code_of_a_failed_disk_get_one_that_has_them_try_again():
    assert storage_error_for(4, 5) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert storage_error_for(5, 5) == ErrorCode.KAFKA_STORAGE_ERROR


async def test_clients_are_told_of_the_leader_of_a_partition():
    async with MemoryBroker() as memory:
        topic = memory.topic("t", 2)
        assert leadership(memory.broker.placement, topic, 1) == Leadership(ErrorCode.NONE, 1, 0, [1], [])


async def test_a_partition_that_is_still_being_opened_here_has_its_leader():
    """Clients with librdkafka keep a partition without a leader for minutes: lookups fail at once, and it does not ask again."""
    async with MemoryBroker() as memory:
        topic = memory.topic("t", 2)
        topic.put(1, None)
        assert leadership(memory.broker.placement, topic, 1) == Leadership(ErrorCode.NONE, 1, 0, [1], [])


async def test_a_partition_whose_disk_failed_has_no_leader():
    async with MemoryBroker() as memory:
        topic = memory.topic("t", 2)
        topic.find(1).condition.go_offline("the disk is gone")
        told = leadership(memory.broker.placement, topic, 1)
        assert told == Leadership(ErrorCode.LEADER_NOT_AVAILABLE, -1, 0, [1], [1])
