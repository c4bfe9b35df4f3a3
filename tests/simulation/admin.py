"""Administration in the simulation: topics come, go, grow and change, logs are cut, cleaned and grow old."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from horolog.broker.log.partition import Partition
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from horolog.protocol.messages.metadata import MetadataRequest
from horolog.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
)
from tests.simulation.model import Level, PartitionModel, TopicModel

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

TOPIC_RESOURCE = 2
SET, DELETE = 0, 1
FROM_TOPIC = 1
METADATA_WITH_IDS = 12
NAMES = ("alpha", "beta", "gamma.delta")
MOST_PARTITIONS = 4
CHOICES: dict[str, tuple[str, ...]] = {
    "segment.bytes": ("400", "700", "1500"),
    "segment.ms": ("5000", "60000"),
    "segment.index.bytes": ("24", "96"),
    "index.interval.bytes": ("1", "120", "400"),
    "retention.ms": ("10000", "20000", "30000", "-1"),
    "retention.bytes": ("800", "3000", "-1"),
    "message.timestamp.type": ("CreateTime", "CreateTime", "LogAppendTime"),
    "cleanup.policy": ("delete", "delete", "compact", "compact,delete"),
    "flush.messages": ("3",),
    "flush.ms": ("2000",),
    "file.delete.delay.ms": ("0", "3000"),
}
UNKNOWN = "horolog.settings.unknown"
"""Of a topic whose line in the cluster file was damaged: nothing of it is deleted or compacted for its age or size."""
DECIDING = ("cleanup.policy", "retention.ms", "retention.bytes")
"""Whoever says one of these has said what may go."""
ALWAYS = {"min.cleanable.dirty.ratio": "0.01", "segment.jitter.ms": "0"}


class Administrator:
    """Does what tools ask for, one request at a time, and keeps the model of topics."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._world = simulation.world
        self._chance = simulation.world.chance

    # -- topics

    def create(self, name: str | None = None, count: int | None = None, configs: dict[str, str] | None = None) -> None:
        free = [one for one in NAMES if all(topic.name != one for topic in self._simulation.topics)]
        if name is None and not free:
            return
        name = name or self._chance.choice(free)
        count = count or self._chance.choice((1, 1, 2))
        configs = configs if configs is not None else {**ALWAYS, **self._some_configs()}
        topic = TopicModel(name, None, {count}, [configs], must_exist=False)
        self._simulation.topics.append(topic)
        self._note_configs(topic, configs)
        wanted = [CreatableTopicConfig(name=key, value=value) for key, value in configs.items()]
        request = CreateTopicsRequest(
            topics=[CreatableTopic(name=name, num_partitions=count, replication_factor=1, configs=wanted)]
        )
        result = self._world.ask(request, 7).topics[0]
        self._world.note("create topic", name, count, result.error_code)
        if result.error_code == ErrorCode.NONE:
            topic.id, topic.must_exist = result.topic_id, True
            self._make_partitions(topic, count)
            self._simulation.was_made(topic)
        elif result.error_code != ErrorCode.KAFKA_STORAGE_ERROR and not self._simulation.somebody_may_be_behind:
            self._simulation.fail(f"{topic} with {configs} is refused: {result.error_message}")

    def _some_configs(self) -> dict[str, str]:
        keys = self._chance.sample(sorted(CHOICES), self._chance.randint(2, 6))
        return {"segment.bytes": "700", **{key: self._chance.choice(CHOICES[key]) for key in keys}}

    def _make_partitions(self, topic: TopicModel, count: int) -> None:
        while len(topic.partitions) < count:
            topic.partitions.append(PartitionModel(topic.name, len(topic.partitions)))
        self._note_configs(topic, *topic.configs)

    @staticmethod
    def _note_configs(topic: TopicModel, *configs: dict[str, str]) -> None:
        for one in configs:
            for partition in topic.partitions:
                partition.was_compacted |= "compact" in one.get("cleanup.policy", "")
                partition.was_log_append |= one.get("message.timestamp.type") == "LogAppendTime"

    def delete(self) -> None:
        topic = self._simulation.any_topic()
        if topic is None or topic.name not in NAMES:
            return
        topic.must_exist = False
        result = self._world.ask(DeleteTopicsRequest(topic_names=[topic.name]), 5).responses[0]
        self._world.note("delete topic", topic.name, result.error_code)
        if result.error_code == ErrorCode.NONE:
            topic.may_exist = False
            self._gone(topic)
            self._simulation.was_deleted(topic)

    def _gone(self, topic: TopicModel) -> None:
        self._simulation.topics.remove(topic)
        self._simulation.offsets.forget(topic)
        if topic.id is not None:
            self._simulation.dead_ids.add(topic.id)

    def grow(self) -> None:
        topic = self._simulation.any_topic()
        if topic is None or topic.name not in NAMES or len(topic.partitions) >= MOST_PARTITIONS:
            return
        count = len(topic.partitions) + 1
        topic.counts.add(count)
        request = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=topic.name, count=count)])
        result = self._world.ask(request, 2).results[0]
        self._world.note("add partitions", topic.name, count, result.error_code)
        if result.error_code == ErrorCode.NONE:
            topic.counts = {count}
            self._make_partitions(topic, count)
            self._simulation.was_made(topic)

    def configure(self) -> None:
        topic = self._simulation.any_topic()
        if topic is None or topic.name not in NAMES or len(topic.configs) != 1:
            return
        key = self._chance.choice(sorted(CHOICES))
        value = self._chance.choice(CHOICES[key]) if self._chance.random() < 0.7 else None
        if value is None and key == "segment.bytes":
            return
        changed = {name: old for name, old in topic.configs[0].items() if name != key}
        if value is not None:
            changed[key] = value
        if key in DECIDING:
            changed.pop(UNKNOWN, None)
        topic.configs.append(changed)
        self._note_configs(topic, changed)
        change = IncrementalAlterConfigsRequestAlterableConfig(
            name=key, config_operation=SET if value else DELETE, value=value
        )
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=topic.name, configs=[change]
        )
        result = self._world.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0]
        self._world.note("alter configs", topic.name, key, value, result.error_code)
        if result.error_code == ErrorCode.NONE:
            topic.configs = [changed]
        elif not self._simulation.may_fail(None):
            self._simulation.fail(f"{topic}: {key}={value} is refused: {result.error_message}")

    # -- the start of logs

    def delete_records(self) -> None:
        _, partition = self._simulation.any_partition()
        if partition is None or not partition.rows:
            return
        offset = self._chance.choice(partition.rows).offset + self._chance.choice((0, 1))
        partition.may_start = max(partition.may_start, offset)
        asked = DeleteRecordsPartition(partition_index=partition.index, offset=offset)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=partition.topic, partitions=[asked])], timeout_ms=1000
        )
        result = self._world.ask(request, 1).topics[0].partitions[0]
        self._world.note("delete records", partition, offset, result.error_code)
        if result.error_code == ErrorCode.NONE:
            partition.must_start = max(partition.must_start, offset)

    def apply_retention(self) -> None:
        """Let old segments go, and look whether only what has to go did."""
        before = {}
        for topic in self._simulation.existing_topics():
            for model in topic.partitions:
                if not isinstance(partition := self._world.find(topic.name, model.index), Partition):
                    continue
                before[model] = partition, partition.log_start_offset, partition.size_bytes, model.may_start
                model.keeps_all = all(UNKNOWN in one for one in topic.configs)
                model.may_start = max(model.may_start, partition.log_end_offset)  # queued bytes are written first
        for topic in self._simulation.topics:
            for model in topic.partitions:
                model.start_is_unknown |= not topic.must_exist
        now_ms = self._world.clock.wall_ms()
        self._world.each_broker(lambda broker: broker.upkeep.apply_retention())
        self._finish_retention()
        for model, (partition, start, size_bytes, may_start) in before.items():
            moved = partition.log_start_offset - start
            self._world.note("retention", model, start, moved)
            self._world.counts["retention deletes"] += bool(moved)
            self._check_retention(model, partition, start, size_bytes, now_ms)
            waits_upto = partition.expiry.waiting_upto or 0
            model.may_start = max(may_start, partition.log_start_offset, min(waits_upto, partition.high_watermark))

    def _finish_retention(self) -> None:
        """What has to wait for a snapshot of producers goes behind a sync; where that fails it stays, and goes later."""
        if any(one.expiry.waiting_upto is not None for one in self._world.partitions()):
            self._world.note("retention waits")
            for _ in range(2):
                self._world.each_broker(lambda broker: broker.upkeep.sync_and_remove())
                self._world.loop.settle()

    def _check_retention(
        self, model: PartitionModel, partition: Partition, start: int, size_bytes: int, now_ms: int
    ) -> None:
        config = partition.config
        if model.keeps_all and partition.log_start_offset > start:
            self._simulation.fail(
                f"{model}: retention moves its start to {partition.log_start_offset}: its settings are unknown"
            )
        times = self._known_times(model)
        # A rename that fails takes segments out of use and leaves the start where it was; what they held had expired.
        model.damaged.update(range(partition.log_start_offset, partition.segments[0].base_offset))
        young = [
            offset
            for offset in range(start, partition.log_start_offset)
            if offset in times and not 0 <= config.retention_ms < now_ms - times[offset]
        ]
        by_size = config.retention_bytes >= 0 and size_bytes >= config.retention_bytes
        if young and not by_size and not model.was_compacted:
            self._simulation.fail(
                f"{model}: {young} went before their time at {now_ms}: {[times[one] for one in young]}"
            )
        too_small = partition.log_start_offset > start and partition.size_bytes < config.retention_bytes
        if by_size and config.retention_ms < 0 and too_small:
            self._simulation.fail(f"{model}: {partition.size_bytes} bytes are left of {size_bytes}")
        self._check_nothing_stays(model, partition, times, now_ms)

    def _check_nothing_stays(
        self, model: PartitionModel, partition: Partition, times: dict[int, int], now_ms: int
    ) -> None:
        config = partition.config
        if not config.delete or config.retention_ms < 0 or len(partition.segments) < 2:
            return
        first, second = partition.segments[:2]
        if not first.size_bytes:
            return  # compaction has emptied it, and it is as old as its file
        there = [times.get(offset) for offset in range(first.base_offset, second.base_offset)]
        known = [one for one in there if one is not None]
        patient = self._simulation.clock_has_jumped or self._simulation.may_fail(model)
        all_known = known and len(known) == len(there) and not patient
        if all_known and all(now_ms - one > config.retention_ms for one in known):
            self._simulation.fail(f"{model}: segment {first.base_offset} has outlived its time and is there")

    @staticmethod
    def _known_times(model: PartitionModel) -> dict[int, int]:
        """Times of records whose offset and time are beyond doubt."""
        return {row.offset: row.timestamp for row in model.rows if row.timestamp >= 0 and row.value in model.by_value}

    def compact(self) -> None:
        before = sum(one.size_bytes for one in self._world.partitions())
        self._world.each_broker(lambda broker: broker.upkeep.compact())
        self._world.loop.settle()
        after = sum(one.size_bytes for one in self._world.partitions())
        self._world.note("compact", before, after)
        self._world.counts["compaction shrinks"] += after < before

    # -- after a start

    def reconcile(self) -> None:
        """Topics must be what was promised; what was not answered is now one or the other."""
        found = {one.name: one for one in self._world.ask(MetadataRequest(topics=None), METADATA_WITH_IDS).topics}
        for topic in list(self._simulation.topics):
            there = found.get(topic.name)
            if there is not None and there.topic_id != topic.id and self._may_be_forgotten(topic):
                topic.id = there.topic_id  # its folder was there without saying whose it is
                self._simulation.offsets.forget(topic)  # they know topics by their ids
            if there is None or (topic.id is not None and there.topic_id != topic.id):
                if topic.must_exist and not self._may_be_forgotten(topic):
                    self._simulation.fail(f"{topic} is no longer there")
                self._world.note("topic gone", topic.name)
                self._gone(topic)
                continue
            topic.id, topic.must_exist = there.topic_id, True
            self._adopt_count(topic, len(there.partitions))
            self._adopt_configs(topic)
        for name, there in found.items():
            if not there.is_internal and all(topic.name != name for topic in self._simulation.topics):
                self._simulation.fail(
                    f"topic {name} is there: deleted before: {there.topic_id in self._simulation.dead_ids}"
                )

    def _may_be_forgotten(self, topic: TopicModel) -> bool:
        """A topic without data may be nowhere but in the cluster file, and that was damaged."""
        return self._simulation.configs_may_be_lost and not _has_durable(topic.partitions)

    def _adopt_count(self, topic: TopicModel, count: int) -> None:
        missing = topic.partitions[count:]
        if self._simulation.configs_may_be_lost and not _has_durable(missing):
            del topic.partitions[count:]  # they were nowhere but in the cluster file
        elif count not in topic.counts:
            self._simulation.fail(f"{topic} has {count} partitions, not {sorted(topic.counts)}")
        topic.counts = {count}
        self._make_partitions(topic, count)

    def _adopt_configs(self, topic: TopicModel) -> None:
        request = DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic.name)]
        )
        result: Any = self._world.ask(request, 4).results[0]
        overrides = {one.name: one.value for one in result.configs if one.config_source == FROM_TOPIC}
        if overrides not in topic.configs and not self._simulation.configs_may_be_lost:
            self._simulation.fail(f"{topic} has the overrides {overrides}, not {topic.configs}")
        topic.configs = [overrides]


def _has_durable(partitions: Iterable[PartitionModel]) -> bool:
    """Whether there is anything of them that no fault may take."""
    return any(one.level == Level.DURABLE for partition in partitions for one in partition.attempts)
