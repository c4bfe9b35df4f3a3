"""A partition of the group topic that cannot be read while it is loaded keeps its groups waiting, not forgotten."""

from horolog.broker.log.integrity import BeingRescanned
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.storage.memory_disk import ALL
from horolog.protocol.errors import ErrorCode
from tests.support.group_members import commit, committed
from tests.support.group_world import GroupWorld


def test_offsets_are_not_taken_for_missing_while_their_partition_is_rescanned(monkeypatch):
    world = GroupWorld()
    world.topic()
    commit(world, 5)
    world.tick()
    partition = world.offsets_partition("g")
    read = type(partition).read

    def damaged(self, *arguments, **options):
        if self.topic == partition.topic:
            raise BeingRescanned("damaged")
        return read(self, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(type(partition), "read", damaged)
        world.restart()
    shard = partition.index
    assert world.coordinator.registry.load_error(shard) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.coordinator.shards.rescanned(shard)
    assert committed(world).committed_offset == 5


def test_offsets_are_not_taken_for_missing_while_their_partition_cannot_be_read(monkeypatch):
    """A fault of the disk at the start: the partition is offline, and its groups are loading, until it is back."""
    world = GroupWorld()
    world.topic()
    commit(world, 5)
    world.tick()
    name, shard = world.offsets_partition("g").topic, world.offsets_partition("g").index
    read = Partition.read

    def failing(self, *arguments, **options):
        if self.topic == name:
            raise StorageFault("read: Input/output error")
        return read(self, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Partition, "read", failing)
        world.restart()
        partition = world.offsets_partition("g")
        assert partition.condition.fault
        for _ in range(2):
            assert world.coordinator.registry.load_error(shard) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            world.logs.open_again(partition)
            world.coordinator.shards.reopened(shard)
            assert partition.condition.fault, "it is opened and can still not be read"
    assert world.logs.open_again(partition)
    world.coordinator.shards.reopened(shard)
    assert committed(world).committed_offset == 5


def test_offsets_are_not_taken_for_missing_while_their_partition_cannot_be_opened():
    world = GroupWorld()
    world.topic()
    commit(world, 5)
    world.tick()
    partition = world.offsets_partition("g")
    shard, directory = partition.index, partition.directory
    world.storage.locks.clear()
    world.storage.fail("read", directory, times=ALL)
    world.start()
    partition = world.offsets_partition("g")
    assert partition.condition.fault
    assert world.coordinator.registry.load_error(shard) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.storage.heal()
    assert world.logs.open_again(partition)
    world.coordinator.shards.reopened(shard)
    assert committed(world).committed_offset == 5
