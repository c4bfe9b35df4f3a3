"""Which member of a classic group reads which partitions: range, round robin and cooperative-sticky, pure.

Each depends on the members' subscriptions and the topics' partitions alone, so that every leader comes to the
same result. Strategies have Kafka's names, and groups may mix members of this and other clients.
"""

from collections.abc import Callable, Mapping
from typing import Final

from horolog.client.values.types import TopicPartition
from horolog.client.wire.group_wire import Subscription

Members = Mapping[str, Subscription]
Topics = Mapping[str, list[int]]
Assignment = dict[str, list[TopicPartition]]


def assign_range(members: Members, topics: Topics) -> Assignment:
    """Topic by topic, each member gets one run of partitions; the first ones get one more if they do not divide evenly."""
    assigned: Assignment = {member: [] for member in members}
    for topic in sorted(topics):
        readers = sorted(member for member, subscription in members.items() if topic in subscription.topics)
        if not readers:
            continue
        partitions = sorted(topics[topic])
        share, more = divmod(len(partitions), len(readers))
        start = 0
        for index, member in enumerate(readers):
            stop = start + share + (index < more)
            assigned[member] += [TopicPartition(topic, each) for each in partitions[start:stop]]
            start = stop
    return assigned


def assign_round_robin(members: Members, topics: Topics) -> Assignment:
    """All partitions in order are dealt to the members in turn, past those that do not read the topic."""
    assigned: Assignment = {member: [] for member in members}
    order = sorted(members)
    turn = 0
    for partition in _all_partitions(topics):
        for step in range(len(order)):
            member = order[(turn + step) % len(order)]
            if partition.topic in members[member].topics:
                assigned[member].append(partition)
                turn = (turn + step + 1) % len(order)
                break
    return assigned


def assign_cooperative(members: Members, topics: Topics) -> Assignment:
    """Balanced with as few moves as possible; a partition that moves is withheld until its owner has given it up."""
    owners = _owners(members, topics)
    balanced = _balance(members, topics, owners)
    return {
        member: [partition for partition in partitions if owners.get(partition, member) == member]
        for member, partitions in balanced.items()
    }


def _owners(members: Members, topics: Topics) -> dict[TopicPartition, str]:
    """The owner of each partition: of several claimants the one with the newest generation; none if that is ambiguous."""
    claims: dict[TopicPartition, list[tuple[int, str]]] = {}
    for member, subscription in members.items():
        for partition in subscription.owned:
            if partition.topic in subscription.topics and partition.partition in topics.get(partition.topic, ()):
                claims.setdefault(partition, []).append((subscription.generation, member))
    owners: dict[TopicPartition, str] = {}
    for partition, claimed in claims.items():
        newest = max(generation for generation, _ in claimed)
        claimants = [member for generation, member in claimed if generation == newest]
        if len(claimants) == 1:
            owners[partition] = claimants[0]
    return owners


def _balance(members: Members, topics: Topics, owners: Mapping[TopicPartition, str]) -> Assignment:
    assigned: Assignment = {member: [] for member in sorted(members)}
    free: list[TopicPartition] = []
    for partition in _all_partitions(topics):
        owner = owners.get(partition)
        if owner is None:
            free.append(partition)
        else:
            assigned[owner].append(partition)
    for partition in free:
        taker = _least_loaded(assigned, members, partition.topic)
        if taker is not None:
            assigned[taker].append(partition)
    while _move_one(assigned, members):
        pass
    return {member: sorted(partitions) for member, partitions in assigned.items()}


def _move_one(assigned: Assignment, members: Members) -> bool:
    """Move one partition from the most loaded member that can give one; each move evens the loads, so this terminates."""
    for giver in sorted(assigned, key=lambda member: (-len(assigned[member]), member)):
        for partition in reversed(assigned[giver]):
            taker = _least_loaded(assigned, members, partition.topic)
            if taker is not None and len(assigned[giver]) - len(assigned[taker]) >= 2:
                assigned[giver].remove(partition)
                assigned[taker].append(partition)
                return True
    return False


def _least_loaded(assigned: Assignment, members: Members, topic: str) -> str | None:
    readers = [member for member in assigned if topic in members[member].topics]
    return min(readers, key=lambda member: (len(assigned[member]), member), default=None)


def _all_partitions(topics: Topics) -> list[TopicPartition]:
    return [TopicPartition(topic, index) for topic in sorted(topics) for index in sorted(topics[topic])]


COOPERATIVE: Final = "cooperative-sticky"
STRATEGIES: Final[dict[str, Callable[[Members, Topics], Assignment]]] = {
    "range": assign_range,
    "roundrobin": assign_round_robin,
    COOPERATIVE: assign_cooperative,
}
