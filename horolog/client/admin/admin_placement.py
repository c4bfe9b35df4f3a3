"""Admin calls about where partitions are: moving replicas between brokers, and electing leaders."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from horolog.client.admin.admin_base import AdminBase, collect
from horolog.client.values.errors import KafkaError, check, error_of
from horolog.client.values.types import TopicPartition
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
    TopicPartitions,
)
from horolog.protocol.topic_partition import by_topic

LONGEST_MS = 60_000
"""How long a broker may take: ours answers once a partition has moved."""
PREFERRED, UNCLEAN = 0, 1
UNCLEAN_FROM = 1
"""The version of ElectLeaders that knows unclean elections."""


class Reassignment(NamedTuple):
    """A partition on its way: the brokers that have it now, those that are added, and those that it leaves."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class PlacementAdmin(AdminBase):
    async def reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """The partitions that are being moved, among these or all."""
        asked = None
        if partitions is not None:
            topics = by_topic((place.topic, place.partition) for place in partitions)
            asked = [
                ListPartitionReassignmentsTopics(name=name, partition_indexes=each) for name, each in topics.items()
            ]
        request = ListPartitionReassignmentsRequest(topics=asked, timeout_ms=self.client.request_timeout_ms)
        response = await self._ask(request, controller=True, code_of=lambda answer: int(answer.error_code))
        check(response.error_code, response.error_message)
        return {
            TopicPartition(topic.name, each.partition_index): Reassignment(
                tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
            )
            for topic in response.topics
            for each in topic.partitions
        }

    async def reassign(self, replicas: Mapping[TopicPartition, list[int] | None]) -> None:
        """Move partitions to these brokers, the first of which is to lead; None cancels a move that is under way."""
        topics = by_topic(
            (place.topic, ReassignablePartition(partition_index=place.partition, replicas=nodes))
            for place, nodes in replicas.items()
        )
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=name, partitions=each) for name, each in topics.items()],
            timeout_ms=LONGEST_MS,
        )
        response = await self._ask(
            request, controller=True, timeout_ms=LONGEST_MS, code_of=lambda answer: int(answer.error_code)
        )
        check(response.error_code, response.error_message)
        collect(
            (TopicPartition(topic.name, each.partition_index), each.error_code, each.error_message, None)
            for topic in response.responses
            for each in topic.partitions
        )

    async def elect_leaders(
        self, partitions: Iterable[TopicPartition] | None = None, *, unclean: bool = False
    ) -> dict[TopicPartition, KafkaError | None]:
        """Elect the preferred leaders, or with `unclean` any replica where none is in sync; each partition's refusal, if any.

        Of all partitions (None), only those are in the result for which there was something to elect.
        """
        asked = None
        if partitions is not None:
            topics = by_topic((place.topic, place.partition) for place in partitions)
            asked = [TopicPartitions(topic=name, partitions=each) for name, each in topics.items()]
        kind = UNCLEAN if unclean else PREFERRED
        response = await self._ask(
            ElectLeadersRequest(election_type=kind, topic_partitions=asked, timeout_ms=LONGEST_MS),
            controller=True,
            timeout_ms=LONGEST_MS,
            at_least=UNCLEAN_FROM if unclean else 0,
            code_of=lambda answer: int(answer.error_code),
        )
        check(response.error_code)
        return {
            TopicPartition(topic.topic, each.partition_id): (
                error_of(each.error_code, each.error_message) if each.error_code != ErrorCode.NONE else None
            )
            for topic in response.replica_election_results
            for each in topic.partition_result
        }
