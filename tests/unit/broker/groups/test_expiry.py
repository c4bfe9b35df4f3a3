"""What nobody needs any more goes: offsets in their time, and groups with nothing left."""

from horolog.broker.groups import expiry
from horolog.broker.groups.offsets import NEVER, Committed
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestTopic
from tests.support.at_once import delete_topic
from tests.support.group_members import ClassicClient, ConsumerClient, commit, committed, stabilise
from tests.support.processor_time import at_most

MINUTE_MS = 60_000


NO_OFFSET = -1


def fetch_old(world):
    request = OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])])
    answers = []
    world.coordinator.fetch_offsets(request, 0, answers.append)
    return answers[0].topics[0].partitions[0]


def expire(world, minutes):
    world.advance(minutes * MINUTE_MS)
    for _ in range(2):
        world.coordinator.expire_offsets()
        world.tick()


def test_offsets_of_nobody_expire_from_their_commit(world):
    commit(world, 1)
    expire(world, 10_079)
    assert committed(world).committed_offset == 1
    expire(world, 1)
    assert committed(world).committed_offset == NO_OFFSET
    assert not world.coordinator.registry.groups
    world.restart()
    assert not world.coordinator.registry.groups


def test_offsets_of_a_group_expire_from_when_it_was_left(world):
    a = ClassicClient(world, session_timeout_ms=1_800_000)
    stabilise(a)
    commit(world, 1, member_id=a.id, generation_id_or_member_epoch=a.generation)
    for _ in range(600):
        world.advance(20 * MINUTE_MS)
        a.heartbeat()
    expire(world, 0)
    assert committed(world).committed_offset == 1
    a.leave()
    expire(world, 10_079)
    assert committed(world).committed_offset == 1
    expire(world, 1)
    assert committed(world).committed_offset == NO_OFFSET


def test_a_live_group_loses_only_what_it_does_not_read(world):
    world.topic("u")
    commit(world, 1)
    commit(world, 1, topic="u")
    a = ClassicClient(world, session_timeout_ms=1_800_000)
    stabilise(a)
    for _ in range(505):
        world.advance(20 * MINUTE_MS)
        a.heartbeat()
    expire(world, 0)
    assert committed(world).committed_offset == 1
    assert committed(world, topic="u").committed_offset == NO_OFFSET


def test_a_commit_may_bring_its_own_retention(world):
    commit(world, 1, version=2, retention_time_ms=5 * MINUTE_MS)
    commit(world, 1, version=2, retention_time_ms=20_000 * MINUTE_MS, group_id="h")
    world.restart()
    expire(world, 5)
    assert committed(world).committed_offset == NO_OFFSET
    expire(world, 12_000)
    assert committed(world, group_id="h").committed_offset == 1


def test_offsets_of_the_oldest_clients_expire_in_their_own_store(world):
    assert commit(world, 5, version=0) == 0
    expire(world, 10_079)
    assert fetch_old(world).committed_offset == 5
    expire(world, 1)
    assert fetch_old(world).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not world.coordinator.registry.old_offsets
    world.restart()
    assert not world.coordinator.registry.old_offsets


def test_offsets_go_with_their_topic(world):
    commit(world, 5)
    delete_topic(world.cluster, "t")
    expire(world, 0)
    assert not world.coordinator.registry.groups


def test_more_than_fits_one_batch_goes_a_part_at_a_time(world, monkeypatch):
    monkeypatch.setattr(expiry, "MAX_TOMBSTONES", 2)
    for partition in range(4):
        commit(world, 1, partition=partition)
    world.advance(10_080 * MINUTE_MS)
    world.coordinator.expire_offsets()
    world.tick()
    assert len(world.coordinator.registry.groups["g"].offsets) == 2
    expire(world, 0)
    assert not world.coordinator.registry.groups


def test_many_offsets_go_in_time_that_is_linear_in_their_number(world):
    commit(world, 1)
    (group,) = world.coordinator.registry.groups.values()
    count = 10_000
    for index in range(1, count):
        group.offsets.put(("gone", index), Committed(1, -1, "", world.clock.wall_ms(), NEVER, b"a topic that was"))
    world.advance(10_080 * MINUTE_MS)
    with at_most(2.0):
        world.coordinator.expire_offsets()
    world.tick()
    assert len(group.offsets) == count - expiry.MAX_TOMBSTONES


def test_what_cannot_be_written_now_is_tried_again(world, caplog):
    commit(world, 1)
    world.storage.fail("write", "__consumer_offsets", times=1)
    world.advance(10_080 * MINUTE_MS)
    world.coordinator.expire_offsets()
    world.tick()
    assert "trying again" in caplog.text
    assert committed(world).committed_offset == 1


def test_a_group_of_the_newer_protocol_goes_with_all_that_was_written_of_it(world):
    member = ConsumerClient(world, "a")
    member.join()
    commit(world, 1, member_id=member.id, generation_id_or_member_epoch=member.epoch)
    member.beat(-1)
    expire(world, 10_080)
    assert not world.coordinator.registry.groups
    world.restart()
    assert not world.coordinator.registry.groups


def test_who_joins_while_a_group_is_removed_keeps_it_without_its_offsets(world):
    commit(world, 1)
    world.advance(10_080 * MINUTE_MS)
    world.coordinator.expire_offsets()
    member = ClassicClient(world)
    member.send_join()
    world.tick()
    assert committed(world).committed_offset == NO_OFFSET
    assert "g" in world.coordinator.registry.groups
