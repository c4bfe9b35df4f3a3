"""The rules of KIP-848: epochs, giving back before getting, fencing, static members, wrong requests, restarts."""

import pytest

from horolog.broker.cluster.new_topics import NewPartitions
from horolog.broker.coordination import topic_journal
from horolog.broker.groups import shards
from horolog.broker.groups.kip848 import check_heartbeat
from horolog.protocol.errors import ErrorCode
from horolog.protocol.flat import flat_of, struct_of
from horolog.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from horolog.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from tests.support.at_once import at_once, delete_topic
from tests.support.group_members import ClassicClient, ConsumerClient, commit, committed, first_error, stabilise
from tests.support.group_world import GroupWorld


def settle(*clients, rounds=8):
    for _ in range(rounds):
        for client in clients:
            client.beat()


@pytest.fixture
def pair(world):
    a, b = ConsumerClient(world, "A"), ConsumerClient(world, "B")
    a.join()
    b.join()
    settle(a, b)
    return a, b


def test_one_member_gets_everything_at_once(world):
    a = ConsumerClient(world, "A")
    assert a.join().error_code == 0
    assert a.partitions == [0, 1, 2, 3]
    assert a.beat().assignment is None
    assert a.epoch == 1


def test_nothing_is_given_before_it_is_given_back(world):
    a, b = ConsumerClient(world, "A"), ConsumerClient(world, "B")
    a.join()
    b.join()
    assert b.partitions == []
    before = a.owned
    a.send(owned=False)
    world.tick()
    assert len(a.partitions) == 2
    kept, a.owned = a.owned, before
    a.beat()  # it says that it still has them
    assert b.beat().assignment is None
    a.owned = kept
    a.beat()
    b.beat()
    assert sorted(a.partitions + b.partitions) == [0, 1, 2, 3]


def test_what_a_member_leaves_goes_to_the_others(pair):
    a, b = pair
    assert b.beat(-1).member_epoch == -1
    settle(a)
    assert a.partitions == [0, 1, 2, 3]
    assert b.beat(1).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_does_not_give_back_in_time_is_out(world):
    a, b = ConsumerClient(world, "A"), ConsumerClient(world, "B")
    a.join()
    before = a.owned
    b.join()
    for _ in range(6):
        a.beat()
        a.owned = before
        b.beat()
        world.advance(5_000)
    assert a.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    settle(b)
    assert b.partitions == [0, 1, 2, 3]


def test_silence_ends_a_membership(pair, world):
    a, b = pair
    for _ in range(10):
        world.advance(5_000)
        a.beat()
    assert a.partitions == [0, 1, 2, 3]
    assert b.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_epochs_fence(pair):
    a, _ = pair
    epoch = a.epoch
    assert a.beat(epoch + 1).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert a.beat(epoch).error_code == 0
    assert a.join().member_epoch == epoch
    assert len(a.partitions) == 2


def test_the_last_epoch_is_taken_when_the_answer_was_lost(world):
    a, b = ConsumerClient(world, "A"), ConsumerClient(world, "B")
    a.join()
    b.join()
    a.beat()
    a.beat()
    assert a.epoch == 2
    assert a.beat(1).error_code == 0
    a.owned = {**a.owned, bytes(16): [0]}
    assert a.beat(1).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_new_partitions_and_topics_are_given_out(pair, world):
    a, b = pair
    at_once(world.cluster.add_partitions, [NewPartitions("t", 6)])
    settle(a, b)
    assert sorted(a.partitions + b.partitions) == [0, 1, 2, 3, 4, 5]
    assert len(a.partitions) == len(b.partitions)


def test_a_topic_made_anew_is_another(pair, world):
    a, b = pair
    delete_topic(world.cluster, "t")
    settle(a, b)
    assert a.partitions == b.partitions == []
    world.topic("t", 2)
    settle(a, b)
    assert sorted(a.partitions + b.partitions) == [0, 1]
    assert set(a.owned) | set(b.owned) == {world.cluster.topics["t"].id}


def test_subscriptions_by_pattern_follow_the_topics(world):
    a = ConsumerClient(world, "A", subscribed_topic_names=None, subscribed_topic_regex="new-.*")
    a.join()
    assert a.partitions == []
    world.topic("new-1", 2)
    world.topic("anew-1", 2)
    world.advance(1_000)
    a.beat()
    assert set(a.owned) == {world.cluster.topics["new-1"].id}
    bad = ConsumerClient(world, "B", subscribed_topic_names=None, subscribed_topic_regex="(")
    assert bad.join().error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_pattern_may_match_internal_topics(world):
    a = ConsumerClient(world, "A", subscribed_topic_names=None, subscribed_topic_regex="__consumer_.*")
    a.join()
    world.advance(1_000)
    a.beat()
    assert set(a.owned) == {world.cluster.topics["__consumer_offsets"].id}


def test_a_static_member_comes_back_to_what_it_had(world):
    a, b = ConsumerClient(world, "A", instance_id="i"), ConsumerClient(world, "B")
    a.join()
    b.join()
    settle(a, b)
    had, epoch = a.partitions, b.epoch
    assert ConsumerClient(world, "C", instance_id="i").join().error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert a.beat(-2).member_epoch == -2
    settle(b)
    assert len(b.partitions) == 2
    again = ConsumerClient(world, "C", instance_id="i")
    again.join()
    assert (again.partitions, again.epoch) == (had, epoch)
    a.epoch = epoch
    assert a.beat().error_code == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_does_not_come_back_is_out(world):
    a, b = ConsumerClient(world, "A", instance_id="i"), ConsumerClient(world, "B")
    a.join()
    b.join()
    settle(a, b)
    a.beat(-2)
    for _ in range(10):
        world.advance(5_000)
        b.beat()
    assert b.partitions == [0, 1, 2, 3]


def test_everything_outlives_a_restart(pair, world):
    a, b = pair
    world.restart()
    assert a.beat().error_code == b.beat().error_code == 0
    assert sorted(a.partitions + b.partitions) == [0, 1, 2, 3]
    c = ConsumerClient(world, "C")
    c.join()
    settle(a, b, c)
    assert sorted(len(one.partitions) for one in (a, b, c)) == [1, 1, 2]


def test_what_cannot_be_written_has_not_happened(pair, world):
    a, b = pair
    world.storage.fail("write", "__consumer_offsets")
    c = ConsumerClient(world, "C")
    assert c.join().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert a.beat().error_code == b.beat().error_code == 0
    assert sorted(a.partitions + b.partitions) == [0, 1, 2, 3]
    assert c.join().error_code == 0


def test_a_long_log_is_read_again_a_part_at_a_time(pair, world, monkeypatch):
    """Nobody waits for it but its groups, and they are told to come again."""
    monkeypatch.setattr(topic_journal, "READ_BYTES", 1)
    monkeypatch.setattr(shards, "PIECES_AT_ONCE", 2)
    a, b = pair
    world.storage.fail("write", "__consumer_offsets")
    c = ConsumerClient(world, "C")
    assert c.join().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert a.beat().error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.advance(0)
    assert a.beat().error_code == b.beat().error_code == 0
    assert sorted(a.partitions + b.partitions) == [0, 1, 2, 3]
    assert c.join().error_code == 0


def test_a_full_group_takes_nobody_but_its_members():
    world = GroupWorld({"group.consumer.max.size": 1})
    world.topic()
    a = ConsumerClient(world, "A")
    a.join()
    assert ConsumerClient(world, "B").join().error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert a.join().error_code == 0


def test_commits_need_the_current_epoch(pair, world):
    a, b = pair
    assert commit(world, 5, member_id="A", generation_id_or_member_epoch=a.epoch) == 0
    stale = {"member_id": "A", "generation_id_or_member_epoch": a.epoch - 1, "partition": b.partitions[0]}
    assert commit(world, 6, **stale) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(world, 6, member_id="X", generation_id_or_member_epoch=a.epoch) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(world, 6) == ErrorCode.UNKNOWN_MEMBER_ID
    code = commit(world, 6, member_id="A", generation_id_or_member_epoch=a.epoch, version=8)
    assert code == ErrorCode.UNSUPPORTED_VERSION
    assert committed(world).committed_offset == 5


def test_a_member_commits_what_it_has_kept_with_the_epoch_in_which_it_got_it(world):
    """As on Kafka 4.3 (KIP-1251): the commit was on its way while the member entered a newer epoch."""
    a = ConsumerClient(world, "A")
    a.join()
    first = a.epoch
    b = ConsumerClient(world, "B")
    b.join()
    settle(a, b)
    assert a.epoch > first
    kept, given = a.partitions[0], b.partitions[0]

    def code(client, epoch, partition):
        return commit(world, 7, member_id=client.id, generation_id_or_member_epoch=epoch, partition=partition)

    for _ in range(2):
        assert code(a, first, kept) == ErrorCode.NONE
        assert code(a, first, given) == ErrorCode.STALE_MEMBER_EPOCH
        assert code(a, first - 1, kept) == ErrorCode.STALE_MEMBER_EPOCH
        assert code(a, a.epoch + 1, kept) == ErrorCode.STALE_MEMBER_EPOCH
        assert code(b, first, given) == ErrorCode.STALE_MEMBER_EPOCH
        assert committed(world, partition=kept).committed_offset == 7
        world.restart()


def test_a_producer_commits_by_the_same_rule(pair, world):
    """As on Kafka, the refusal is one that producers know."""
    a, b = pair

    def code(epoch, partition):
        asked = TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=1)
        topics = [TxnOffsetCommitRequestTopic(name="t", partitions=[asked])]
        request = TxnOffsetCommitRequest(
            transactional_id="x",
            group_id="g",
            producer_id=5,
            producer_epoch=0,
            member_id="A",
            generation_id=epoch,
            topics=topics,
        )
        answers = []
        world.coordinator.txn_commit(flat_of(request), answers.append)
        world.tick()
        return first_error(struct_of(TxnOffsetCommitResponse, answers[0]))

    assert code(a.epoch, b.partitions[0]) == ErrorCode.NONE
    assert code(a.epoch - 1, a.partitions[0]) == ErrorCode.NONE
    assert code(a.epoch - 1, b.partitions[0]) == ErrorCode.ILLEGAL_GENERATION


# -- the two protocols


def test_an_empty_classic_group_becomes_one_of_the_newer_kind_and_back(world):
    old = ClassicClient(world)
    stabilise(old)
    assert commit(world, 7, member_id=old.id, generation_id_or_member_epoch=old.generation) == 0
    old.leave()
    a = ConsumerClient(world, "A")
    assert a.join().error_code == 0
    world.restart()
    assert a.beat().error_code == 0
    assert committed(world).committed_offset == 7
    a.beat(-1)
    stabilise(old := ClassicClient(world))
    assert old.synced.error_code == 0
    world.restart()
    assert old.heartbeat() == 0
    assert committed(world).committed_offset == 7


def test_a_refused_member_leaves_a_group_as_it_was(world):
    commit(world, 7)
    bad = ConsumerClient(world, "B", subscribed_topic_names=None, subscribed_topic_regex="(")
    bad.join()
    ConsumerClient(world, "B", "other", subscribed_topic_names=None, subscribed_topic_regex="(").join()
    assert committed(world).committed_offset == 7
    assert set(world.coordinator.registry.groups) == {"g"}


GOOD = {
    "group_id": "g",
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout_ms": 1,
    "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"instance_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -3}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"topic_partitions": None}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST),
        ({"server_assignor": "nonsense"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
    ],
)
def test_requests_that_are_wrong_by_themselves(fields, code):
    assert check_heartbeat(ConsumerGroupHeartbeatRequest(**GOOD), 1) is None
    assert check_heartbeat(ConsumerGroupHeartbeatRequest(**GOOD | fields), 1).code == code


def test_in_v0_the_broker_may_name_a_member_that_joins():
    request = ConsumerGroupHeartbeatRequest(**GOOD | {"member_id": ""})
    assert check_heartbeat(request, 0) is None
    request.member_epoch = 1
    assert check_heartbeat(request, 0).code == ErrorCode.INVALID_REQUEST


def test_a_pattern_means_what_its_member_may_describe(world):
    a = ConsumerClient(world, "A", subscribed_topic_names=None, subscribed_topic_regex=".*")
    a.may_describe = frozenset().__contains__
    a.join()
    assert a.partitions == []
    a.may_describe = frozenset("t").__contains__
    a.beat()
    assert a.partitions == [0, 1, 2, 3]
    assert a.epoch == 2
    a.beat()
    assert a.epoch == 2
    a.may_describe = frozenset("u").__contains__
    a.beat()
    assert a.partitions == []


def test_rights_that_say_the_same_change_nothing(world):
    a = ConsumerClient(world, "A", subscribed_topic_names=None, subscribed_topic_regex="t")
    a.may_describe = frozenset("t").__contains__
    a.join()
    a.may_describe = frozenset("tu").__contains__
    assert a.beat().assignment is None
    assert (a.epoch, a.partitions) == (1, [0, 1, 2, 3])
