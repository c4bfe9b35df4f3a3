"""Admin calls about topics, their partitions and records."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from horolog.client.admin.admin_base import AdminBase, collect
from horolog.client.values.errors import KafkaError, PartialFailure, error_of, only_partition
from horolog.client.values.types import Found, TopicPartition
from horolog.client.wire.cluster_view import TopicView
from horolog.client.wire.offsets import list_offsets
from horolog.client.wire.versions import Versioned
from horolog.protocol.apis import ApiKey
from horolog.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from horolog.protocol.wire import Message

_DEFAULTS_FROM = 4  # the version of CreateTopics in which the broker has defaults for partitions and replicas
_STATES_FROM = 6  # the version of DeleteTopics that names topics by name or id
UP_TO_THE_END = -1
"""Stands for the high watermark in `delete_records`."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """-1 partitions or replicas: the broker's default."""

    name: str
    partitions: int = -1
    replication: int = -1
    configs: Mapping[str, str | None] = field(default_factory=dict)
    assignment: Mapping[int, list[int]] = field(default_factory=dict)  # partition to brokers, instead of counts


class TopicAdmin(AdminBase):
    async def topics(self, *, internal: bool = False) -> list[str]:
        """The names of all topics, in order."""
        view = await self.client.metadata()
        return sorted(name for name, topic in view.topics.items() if internal or not topic.internal)

    async def describe_topics(self, names: Iterable[str] | None = None) -> dict[str, TopicView]:
        """Topics by name: id, partitions, leaders, replicas. Without names, all topics."""
        wanted = None if names is None else list(names)
        view = await self.client.metadata(wanted)
        if wanted is None:
            return dict(view.topics)
        known = {name: view.topics[name] for name in wanted if name in view.topics and not view.topics[name].error_code}
        failed = {
            name: error_of(
                view.topics[name].error_code if name in view.topics else 3, f"there is no topic {name!r}", topic=name
            )
            for name in wanted
            if name not in known
        }
        if len(failed) == 1 and not known:
            raise next(iter(failed.values()))
        if failed:
            raise PartialFailure(failed, known)
        return known

    async def create_topic(
        self,
        name: str,
        partitions: int = -1,
        *,
        replication: int = -1,
        configs: Mapping[str, str | None] | None = None,
        validate_only: bool = False,
    ) -> None:
        await self.create_topics([NewTopic(name, partitions, replication, configs or {})], validate_only=validate_only)

    async def create_topics(self, topics: Iterable[NewTopic], *, validate_only: bool = False) -> list[str]:
        """The names of the created topics."""
        wanted = list(topics)

        def build(version: int) -> Message:
            return CreateTopicsRequest(
                topics=[_creatable(topic, version) for topic in wanted],
                timeout_ms=self.client.request_timeout_ms,
                validate_only=validate_only,
            )

        response = await self._ask(
            Versioned(ApiKey.CREATE_TOPICS, build),
            controller=True,
            code_of=lambda answer: _only_code(each.error_code for each in answer.topics),
        )
        return list(collect((each.name, each.error_code, each.error_message, None) for each in response.topics))

    async def delete_topics(self, names: Iterable[str]) -> None:
        wanted = list(names)

        def build(version: int) -> Message:
            if version >= _STATES_FROM:
                return DeleteTopicsRequest(
                    topics=[DeleteTopicState(name=name) for name in wanted], timeout_ms=self.client.request_timeout_ms
                )
            return DeleteTopicsRequest(topic_names=wanted, timeout_ms=self.client.request_timeout_ms)

        response = await self._ask(Versioned(ApiKey.DELETE_TOPICS, build), controller=True)
        for name in wanted:
            self.client.view.topics.pop(name, None)
        collect((each.name or "", each.error_code, each.error_message, None) for each in response.responses)

    async def create_partitions(self, totals: Mapping[str, int], *, validate_only: bool = False) -> None:
        """Grow topics to these total numbers of partitions."""
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, count=count, assignments=None) for name, count in totals.items()],
            timeout_ms=self.client.request_timeout_ms,
            validate_only=validate_only,
        )
        response = await self._ask(request, controller=True)
        for name in totals:
            self.client.view.topics.pop(name, None)
        collect((each.name, each.error_code, each.error_message, None) for each in response.results)

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Delete the records before these offsets (UP_TO_THE_END: all); returns where the partitions begin now."""
        done: dict[TopicPartition, int] = {}
        failed: dict[TopicPartition, KafkaError] = {}
        for partition, offset in before.items():
            request = DeleteRecordsRequest(
                topics=[
                    DeleteRecordsTopic(
                        name=partition.topic,
                        partitions=[DeleteRecordsPartition(partition_index=partition.partition, offset=offset)],
                    )
                ],
                timeout_ms=self.client.request_timeout_ms,
            )
            try:
                response = await self._ask(
                    request,
                    leader_of=partition,
                    code_of=lambda answer: only_partition(answer).error_code,
                )
                answer = only_partition(response)
                if answer.error_code:
                    raise error_of(answer.error_code, topic=partition.topic)
            except KafkaError as error:
                failed[partition] = error
            else:
                done[partition] = answer.low_watermark
        if len(failed) == 1 and not done:
            raise next(iter(failed.values()))
        if failed:
            raise PartialFailure(failed, done)
        return done

    async def list_offsets(
        self, times: Mapping[TopicPartition, int], *, isolation: str = "read_uncommitted"
    ) -> dict[TopicPartition, Found | None]:
        """The first record at or after each time; EARLIEST, LATEST and LARGEST_TIMESTAMP stand for themselves."""
        return await list_offsets(self.client, times, isolation=1 if isolation == "read_committed" else 0)


def _creatable(topic: NewTopic, version: int) -> CreatableTopic:
    fallback = -1 if version >= _DEFAULTS_FROM else 1
    assigned = bool(topic.assignment)
    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if assigned else topic.partitions if topic.partitions > 0 else fallback,
        replication_factor=-1 if assigned else topic.replication if topic.replication > 0 else fallback,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in topic.assignment.items()
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )


def _only_code(codes: Iterable[int]) -> int:
    """The code that all have in common: only then may the whole request be retried."""
    distinct = set(codes)
    return distinct.pop() if len(distinct) == 1 else 0
