"""Changes of the cluster are carried out step by step: folders are made and removed, settings taken up, leads changed."""

import pytest

from horolog.broker.cluster.cluster_state import Lead, LeadsChanged, RulesChanged, TopicsFound
from horolog.broker.cluster.new_topics import NewPartitions, NewTopic
from horolog.broker.cluster.served_topics import are_gone, folders_of, topic_id_of
from horolog.broker.log.partition import closing
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.stored_rules import StoredRule
from horolog.protocol.errors import ErrorCode
from tests.support.at_once import at_once, delete_topic
from tests.support.crew import Crew
from tests.support.members import among
from tests.unit.broker.cluster.cluster_stand_ins import Machine


@pytest.fixture
def machine():
    return Machine()


@pytest.fixture
def cluster(machine):
    return machine.start()


def test_a_topic_is_served_from_its_making_to_its_deletion(machine, cluster):
    topic = cluster.create_topic("t", 2)
    assert cluster.by_id[topic.id] is topic
    assert set(machine.folders) == {("t", 0), ("t", 1)}
    delete_topic(cluster, "t")
    assert (cluster.topics, cluster.by_id, machine.folders) == ({}, {}, {})


def test_a_topic_of_which_a_folder_cannot_be_made_leaves_none(machine, cluster):
    machine.logs.fail_creating.add(("t", 1))
    (error,) = at_once(cluster.create_topics, [NewTopic("t", 3)])
    assert (error.code, error.message) == (ErrorCode.KAFKA_STORAGE_ERROR, "the topic's files could not be created")
    assert (cluster.topics, machine.folders) == ({}, {})


def test_a_topic_grows_as_far_as_its_folders_can_be_made(machine, cluster):
    topic = cluster.create_topic("t", 1)
    machine.logs.fail_creating.add(("t", 2))
    (error,) = at_once(cluster.add_partitions, [NewPartitions("t", 4)]).values()
    assert error.message == "the partition's files could not be created"
    assert topic.partition_count == 2


def test_a_folder_that_cannot_be_removed_is_told(machine, cluster):
    cluster.create_topic("t", 2)
    machine.logs.fail_deleting.add(("t", 0))
    at_once(cluster.delete_topics, {"t": cluster.topics["t"].id})
    assert set(machine.folders) == {("t", 0)}
    assert set(cluster.state.deleting) == {"t"}


def test_settings_reach_topics(cluster):
    topic = cluster.create_topic("t", 1)
    told = []
    cluster.on_settings_changed = told.append
    at_once(cluster.alter_topic_configs, {"t": {"segment.ms": "5000"}})
    at_once(cluster.alter_broker_configs, "", {"log.retention.ms": "7"})
    assert (topic.config.segment_ms, topic.config.retention_ms) == (5000, 7)
    assert told == [cluster.settings]
    with pytest.raises(ClusterError):
        cluster.topic_config({"segment.ms": "soon"})


def test_a_topic_may_turn_out_to_have_another_id(cluster):
    topic = cluster.create_topic("t", 1)
    record = cluster.state.topics["t"]
    cluster.changes.note(TopicsFound((type(record)("t", b"x" * 16, 1, {}),)))
    assert (topic.id, cluster.by_id) == (b"x" * 16, {b"x" * 16: topic})


def test_leads_come_and_go(cluster):
    topic, told = cluster.create_topic("t", 2), []
    cluster.on_led = lambda *place: told.append(("led", *place))
    cluster.on_led_elsewhere = lambda *place: told.append(("lost", *place))
    among(cluster, 2)
    for node, epoch in ((2, 4), (1, 5)):
        change = LeadsChanged((((topic.id, 1), Lead(node, epoch)),))
        assert at_once(cluster.changes.make, lambda _, change=change: change) == {}
    assert told == [("lost", "t", 1), ("led", "t", 1)]
    assert topic.find(1).leader_epoch == 5


def test_partitions_that_are_made_elsewhere_are_told(cluster):
    told = []
    cluster.on_led_elsewhere = lambda *place: told.append(place)
    ids = iter([b"n" * 16])
    cluster._new_topic_id = lambda: next(ids)
    among(cluster, 2)
    cluster.changes.note(LeadsChanged((((b"n" * 16, 0), Lead(2, 0)), ((b"n" * 16, 1), Lead(1, 0)))))
    topic = cluster.create_topic("t", 2)
    assert told == [("t", 0)]
    assert [one.index for one in topic.led_here] == [1]


def test_rules_reach_those_who_watch_them(cluster):
    told = []
    cluster.rule_watchers.append(told.append)
    rule = StoredRule("acl", "a", {})
    assert at_once(cluster.change_rules, lambda _: RulesChanged((rule,))) is None
    assert told == [{("acl", "a"): rule}]


class TestWithFolders:
    @pytest.fixture
    def crew(self):
        crew = Crew((1, 2)).start()
        at_once(crew.clusters[1].create_topics, [NewTopic("t", 2)])
        return crew

    def led(self, crew):
        cluster = crew.clusters[1]
        return cluster, cluster.topics["t"].led_here[0]

    def test_a_withdrawn_partition_is_not_found_until_it_is_led_again(self, crew):
        cluster, partition = self.led(crew)
        topic, index = cluster.topics["t"], partition.index
        assert cluster.withdraw("t", index) is partition
        assert topic.find(index) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert cluster.withdraw("t", index) is None
        closing.close_files(partition)
        partition.condition.go_offline("withdrawn")
        cluster.lead_again(topic.id, index, was_clean=False)
        assert topic.find(index).directory == partition.directory

    def test_a_partition_that_another_leads_without_a_hand_over_is_closed(self, crew, caplog):
        cluster, partition = self.led(crew)
        change = LeadsChanged((((cluster.topics["t"].id, partition.index), Lead(2, 7)),))
        assert at_once(cluster.changes.make, lambda _: change) == {}
        assert not partition.condition.takes_appends
        assert "it was not closed" in caplog.text
        assert crew.partition("t", partition.index).leader_epoch == 7

    def test_folders_of_deleted_topics_are_removed(self, crew, caplog):
        cluster, partition = self.led(crew)
        logs, storage = crew.logs[1], crew.storage
        found = {(name, index): path for name, index, path in folders_of(logs)}
        assert set(found) == {("t", 0), ("t", 1)}
        assert topic_id_of(storage, found["t", 0]) == cluster.topics["t"].id
        assert topic_id_of(storage, "/data/nothing-0") is None
        cluster.withdraw("t", partition.index)
        storage.fail("rename", partition.directory, times=1)
        cluster.remove_withdrawn(partition)
        assert "cannot be removed" in caplog.text
        cluster.remove_withdrawn(partition)
        assert not storage.exists(partition.directory)

    def test_topics_are_gone_once_the_disk_says_so(self, crew, caplog):
        self.led(crew)
        logs, storage = crew.logs[1], crew.storage
        assert not are_gone(logs, {"t", "other"})
        storage.fail("sync_dir", "/data")
        assert not are_gone(logs, {"other"})
        assert "may remain" in caplog.text
        assert are_gone(logs, {"other"})
