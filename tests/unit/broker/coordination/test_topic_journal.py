"""What the journals of coordinators share: the topic is made on first use, and read back in whole batches."""

from dataclasses import replace

import pytest

from horolog.broker.base.java_hash import partition_for
from horolog.broker.base.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from horolog.broker.coordination import topic_journal
from horolog.broker.coordination.topic_journal import TopicJournal, put_offline
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.validation.own_batch import NEWEST_PRODUCE_VERSION
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record
from tests.support.group_world import GroupWorld

RECORDS = [(b"a", b"1"), (b"b", None), (b"c", bytes(100))]


@pytest.fixture
def world():
    return GroupWorld({"offsets.topic.num.partitions": 3, "transaction.state.log.num.partitions": 2})


def journal_of(world, topic=GROUP_OFFSETS):
    return TopicJournal(topic, world.cluster, world.committer, world.clock)


@pytest.mark.parametrize(("topic", "count"), [(GROUP_OFFSETS, 3), (TRANSACTION_STATE, 2)])
def test_the_topic_is_made_on_first_use_as_kafka_makes_it(world, topic, count):
    journal = journal_of(world, topic)
    assert (list(journal.led_here), journal.shard_count) == ([], count)
    journal.make_topic()
    journal.make_topic()
    assert len(journal.led_here) == journal.shard_count == count
    assert world.cluster.topics[topic].overrides["cleanup.policy"] == "compact"


class Later:
    """Creates topics when a test says so."""

    def __init__(self, cluster, monkeypatch):
        self.begun = []
        self._create = cluster.create_topics
        monkeypatch.setattr(cluster, "create_topics", lambda *given: self.begun.append(given))

    def go_on(self):
        for given in self.begun:
            self._create(*given)


def test_who_asks_for_the_topic_waits_until_it_is_made(world, monkeypatch):
    journal, later, told = journal_of(world), Later(world.cluster, monkeypatch), []
    for _ in range(2):
        journal.when_made(lambda refusal: told.append((refusal, len(journal.led_here))))
    assert (told, len(later.begun)) == ([], 2)
    later.go_on()
    assert told == [(None, 3)] * 2, "another one has made it for the second"
    journal.when_made(lambda refusal: told.append((refusal, len(journal.led_here))))
    assert (len(told), len(later.begun)) == (3, 2)


def test_who_asks_for_a_topic_that_cannot_be_made_gets_the_reason(world):
    world.storage.fail("sync", "horolog-journal")
    told = []
    journal_of(world).when_made(told.append)
    assert [one.code for one in told] == [ErrorCode.KAFKA_STORAGE_ERROR]


def test_a_name_stays_in_its_partition_whatever_the_settings_say_later(world):
    journal = journal_of(world)
    before = journal.shard_of("group")
    assert before == partition_for("group", 3)
    journal.make_topic()
    world.cluster.settings = replace(world.settings, offsets_topic_num_partitions=7)
    assert journal.shard_of("group") == before


def test_done_is_told_once_the_tick_has_written_and_what_failed(world):
    journal = journal_of(world)
    journal.make_topic()
    partition = journal.find(0)
    told = []
    append(partition, *RECORDS[0])
    journal.submit([partition], told.append, durable=False)
    assert told == []
    world.tick()
    assert told == [{}]
    world.storage.fail("write", "__consumer_offsets")
    append(partition, *RECORDS[1])
    journal.submit([partition], told.append, durable=False)
    world.tick()
    assert list(told[1]) == [partition]


def append(partition, key, value):
    partition.append(encode_batch([Record(0, 0, 0, key, value)]), 0, produce_version=NEWEST_PRODUCE_VERSION)


@pytest.mark.parametrize("piece_bytes", [1, 80, 150, 10_000])
def test_every_batch_is_read_once_and_whole_however_small_the_pieces_are(world, monkeypatch, piece_bytes):
    monkeypatch.setattr(topic_journal, "READ_BYTES", piece_bytes)
    journal = journal_of(world)
    journal.make_topic()
    partition = journal.find(0)
    for key, value in RECORDS:
        append(partition, key, value)
    partition.flush()
    pieces = list(journal.read_batches(partition))
    read = [(one.key, one.value) for piece in pieces for batch in piece for one in batch.records()]
    assert read == RECORDS
    assert (len(pieces) == 1) is (piece_bytes == 10_000)


def test_an_offline_partition_says_why(world):
    journal = journal_of(world)
    journal.make_topic()
    put_offline(journal.find(1), StorageFault("no disk"))
    assert "no disk" in journal.find(1).condition.fault
    assert journal.find(0).condition.fault is None


def test_a_shard_is_found_where_this_broker_leads_it(world):
    journal = journal_of(world)
    assert journal.find(0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    journal.make_topic()
    topic = world.cluster.topics[GROUP_OFFSETS]
    topic.put(1, None)
    assert journal.find(1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert journal.find(3) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [one.index for one in journal.led_here] == [0, 2]
    assert repr(journal) == "<TopicJournal of 3 partitions>"


def test_the_shards_of_others_are_known_once_there_is_a_topic(world):
    journal = journal_of(world)
    assert journal.leads(0)
    assert journal.led_elsewhere == set()
    journal.make_topic()
    assert journal.led_elsewhere == set()
    for index in (0, 2):
        world.cluster.topics[GROUP_OFFSETS].put(index, None)
    assert [journal.leads(shard) for shard in range(4)] == [False, True, False, False]
    assert journal.led_elsewhere == {0, 2}


def test_a_topic_that_another_broker_has_made_first_is_taken(world, monkeypatch):
    journal = journal_of(world)
    create = world.cluster.create_topic

    def comes_second(*arguments):
        create(*arguments)
        raise ClusterError(ErrorCode.TOPIC_ALREADY_EXISTS, "it is there")

    monkeypatch.setattr(world.cluster, "create_topic", comes_second)
    journal.make_topic()
    assert journal.shard_count == 3


def test_a_topic_that_cannot_be_made_is_told(world, monkeypatch):
    def refused(*_arguments):
        raise ClusterError(ErrorCode.KAFKA_STORAGE_ERROR, "no disk")

    monkeypatch.setattr(world.cluster, "create_topic", refused)
    with pytest.raises(ClusterError):
        journal_of(world).make_topic()


def test_a_log_that_gives_nothing_more_is_read_to_its_end(world, monkeypatch):
    """As when its last segment is set aside while it is read."""
    journal = journal_of(world)
    journal.make_topic()
    partition = journal.find(0)
    append(partition, *RECORDS[0])
    partition.flush()
    monkeypatch.setattr(type(partition), "read", lambda *_arguments, **_fields: b"")
    assert list(journal.read_batches(partition)) == []


def test_a_partition_that_is_not_served_is_led_by_another_broker_or_still_opened_here(world):
    journal = journal_of(world)
    assert journal.absence(1) == ErrorCode.NOT_COORDINATOR
    journal.make_topic()
    opening = (world.cluster.topics[GROUP_OFFSETS].id, 1)
    world.cluster.is_opening = lambda place: place == opening
    assert [journal.absence(0), journal.absence(1)] == [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ]
