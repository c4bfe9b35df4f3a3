"""ListOffsets: which target which version knows, what bounds an answer, and every refusal."""

import pytest

from horolog.broker.log.partition import log_start
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from horolog.protocol.records.head import TRANSACTIONAL_BIT
from tests.support import raw_records as raw
from tests.support.at_once import at_once
from tests.support.memory_broker import NOW_MS, MemoryBroker
from tests.support.on_its_way import OnItsWay
from tests.unit.broker.cluster.cluster_stand_ins import fill
from tests.unit.broker.handlers.stand_ins import StandIn

VERSIONS = range(1, 12)
LATEST, EARLIEST, LARGEST, EARLIEST_LOCAL, TIERED, UPLOAD = -1, -2, -3, -4, -5, -6
SINCE = {LATEST: 1, EARLIEST: 1, LARGEST: 7, EARLIEST_LOCAL: 8, TIERED: 9, UPLOAD: 11}
NOTHING = (-1, -1, -1)


@pytest.fixture
def broker():
    """A log that begins with its second record, whose last three are of another leader's time and of a transaction."""
    broker = StandIn()
    log = broker.cluster.create_topic("t", 1).find(0)
    fill(log, 30, 10)
    log.lead(1)
    fill(log, 40, 40, 20, attributes=TRANSACTIONAL_BIT, producer_id=7, producer_epoch=0, base_sequence=0)
    log_start.move(log, 1)
    return broker


def partition(broker):
    return broker.cluster.topics["t"].find(0)


def ask(broker, version, target, *, name="t", index=0, epoch=-1, **more):
    asked = ListOffsetsPartition(partition_index=index, timestamp=target, current_leader_epoch=epoch)
    topics = [ListOffsetsTopic(name=name, partitions=[asked])]
    (topic,) = broker.ask(ApiKey.LIST_OFFSETS, version, topics=topics, replica_id=-1, **more).topics
    (answer,) = topic.partitions
    assert (topic.name, answer.partition_index) == (name, index)
    return answer


def found(answer):
    assert answer.error_code == 0
    return answer.timestamp, answer.offset, answer.leader_epoch


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (LATEST, (-1, 5, 1)),
        (EARLIEST, (-1, 1, 0)),
        (0, (10, 1, 0)),
        (11, (40, 2, 1)),
        (40, (40, 2, 1)),
        (41, NOTHING),
        (2**63 - 1, NOTHING),
        (LARGEST, (40, 2, 1)),
        (EARLIEST_LOCAL, (-1, 1, 0)),
        (TIERED, NOTHING),
        (UPLOAD, NOTHING),
        (-7, None),
        (-(2**63), None),
    ],
)
def test_every_target_in_every_version(broker, version, target, expected):
    answer = ask(broker, version, target)
    if target < 0 and version < SINCE.get(target, 99):
        assert (answer.error_code, answer.timestamp, answer.offset) == (ErrorCode.UNSUPPORTED_VERSION, -1, -1)
    else:
        timestamp, offset, epoch = expected
        assert found(answer) == (timestamp, offset, epoch if version >= 4 else -1)


@pytest.mark.parametrize("version", VERSIONS[1:])
@pytest.mark.parametrize(("target", "offset"), [(LATEST, 2), (10, 1), (11, -1), (EARLIEST, 1)])
def test_read_committed_sees_up_to_the_last_stable_offset(broker, version, target, offset):
    assert ask(broker, version, target, isolation_level=1).offset == offset
    assert ask(broker, version, LATEST, isolation_level=0).offset == 5


def test_the_largest_timestamp_behind_the_last_stable_offset_is_no_answer(broker):
    assert found(ask(broker, 7, LARGEST, isolation_level=1)) == NOTHING


@pytest.mark.parametrize("version", VERSIONS)
def test_an_empty_log(broker, version):
    broker.cluster.create_topic("empty", 1)
    epoch = 0 if version >= 4 else -1
    assert found(ask(broker, version, LATEST, name="empty")) == (-1, 0, epoch)
    assert found(ask(broker, version, EARLIEST, name="empty")) == (-1, 0, epoch)
    assert found(ask(broker, version, 0, name="empty")) == NOTHING


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("name", "index"), [("u", 0), ("t", 1), ("t", -1)])
def test_unknown_places(broker, version, name, index):
    answer = ask(broker, version, LATEST, name=name, index=index)
    assert (answer.error_code, answer.offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


@pytest.mark.parametrize("version", VERSIONS[3:])
@pytest.mark.parametrize(
    ("epoch", "code"), [(-1, 0), (1, 0), (0, ErrorCode.FENCED_LEADER_EPOCH), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_leader_epochs(broker, version, epoch, code):
    assert ask(broker, version, LATEST, epoch=epoch).error_code == code


@pytest.mark.parametrize(("target", "code"), [(0, 43), (5, 43), (LARGEST, 43), (LATEST, 0), (EARLIEST, 0)])
def test_a_topic_that_keeps_no_times(broker, target, code):
    at_once(broker.cluster.alter_topic_configs, {"t": {"message.format.version": "0.9.0"}})
    assert ask(broker, 7, target).error_code == code


def test_a_failing_disk(broker):
    partition(broker).resources.storage.fail("read", ".log")
    assert ask(broker, 7, 5).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    partition(broker).condition.go_offline("gone")
    assert ask(broker, 7, LATEST).error_code == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("version", VERSIONS)
def test_a_partition_named_twice_is_answered_once_with_an_error(broker, version):
    broker.cluster.create_topic("u", 2)
    one = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    other = ListOffsetsPartition(partition_index=0, timestamp=EARLIEST)
    third = ListOffsetsPartition(partition_index=1, timestamp=LATEST)
    topics = [ListOffsetsTopic(name="t", partitions=[one, other]), ListOffsetsTopic(name="u", partitions=[one, third])]
    answers = broker.ask(ApiKey.LIST_OFFSETS, version, topics=topics).topics
    assert [[p.error_code for p in topic.partitions] for topic in answers] == [[ErrorCode.INVALID_REQUEST], [0, 0]]


class TestVersion0:
    def ask(self, broker, target, count, name="t", index=0):
        asked = ListOffsetsPartition(partition_index=index, timestamp=target, max_num_offsets=count)
        topics = [ListOffsetsTopic(name=name, partitions=[asked])]
        return broker.ask(ApiKey.LIST_OFFSETS, 0, topics=topics).topics[0].partitions[0]

    @pytest.mark.parametrize(("count", "offsets"), [(3, [5, 1]), (1, [5]), (0, [])])
    def test_offsets_up_to_the_count(self, broker, count, offsets):
        answer = self.ask(broker, LATEST, count)
        assert (answer.error_code, answer.old_style_offsets) == (0, offsets)

    @pytest.mark.parametrize(
        ("fields", "code"),
        [
            ({"count": -1}, ErrorCode.UNKNOWN_SERVER_ERROR),
            ({"count": 1, "name": "u"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ({"count": 1, "index": 8}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ],
    )
    def test_refusals(self, broker, fields, code):
        answer = self.ask(broker, LATEST, **fields)
        assert (answer.error_code, answer.old_style_offsets) == (code, [])

    def test_a_failing_disk(self, broker):
        partition(broker).resources.storage.fail("stat", ".log")
        assert self.ask(broker, 5, 1).error_code == ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_look_up_waits_for_bytes_on_their_way():
    async with MemoryBroker() as memory:
        found = memory.topic().find(0)
        records = raw.batch([raw.record(b"v")], base_timestamp=NOW_MS, max_timestamp=NOW_MS)
        found.append(records, NOW_MS, produce_version=9)
        found.flush()
        log = OnItsWay(found.segments[-1])
        asked = ListOffsetsPartition(partition_index=0, timestamp=NOW_MS)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[asked])])
        client = memory.connect()
        client.send(request, 7)
        assert client.answers() == 0
        log.arrive(memory.broker, found)
        assert (await client.take(request, 7)).topics[0].partitions[0].offset == 0
