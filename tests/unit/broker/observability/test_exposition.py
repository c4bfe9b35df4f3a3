"""The metrics of a broker that has seen some traffic: well formed, complete, true and bounded."""

from prometheus_client.parser import text_string_to_metric_families

from horolog.broker.base import backup_figures
from horolog.broker.log import counters
from horolog.broker.log.partition import SERVING
from horolog.broker.observability.exposition import CATALOGUE, Exposition, table
from horolog.broker.observability.state import LOG_FAMILIES
from horolog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from horolog.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.records import batch
from horolog.protocol.records.record import Record
from horolog.protocol.records.timestamps import TimestampType
from tests.support.memory_broker import NOW_MS, MemoryBroker


def text(broker):
    return b"".join(Exposition(broker).pieces()).decode()


def scrape(broker):
    """Every sample by name and labels."""
    found = {}
    for family in text_string_to_metric_families(text(broker)):
        for sample in family.samples:
            found[sample.name, *sorted(sample.labels.items())] = sample.value
    return found


def records(*times):
    kept = [Record(n, time, TimestampType.CREATE_TIME, b"k", b"v", ()) for n, time in enumerate(times)]
    return bytes(batch.encode_batch(kept))


async def produce(wire, topic, *times):
    data = PartitionProduceData(index=0, records=records(*times))
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=[data])])
    answer = await wire.ask(request, 9)
    return answer.responses[0].partition_responses[0].error_code


def of_partition(name, topic, index=0):
    return (name, ("partition", str(index)), ("topic", topic))


async def test_every_family_of_the_catalogue_is_shown_once_and_no_other():
    async with MemoryBroker() as machine:
        names = [line.split()[2] for line in text(machine.broker).splitlines() if line.startswith("# TYPE")]
        wanted = [one.shown for one in CATALOGUE if one not in backup_figures.FAMILIES]
        assert sorted(names) == sorted(wanted)
        assert len(set(names)) == len(names)


async def test_traffic_shows():
    async with MemoryBroker() as machine:
        machine.topic("t", message_timestamp_after_max_ms=10_000)
        wire = machine.connect()
        assert await produce(wire, "t", NOW_MS - 5_000, NOW_MS - 4_000) == 0
        assert await produce(wire, "t", NOW_MS - 9_000) == 0
        assert await produce(wire, "t", NOW_MS + 60_000) == 32
        target = ListOffsetsPartition(partition_index=0, timestamp=NOW_MS - 4_500)
        await wire.ask(ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[target])]), 5)
        machine.clock.advance(1_000)
        found = scrape(machine.broker)
        assert found["horolog_requests_total", ("api", "Produce"), ("version", "9")] == 3
        assert found["horolog_errors_total", ("api", "Produce"), ("code", "INVALID_TIMESTAMP")] == 1
        assert found["horolog_request_seconds_count", ("api", "Produce")] == 3
        assert found["horolog_received_bytes_total", ("api", "Produce")] > 200
        assert found["horolog_log_timestamps_too_late_total",] == 1
        assert found["horolog_log_appends_out_of_order_total",] == 1
        assert found["horolog_log_lookups_by_time_total",] == 1
        assert found[of_partition("horolog_partition_end_offset", "t")] == 3
        assert found[of_partition("horolog_partition_newest_record_age_seconds", "t")] == 5
        assert found["horolog_topic_records_total", ("topic", "t")] == 3
        assert found["horolog_topic_appended_bytes_total", ("topic", "t")] == len(records(0, 1_000)) + len(records(0))
        assert found["horolog_sync_records_sum",] == 3
        assert found["horolog_partitions", ("state", "offline")] == 0
        assert found["process_resident_memory_bytes",] > 10_000_000


async def test_records_from_the_future_show():
    async with MemoryBroker() as machine:
        machine.topic("t")
        assert await produce(machine.connect(), "t", NOW_MS + 7_000) == 0
        found = scrape(machine.broker)
        assert found[of_partition("horolog_partition_newest_record_age_seconds", "t")] == -7
        assert found["horolog_partitions_with_future_records",] == 1
        assert found["horolog_log_appends_from_future_total",] == 1


async def commit(wire, group, topic, offset):
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topics = [OffsetCommitRequestTopic(name=topic, partitions=[partition])]
    answer = await wire.ask(OffsetCommitRequest(group_id=group, topics=topics), 8)
    assert answer.topics[0].partitions[0].error_code == 0


async def test_groups_are_behind_in_records_and_in_seconds():
    async with MemoryBroker(offsets_topic_num_partitions=1) as machine:
        machine.topic("t")
        wire = machine.connect()
        for age_ms in (30_000, 20_000, 10_000):
            assert await produce(wire, "t", NOW_MS - age_ms) == 0
        await commit(wire, "half", "t", 1)
        await commit(wire, "done", "t", 3)
        found = scrape(machine.broker)
        half = (("group", "half"), ("partition", "0"), ("topic", "t"))
        done = (("group", "done"), ("partition", "0"), ("topic", "t"))
        assert found["horolog_group_lag_records", *half] == 2
        assert found["horolog_group_lag_seconds", *half] == 20
        assert found["horolog_group_lag_records", *done] == 0
        assert found["horolog_group_lag_seconds", *done] == 0
        assert found["horolog_groups", ("protocol", "classic"), ("state", "Empty")] == 2


async def test_offline_partitions_say_why():
    async with MemoryBroker() as machine:
        topic = machine.topic("t", 2)
        topic.find(1).condition.go_offline('a "bad" disk\n')
        found = scrape(machine.broker)
        topic.find(1).condition.state = SERVING
        assert found["horolog_partitions", ("state", "offline")] == 1
        reason = ("reason", 'a "bad" disk\n')
        assert found["horolog_partition_offline_info", ("partition", "1"), reason, ("topic", "t")] == 1


async def test_stopped_partitions_say_why():
    async with MemoryBroker() as machine:
        machine.topic("t", 2).find(0).condition.stop("a sync has failed")
        found = scrape(machine.broker)
        machine.broker.cluster.topics["t"].find(0).condition.state = SERVING
        states = {state: found["horolog_partitions", ("state", state)] for state in ("online", "offline", "stopped")}
        assert states == {"online": 1, "offline": 0, "stopped": 1}
        reason = ("reason", "a sync has failed")
        assert found["horolog_partition_stopped_info", ("partition", "0"), reason, ("topic", "t")] == 1


async def test_series_are_bounded_and_what_is_left_out_is_counted():
    async with MemoryBroker(horolog_metrics_series_max=3, offsets_topic_num_partitions=1) as machine:
        machine.topic("t", 5)
        wire = machine.connect()
        for number in range(5):
            await commit(wire, f"g{number}", "t", 0)
        found = scrape(machine.broker)
        assert sum(key[0] == "horolog_partition_end_offset" for key in found) == 3
        assert sum(key[0] == "horolog_group_lag_records" for key in found) == 3
        assert found["horolog_left_out_series", ("kind", "partition")] == 3  # one of them of the group topic
        assert found["horolog_left_out_series", ("kind", "group_partition")] == 2
        assert found["horolog_left_out_series", ("kind", "group")] == 2


def test_every_counter_of_the_log_is_shown():
    assert set(LOG_FAMILIES) == set(counters.LogCounters.__slots__)


def test_the_table_names_everything():
    assert all(f"| `{one.shown}` |" in table() for one in CATALOGUE)
