"""Who is believed about a topic's settings, and which folders have to change their names."""

import pytest

from horolog.broker.adoption import adopted_file, kraft_log, kraft_state, takeover
from horolog.broker.adoption.takeover import Origin
from horolog.broker.config.settings import Settings
from horolog.broker.config.topic_settings import SETTINGS_UNKNOWN
from horolog.broker.log.files import checkpoints
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.on_record.cluster_file import ClusterFile, StoredTopic, parse
from horolog.protocol.messages.metadata_records import PartitionChangeRecord, RemoveTopicRecord
from horolog.protocol.uuids import show_uuid
from tests.support.kraft import FOLDER, config, frame, log, topic

ID, OTHER, NEW = bytes(range(16)), bytes(range(16, 32)), bytes(range(32, 48))
UNKNOWN = {SETTINGS_UNKNOWN: "true"}


class Machine:
    def __init__(self):
        self.storage = MemoryStorage()
        self.storage.make_dir("/data")
        self.messages = []

    def folder(self, name, topic_id=None):
        self.storage.make_dir(f"/data/{name}")
        if topic_id is not None:
            checkpoints.save_topic_id(self.storage, f"/data/{name}", topic_id)
        return self

    def kafka(self, *messages):
        """A Kafka works on the folder."""
        if not self.messages:
            self.storage.make_dir(f"/data/{FOLDER}")
        self.messages += messages
        self.storage.write_atomically(f"/data/{FOLDER}/{0:020}.log", log(self.messages))
        return self

    def plan(self):
        stored = ClusterFile(self.storage, "/data").load()
        return takeover.plan(self.storage, ["/data"], stored, Settings(), lambda: NEW)

    def take_over(self):
        """What the start writes; then nothing is news."""
        taken = self.plan()
        for renaming in taken.renamings:
            renaming.carry_out(self.storage)
        ClusterFile(self.storage, "/data").save(taken.topics.values(), taken.broker_configs, 0, {})
        if taken.is_news:
            adopted_file.save(self.storage, "/data", taken.kraft, taken.written)
        return taken

    def alter(self, name, overrides):
        """The owner of horolog changes a topic."""
        stored = ClusterFile(self.storage, "/data").load()
        old = stored.topics[name]
        stored.topics[name] = StoredTopic(name, old.id, old.partition_count, overrides)
        self.save(stored)

    def save(self, stored):
        ClusterFile(self.storage, "/data").save(stored.topics.values(), stored.broker_configs, 0, {})


@pytest.fixture
def machine():
    return Machine()


def settings_of(taken):
    return {name: (one.overrides, taken.origins[name]) for name, one in taken.topics.items()}


def test_a_kraft_folder_has_the_settings_of_its_metadata(machine):
    machine.kafka(*topic("a", ID, 2, {"retention.ms": "-1"}), *topic("b", OTHER)).folder("a-0", ID).folder("b-0", OTHER)
    taken = machine.plan()
    assert settings_of(taken) == {"a": ({"retention.ms": "-1"}, Origin.KRAFT), "b": ({}, Origin.KRAFT)}
    assert taken.topics["a"].partition_count == 2
    assert taken.topics["a"].id == ID
    assert taken.is_news
    assert not taken.unknown


def test_a_folder_of_the_time_of_zookeeper_has_none(machine):
    machine.folder("a-0").folder("a-1").folder("__consumer_offsets-0").folder("__transaction_state-0")
    machine.folder("__share_group_state-0")
    taken = machine.plan()
    assert taken.unknown == ["a"]
    assert taken.topics["a"].overrides == UNKNOWN
    assert taken.topics["__consumer_offsets"].overrides["cleanup.policy"] == "compact"
    assert taken.topics["__transaction_state"].overrides["cleanup.policy"] == "compact"
    assert taken.topics["__share_group_state"].overrides["retention.ms"] == "-1"
    assert machine.take_over().unknown == ["a"]
    assert settings_of(machine.plan())["a"] == (UNKNOWN, Origin.UNKNOWN)


def test_damaged_metadata_leaves_all_settings_unknown_and_keeps_what_is_proved(machine):
    machine.kafka(*topic("a", ID, 1, {"retention.ms": "9"}), *topic("__consumer_offsets", OTHER))
    path = f"/data/{FOLDER}/{0:020}.log"
    broken = bytearray(machine.storage.read_all(path) + log([config("a", "x", "y")], first=5))
    broken[-2] ^= 1
    machine.storage.write_atomically(path, bytes(broken))
    machine.folder("a-0", ID).folder("__consumer_offsets-0", OTHER)
    taken = machine.plan()
    assert settings_of(taken)["a"] == ({"retention.ms": "9", **UNKNOWN}, Origin.UNKNOWN)
    assert settings_of(taken)["__consumer_offsets"][0]["cleanup.policy"] == "compact"
    assert any("are not records" in note for note in taken.notes)


def test_topics_of_other_nodes_are_not_made_and_those_of_this_one_are(machine):
    elsewhere = topic("elsewhere", OTHER)
    elsewhere[-1].replicas = [2]
    machine.kafka(*topic("here", ID), *elsewhere)
    taken = machine.plan()
    assert list(taken.topics) == ["here"]
    assert taken.absent == ["elsewhere"]


def test_a_topic_deleted_here_stays_deleted_while_no_kafka_has_been_there(machine):
    machine.kafka(*topic("a", ID), *topic("b", OTHER)).folder("a-0", ID).folder("b-0", OTHER)
    machine.take_over()
    stored = ClusterFile(machine.storage, "/data").load()
    del stored.topics["a"]
    machine.save(stored)
    machine.storage.remove("/data/a-0/partition.metadata")
    machine.storage.remove_dir("/data/a-0")
    assert list(machine.plan().topics) == ["b"]
    machine.kafka(config("b", "retention.ms", "1"))
    assert list(machine.plan().topics) == ["b"]


def test_folders_of_a_deleted_topic_or_of_one_before_are_set_aside(machine):
    machine.kafka(
        *topic("a", ID), RemoveTopicRecord(topic_id=ID), *topic("b", OTHER), RemoveTopicRecord(topic_id=OTHER)
    )
    machine.kafka(*topic("a", NEW)).folder("a-0", ID).folder("b-0", OTHER).folder("c-0", bytes(16))
    taken = machine.take_over()
    assert {one.folder.name for one in taken.renamings} == {"a-0", "b-0"}
    assert all(one.name.endswith("-stray") for one in taken.renamings)
    assert taken.topics["a"].id == NEW
    assert set(taken.topics) == {"a", "c"}
    assert taken.unknown == ["c"]
    assert not machine.plan().renamings


def test_what_a_kafka_changes_later_counts_and_what_was_changed_here_stays(machine):
    settings = {"retention.ms": "1", "segment.ms": "2"}
    machine.kafka(*topic("a", ID, 1, settings), *topic("b", OTHER)).folder("a-0", ID).folder("b-0", OTHER)
    machine.take_over()
    machine.alter("a", {"retention.ms": "1000", "segment.ms": "2", "max.message.bytes": "5"})
    machine.alter("b", {"retention.ms": "3"})
    machine.kafka(config("a", "segment.ms", "20"), config("", "log.retention.ms", "77", 4), *topic("new", NEW))
    taken = machine.plan()
    assert taken.topics["a"].overrides == {"retention.ms": "1000", "segment.ms": "20", "max.message.bytes": "5"}
    assert taken.origins["a"] is Origin.CHANGED
    assert taken.topics["b"].overrides == {"retention.ms": "3"}
    assert taken.broker_configs[""] == {"log.retention.ms": "77"}
    assert set(taken.topics) == {"a", "b", "new"}
    machine.take_over()
    again = machine.plan()
    assert not again.is_news
    assert again.topics["a"].overrides == taken.topics["a"].overrides


def test_a_topic_that_a_kafka_deletes_or_makes_anew_later(machine):
    machine.kafka(*topic("a", ID, 1, {"retention.ms": "1"}), *topic("b", OTHER)).folder("a-0", ID).folder("b-0", OTHER)
    machine.take_over()
    machine.kafka(RemoveTopicRecord(topic_id=ID), RemoveTopicRecord(topic_id=OTHER), *topic("b", NEW))
    taken = machine.plan()
    assert {name: one.id for name, one in taken.topics.items()} == {"b": NEW}
    assert {one.folder.name for one in taken.renamings} == {"a-0", "b-0"}


def test_a_topic_made_here_gets_its_folders_back(machine):
    """A Kafka that knows nothing of it has called them stray."""
    machine.kafka(*topic("a", ID)).folder("a-0", ID)
    machine.take_over()
    stored = ClusterFile(machine.storage, "/data").load()
    stored.topics["ours"] = StoredTopic("ours", OTHER, 1, {"retention.ms": "-1"})
    machine.save(stored)
    hexes = "0" * 32
    machine.folder(f"ours-0.{hexes}-stray", OTHER).folder(f"a-0.{hexes}-stray", OTHER)
    machine.kafka(config("a", "retention.ms", "1"))
    taken = machine.take_over()
    assert [(one.folder.name, one.name) for one in taken.renamings] == [(f"ours-0.{hexes}-stray", "ours-0")]
    assert taken.topics["ours"].overrides == {"retention.ms": "-1"}
    assert machine.storage.is_dir("/data/ours-0")


def test_a_lost_file_makes_all_unknown_that_may_have_been_changed(machine):
    machine.kafka(*topic("a", ID, 1, {"retention.ms": "1"}), *topic("__consumer_offsets", OTHER)).folder("a-0", ID)
    machine.folder("__consumer_offsets-0", OTHER)
    machine.take_over()
    machine.storage.remove("/data/horolog-cluster")
    taken = machine.plan()
    assert settings_of(taken)["a"] == ({"retention.ms": "1", **UNKNOWN}, Origin.UNKNOWN)
    assert taken.unknown == ["a"]


def test_a_lost_head_makes_unknown_what_the_broker_decided(machine):
    """What a topic says of itself stays."""
    own = {"cleanup.policy": "delete", "retention.ms": "1", "retention.bytes": "2"}
    topics = {"own": own, "compacted": {"cleanup.policy": "compact"}, "inherits": {"retention.ms": "1"}}
    made = [StoredTopic(name, bytes([n] * 16), 1, overrides) for n, (name, overrides) in enumerate(topics.items(), 1)]
    ClusterFile(machine.storage, "/data").save(made, {"": {"log.retention.ms": "-1"}}, 0, {})
    data = bytearray(machine.storage.read_all("/data/horolog-cluster"))
    data[20] ^= 1
    machine.storage.write_atomically("/data/horolog-cluster", bytes(data))
    assert not parse(bytes(data)).head_found
    assert machine.plan().unknown == ["inherits"]


def test_a_record_without_a_note_of_the_takeover_completes_itself(machine):
    """As of a release that did not read the metadata, or after a crash between the two files."""
    machine.kafka(*topic("a", ID, 1, {"retention.ms": "-1", "segment.ms": "5"})).folder("a-0", ID)
    machine.take_over()
    machine.storage.remove("/data/horolog-adopted")
    machine.alter("a", {"segment.ms": "7"})
    assert machine.plan().topics["a"].overrides == {"retention.ms": "-1", "segment.ms": "7"}


def test_an_unchanged_log_is_not_read_again(machine, monkeypatch):
    machine.kafka(*topic("a", ID)).folder("a-0", ID)
    machine.take_over()
    monkeypatch.setattr(kraft_log, "read", None)
    monkeypatch.setattr(kraft_state, "load", None)
    assert not machine.plan().is_news


HERE, AWAY = bytes(range(1, 17)), bytes(range(2, 18))


def lies_in(messages, *directories):
    """The messages, the last of which tell the data folders of their partitions, as they do from version 1 on."""
    count = len(directories)
    for record, directory in zip(messages[-count:], directories, strict=True):
        record.directories = [directory]
    return messages[:-count] + [frame(one, 1) for one in messages[-count:]]


def test_where_kafka_has_put_partitions_is_taken_over(machine):
    """A partition that lies in a folder that is away must not be made anew in one that is here."""
    nowhere = bytes(16)
    machine.kafka(*lies_in(topic("a", ID, 4), HERE, AWAY, AWAY, nowhere)).folder("a-0", ID)
    taken = machine.take_over()
    assert taken.topics["a"].folders == {show_uuid(HERE): [0], show_uuid(AWAY): [1, 2]}
    moved = PartitionChangeRecord(partition_id=2, topic_id=ID, directories=[HERE])
    grown = lies_in(topic("a", ID, 5)[-1:], AWAY)
    machine.kafka(frame(moved, 1), *grown)
    assert machine.plan().topics["a"].folders == {show_uuid(HERE): [0], show_uuid(AWAY): [1, 2, 4]}
