"""What workers leave becomes what a broker alone reads, whatever was cut off in between, and the other way round."""

import random

import pytest

from horolog.broker.cluster import file_journal, found_journals, settling, worker_checkpoints
from horolog.broker.cluster.cluster_state import Lead, LeadsChanged, RulesChanged
from horolog.broker.cluster.entry_lines import Head, encode_entry
from horolog.broker.cluster.left_folders import merge_what_workers_left
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.log.files import checkpoints, log_starts
from horolog.broker.log.partition import log_start
from horolog.broker.log.storage import DataFolderError, MemoryStorage, StorageFault
from horolog.broker.log.storage.memory_disk import PowerCut
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.cluster_file import ClusterFile
from horolog.broker.on_record.stored_rules import StoredRule
from horolog.protocol.errors import ErrorCode
from tests.support.at_once import at_once, delete_topic
from tests.support.crew import Crew
from tests.support.crew_records import Alone, append, filled, values
from tests.support.log_model import NOW_MS


@pytest.fixture
def crew():
    return Crew((1, 2))


def names_in(crew, folder="/data"):
    return set(crew.storage.list_dir(folder))


OF_WORKERS = ("horolog-checkpoint.", "horolog-journal", ".kafka_cleanshutdown.", "cleaner-offset-checkpoint.")


def left_by_workers(crew, folder="/data"):
    return [name for name in names_in(crew, folder) if name.startswith(OF_WORKERS)]


class TestFromOneToSeveralAndBack:
    def test_nothing_is_lost_on_the_way(self, crew):
        alone = Alone(crew)
        topic = alone.cluster.create_topic("a", 3, {"retention.ms": "77"})
        for index in range(3):
            append(topic.find(index), b"alone")
        alone.close()
        seen = [b"alone"]
        for nodes in ((1, 2), (1, 2, 3), (1, 2)):
            crew.nodes = nodes
            crew.start()
            for index in range(3):
                partition = crew.partition("a", index)
                assert values(partition) == seen
                assert partition.leader_epoch == 0  # every stop was clean
                append(partition, b"%d" % len(nodes))
            seen.append(b"%d" % len(nodes))
            assert crew.clusters[1].by_id.keys() == {topic.id}
            crew.stop()
            assert crew.merge()
        assert left_by_workers(crew) == []
        assert ".kafka_cleanshutdown" in names_in(crew)
        alone = Alone(crew)
        found = alone.cluster.topics["a"]
        assert (found.id, found.overrides) == (topic.id, {"retention.ms": "77"})
        for index in range(3):
            assert values(found.find(index)) == seen
            assert found.find(index).leader_epoch == 0

    def test_a_broker_alone_takes_up_what_was_changed_before_a_crash(self, crew, caplog):
        filled(crew)
        at_once(crew.clusters[2].alter_broker_configs, "", {"log.retention.ms": "5000"})
        first = crew.clusters[1].producer_ids.take()
        delete_topic(crew.clusters[2], "b")
        crew.kill()
        crew.storage.die()
        alone = Alone(crew)
        assert left_by_workers(crew) == []
        assert set(alone.cluster.topics) == {"a"}
        assert alone.cluster.topics["a"].overrides == {"retention.ms": "77"}
        assert alone.cluster.broker_configs == {"": {"log.retention.ms": "5000"}}
        assert alone.cluster.producer_ids.take() == first + 1000
        assert [values(one) for one in alone.cluster.topics["a"].led_here] == [[b"a0"], [b"a1"], [b"a2"]]
        assert {one.leader_epoch for one in alone.cluster.topics["a"].led_here} == {1}

    def test_workers_take_up_what_other_workers_have_left(self, crew):
        filled(crew)
        ids = {name: topic.id for name, topic in crew.clusters[1].topics.items()}
        crew.kill()
        crew.nodes = (1, 2, 3)
        crew.start()
        assert {name: topic.id for name, topic in crew.clusters[3].topics.items()} == ids
        assert values(crew.partition("a", 1)) == [b"a1"]

    def test_several_folders_keep_their_partitions(self):
        crew = Crew((1, 2), folders=("/disks/a", "/disks/b"))
        filled(crew)
        before = {index: crew.partition("a", index).directory for index in range(3)}
        assert len({directory.rpartition("/")[0] for directory in before.values()}) == 2
        crew.stop()
        assert crew.merge()
        alone = Alone(crew)
        topic = alone.cluster.topics["a"]
        assert {one.index: one.directory for one in topic.led_here} == before
        alone.close()
        assert left_by_workers(crew, "/disks/a") == left_by_workers(crew, "/disks/b") == []


class TestCleanStops:
    def test_one_worker_that_was_killed_makes_the_stop_unclean(self, crew):
        filled(crew)
        crew.kill(2)
        crew.stop()
        assert not crew.merge()
        assert ".kafka_cleanshutdown" not in names_in(crew)
        assert left_by_workers(crew) == []

    def test_a_stop_that_nobody_merged_is_clean_all_the_same(self, crew):
        filled(crew)
        crew.stop()
        crew.start()
        assert crew.partition("a", 0).leader_epoch == 0

    def test_a_worker_that_comes_back_after_a_kill_has_crashed(self, crew):
        filled(crew)
        crew.stop()
        crew.start()
        index = crew.clusters[2].topics["a"].led_here[0].index
        append(crew.partition("a", index), b"more")
        crew.kill(2)
        crew.begin(2)
        assert crew.partition("a", index).leader_epoch == 1
        assert crew.clusters[1].state.epoch(crew.clusters[1].topics["a"].id, index) in (0, 1)
        crew.clusters[1].changes.catch_up()
        assert crew.clusters[1].state.epoch(crew.clusters[1].topics["a"].id, index) == 1

    def test_a_worker_that_comes_back_after_a_clean_end_has_not(self, crew):
        filled(crew)
        index = crew.clusters[2].topics["a"].led_here[0].index
        crew.stop(2)
        crew.begin(2)
        assert crew.partition("a", index).leader_epoch == 0
        crew.kill(2)
        crew.begin(2)
        assert crew.partition("a", index).leader_epoch == 1


class TestStartsOfLogs:
    def start_at(self, crew, name, index, offset):
        partition = crew.partition(name, index)
        log_start.delete_records_before(partition, offset)
        for logs in crew.logs.values():
            assert logs.write_log_starts() == set()

    def test_deleted_records_stay_deleted(self, crew):
        crew.start()
        at_once(crew.clusters[1].create_topics, [NewTopic("a", 2)])
        for index in range(2):
            append(crew.partition("a", index), b"0", b"1", b"2")
        self.start_at(crew, "a", 0, 2)
        crew.kill()
        crew.storage.die()
        crew.start()
        assert crew.partition("a", 0).log_start_offset == 2
        self.start_at(crew, "a", 1, 1)
        crew.kill(1)
        crew.begin(1)
        assert [crew.partition("a", index).log_start_offset for index in range(2)] == [2, 1]
        crew.stop()
        assert crew.merge()
        assert log_starts.load(crew.storage, "/data").offsets == {("a", 0): 2, ("a", 1): 1}
        alone = Alone(crew)
        assert [one.log_start_offset for one in alone.cluster.topics["a"].led_here] == [2, 1]

    def test_those_of_a_deleted_topic_hide_nothing_of_the_next_one(self, crew):
        alone = Alone(crew)
        topic = alone.cluster.create_topic("a", 2)
        for partition in topic.led_here:
            append(partition, b"0", b"1", b"2")
            log_start.delete_records_before(partition, 2)
        alone.close()
        crew.start()
        delete_topic(crew.clusters[1], "a")
        at_once(crew.clusters[2].create_topics, [NewTopic("a", 2)])
        for index in range(2):
            append(crew.partition("a", index), b"new", b"newer")
        crew.kill(2)
        crew.begin(2)
        assert [crew.partition("a", index).log_start_offset for index in range(2)] == [0, 0]
        crew.kill()
        alone = Alone(crew)
        assert [values(one) for one in alone.cluster.topics["a"].led_here] == [[b"new", b"newer"]] * 2


class TestJournals:
    def test_leads_are_kept_for_workers_and_mean_nothing_to_a_broker_alone(self, crew):
        filled(crew)
        topic = crew.clusters[1].topics["b"]
        led_by = crew.clusters[1].state.leader(topic.id, 0)
        place, lead = (topic.id, 0), Lead(3 - led_by, 1)
        crew.stop()
        found = found_journals.find(crew.storage, ["/data"])
        line = encode_entry(len(found.read.entries) + 1, LeadsChanged(((place, lead),)))
        file = crew.storage.open("/data/horolog-journal")
        file.pwritev([line], file.size())
        crew.start()
        assert crew.clusters[1].state.leads == {place: lead}
        assert crew.clusters[lead.node].topics["b"].led_here
        crew.stop()
        assert crew.merge()
        assert ClusterFile(crew.storage, "/data").load().leads == {place: tuple(lead)}
        alone = Alone(crew)
        assert alone.cluster.state.leads == {}
        assert len(alone.cluster.topics["b"].led_here) == 1

    def test_rules_are_those_of_all_and_go_on_with_a_broker_alone(self, crew):
        filled(crew)
        rule = StoredRule("acl", "a", {"host": "*"})
        at_once(crew.clusters[2].change_rules, lambda _: RulesChanged((rule,)))
        assert [cluster.rules("acl") for cluster in crew.clusters.values()] == [{"a": rule}] * 2
        crew.kill()
        crew.start()
        assert [cluster.rules("acl") for cluster in crew.clusters.values()] == [{"a": rule}] * 2
        crew.stop()
        assert crew.merge()
        assert Alone(crew).cluster.rules("acl") == {"a": rule}

    def test_a_rule_that_is_lost_before_a_merge_is_missed_after_it(self, crew):
        filled(crew)
        at_once(crew.clusters[1].change_rules, lambda _: RulesChanged((StoredRule("acl", "a", {}),)))
        crew.stop()
        assert crew.merge()
        crew.start()
        at_once(crew.clusters[1].create_topics, [NewTopic("c", 1)])
        crew.kill()
        path = "/data/horolog-cluster"
        crew.storage.write_atomically(path, crew.storage.read_all(path).replace(b'"acl"', b'"acL"'))
        crew.merge()
        with pytest.raises(DataFolderError, match="cannot be read"):
            Alone(crew)

    def test_a_journal_that_is_in_the_file_already_counts_no_more(self, crew):
        filled(crew)
        crew.kill()
        journal = crew.storage.read_all("/data/horolog-journal")
        alone = Alone(crew)
        delete_topic(alone.cluster, "b")
        alone.close()
        crew.storage.write_atomically("/data/horolog-journal", journal)
        crew.start()
        assert set(crew.clusters[1].topics) == {"a"}

    def test_where_the_cluster_file_is_gone_the_journal_has_what_came_since(self, crew):
        filled(crew)
        crew.stop()
        crew.merge()
        crew.start()
        at_once(crew.clusters[1].create_topics, [NewTopic("c", 1, overrides={"retention.ms": "7"})])
        crew.kill()
        crew.storage.remove("/data/horolog-cluster")
        alone = Alone(crew)
        assert set(alone.cluster.topics) == {"a", "b", "c"}
        assert alone.cluster.topics["c"].overrides == {"retention.ms": "7"}
        assert alone.cluster.topics["a"].settings_unknown

    def test_without_its_head_settings_are_not_believed(self, crew):
        filled(crew)
        crew.stop()
        crew.merge()
        crew.start()
        at_once(crew.clusters[1].create_topics, [NewTopic("c", 1)])
        crew.kill()
        crew.storage.corrupt("/data/horolog-cluster", 20, 1)
        alone = Alone(crew)
        assert set(alone.cluster.topics) == {"a", "b", "c"}
        assert alone.cluster.topics["a"].settings_unknown
        assert not alone.cluster.topics["c"].settings_unknown

    def test_damage_is_told(self, crew, caplog):
        filled(crew)
        crew.kill()
        data = crew.storage.read_all("/data/horolog-journal")
        crew.storage.corrupt("/data/horolog-journal", data.index(b"TopicsCreated"), 1)
        hurt = crew.storage.read_all("/data/horolog-journal")
        crew.start()
        assert "is damaged: behind entry" in caplog.text
        assert crew.storage.read_all("/data/horolog-journal.damaged") == hurt

    def test_a_checkpoint_that_is_damaged_is_left_out(self, crew, caplog):
        filled(crew)
        crew.stop()
        crew.storage.write_atomically("/data/horolog-checkpoint.2", b"damaged")
        assert not crew.merge()
        assert "horolog-checkpoint.2: the checksum does not match; its content is ignored" in caplog.text
        assert crew.storage.read_all("/data/horolog-checkpoint.damaged") == b"damaged"
        assert not merge_what_workers_left(crew.storage, crew.folders), "the copy is no worker's file"


class TestLosses:
    """What may have been in a journal of which something is gone does no harm: nothing is deleted, no id is given out twice."""

    @pytest.fixture
    def crew(self, crew):
        filled(crew)
        self.given = crew.clusters[1].producer_ids.take()
        crew.stop()
        return crew

    def check(self, crew):
        cluster = Alone(crew).cluster
        assert {name for name, topic in cluster.topics.items() if topic.settings_unknown} == {"a", "b"}
        assert cluster.producer_ids.take() >= self.given + 1000
        assert [values(one) for one in cluster.topics["a"].led_here] == [[b"a0"], [b"a1"], [b"a2"]]

    @pytest.mark.parametrize("left", [None, b"", b"nonsense\n"], ids=["missing", "empty", "garbage"])
    def test_nothing_is_left_of_it(self, crew, left, caplog):
        crew.storage.remove("/data/horolog-journal")
        if left is not None:
            crew.storage.write_atomically("/data/horolog-journal", left)
        crew.merge()
        assert "is damaged" in caplog.text
        self.check(crew)

    def test_its_last_lines_are_gone_that_workers_have_applied(self, crew, caplog):
        lines = crew.storage.read_all("/data/horolog-journal").splitlines(keepends=True)
        crew.storage.write_atomically("/data/horolog-journal", b"".join(lines[:-2]))
        crew.merge()
        assert "2 entries are missing" in caplog.text
        self.check(crew)

    @pytest.mark.parametrize("is_damaged", [True, False], ids=["damaged", "older"])
    def test_a_worker_does_not_begin_with_less_than_the_others_know(self, is_damaged):
        crew = Crew((1, 2)).start()
        crew.stop()
        assert crew.merge()
        older = crew.storage.read_all("/data/horolog-cluster")
        for name in ("a", "b"):
            crew.start()
            at_once(crew.clusters[1].create_topics, [NewTopic(name, 1)])
            crew.stop()
            assert crew.merge()
        crew.start()
        crew.kill(2)
        if is_damaged:
            data = crew.storage.read_all("/data/horolog-cluster")
            crew.storage.corrupt("/data/horolog-cluster", data.index(b'"name"'), 1)
        else:
            crew.storage.write_atomically("/data/horolog-cluster", older)
        with pytest.raises(DataFolderError, match="stop all workers and start again"):
            crew.begin(2)


def test_a_journal_that_begins_with_the_whole_state_goes_on_from_that(crew, monkeypatch):
    monkeypatch.setattr(file_journal, "GROWTH_BYTES", 1000)
    filled(crew)
    for number in range(40):
        at_once(crew.clusters[1 + number % 2].alter_topic_configs, {"a": {"retention.ms": str(number)}})
    assert found_journals.find(crew.storage, crew.folders).head.whole is not None
    state = crew.clusters[1].state
    crew.kill()
    alone = Alone(crew).cluster
    assert {name: (topic.id, topic.overrides) for name, topic in alone.topics.items()} == {
        name: (topic.id, topic.overrides) for name, topic in state.topics.items()
    }
    assert alone.topics["a"].overrides == {"retention.ms": "39"}


class TestTopicsThatNobodyHasOnRecord:
    def test_folders_of_a_kafka_become_topics(self, crew):
        crew.start()
        crew.stop()
        crew.merge()
        for index in range(2):
            crew.storage.make_dir(f"/data/k-{index}")
        checkpoints.save_topic_id(crew.storage, "/data/k-0", b"k" * 16)
        crew.start()
        topic = crew.clusters[2].topics["k"]
        assert (topic.id, topic.partition_count, topic.settings_unknown) == (b"k" * 16, 2, True)
        assert checkpoints.load_topic_id(crew.storage, "/data/k-1") == b"k" * 16

    def test_a_topic_without_folders_gets_them_where_it_is_led(self, crew):
        filled(crew)
        crew.stop()
        crew.merge()
        for name in crew.storage.list_dir("/data/b-0"):
            crew.storage.remove(f"/data/b-0/{name}")
        crew.storage.remove_dir("/data/b-0")
        crew.start()
        assert values(crew.partition("b", 0)) == []

    def test_folders_of_a_deleted_topic_are_removed(self, crew):
        filled(crew)
        topic_id = crew.clusters[1].topics["b"].id
        crew.storage.fail("rename", "b-0")
        crew.clusters[1].delete_topics({"b": topic_id}, lambda _: None)
        assert crew.storage.is_dir("/data/b-0")
        assert crew.clusters[1].state.deleting == {"b": {topic_id}}
        crew.kill()
        crew.start()
        assert not crew.storage.is_dir("/data/b-0")
        assert crew.clusters[1].state.deleting == {}
        for job in crew.logs[1].removal_jobs(NOW_MS):
            job()
        assert not [name for name in names_in(crew) if name.endswith("-delete")]

    def test_a_folder_that_cannot_be_read_is_no_reason_to_stay_down(self, crew):
        crew.start()
        crew.stop()
        crew.merge()
        crew.storage.make_dir("/data/k-0")
        crew.storage.fail("read", "k-0/partition.metadata", times=2)
        crew.start()
        assert crew.clusters[1].topics["k"].partition_count == 1

    def test_a_damaged_id_is_written_again(self, crew):
        filled(crew)
        topic_id = crew.clusters[1].topics["b"].id
        crew.stop()
        crew.merge()
        crew.storage.write_atomically("/data/b-0/partition.metadata", b"nonsense")
        crew.start()
        assert checkpoints.load_topic_id(crew.storage, "/data/b-0") == topic_id


def test_the_newer_journal_of_two_folders_is_followed():
    crew = Crew((1,), folders=("/disks/a", "/disks/b"))
    crew.start()
    at_once(crew.clusters[1].create_topics, [NewTopic("a", 1)])
    crew.stop()
    found_journals.begin(crew.storage, "/disks/b", Head(0, (1,)))
    assert crew.merge()
    assert left_by_workers(crew, "/disks/b") == []
    assert set(ClusterFile(crew.storage, "/disks/a").load().topics) == {"a"}


def cut_in_merge(changes, chance, *, unclean):
    """The crew after workers have ended and the power went during the merge; whether it had come to its end."""
    crew = Crew((1, 2))
    filled(crew)
    at_once(crew.clusters[1].create_topics, [NewTopic("c", 2)])
    for index in range(2):
        append(crew.partition("c", index), b"0", b"1", b"2")
    partition = crew.partition("c", 1)
    log_start.delete_records_before(partition, 2)
    for logs in crew.logs.values():
        logs.write_log_starts()
    delete_topic(crew.clusters[2], "b")
    if unclean:
        crew.kill()
        crew.storage.die()
    else:
        crew.stop()
    crew.storage.power_off_after(changes)
    try:
        crew.merge()
    except PowerCut:
        crew.storage.crash(chance)
        return crew, False
    crew.storage.crash(chance)
    return crew, True


@pytest.mark.parametrize("unclean", [False, True])
@pytest.mark.parametrize("alone", [False, True])
def test_a_merge_can_be_cut_off_anywhere(alone, unclean):
    changes, is_over = 0, False
    while not is_over:
        changes += 1
        crew, is_over = cut_in_merge(changes, random.Random(changes), unclean=unclean)
        if alone:
            topics = Alone(crew).cluster.topics
            found = {(name, one.index): one for name, topic in topics.items() for one in topic.led_here}
        else:
            crew.start()
            found = {("a", index): crew.partition("a", index) for index in range(3)}
            found |= {("c", index): crew.partition("c", index) for index in range(2)}
        assert {key: values(one) for key, one in found.items()} == {
            ("a", 0): [b"a0"], ("a", 1): [b"a1"], ("a", 2): [b"a2"], ("c", 0): [b"0", b"1", b"2"], ("c", 1): [b"2"],
        }, changes  # fmt: skip
    assert changes > 20


@pytest.mark.parametrize("survivors", [None, 3, 4])
def test_a_settling_can_be_cut_off_anywhere(survivors):
    changes, is_over = 0, False
    while not is_over:
        changes += 1
        crew = filled(Crew((1, 2)))
        delete_topic(crew.clusters[2], "b")
        crew.kill()
        crew.storage.die()
        crew.nodes = (1, 2, 3)
        crew.storage.power_off_after(changes)
        try:
            crew.settle()
            is_over = True
        except PowerCut:
            pass
        crew.storage.crash(None if survivors is None else random.Random(survivors * 1000 + changes))
        crew.start()
        assert [values(crew.partition("a", index)) for index in range(3)] == [[b"a0"], [b"a1"], [b"a2"]], changes
        assert set(crew.clusters[3].topics) == {"a"}
    assert changes > 10


def test_a_disk_that_does_not_take_it_is_told(crew):
    filled(crew)
    crew.stop()
    crew.storage.fail("write", "recovery-point")
    with pytest.raises(StorageFault):
        crew.merge()
    assert crew.merge()


class TestFullDisks:
    """Folders that cannot be settled for lack of room are served all the same, and nothing of them is lost."""

    @pytest.fixture
    def full(self, crew):
        def fill():
            crew.kill()
            crew.storage.die()
            crew.storage.capacity_bytes = crew.storage.used_bytes()

        return fill

    @pytest.mark.parametrize("nodes", [(1, 2), (1, 2, 3)])
    def test_workers_go_on_from_what_others_have_left(self, crew, full, nodes, caplog):
        filled(crew)
        full()
        crew.nodes = nodes
        crew.start()
        assert "no free space to merge the changes of workers" in caplog.text
        assert [values(crew.partition("a", index)) for index in range(3)] == [[b"a0"], [b"a1"], [b"a2"]]
        assert crew.clusters[1].topics["a"].overrides == {"retention.ms": "77"}
        crew.storage.capacity_bytes = None
        crew.clusters[2].create_topic("late", 1, {})
        crew.kill(nodes[-1])
        crew.stop()
        assert not crew.merge(), "one of them was killed"
        assert left_by_workers(crew) == []
        assert set(Alone(crew).cluster.topics) == {"a", "b", "late"}

    @pytest.mark.parametrize("stopped", [(), (1,), (1, 2)])
    def test_others_do_not_go_on_where_a_stop_was_clean_for_some(self, crew, full, stopped):
        filled(crew)
        if stopped:
            crew.stop(*stopped)
        full()
        crew.nodes = (1, 2, 3)
        if stopped:
            with pytest.raises(StorageFault, match="No space left"):
                crew.start()
        else:
            crew.start()

    def test_nobody_goes_on_from_a_journal_that_is_damaged(self, crew, full):
        filled(crew)
        full()
        crew.storage.corrupt("/data/horolog-journal", crew.storage.file_node("/data/horolog-journal").size - 10, 1)
        with pytest.raises(StorageFault, match="No space left"):
            crew.start()

    def test_nobody_goes_on_from_a_record_that_is_damaged(self, crew, full):
        filled(crew)
        crew.stop()
        crew.merge()
        crew.start()
        full()
        data = crew.storage.read_all("/data/horolog-cluster")
        crew.storage.corrupt("/data/horolog-cluster", data.index(b'"name"'), 1)
        with pytest.raises(StorageFault, match="No space left"):
            crew.start()

    def test_what_a_worker_has_left_is_kept_where_others_join_it(self, crew, full):
        filled(crew)
        log_start.delete_records_before(crew.partition("a", 0), 1)
        for logs in crew.logs.values():
            logs.write_log_starts()
        full()
        crew.nodes = (1, 2, 3)
        crew.start()
        assert crew.partition("a", 0).log_start_offset == 1
        assert worker_checkpoints.nodes_in(crew.storage, "/data") == [1, 2, 3]

    def test_a_journal_that_cannot_be_begun_for_another_reason_is_one_to_stay_down(self, crew):
        crew.storage.fail("create", "horolog-journal", times=100)
        with pytest.raises(StorageFault):
            crew.start()

    def test_another_fault_of_the_disk_is_a_reason_to_stay_down(self, crew):
        filled(crew)
        crew.kill()
        crew.storage.die()
        crew.storage.fail("create", "horolog-log-starts", times=100)
        with pytest.raises(StorageFault):
            crew.start()

    def test_workers_follow_a_broker_alone_without_a_journal_until_there_is_room(self, crew, caplog):
        alone = Alone(crew)
        topic = alone.cluster.create_topic("a", 3, {})
        for index in range(3):
            append(topic.find(index), b"alone")
        alone.close()
        crew.storage.capacity_bytes = crew.storage.used_bytes()
        crew.start()
        assert "no free space for the journal of workers" in caplog.text
        assert [values(crew.partition("a", index)) for index in range(3)] == [[b"alone"]] * 3
        with pytest.raises(ClusterError) as refused:
            crew.clusters[2].create_topic("late", 1, {})
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        crew.clusters[1].changes.check_record()
        assert "horolog-journal" not in names_in(crew)
        crew.storage.capacity_bytes = None
        for node in (2, 1, 2, 1):
            crew.clusters[node].changes.check_record()
        crew.clusters[2].create_topic("late", 1, {})
        assert "late" in crew.clusters[1].topics
        crew.stop()
        assert crew.merge()
        assert set(Alone(crew).cluster.topics) == {"a", "late"}

    @pytest.mark.parametrize("killed", [(1,), (2,), (1, 2)])
    def test_workers_that_are_killed_before_there_is_a_journal_come_back_once_there_is_room(self, crew, killed):
        alone = Alone(crew)
        alone.cluster.create_topic("a", 3, {})
        alone.close()
        crew.storage.capacity_bytes = crew.storage.used_bytes()
        crew.start()
        crew.kill(*killed)
        crew.storage.capacity_bytes = None
        for node in killed:
            crew.begin(node)
        for node in (2, 1, 2, 1):
            crew.clusters[node].changes.check_record()
        crew.clusters[2].create_topic("late", 1, {})
        assert "late" in crew.clusters[1].topics


def test_how_far_workers_have_compacted_is_kept(crew):
    filled(crew)
    crew.stop()
    checkpoints.save_offsets(crew.storage, "/data/cleaner-offset-checkpoint", {("a", 0): 1, ("a", 1): 4})
    checkpoints.save_offsets(crew.storage, "/data/cleaner-offset-checkpoint.1", {("a", 0): 7, ("gone", 0): 3})
    checkpoints.save_offsets(crew.storage, "/data/cleaner-offset-checkpoint.2", {("a", 0): 5, ("a", 2): 2})
    assert crew.merge()
    merged = checkpoints.load_offsets(crew.storage, "/data/cleaner-offset-checkpoint").offsets
    assert {key: merged[key] for key in merged if key != ("a", 1)} == {("a", 0): 7, ("a", 2): 2}


def test_recovery_points_are_those_of_who_led(crew):
    filled(crew)
    crew.stop()
    crew.merge()
    points = checkpoints.load_offsets(crew.storage, "/data/recovery-point-offset-checkpoint").offsets
    ends = checkpoints.load_offsets(crew.storage, "/data/replication-offset-checkpoint").offsets
    assert points == ends == {("a", 0): 1, ("a", 1): 1, ("a", 2): 1, ("b", 0): 1}
    assert worker_checkpoints.nodes_in(crew.storage, "/data") == []


def test_the_stand_in_for_logs_shows_itself(crew):
    crew.start()
    assert repr(settling.ClosedLogs(crew.logs[1].folders, MemoryStorage())).startswith("<ClosedLogs of [")
