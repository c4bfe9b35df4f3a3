"""Committed offsets: which are taken and kept, when they go, and what transactions make of it."""

import pytest

from horolog.broker.log.partition import append_marker
from horolog.protocol.errors import ErrorCode
from horolog.protocol.flat import flat_of, struct_of
from horolog.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from horolog.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from horolog.protocol.records.control import Marker
from horolog.protocol.wire import NO_UUID
from tests.support.at_once import at_once, delete_topic
from tests.support.group_members import ClassicClient, commit, committed, first_error, stabilise
from tests.support.group_world import GroupWorld

MINUTE_MS = 60_000
NO_OFFSET = -1


def fetch_old(world, topic="t"):
    request = OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[0])])
    answers = []
    world.coordinator.fetch_offsets(request, 0, answers.append)
    return answers[0].topics[0].partitions[0]


def delete_offset(world, partition=0, topic="t", group_id="g"):
    asked = [OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=partition)])]
    answers = []
    world.coordinator.delete_offsets(OffsetDeleteRequest(group_id=group_id, topics=asked), answers.append)
    world.tick()
    response = answers[0]
    return response.error_code or response.topics[0].partitions[0].error_code


def delete_group(world, group_id="g"):
    codes = []
    world.coordinator.delete_group(group_id, codes.append)
    world.tick()
    return codes[0]


def expire(world, minutes):
    world.advance(minutes * MINUTE_MS)
    for _ in range(2):
        world.coordinator.expire_offsets()
        world.tick()


def test_a_commit_is_kept_and_outlives_a_restart(world):
    assert commit(world, 17, committed_metadata="note", committed_leader_epoch=3) == 0
    for _ in range(2):
        found = committed(world)
        assert (found.committed_offset, found.metadata, found.committed_leader_epoch) == (17, "note", 3)
        world.restart()
    assert committed(world, partition=1).committed_offset == NO_OFFSET
    assert committed(world, group_id="other").committed_offset == NO_OFFSET


def test_what_was_not_written_is_not_acknowledged_and_not_there(world):
    assert commit(world, 1) == 0
    world.storage.fail("write", "__consumer_offsets")
    assert commit(world, 2) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert committed(world).committed_offset == 1
    world.restart()
    assert committed(world).committed_offset == 1


def test_wrong_commits_are_refused_each_by_itself(world):
    assert commit(world, 1, partition=9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(world, 1, topic="unknown") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(world, 1, committed_metadata="x" * 4097) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert commit(world, 1, committed_metadata="x" * 4096) == 0
    wrong = {"generation_id_or_member_epoch": 5, "group_id": "new"}
    assert commit(world, 1, **wrong) == ErrorCode.ILLEGAL_GENERATION
    assert commit(world, 1, **wrong, committed_metadata="x" * 4097) == ErrorCode.ILLEGAL_GENERATION
    assert commit(world, 1, **wrong, partition=9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_how_long_a_note_may_be_is_a_setting():
    world = GroupWorld({"offset.metadata.max.bytes": 10})
    world.topic()
    assert commit(world, 1, committed_metadata="x" * 11) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert committed(world).committed_offset == -1
    assert commit(world, 1, committed_metadata="x" * 10) == 0


def test_a_group_in_use_takes_commits_of_its_members_only(world):
    a = ClassicClient(world)
    stabilise(a)
    own = {"member_id": a.id, "generation_id_or_member_epoch": a.generation}
    assert commit(world, 1, **own) == 0
    assert commit(world, 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(world, 2, **own | {"generation_id_or_member_epoch": 9}) == ErrorCode.ILLEGAL_GENERATION
    assert commit(world, 2, **own | {"member_id": "x"}) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(world, 2, **own | {"group_instance_id": "x"}) == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(world).committed_offset == 1


def test_between_join_and_sync_commits_have_to_wait(world):
    a = ClassicClient(world)
    a.join()
    own = {"member_id": a.id, "generation_id_or_member_epoch": a.generation}
    assert commit(world, 1, **own) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_commit_says_that_a_member_is_alive(world):
    a = ClassicClient(world)
    stabilise(a)
    for offset in range(5):
        world.advance(8_000)
        assert commit(world, offset, member_id=a.id, generation_id_or_member_epoch=a.generation) == 0


def test_a_fetch_waits_for_what_is_on_its_way(world):
    commit(world, 1)
    seen = []
    tick, world.tick = world.tick, lambda: None
    with pytest.raises(IndexError):
        commit(world, 2)
    request = OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])])
    world.coordinator.fetch_offsets(request, 1, seen.append)
    assert not seen
    tick()
    assert seen[0].topics[0].partitions[0].committed_offset == 2


def test_v0_has_a_store_of_its_own(world):
    assert fetch_old(world).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(world, 5, version=0, committed_metadata="lost") == 0
    assert commit(world, 9) == 0
    world.restart()
    old = fetch_old(world)
    assert (old.committed_offset, old.metadata, old.error_code) == (5, "", 0)
    assert committed(world).committed_offset == 9


def test_a_topic_made_anew_has_no_offsets(world):
    commit(world, 5)
    delete_topic(world.cluster, "t")
    assert committed(world).committed_offset == NO_OFFSET
    world.topic()
    assert committed(world).committed_offset == NO_OFFSET
    assert commit(world, 1) == 0
    assert committed(world).committed_offset == 1
    expire(world, 1)
    assert committed(world).committed_offset == 1


def test_groups_have_a_bound():
    world = GroupWorld({"horolog.groups.max": 2})
    world.topic()
    assert [commit(world, 1, group_id=f"g{n}") for n in range(3)] == [0, 0, ErrorCode.GROUP_MAX_SIZE_REACHED]
    assert ClassicClient(world, "g3").join().error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert commit(world, 2, group_id="g1") == 0


def test_a_commit_that_does_not_fit_a_batch_is_refused_whole(world):
    world.cluster.settings = world.settings
    partition = world.offsets_partition("g")
    at_once(
        world.cluster.alter_topic_configs,
        {"__consumer_offsets": {"max.message.bytes": "200", "cleanup.policy": "compact"}},
    )
    assert commit(world, 1, committed_metadata="x" * 300) == ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    assert partition.log_end_offset == 0


# -- deleting and expiring


def test_offsets_are_deleted_unless_they_are_in_use(world):
    a = ClassicClient(world)
    stabilise(a)
    commit(world, 1, member_id=a.id, generation_id_or_member_epoch=a.generation)
    assert delete_offset(world) == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert delete_offset(world, group_id="other") == ErrorCode.GROUP_ID_NOT_FOUND
    assert delete_offset(world, partition=9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    a.leave()
    assert delete_offset(world) == 0
    assert delete_offset(world) == 0
    world.restart()
    assert committed(world).committed_offset == NO_OFFSET


def test_a_group_is_deleted_with_its_offsets_unless_somebody_is_in_it(world):
    a = ClassicClient(world)
    stabilise(a)
    commit(world, 1, member_id=a.id, generation_id_or_member_epoch=a.generation)
    assert delete_group(world) == ErrorCode.NON_EMPTY_GROUP
    a.leave()
    assert delete_group(world) == 0
    assert delete_group(world) == ErrorCode.GROUP_ID_NOT_FOUND
    world.restart()
    assert not world.coordinator.registry.groups


# -- transactions


def txn_commit(world, offset, producer_id=7):
    asked = [TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)]
    request = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        producer_id=producer_id,
        producer_epoch=0,
        topics=[TxnOffsetCommitRequestTopic(name="t", partitions=asked)],
    )
    answers = []
    world.coordinator.txn_commit(flat_of(request), answers.append)
    world.tick()
    return first_error(struct_of(TxnOffsetCommitResponse, answers[0]))


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("decided", [False, True])
def test_offsets_of_a_transaction_count_when_it_is_committed(world, decided, restarts):
    commit(world, 1)
    assert txn_commit(world, 5) == 0
    if restarts:
        world.restart()
    assert committed(world).committed_offset == 1
    assert committed(world, stable=True).error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
    world.coordinator.complete_txn(7, decided)
    assert committed(world, stable=True).committed_offset == (5 if decided else 1)


@pytest.mark.parametrize("decided", [False, True])
def test_a_marker_in_the_log_decides_at_the_next_start(world, decided):
    commit(world, 1)
    txn_commit(world, 5)
    partition = world.offsets_partition("g")
    append_marker(partition, 7, 0, Marker(decided, 0), world.clock.wall_ms())
    partition.flush()
    world.restart()
    assert committed(world, stable=True).committed_offset == (5 if decided else 1)


def test_offsets_of_a_transaction_are_as_durable_as_its_records(world):
    """Or a power cut before its end takes the offsets, and the transaction is committed without them."""
    commit(world, 1)
    waiting = []
    tick, world.tick = world.tick, lambda: (waiting.extend(one.durable for one in world.committer.queued), tick())
    txn_commit(world, 5)
    assert waiting == [True]


def test_a_later_commit_outside_wins(world):
    txn_commit(world, 5)
    commit(world, 9)
    world.coordinator.complete_txn(7, True)
    assert committed(world).committed_offset == 9


def test_pending_offsets_hold_up_expiry_and_go_with_deletion(world):
    txn_commit(world, 5)
    expire(world, 20_000)
    assert committed(world, stable=True).error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert delete_offset(world) == 0
    world.coordinator.complete_txn(7, True)
    assert committed(world).committed_offset == NO_OFFSET


@pytest.mark.parametrize("piece_bytes", [70, 100, 257, 1000])
def test_commits_are_found_again_wherever_the_pieces_end_in_which_they_are_read(world, monkeypatch, piece_bytes):
    monkeypatch.setattr("horolog.broker.coordination.topic_journal.READ_BYTES", piece_bytes)
    for number in range(40):
        assert commit(world, number, group_id=f"g{number % 7}") == 0
    before = [committed(world, group_id=f"g{number}").committed_offset for number in range(7)]
    world.restart()
    assert [committed(world, group_id=f"g{number}").committed_offset for number in range(7)] == before


def commit_by_topic_id(world, topic_id, partition=0):
    asked = OffsetCommitRequestPartition(partition_index=partition, committed_offset=5)
    request = OffsetCommitRequest(
        group_id="g", topics=[OffsetCommitRequestTopic(topic_id=topic_id, partitions=[asked])]
    )
    answers = []
    world.coordinator.commit(flat_of(request), 10, answers.append)
    world.tick()
    return first_error(struct_of(OffsetCommitResponse, answers[0]))


def test_topics_may_be_named_by_their_ids(world):
    topic_id = world.cluster.topics["t"].id
    assert commit_by_topic_id(world, topic_id) == 0
    assert committed(world).committed_offset == 5
    assert commit_by_topic_id(world, topic_id, 9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit_by_topic_id(world, bytes(15) + b"x") == ErrorCode.UNKNOWN_TOPIC_ID


class TestInATransaction:
    def test_each_partition_is_refused_by_itself(self, world):
        assert txn_codes(world, ("t", 0), ("t", 9), ("unknown", 0)) == [
            0,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert txn_codes(world, ("unknown", 0)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

    def test_a_member_that_is_none_is_refused_before_anything_is_written(self, world):
        stabilise(ClassicClient(world))
        codes = txn_codes(world, ("t", 0), ("t", 9), member_id="x", generation_id=1)
        assert codes == [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        world.coordinator.complete_txn(7, committed=True)
        assert committed(world).committed_offset == NO_OFFSET

    def test_a_failed_write_is_told_and_nothing_is_pending(self, world):
        commit(world, 1)
        world.storage.fail("write", "__consumer_offsets")
        assert txn_codes(world, ("t", 0)) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
        assert not world.coordinator.registry.pending

    def test_the_end_of_one_whose_group_is_gone_is_nothing(self, world):
        assert txn_codes(world, ("t", 0)) == [0]
        del world.coordinator.registry.groups["g"]
        world.coordinator.complete_txn(7, committed=True)
        assert committed(world).committed_offset == NO_OFFSET


def txn_codes(world, *places, **fields):
    topics = [
        TxnOffsetCommitRequestTopic(
            name=topic, partitions=[TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=5)]
        )
        for topic, index in places
    ]
    request = TxnOffsetCommitRequest(group_id="g", producer_id=7, producer_epoch=0, topics=topics, **fields)
    answers = []
    world.coordinator.txn_commit(flat_of(request), answers.append)
    world.tick()
    answer = struct_of(TxnOffsetCommitResponse, answers[0])
    return [one.error_code for topic in answer.topics for one in topic.partitions]


@pytest.mark.parametrize("version", [0, 2])
def test_of_a_partition_that_is_named_many_times_the_last_offset_counts_and_is_written_alone(world, version):
    commit(world, 1, version=version)
    written = world.offsets_partition("g").high_watermark
    asked = [(0, offset, -1, -1, "") for offset in range(2, 1_000)]
    world.coordinator.commit(("g", -1, "", None, -1, [("t", NO_UUID, asked)]), version, lambda _: None)
    world.tick()
    assert world.offsets_partition("g").high_watermark == written + 1
    kept = world.coordinator.registry
    offsets = kept.groups["g"].offsets if version else kept.old_offsets["g"]
    assert offsets.get(("t", 0)).offset == 999


class TestPartitionsThatAreNamedTwice:
    NAMED = (("t", [(0, 1), (0, 2)]), ("x", [(0, 3)]), ("x", []), ("t", [(9, 4), (9, 5), (0, 6)]), ("u", []))

    def answered(self, world, version):
        world.topic("u")
        topics = [
            OffsetCommitRequestTopic(
                name=name,
                partitions=[
                    OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
                    for index, offset in sets
                ],
            )
            for name, sets in self.NAMED
        ]
        answers = []
        world.coordinator.commit(flat_of(OffsetCommitRequest(group_id="g", topics=topics)), version, answers.append)
        world.tick()
        found = struct_of(OffsetCommitResponse, answers[0]).topics
        return {one.name: sorted((each.partition_index, each.error_code) for each in one.partitions) for one in found}

    def test_in_version_1_one_that_exists_is_answered_once(self, world):
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        expected = {"t": [(0, 0), (9, missing), (9, missing)], "x": [(0, missing)]}
        assert self.answered(world, 1) == expected
        assert committed(world).committed_offset == 6

    def test_later_each_mention_is_answered_and_the_last_counts(self, world):
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        expected = {"t": [(0, 0), (0, 0), (0, 0), (9, missing), (9, missing)], "x": [(0, missing)]}
        assert self.answered(world, 2) == expected
        assert committed(world).committed_offset == 6
