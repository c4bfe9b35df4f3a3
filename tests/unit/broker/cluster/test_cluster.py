"""The registry of topics: every change is there after a crash, or was refused and is not there at all."""

import logging
from collections import deque

import pytest

from horolog.broker.base.topic_names import KRAFT_METADATA
from horolog.broker.cluster.cluster_state import PRODUCER_ID_BLOCK_SIZE, Lead, LeadsChanged, RulesChanged
from horolog.broker.cluster.new_topics import MAX_PARTITIONS_PER_REQUEST, NewPartitions, NewTopic
from horolog.broker.config.topic_settings import SETTINGS_UNKNOWN
from horolog.broker.log.partition import SERVING
from horolog.broker.log.storage import DataFolderError
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.cluster_file import FILE_NAME, JOURNAL, StoredTopic
from horolog.broker.on_record.stored_rules import StoredRule
from horolog.protocol.errors import ErrorCode
from tests.support.at_once import at_once, delete_topic
from tests.support.members import among
from tests.unit.broker.cluster.cluster_stand_ins import FakeLogs, Machine, SlowJournal, new_partition

PATH = f"/data/{FILE_NAME}"


@pytest.fixture
def machine():
    return Machine(num_partitions="3")


def seen(cluster):
    return {name: (topic.id, topic.partition_count, topic.overrides) for name, topic in cluster.topics.items()}


def refused(cluster, **new):
    (result,) = at_once(cluster.create_topics, [NewTopic(**{"name": "t", **new})])
    assert isinstance(result, ClusterError)
    assert "t" not in cluster.topics
    return result.code


class TestCreating:
    def test_is_there_after_a_crash_with_id_partitions_and_overrides(self, machine):
        cluster = machine.start()
        topic = cluster.create_topic("t", 2, {"retention.ms": "5"})
        assert topic.config.retention_ms == 5
        assert cluster.by_id[topic.id] is topic
        assert {p.topic_id for p in topic.led_here} == {topic.id}
        again = machine.start()
        assert seen(again) == seen(cluster)
        assert again.topics["t"].find(1).config.retention_ms == 5

    def test_defaults_are_the_brokers(self, machine):
        assert len(machine.start().create_topic("t").led_here) == 3

    def test_one_that_is_being_made_is_not_asked_for_again(self, machine):
        journal = SlowJournal()
        cluster = machine.start(journal)
        cluster._membership.is_shared = False
        for _ in range(3):
            with pytest.raises(ClusterError, match="the topic t is still being created"):
                cluster.create_topic("t")
        assert cluster.changes._changes._waiting == deque()
        journal.answer()
        assert set(cluster.topics) == {"t"}

    def test_many_topics_are_one_write(self, machine):
        cluster = machine.start()
        before = cluster.changes.written_count
        results = at_once(cluster.create_topics, [NewTopic(f"t{i}", 1) for i in range(50)])
        assert all(isinstance(result, StoredTopic) for result in results)
        assert cluster.changes.written_count == before + 1
        assert len(machine.start().topics) == 50

    @pytest.mark.parametrize(
        ("new", "code"),
        [
            ({"name": ""}, ErrorCode.INVALID_TOPIC_EXCEPTION),
            ({"name": "a/b"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
            ({"name": KRAFT_METADATA}, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            ({"partition_count": 0}, ErrorCode.INVALID_PARTITIONS),
            ({"partition_count": -5}, ErrorCode.INVALID_PARTITIONS),
            ({"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
            ({"replication_factor": 3}, ErrorCode.INVALID_REPLICATION_FACTOR),
            ({"replication_factor": -2}, ErrorCode.INVALID_REPLICATION_FACTOR),
            ({"partition_count": MAX_PARTITIONS_PER_REQUEST + 1}, ErrorCode.POLICY_VIOLATION),
            ({"overrides": {"no.such": "1"}}, ErrorCode.INVALID_CONFIG),
            ({"overrides": {"retention.ms": "abc"}}, ErrorCode.INVALID_CONFIG),
            ({"overrides": {"retention.ms": None}}, ErrorCode.INVALID_CONFIG),
            ({"assignments": {0: [1]}, "partition_count": 1}, ErrorCode.INVALID_REQUEST),
            ({"assignments": {0: [1]}, "replication_factor": 1}, ErrorCode.INVALID_REQUEST),
            ({"assignments": {0: [1], 2: [1]}}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            ({"assignments": {0: [2]}}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            ({"assignments": {0: [1, 1]}}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            ({"assignments": {0: []}}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ],
    )
    def test_refusals(self, machine, new, code):
        assert refused(machine.start(), **new) == code
        assert not machine.folders

    @pytest.mark.parametrize("factor", [2, 3])
    def test_copies_are_accepted_where_a_setting_says_so(self, factor):
        cluster = Machine(horolog_replication_factor_accept="true").start()
        (topic,) = at_once(cluster.create_topics, [NewTopic("t", 2, factor)])
        assert topic.partition_count == 2
        (refusal,) = at_once(cluster.create_topics, [NewTopic("u", 2, 4)])
        assert refusal.code == ErrorCode.INVALID_REPLICATION_FACTOR

    def test_an_assignment_gives_the_count(self, machine):
        cluster = machine.start()
        at_once(cluster.create_topics, [NewTopic("t", assignments={1: [1], 0: [1]})])
        assert cluster.topics["t"].partition_count == 2

    def test_existing_and_colliding_names(self, machine):
        cluster = machine.start()
        results = at_once(cluster.create_topics, [NewTopic("a.b"), NewTopic("a_b"), NewTopic("a-b")])
        assert [type(result) for result in results] == [StoredTopic, ClusterError, StoredTopic]
        assert results[1].code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert at_once(cluster.create_topics, [NewTopic("a.b")])[0].code == ErrorCode.TOPIC_ALREADY_EXISTS
        again = machine.start()
        assert at_once(again.create_topics, [NewTopic("a_b")])[0].code == ErrorCode.INVALID_TOPIC_EXCEPTION

    def test_the_bound_on_a_request_counts_all_its_topics(self, machine):
        cluster = machine.start()
        half = MAX_PARTITIONS_PER_REQUEST // 2 + 1
        results = at_once(cluster.create_topics, [NewTopic("a", half), NewTopic("b", half)], validate_only=True)
        assert [isinstance(result, ClusterError) for result in results] == [False, True]

    def test_validating_changes_nothing(self, machine):
        cluster = machine.start()
        (result,) = at_once(cluster.create_topics, [NewTopic("t", 2)], validate_only=True)
        assert (result.name, result.partition_count) == ("t", 2)
        assert not cluster.topics
        assert not machine.folders
        assert not machine.start().topics

    def test_a_file_that_cannot_be_written_refuses_all(self, machine):
        cluster = machine.start()
        machine.storage.fail("sync", JOURNAL)
        results = at_once(cluster.create_topics, [NewTopic("a"), NewTopic("b")])
        assert [result.code for result in results] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
        assert not cluster.topics
        assert not machine.folders
        assert cluster.create_topic("a")

    def test_folders_that_cannot_be_made_refuse_their_topic_alone(self, machine):
        cluster = machine.start()
        machine.logs.fail_creating.add(("bad", 1))
        results = at_once(cluster.create_topics, [NewTopic("bad", 3), NewTopic("good", 1)])
        assert results[0].code == ErrorCode.KAFKA_STORAGE_ERROR
        assert set(cluster.topics) == {"good"}
        assert set(machine.folders) == {("good", 0)}
        assert set(machine.start().topics) == {"good"}

    def test_a_crash_between_file_and_folders_is_finished_by_the_start(self, machine):
        cluster = machine.start()
        topic = cluster.create_topic("t", 3)
        del machine.folders["t", 1], machine.folders["t", 2]
        again = machine.start()
        assert seen(again) == seen(cluster)
        assert machine.folders == {("t", index): topic.id for index in range(3)}


class TestDeleting:
    def test_nothing_to_delete_is_done_without_a_write(self, machine):
        cluster = machine.start()
        cluster.create_topic("t")
        before = cluster.changes.written_count
        assert at_once(cluster.delete_topics, {}) == {}
        assert (cluster.changes.written_count, list(cluster.topics)) == (before, ["t"])

    def test_is_gone_after_a_crash_and_the_name_is_free(self, machine):
        cluster = machine.start()
        first = cluster.create_topic("t.x", 2)
        delete_topic(cluster, "t.x")
        assert not machine.folders
        assert first.id not in cluster.by_id
        assert cluster.create_topic("t_x").id != first.id
        assert set(machine.start().topics) == {"t_x"}

    def test_unknown(self, machine):
        with pytest.raises(ClusterError) as caught:
            delete_topic(machine.start(), "t")
        assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_a_file_that_cannot_be_written_keeps_the_topic(self, machine):
        cluster = machine.start()
        cluster.create_topic("t")
        machine.storage.fail("sync", JOURNAL, times=2)
        with pytest.raises(ClusterError) as caught:
            delete_topic(cluster, "t")
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert set(cluster.topics) == {"t"}
        assert seen(machine.start()) == seen(cluster)

    def test_folders_that_are_left_go_at_the_next_start(self, machine):
        cluster = machine.start()
        cluster.create_topic("t", 3)
        machine.logs.fail_deleting.add(("t", 1))
        delete_topic(cluster, "t")
        assert set(machine.folders) == {("t", 1)}
        again = machine.start()
        assert not again.topics
        assert not machine.folders

    def test_a_new_topic_of_the_same_name_is_not_taken_for_the_old_one(self, machine):
        cluster = machine.start()
        cluster.create_topic("t", 3)
        machine.logs.fail_deleting.add(("t", 2))
        delete_topic(cluster, "t")
        new = cluster.create_topic("t", 1)
        again = machine.start()
        assert again.topics["t"].id == new.id
        assert again.topics["t"].partition_count == 1

    def test_what_was_deleted_may_be_restored_from_a_backup(self, machine):
        cluster = machine.start()
        topic = cluster.create_topic("t", 1)
        delete_topic(cluster, "t")
        machine.folders["t", 0] = topic.id
        assert machine.start().topics["t"].id == topic.id


class TestGrowing:
    def test_grows_and_stays_grown(self, machine):
        cluster = machine.start()
        cluster.create_topic("t", 1, {"retention.ms": "5"})
        assert at_once(cluster.add_partitions, [NewPartitions("t", 3)]) == {}
        assert [p.config.retention_ms for p in cluster.topics["t"].led_here] == [5, 5, 5]
        assert seen(machine.start()) == seen(cluster)

    @pytest.mark.parametrize(
        ("wanted", "code"),
        [
            (NewPartitions("t", 2), ErrorCode.INVALID_PARTITIONS),
            (NewPartitions("t", 1), ErrorCode.INVALID_PARTITIONS),
            (NewPartitions("t", -1), ErrorCode.INVALID_PARTITIONS),
            (NewPartitions("u", 5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (NewPartitions("t", 3, [[1], [1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            (NewPartitions("t", 3, [[7]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
            (NewPartitions("t", MAX_PARTITIONS_PER_REQUEST + 3), ErrorCode.POLICY_VIOLATION),
        ],
    )
    def test_refusals(self, machine, wanted, code):
        cluster = machine.start()
        cluster.create_topic("t", 2)
        assert at_once(cluster.add_partitions, [wanted])[wanted.name].code == code
        assert len(machine.folders) == 2

    def test_validating_changes_nothing(self, machine):
        cluster = machine.start()
        cluster.create_topic("t", 2)
        assert at_once(cluster.add_partitions, [NewPartitions("t", 3)], validate_only=True) == {}
        assert cluster.topics["t"].partition_count == 2

    def test_a_failing_disk_leaves_what_could_be_made(self, machine):
        cluster = machine.start()
        cluster.create_topic("t", 1)
        machine.logs.fail_creating.add(("t", 2))
        assert at_once(cluster.add_partitions, [NewPartitions("t", 4)])["t"].code == ErrorCode.KAFKA_STORAGE_ERROR
        assert cluster.topics["t"].partition_count == 2
        assert seen(machine.start()) == seen(cluster)

    def test_a_file_that_cannot_be_written_changes_nothing(self, machine):
        cluster = machine.start()
        cluster.create_topic("t", 1)
        machine.storage.fail("sync", JOURNAL, times=2)
        assert at_once(cluster.add_partitions, [NewPartitions("t", 4)])["t"].code == ErrorCode.KAFKA_STORAGE_ERROR
        assert cluster.topics["t"].partition_count == 1
        assert seen(machine.start()) == seen(cluster)


class TestConfiguring:
    def test_a_topic_changes_at_once_and_for_good(self, machine):
        cluster = machine.start()
        topic = cluster.create_topic("t", 2)
        at_once(cluster.alter_topic_configs, {"t": {"segment.ms": "77"}})
        assert {topic.config.segment_ms, *(p.config.segment_ms for p in topic.led_here)} == {77}
        again = machine.start().topics["t"]
        assert again.overrides == {"segment.ms": "77"}
        assert again.find(0).config.segment_ms == 77

    @pytest.mark.parametrize("overrides", [{"segment.ms": "abc"}, {"no.such": "1"}])
    def test_a_refused_change_changes_nothing(self, machine, overrides):
        cluster = machine.start()
        cluster.create_topic("t")
        cluster.create_topic("u")
        with pytest.raises(ClusterError) as caught:
            at_once(cluster.alter_topic_configs, {"u": {"segment.ms": "5"}, "t": overrides})
        assert caught.value.code == ErrorCode.INVALID_CONFIG
        assert cluster.topics["u"].overrides == {}

    def test_a_change_that_is_not_on_the_disk_is_none(self, machine):
        cluster = machine.start()
        cluster.create_topic("t")
        machine.storage.fail("sync", JOURNAL, times=2)
        with pytest.raises(ClusterError):
            at_once(cluster.alter_topic_configs, {"t": {"segment.ms": "5"}})
        assert cluster.topics["t"].overrides == {}
        assert seen(machine.start()) == seen(cluster)

    def test_broker_settings_change_topics_without_an_override(self, machine):
        cluster = machine.start()
        cluster.create_topic("plain")
        cluster.create_topic("own", overrides={"segment.bytes": "5000"})
        told = []
        cluster.on_settings_changed = told.append
        at_once(cluster.alter_broker_configs, "1", {"log.segment.bytes": "9000"})
        at_once(cluster.alter_broker_configs, "", {"log.segment.bytes": "8000"})
        assert cluster.topics["plain"].find(0).config.segment_bytes == 9000
        assert cluster.topics["own"].find(0).config.segment_bytes == 5000
        assert told[-1] is cluster.settings
        assert cluster.settings.log_segment_bytes == 9000
        again = machine.start()
        assert again.settings.log_segment_bytes == 9000
        at_once(again.alter_broker_configs, "1", {})
        assert again.topics["plain"].find(0).config.segment_bytes == 8000

    def test_a_broker_setting_that_a_topic_cannot_live_with_is_refused(self, machine):
        cluster = machine.start()
        cluster.create_topic("t", overrides={"max.compaction.lag.ms": "1000"})
        with pytest.raises(ClusterError) as caught:
            at_once(cluster.alter_broker_configs, "", {"log.cleaner.min.compaction.lag.ms": "2000"})
        assert caught.value.code == ErrorCode.INVALID_REQUEST
        assert cluster.settings.log_cleaner_min_compaction_lag_ms == 0

    @pytest.mark.parametrize("configs", [{"node.id": "5"}, {"no.such": "1"}, {"log.segment.bytes": "x"}])
    def test_broker_settings_that_may_not_change(self, machine, configs):
        cluster = machine.start()
        with pytest.raises(ClusterError) as caught:
            at_once(cluster.alter_broker_configs, "1", configs)
        assert caught.value.code == ErrorCode.INVALID_REQUEST
        assert cluster.broker_configs == {}

    def test_settings_that_a_start_no_longer_takes_are_left_out_with_a_warning(self, machine, caplog):
        cluster = machine.start()
        cluster.create_topic("t", overrides={"retention.ms": "5"})
        stored = {"": {"log.segment.bytes": "9000", "dropped.key": "1"}}
        cluster._file.save(
            [StoredTopic("t", bytes(range(16)), 1, {"dropped.key": "1", "retention.ms": "-1"})], stored, 0, {}
        )
        with caplog.at_level(logging.WARNING):
            again = machine.start()
        assert again.settings.log_segment_bytes == 9000
        assert again.topics["t"].config.segment_bytes == 9000
        assert again.topics["t"].overrides == {"retention.ms": "-1"}
        assert again.topics["t"].find(0).config.retention_ms == -1
        assert caplog.text.count("dropped.key") == 2

    def test_topics_with_equal_overrides_share_their_configuration(self, machine):
        cluster = machine.start()
        a, b = (cluster.create_topic(name, overrides={"segment.ms": "5", "retention.ms": "7"}) for name in "ab")
        assert a.config is b.config


def test_settings_of_this_broker_and_of_another_differ_in_what_was_changed_while_running(machine):
    cluster = machine.start()
    me = cluster.settings.node_id
    at_once(cluster.alter_broker_configs, "", {"log.retention.ms": "70"})
    at_once(cluster.alter_broker_configs, str(me), {"log.retention.ms": "71"})
    at_once(cluster.alter_broker_configs, str(me + 1), {"message.max.bytes": "2000"})
    mine, others = cluster.settings_of(str(me)), cluster.settings_of(str(me + 1))
    assert mine is cluster.settings
    assert (mine.log_retention_ms, others.log_retention_ms) == (71, 70)
    assert (mine.message_max_bytes, others.message_max_bytes) == (1048588, 2000)


BOB, LIST = StoredRule("user", "bob", {"salt": "c2FsdA"}), StoredRule("acl", "a", {"host": "*"})


class TestRules:
    def test_a_change_is_durable_and_told(self, machine):
        cluster, told = machine.start(), []
        cluster.rule_watchers.append(told.append)
        at_once(cluster.change_rules, lambda rules: RulesChanged((BOB, LIST)) if not rules else None)
        assert told == [{BOB.id: BOB, LIST.id: LIST}]
        assert cluster.rules("user") == {"bob": BOB}
        again = machine.start()
        assert again.state.rules == told[0]
        at_once(again.change_rules, lambda _: RulesChanged(removed=frozenset([BOB.id])))
        assert (again.rules("user"), again.rules("acl")) == ({}, {"a": LIST})
        assert machine.start().rules("user") == {}

    def test_a_refusal_and_a_failed_write_change_nothing(self, machine):
        cluster, told = machine.start(), []
        cluster.rule_watchers.append(told.append)
        refusal = ClusterError(ErrorCode.INVALID_REQUEST, "no")
        with pytest.raises(ClusterError, match="no"):
            at_once(cluster.change_rules, lambda _: refusal)
        machine.storage.fail("sync", JOURNAL, times=2)
        with pytest.raises(ClusterError) as caught:
            at_once(cluster.change_rules, lambda _: RulesChanged((BOB,)))
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert (told, cluster.state.rules) == ([], {})

    def test_no_start_goes_on_without_rules_that_were_there_unless_told_to(self, machine):
        cluster = machine.start()
        at_once(cluster.change_rules, lambda _: RulesChanged((BOB, LIST)))
        cluster.changes.close()
        path = f"/data/{FILE_NAME}"
        machine.storage.write_atomically(path, machine.storage.read_all(path).replace(b"c2FsdA", b"c2FsdB"))
        for _ in range(2):
            with pytest.raises(DataFolderError, match=r"horolog\.lost\.rules\.accept"):
                machine.start()
        usual, machine.settings = machine.settings, Machine(horolog_lost_rules_accept="true").settings
        assert list(machine.start().state.rules) == [LIST.id]
        machine.settings = usual
        assert list(machine.start().state.rules) == [LIST.id]


class TestSharingAJournal:
    """Others write it, too, and it takes a while."""

    @pytest.fixture
    def journal(self):
        return SlowJournal()

    @pytest.fixture
    def cluster(self, machine, journal):
        return machine.start(journal)

    def test_what_others_have_changed_is_there_once_it_is_caught_up_with(self, cluster, journal):
        told = []
        cluster.rule_watchers.append(told.append)
        journal.entries.append(RulesChanged((BOB,)))
        assert cluster.rules("user") == {}
        cluster.changes.catch_up()
        assert (cluster.rules("user"), told) == ({"bob": BOB}, [{BOB.id: BOB}])

    def test_a_topic_that_is_still_being_made_is_there_later(self, cluster, journal):
        with pytest.raises(ClusterError, match="still being created") as refused:
            cluster.create_topic("t", 1)
        assert refused.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        journal.answer()
        assert cluster.topics["t"].partition_count == 1


class TestAdopting:
    def test_folders_of_another_broker(self, machine, caplog):
        topic_id = bytes(range(16))
        machine.folders.update(
            {("kafka", 0): topic_id, ("kafka", 1): topic_id, ("old", 0): None, (KRAFT_METADATA, 0): None}
        )
        with caplog.at_level(logging.WARNING):
            cluster = machine.start()
        assert {name: topic.partition_count for name, topic in cluster.topics.items()} == {"kafka": 2, "old": 1}
        assert cluster.topics["kafka"].id == topic_id
        assert len(cluster.topics["old"].id) == 16
        assert "taken over" in caplog.text
        assert "missing" not in caplog.text
        assert seen(machine.start()) == seen(cluster)
        assert (KRAFT_METADATA, 0) in machine.folders

    def test_gaps_between_partitions_are_filled(self, machine, caplog):
        machine.folders["t", 2] = bytes(range(16))
        with caplog.at_level(logging.WARNING):
            cluster = machine.start()
        assert cluster.topics["t"].partition_count == 3
        assert "partitions without a folder start empty: 0, 1" in caplog.text

    @pytest.mark.parametrize("known", [False, True])
    def test_folders_that_only_look_like_partitions_are_left_alone(self, machine, caplog, known):
        if known:
            machine.start().create_topic("backup", 2)
        machine.folders["backup", 20240101] = None
        with caplog.at_level(logging.WARNING):
            cluster = machine.start()
        assert {name: topic.partition_count for name, topic in cluster.topics.items()} == (
            {"backup": 2} if known else {}
        )
        assert "20240101" in caplog.text
        assert machine.folders["backup", 20240101] is None
        if known:
            refusal = at_once(cluster.add_partitions, [NewPartitions("backup", 3)])["backup"]
        else:
            (refusal,) = at_once(cluster.create_topics, [NewTopic("backup")])
        assert refusal.code == ErrorCode.POLICY_VIOLATION

    def test_a_copied_folder_gets_an_id_of_its_own(self, machine):
        cluster = machine.start()
        topic = cluster.create_topic("a", 1)
        machine.folders["b", 0] = topic.id
        again = machine.start()
        assert again.topics["a"].id == topic.id
        assert again.topics["b"].id != topic.id
        delete_topic(again, "b")
        assert set(machine.folders) == {("a", 0)}

    def test_a_damaged_line_loses_settings_but_no_topic_and_nothing_of_it_goes(self, machine, caplog):
        cluster = machine.start()
        cluster.create_topic("t", 2, {"segment.ms": "5"})
        cluster.create_topic("u", 1, {"segment.ms": "6"})
        cluster.changes.close()
        machine.storage.write_atomically(
            PATH, machine.storage.read_all(PATH).replace(b'"segment.ms": "5"', b'"segment.ms": "7"')
        )
        with caplog.at_level(logging.WARNING):
            again = machine.start()
        assert again.topics["t"].partition_count == 2
        assert again.topics["t"].overrides == {SETTINGS_UNKNOWN: "true"}
        config = again.topics["t"].config
        assert (config.delete, config.compact) == (False, False)
        assert again.topics["t"].id == cluster.topics["t"].id
        assert again.topics["u"].overrides == {"segment.ms": "6"}
        assert "damaged" in caplog.text
        caplog.clear()
        machine.start()
        assert "damaged" not in caplog.text

    def test_an_untouched_folder_is_not_written(self, machine):
        cluster = machine.start()
        cluster.create_topic("t")
        cluster.changes.close()
        before = machine.storage.stat(PATH)
        machine.storage.fail("sync", JOURNAL, times=2)
        machine.start()
        assert machine.storage.stat(PATH) == before


class TestProducerIds:
    def test_never_repeat_whatever_happens(self, machine):
        given = []
        for count in (1, PRODUCER_ID_BLOCK_SIZE, 3, PRODUCER_ID_BLOCK_SIZE + 7):
            cluster = machine.start()
            given += [cluster.producer_ids.take() for _ in range(count)]
        assert len(set(given)) == len(given)
        assert given == sorted(given)
        assert given[0] == 0

    def test_are_reserved_by_the_block(self, machine):
        cluster = machine.start()
        cluster.producer_ids.take()
        machine.storage.fail("sync", JOURNAL, times=2)
        for _ in range(PRODUCER_ID_BLOCK_SIZE - 1):
            cluster.producer_ids.take()
        with pytest.raises(ClusterError):
            cluster.producer_ids.take()
        assert cluster.producer_ids.take() == PRODUCER_ID_BLOCK_SIZE

    def test_after_the_file_is_lost_they_go_on_where_no_counter_has_been(self, machine):
        cluster = machine.start()
        cluster.create_topic("t")
        before = [cluster.producer_ids.take() for _ in range(5)]
        cluster.changes.close()
        machine.storage.remove(PATH)
        machine.storage.sync_dir("/data")
        assert machine.start().producer_ids.take() > max(before) + 1_000_000

    def test_are_others_each_time_the_file_is_lost_though_no_time_has_passed(self, machine):
        cluster = machine.start()
        cluster.create_topic("t")
        given = []
        for _ in range(3):
            cluster.changes.close()
            machine.storage.remove(PATH)
            machine.storage.sync_dir("/data")
            cluster = machine.start()
            given += [cluster.producer_ids.take() for _ in range(PRODUCER_ID_BLOCK_SIZE)]
        assert len(set(given)) == len(given)


def test_a_topic_that_cannot_be_made_is_raised(machine):
    cluster = machine.start()
    with pytest.raises(ClusterError) as caught:
        cluster.create_topic("t", 0)
    assert caught.value.code == ErrorCode.INVALID_PARTITIONS


def test_every_change_counts_as_one_write(machine):
    cluster = machine.start()
    before = cluster.changes.written_count
    cluster.create_topic("t")
    cluster.create_topic("u")
    assert cluster.changes.written_count - before == 2
    assert repr(cluster) == "<Cluster the-cluster: 2 topics, 6 partitions>"


class TestLeading:
    def given_to(self, cluster, node, epoch):
        change = LeadsChanged((((cluster.topics["t"].id, 1), Lead(node, epoch)),))
        assert at_once(cluster.changes.make, lambda _: change) == {}

    def test_a_partition_goes_to_another_broker_and_comes_back(self, machine):
        cluster = machine.start()
        topic = cluster.create_topic("t", 2)
        told = []
        cluster.on_led = lambda *place: told.append(("here", *place))
        cluster.on_led_elsewhere = lambda *place: told.append(("elsewhere", *place))
        among(cluster, 2)
        partition = topic.find(1)
        self.given_to(cluster, 2, 4)
        assert topic.find(1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        at_once(cluster.alter_topic_configs, {"t": {"retention.ms": "5"}})
        self.given_to(cluster, 1, 5)
        assert topic.find(1) is partition
        assert (partition.leader_epoch, partition.config.retention_ms) == (5, 5)
        assert told == [("elsewhere", "t", 1), ("here", "t", 1)]


class TestAFolderThatIsReadableAgain:
    """Its line in the file was lost, and it did not say whose it is: the start gave the topic an id of its own."""

    ID = bytes(range(16))

    @pytest.fixture
    def cluster(self, machine, monkeypatch):
        machine.folders.update({("t", 0): None, ("t", 1): None})
        opened = FakeLogs.open

        def failing(logs, config_of):
            opened(logs, config_of)
            for partition in logs.partitions.values():
                partition.condition.go_offline("bad sector")

        with monkeypatch.context() as patched:
            patched.setattr(FakeLogs, "open", failing)
            return machine.start()

    def read(self, cluster, index, topic_id=None):
        partition = cluster.topics["t"].find(index)
        partition.condition.state, partition.topic_id = SERVING, topic_id
        cluster.reopened(partition)

    def test_the_topic_has_the_id_that_lies_there(self, machine, cluster):
        machine.folders["t", 1] = self.ID
        self.read(cluster, 1, self.ID)
        assert cluster.by_id == {self.ID: cluster.topics["t"]}
        self.read(cluster, 0)
        assert machine.folders == {("t", 0): self.ID, ("t", 1): self.ID}
        assert machine.start().topics["t"].id == self.ID

    def test_folders_without_an_id_get_the_topics_once_all_are_read(self, machine, cluster):
        self.read(cluster, 0)
        assert set(machine.folders.values()) == {None}
        self.read(cluster, 1)
        assert set(machine.folders.values()) == {cluster.topics["t"].id}

    def test_a_topic_that_has_its_id_keeps_it(self, cluster):
        other = cluster.create_topic("other", 1)
        before = other.id
        other.find(0).topic_id = self.ID
        cluster.reopened(other.find(0))
        cluster.reopened(new_partition("no topic", 0, other.config, self.ID))
        assert other.id == other.find(0).topic_id == before
        assert cluster.by_id[before] is other
