"""What a start makes of the cluster file and the folders, over the real log: nothing that can be served is lost or given away."""

import logging

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.adoption import adopted_file
from horolog.broker.cluster.cluster_configs import ClusterConfigs
from horolog.broker.cluster.cluster_start import Start, next_producer_id_of
from horolog.broker.config.settings import Settings
from horolog.broker.config.topic_settings import SETTINGS_UNKNOWN
from horolog.broker.log.files import checkpoints, log_starts
from horolog.broker.log.manager import LogManager
from horolog.broker.log.storage import DataFolderError, MemoryStorage
from horolog.broker.log.storage.memory_disk import ALL
from horolog.broker.on_record.cluster_file import FILE_NAME, ClusterFile, StoredCluster, StoredTopic
from horolog.broker.on_record.stored_rules import StoredRule
from tests.support.guarded_broker import STANDARD_AUTHORIZER
from tests.support.kraft import FOLDER, log, topic
from tests.support.log_model import NOW_MS, encode

RECORD = f"/data/{FILE_NAME}"
BOB, LIST = StoredRule("user", "bob", {"salt": "c2FsdA"}), StoredRule("acl", "a", {"host": "*"})
ID, OTHER, FRESH = bytes(range(16)), bytes(range(1, 17)), bytes(range(2, 18))


class Machine:
    """One data folder, before a start and after it."""

    def __init__(self):
        self.storage = MemoryStorage()
        self.storage.make_dir("/data")
        self.logs = None
        self.told = []

    def record(self, *topics, broker_configs=None, deleting=None, rules=()):
        ClusterFile(self.storage, "/data").save(topics, broker_configs or {}, 40, deleting or {}, rules=rules)

    def damage(self, before, after):
        """Change bytes of the record, so that a line of it cannot be read."""
        data = self.storage.read_all(RECORD)
        assert before in data
        self.storage.write_atomically(RECORD, data.replace(before, after))

    def folder(self, name, topic_id=None, *, records=0):
        path = f"/data/{name}"
        self.storage.make_dir(path)
        if topic_id is not None:
            checkpoints.save_topic_id(self.storage, path, topic_id)
        if records:
            data = encode(2, 0, [NOW_MS] * records, [b"v"] * records)
            self.storage.write_atomically(f"{path}/{0:020}.log", data)

    def start(self, **settings):
        """The start, and the state that it came to."""
        if self.logs is not None:
            self.logs.abandon()
        self.logs = LogManager(["/data"], self.storage, ManualClock(NOW_MS), Settings())
        configs = ClusterConfigs(Settings(**settings))
        start = Start(self.logs, ClusterFile(self.storage, "/data"), configs, lambda: FRESH)
        return start, start.run(NOW_MS, self.told.append)

    def names(self):
        folders = (name for name in self.storage.list_dir("/data") if self.storage.is_dir(f"/data/{name}"))
        return [name for name in folders if not name.endswith("-delete")]


@pytest.fixture
def machine():
    return Machine()


def stored(name="t", topic_id=ID, count=1, **overrides):
    return StoredTopic(name, topic_id, count, {key.replace("_", "."): value for key, value in overrides.items()})


def ends(start, name="t"):
    return [one.high_watermark for one in start.topics[name].led_here]


def test_an_empty_folder_has_nothing_to_say(machine):
    start, state = machine.start()
    assert (start.topics, dict(state.topics), start.is_news, state.next_producer_id) == ({}, {}, False, 0)
    assert repr(start) == "<Start with 0 topics>"


@pytest.mark.parametrize(("known", "has_topics", "expected"), [(7, True, 7), (7, False, 7), (None, False, 0)])
def test_producer_ids_go_on_where_they_were(known, has_topics, expected):
    assert next_producer_id_of(StoredCluster(next_producer_id=known), lambda: FRESH, has_topics=has_topics) == expected


@pytest.mark.parametrize(("new_id", "first"), [(bytes(16), 2**41), (b"\xff" * 16, 2**41 + 2**62 - 1)])
def test_where_they_are_not_known_they_go_on_where_no_counter_has_been(new_id, first):
    assert next_producer_id_of(StoredCluster(), lambda: new_id, has_topics=True) == first


class TestTopicsOnRecord:
    def test_are_served_with_their_records_and_settings(self, machine):
        machine.record(stored(count=2, retention_ms="-1"))
        machine.folder("t-0", ID, records=3)
        machine.folder("t-1", ID, records=5)
        start, state = machine.start()
        assert ends(start) == [3, 5]
        assert start.topics["t"].find(1).config.retention_ms == -1
        assert (state.topics["t"].id, state.next_producer_id, start.is_news) == (ID, 40, False)

    def test_get_the_folders_that_a_crash_left_out(self, machine, caplog):
        machine.record(stored(count=3))
        machine.folder("t-1", ID, records=2)
        with caplog.at_level(logging.WARNING):
            start, _ = machine.start()
        assert ends(start) == [0, 2, 0]
        assert "partitions without a folder start empty: 0, 2" in caplog.text
        assert [one.topic_id for one in start.topics["t"].led_here] == [ID] * 3

    def test_have_as_many_partitions_as_there_are_folders(self, machine):
        machine.record(stored(count=1))
        machine.folder("t-0", ID)
        machine.folder("t-2", ID, records=1)
        start, state = machine.start()
        assert (ends(start), state.topics["t"].partition_count, start.is_news) == ([0, 0, 1], 3, True)

    def test_write_their_id_into_folders_that_have_none(self, machine):
        machine.record(stored())
        machine.folder("t-0", records=1)
        machine.start()
        assert checkpoints.load_topic_id(machine.storage, "/data/t-0") == ID

    def test_are_served_though_the_id_cannot_be_written(self, machine, caplog):
        machine.record(stored())
        machine.folder("t-0", records=1)
        machine.storage.fail("create", "partition.metadata", times=ALL)
        with caplog.at_level(logging.ERROR):
            start, _ = machine.start()
        assert ends(start) == [1]
        assert "could not be written into its folder" in caplog.text

    def test_keep_to_themselves_a_folder_that_cannot_be_a_partition(self, machine, caplog):
        machine.record(stored())
        machine.folder("t-0", ID)
        machine.folder("t-20240101", records=1)
        with caplog.at_level(logging.WARNING):
            start, _ = machine.start()
        assert (start.foreign, len(ends(start))) == ({"t"}, 1)
        assert "[20240101] are not partitions" in caplog.text
        assert "t-20240101" in machine.names()


class TestTopicsThatWereBeingDeleted:
    def test_have_their_folders_removed(self, machine):
        machine.record(deleting={"t": [ID]})
        machine.folder("t-0", ID, records=1)
        start, state = machine.start()
        assert (start.topics, machine.names(), dict(state.deleting), start.is_news) == ({}, [], {}, True)

    def test_are_not_served_where_a_folder_cannot_be_removed(self, machine, caplog):
        machine.record(deleting={"t": [ID]})
        machine.folder("t-0", ID, records=1)
        machine.storage.fail("rename", "/data/t-0", times=ALL)
        with caplog.at_level(logging.ERROR):
            start, _ = machine.start()
        assert (start.topics, machine.logs.partitions) == ({}, {})
        assert "is deleted, but its files cannot be removed" in caplog.text

    def test_leave_alone_what_was_made_anew_under_their_name(self, machine):
        machine.record(stored(topic_id=OTHER), deleting={"t": [ID]})
        machine.folder("t-0", OTHER, records=2)
        start, _ = machine.start()
        assert ends(start) == [2]

    def test_are_removed_though_the_folder_says_only_later_whose_it_is(self, machine):
        """The record is damaged, so that a folder that cannot be read now could be anybody's."""
        machine.record(stored("other", OTHER), deleting={"t": [ID]})
        machine.folder("t-0", ID, records=1)
        machine.folder("other-0", OTHER)
        machine.damage(b'"other"', b'"0ther"')
        machine.storage.fail("read", "t-0/partition.metadata")
        start, _ = machine.start()
        assert set(start.topics) == {"other"}
        assert machine.names() == ["other-0"]


class TestTopicsThatAreNotOnRecord:
    def test_are_found_by_their_folders_and_keep_everything(self, machine, caplog):
        machine.folder("t-0", ID, records=4)
        with caplog.at_level(logging.WARNING):
            start, state = machine.start()
        assert (ends(start), start.topics["t"].id, start.is_news) == ([4], ID, True)
        assert state.topics["t"].overrides == {SETTINGS_UNKNOWN: "true"}
        assert "topic t: its settings are unknown" in caplog.text

    def test_do_not_take_an_id_that_a_topic_has_already(self, machine):
        """A folder was copied under another name."""
        machine.record(stored())
        machine.folder("t-0", ID)
        machine.folder("copy-0", ID, records=1)
        start, _ = machine.start()
        assert {name: one.id for name, one in start.topics.items()} == {"t": ID, "copy": FRESH}

    def test_may_get_another_id_while_their_folder_cannot_be_read(self, machine):
        machine.folder("t-0", ID, records=1)
        machine.storage.fail("read", "t-0/", times=ALL)
        start, state = machine.start()
        assert start.unidentified == set(state.unidentified) == {"t"}
        assert start.topics["t"].find(0).condition.fault

    def test_are_told_to_be_all_there_is_where_the_record_is_lost(self, machine, caplog):
        machine.storage.write_atomically("/data/horolog-log-starts", b"")
        machine.folder("t-0", ID)
        with caplog.at_level(logging.WARNING):
            machine.start()
        assert "is missing: found 1 topic by their folders" in caplog.text


def test_a_damaged_record_is_told_and_written_anew(machine, caplog):
    machine.record(stored(retention_ms="5"), stored("u", OTHER, segment_ms="7"))
    for name, topic_id in (("t-0", ID), ("u-0", OTHER)):
        machine.folder(name, topic_id, records=1)
    machine.damage(b'ms": "5"', b'ms": "6"')
    with caplog.at_level(logging.WARNING):
        start, state = machine.start()
    assert "is damaged" in caplog.text
    assert start.is_news
    assert state.topics["t"].overrides == {SETTINGS_UNKNOWN: "true"}
    assert state.topics["u"].overrides == {"segment.ms": "7"}


class TestRulesOnRecord:
    """Users, access lists and quotas."""

    def test_count_from_the_first_moment(self, machine):
        machine.record(rules=[BOB, LIST])
        start, state = machine.start()
        assert (dict(state.rules), start.is_news) == ({BOB.id: BOB, LIST.id: LIST}, False)

    def test_that_cannot_be_read_end_the_start_before_any_folder_is_touched(self, machine):
        machine.record(rules=[BOB, LIST], deleting={"t": [ID]})
        machine.folder("t-0", ID, records=1)
        machine.damage(b"c2FsdA", b"c2FsdB")
        with pytest.raises(DataFolderError, match=r"1 or more rules .* cannot be read: .*horolog\.lost\.rules\.accept"):
            machine.start()
        assert machine.names() == ["t-0"]

    @pytest.mark.parametrize("left", [None, b""])
    def test_that_may_be_lost_end_the_start_of_who_goes_by_them(self, machine, left):
        machine.record(StoredTopic("t", ID, 1, {}), rules=[BOB])
        machine.folder("t-0", ID)
        machine.start()
        machine.logs.close()
        if left is None:
            machine.storage.remove(RECORD)
        else:
            machine.storage.write_atomically(RECORD, left)
        guarded = {"authorizer_class_name": STANDARD_AUTHORIZER}
        with pytest.raises(DataFolderError, match=r"rules .* may be lost.*horolog\.lost\.rules\.accept=true"):
            machine.start(**guarded)
        _, state = machine.start()
        assert state.rules_in_doubt
        state.save(ClusterFile(machine.storage, "/data"))
        with pytest.raises(DataFolderError, match=r"horolog\.lost\.rules\.accept=true"):
            machine.start(**guarded)
        _, state = machine.start(**guarded, horolog_lost_rules_accept=True)
        assert not state.rules_in_doubt

    def test_that_an_older_copy_of_the_record_may_lack(self, machine, caplog):
        machine.record(StoredTopic("t", ID, 1, {"retention.ms": "5"}), rules=[BOB])
        old = machine.storage.read_all(RECORD)
        machine.folder("t-0", ID)
        machine.storage.write_atomically("/data/horolog-log-starts", log_starts.encode({}, 7))
        with pytest.raises(DataFolderError, match=r"horolog\.lost\.rules\.accept=true"):
            machine.start()
        start, state = machine.start(horolog_lost_rules_accept=True)
        assert "it is an older copy, number 1 of 7" in caplog.text
        assert start.topics["t"].settings_unknown
        assert state.next_producer_id > 1 << 40
        file = ClusterFile(machine.storage, "/data")
        file.load()
        file.go_on_from(7)
        state.save(file)
        assert ClusterFile(machine.storage, "/data").load().number == 8
        assert machine.storage.read_all(RECORD) != old
        machine.start()

    def test_an_empty_folder_has_lost_none(self, machine):
        _, state = machine.start(authorizer_class_name=STANDARD_AUTHORIZER)
        assert not state.rules_in_doubt

    def test_that_are_lost_are_told_and_forgotten_where_that_is_accepted(self, machine, caplog):
        machine.record(rules=[BOB, LIST])
        machine.damage(b"c2FsdA", b"c2FsdB")
        with caplog.at_level(logging.WARNING):
            start, state = machine.start(horolog_lost_rules_accept=True)
        assert (list(state.rules), start.is_news) == ([LIST.id], True)
        assert "1 or more rules (users, access lists, quotas) cannot be read: continuing with the others" in caplog.text


def test_settings_changed_while_running_count_before_any_partition_is_opened(machine, caplog):
    machine.record(stored(), broker_configs={"": {"log.retention.ms": "77", "no.such": "1"}, "1": {}})
    machine.folder("t-0", ID)
    with caplog.at_level(logging.WARNING):
        start, state = machine.start()
    assert start.topics["t"].find(0).config.retention_ms == 77
    assert [one.log_retention_ms for one in machine.told] == [77]
    assert state.broker_configs == {"": {"log.retention.ms": "77"}}
    assert "no.such" in caplog.text
    assert start.is_news


class TestAfterAKafka:
    @pytest.fixture
    def kafka(self, machine):
        """It knows topic `t`, and nothing of `ours`, whose folder it has called stray."""
        machine.storage.make_dir(f"/data/{FOLDER}")
        machine.storage.write_atomically(f"/data/{FOLDER}/{0:020}.log", log(topic("t", ID, 1, {"retention.ms": "9"})))
        machine.record(stored(retention_ms="9"), stored("ours", OTHER))
        machine.folder("t-0", ID, records=1)
        machine.folder(f"ours-0.{'0' * 32}-stray", OTHER, records=2)
        return machine

    def test_a_folder_gets_its_name_back(self, kafka):
        start, _ = kafka.start()
        assert (ends(start), ends(start, "ours")) == ([1], [2])

    def test_a_folder_that_cannot_be_renamed_stays_as_it_is(self, kafka, caplog):
        kafka.storage.fail("rename", "-stray", times=ALL)
        with caplog.at_level(logging.ERROR):
            start, _ = kafka.start()
        assert "could not be renamed" in caplog.text
        assert ends(start) == [1]
        assert f"ours-0.{'0' * 32}-stray" in kafka.names()

    def test_what_it_knew_is_remembered_and_no_news_the_next_time(self, kafka):
        start, _ = kafka.start()
        start.remember()
        before = adopted_file.load(kafka.storage, "/data")
        assert before.state.topics["t"].configs == {"retention.ms": "9"}
        again, _ = kafka.start()
        kafka.storage.fail("create", "horolog-adopted", times=ALL)
        again.remember()
        assert adopted_file.load(kafka.storage, "/data").written == before.written

    def test_a_disk_that_does_not_take_the_note_keeps_nothing_from_starting(self, kafka, caplog):
        start, _ = kafka.start()
        kafka.storage.fail("create", "horolog-adopted", times=ALL)
        with caplog.at_level(logging.ERROR):
            start.remember()
        assert "could not be kept" in caplog.text
        assert adopted_file.load(kafka.storage, "/data") is None


def test_without_a_kafka_there_is_nothing_to_remember(machine):
    start, _ = machine.start()
    start.remember()
    assert adopted_file.load(machine.storage, "/data") is None
