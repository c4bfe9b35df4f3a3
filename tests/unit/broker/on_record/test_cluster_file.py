"""The cluster file: everything written comes back, and damage costs what it hit and nothing else."""

import json
import zlib

import pytest

from horolog.broker.log.storage import DAMAGED_SUFFIX, MemoryStorage, StorageFault
from horolog.broker.log.storage.memory_disk import ALL
from horolog.broker.on_record.checked_lines import encode_line
from horolog.broker.on_record.cluster_file import (
    FILE_NAME,
    MAX_REPORTED_DAMAGES,
    ClusterFile,
    NewerClusterFile,
    Standing,
    StoredTopic,
    parse,
)
from horolog.broker.on_record.stored_rules import StoredRule
from horolog.protocol.uuids import parse_uuid, show_uuid

PATH = f"/data/{FILE_NAME}"
TOPICS = [
    StoredTopic("plain", bytes(range(16)), 3, {}),
    StoredTopic('réglé "x"\n', bytes(range(1, 17)), 1, {"retention.ms": "-1", "cleanup.policy": "compact,delete"}),
    StoredTopic("last", bytes(range(2, 18)), 100, {"segment.bytes": "1000"}),
]
BROKER_CONFIGS = {"": {"log.retention.ms": "5"}, "1": {"message.max.bytes": "77"}}
DELETING = {"gone": {bytes(range(3, 19)), bytes(range(4, 20))}}


@pytest.fixture
def storage():
    storage = MemoryStorage()
    storage.make_dir("/data")
    storage.sync_dir("/")
    return storage


@pytest.fixture
def file(storage):
    return ClusterFile(storage, "/data")


def save(file):
    file.save(TOPICS, BROKER_CONFIGS, 4000, DELETING)


def test_messages_name_the_file_by_its_path(file):
    assert str(file) == "/data/horolog-cluster"


def test_what_was_saved_is_loaded_even_after_a_power_cut(storage, file):
    save(file)
    storage.crash()
    stored = file.load()
    assert list(stored.topics.values()) == TOPICS
    assert (stored.broker_configs, stored.next_producer_id, stored.deleting) == (BROKER_CONFIGS, 4000, DELETING)
    assert stored.found
    assert not stored.damages


def test_leads_are_kept_where_partitions_were_moved(file):
    leads = {(TOPICS[0].id, 1): (2, 5), (TOPICS[0].id, 0): (3, 6), (TOPICS[1].id, 0): (2, 1)}
    file.save(TOPICS, {}, 0, {}, leads)
    assert file.load().leads == leads
    assert file.number == 1
    save(file)
    assert file.load().leads == {}


RULES = [StoredRule("user", "SCRAM-SHA-256/bob", {"salt": "c2FsdA"}), StoredRule("acl", "a", {"host": "*"})]


def test_rules_have_their_lines_and_a_version_that_older_releases_refuse(storage, file):
    save(file)
    assert b'"version": 1,' in storage.read_all(PATH)
    file.save(TOPICS, {}, 0, {}, rules=RULES)
    assert b'"version": 2,' in storage.read_all(PATH)
    stored = file.load()
    assert stored.rules == {rule.id: rule for rule in RULES}
    assert [rule.line for rule in stored.rules.values()] == [rule.line for rule in RULES]
    assert (list(stored.topics.values()), stored.lost_rules, stored.damages) == (TOPICS, 0, [])


def test_a_rule_that_cannot_be_read_is_counted_until_somebody_accepts_that(storage, file):
    file.save(TOPICS, {}, 0, {}, rules=RULES)
    storage.write_atomically(PATH, storage.read_all(PATH).replace(b"c2FsdA", b"c2FsdB"))
    stored = file.load()
    assert (list(stored.rules), stored.lost_rules) == ([RULES[1].id], 1)
    assert "1 of 2 rules are readable" in stored.damages
    file.save(TOPICS, {}, 0, {}, rules=stored.rules.values(), lost_rules=stored.lost_rules)
    assert (file.load().lost_rules, file.load().damages) == (1, [])
    file.save(TOPICS, {}, 0, {}, lost_rules=1)
    assert file.load().lost_rules == 1


@pytest.mark.parametrize("flag", ["has_journal", "rules_in_doubt"])
def test_what_is_not_the_whole_record_has_a_version_that_older_releases_refuse(storage, file, flag):
    file.save([], {}, 0, {}, standing=Standing(**{flag: True}))
    assert json.loads(storage.read_all(PATH)[9:])["version"] == 3
    assert getattr(file.load(), flag)
    file.save([], {}, 0, {})
    assert json.loads(storage.read_all(PATH)[9:])["version"] == 1
    assert not getattr(file.load(), flag)


@pytest.mark.parametrize(
    ("configs", "rules"),
    [
        ({"1": {"ssl.key.password": "$encrypted$1$a$b"}}, []),
        ({}, [StoredRule("user", "SCRAM-SHA-256/bob", {"encrypted": "$encrypted$1$a$b"})]),
    ],
)
def test_older_releases_refuse_a_file_with_encrypted_secrets(storage, file, configs, rules):
    file.save(TOPICS, configs, 0, {}, rules=rules)
    assert json.loads(storage.read_all(PATH)[9:].partition(b"\n")[0])["version"] == 3


@pytest.mark.parametrize("kept", [RULES, []])
def test_without_the_head_nobody_knows_of_lost_rules_unless_there_are_others(storage, file, kept):
    file.save(TOPICS, {}, 0, {}, rules=kept)
    data = storage.read_all(PATH)
    assert parse(data[data.index(b"\n") + 1 :]).lost_rules == bool(kept)


def test_a_missing_file_is_no_damage(file):
    stored = file.load()
    assert (stored.found, stored.damages, stored.topics, stored.next_producer_id) == (False, [], {}, None)


def test_a_failed_save_leaves_the_old_file(storage, file):
    save(file)
    storage.fail("sync", FILE_NAME)
    with pytest.raises(StorageFault):
        file.save([], {}, 5000, {})
    assert (file.number, file.next_number) == (1, 3)
    assert file.load().next_producer_id == 4000
    save(file)
    assert (file.number, file.load().number) == (2, 2)


def test_an_older_copy_is_followed_by_a_file_that_is_newer_than_what_was_there(storage, file):
    save(file)
    file.load()
    file.go_on_from(7)
    storage.fail("sync", FILE_NAME)
    with pytest.raises(StorageFault):
        save(file)
    assert file.number == 7
    save(file)
    assert file.number == file.load().number == 9


def test_any_flipped_bit_costs_at_most_its_line_and_is_reported(storage, file):
    save(file)
    data = storage.read_all(PATH)
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1
        stored = parse(bytes(damaged))
        assert stored.damages
        hit = data[:position].count(b"\n")
        if data[position : position + 1] == b"\n":  # two lines became one
            lost = {hit, hit + 1}
        else:
            lost = {hit}
        expected = [topic for line, topic in enumerate(TOPICS, start=1) if line not in lost]
        assert [topic for topic in stored.topics.values() if topic in TOPICS] == list(stored.topics.values())
        assert all(topic in stored.topics.values() for topic in expected)
        assert (stored.next_producer_id == 4000) == (0 not in lost)


@pytest.mark.parametrize("cut", [0, 1, 40, 300, 500])
def test_a_cut_file_is_reported_and_its_whole_lines_are_used(storage, file, cut):
    save(file)
    data = storage.read_all(PATH)
    whole = data[:cut].count(b"\n")
    stored = parse(data[:cut])
    assert stored.damages
    assert list(stored.topics.values()) == TOPICS[: max(0, whole - 1)]


def test_a_damaged_file_is_kept_aside(storage, file):
    save(file)
    damaged = storage.read_all(PATH).replace(b"100", b"101")
    storage.write_atomically(PATH, damaged)
    assert set(file.load().topics) == {"plain", TOPICS[1].name}
    assert storage.read_all(PATH + DAMAGED_SUFFIX) == damaged


@pytest.mark.parametrize(
    "content",
    [
        {"name": "x"},
        {"name": "x", "id": "short", "partitions": 1, "configs": {}},
        {"name": "x", "id": show_uuid(bytes(16)), "partitions": "many", "configs": {}},
        {"name": "x", "id": show_uuid(bytes(16)), "partitions": 1, "configs": 7},
        {"name": "x", "id": 5, "partitions": 1, "configs": {}},
    ],
)
def test_a_line_with_a_right_checksum_and_wrong_content_is_damage_too(storage, file, content):
    save(file)
    stored = parse(storage.read_all(PATH) + encode_line(content).encode())
    assert stored.damages
    assert list(stored.topics.values()) == TOPICS


def test_the_file_of_a_later_release_is_not_touched(storage, file):
    line = encode_line({"version": 4, "topics": 0, "next_producer_id": 0, "broker_configs": {}, "deleting": {}})
    storage.write_atomically(PATH, line.encode())
    with pytest.raises(NewerClusterFile, match="version 4"):
        file.load()


def test_topic_ids_are_written_as_in_partition_metadata():
    topic_id = bytes(range(7, 23))
    assert parse_uuid(show_uuid(topic_id)) == topic_id
    assert len(show_uuid(topic_id)) == 22
    assert parse_uuid("3QwsrJSIRfKzvCSObwhb_Q").hex() == "dd0c2cac948845f2b3bc248e6f085bfd"


@pytest.mark.parametrize(
    "text",
    [
        b"{",
        b"\xff",
        b"7",
        b"[" * 100_000,
        b'{"version": 1, "deleting": [], "broker_configs": {}, "next_producer_id": 0, "topics": 0}',
        b'{"version": 1, "deleting": {}, "broker_configs": {"": 7}, "next_producer_id": 0, "topics": 0}',
        b'{"version": [], "deleting": {}, "broker_configs": {}, "next_producer_id": 0, "topics": 0}',
    ],
)
def test_a_line_whose_checksum_is_right_may_still_be_nonsense(text):
    line = b"%08x " % zlib.crc32(text) + text
    for data in (line, b"\n" + line):
        stored = parse(data + b"\n")
        assert stored.damages
        assert not stored.topics


def test_a_topic_says_in_which_folders_its_partitions_lie(storage, file):
    placed = StoredTopic("t", bytes(16), 3, {}, {"one": [0, 2], "other": [1]})
    file.save([placed], {}, 0, {})
    assert file.load().topics == {"t": placed}


def test_damages_are_told_up_to_a_bound(storage, file):
    save(file)
    stored = parse(storage.read_all(PATH) + b"nonsense\n" * 50)
    assert len(stored.damages) == MAX_REPORTED_DAMAGES
    assert list(stored.topics.values()) == TOPICS


def test_a_damaged_file_is_read_though_there_is_no_room_for_a_copy(storage, file, caplog):
    save(file)
    storage.write_atomically(PATH, storage.read_all(PATH).replace(b"100", b"101"))
    storage.fail("create", DAMAGED_SUFFIX, times=ALL)
    assert set(file.load().topics) == {"plain", TOPICS[1].name}
    assert "no copy of it could be written" in caplog.text


class TestSeveralFolders:
    @pytest.fixture
    def usable(self, storage):
        storage.make_dir("/other")
        storage.sync_dir("/")
        return ["/data", "/other"]

    @pytest.fixture
    def file(self, storage, usable):
        return ClusterFile(storage, "/data", lambda: usable)

    def test_each_has_the_file(self, storage, file):
        save(file)
        assert storage.read_all(f"/other/{FILE_NAME}") == storage.read_all(PATH)

    def test_a_folder_that_was_away_does_not_bring_the_past_back(self, usable, file, caplog):
        save(file)
        usable.remove("/other")
        file.save(TOPICS[:1], {}, 5000, {})
        usable.insert(0, "/other")
        assert file.load().next_producer_id == 5000
        assert "differ: using the newest" in caplog.text
        file.save(TOPICS, {}, 6000, {})
        assert file.load().next_producer_id == 6000

    def test_of_two_that_are_as_new_the_undamaged_one_counts(self, storage, file):
        save(file)
        storage.write_atomically(PATH, storage.read_all(PATH).replace(b"100", b"101"))
        stored = file.load()
        assert list(stored.topics.values()) == TOPICS
        assert not stored.damages

    def test_one_folder_that_takes_it_is_enough(self, storage, file, caplog):
        save(file)
        storage.fail("sync", "/other", times=ALL)
        file.save([], {}, 5000, {})
        assert "not written in every data folder" in caplog.text
        storage.heal()
        assert file.load().next_producer_id == 5000

    def test_none_that_takes_it_is_a_fault(self, storage, file):
        storage.fail("sync", FILE_NAME, times=ALL)
        with pytest.raises(StorageFault):
            save(file)
