"""A partition of the group topic that is found damaged while it is loaded keeps its groups waiting, not forgotten."""

from broker.log.suspects import BeingMended
from protocol.errors import ErrorCode
from tests.support.group_members import commit, committed
from tests.support.group_world import GroupWorld


def test_offsets_are_not_taken_for_missing_while_their_partition_is_mended(monkeypatch):
    world = GroupWorld()
    world.topic()
    commit(world, 5)
    world.tick()
    partition = world.coordinator.offsets_partition("g")
    read = type(partition).read

    def damaged(self, *arguments, **options):
        if self.topic == partition.topic:
            raise BeingMended("damaged")
        return read(self, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(type(partition), "read", damaged)
        world.restart()
    shard = partition.index
    assert world.coordinator.registry.load_error(shard) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.coordinator.mended(shard)
    assert committed(world).committed_offset == 5
