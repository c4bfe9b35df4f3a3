"""A cluster as a value: topics, settings changed while running, producer ids and leaders, and the entries that change them.

All of it is pure. The same entries lead to the same state everywhere. What an entry asks of this broker follows from the states
before and after it: `transitions`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import compress
from operator import is_not
from typing import NamedTuple, Protocol, Self, TypeVar

from horolog.broker.base.topic_names import collision_key
from horolog.broker.cluster import spread
from horolog.broker.on_record.cluster_file import ClusterFile, Place, Standing, StateLines, StoredTopic, encode_lines
from horolog.broker.on_record.stored_rules import RuleId, Rules, StoredRule

PRODUCER_ID_BLOCK_SIZE = 1_000
"""Producer ids reserved by one entry; those left of a block are lost at a restart."""


NO_NODE = -1
NO_EPOCH = -1


class Lead(NamedTuple):
    """The broker that leads a partition, and since which leader epoch."""

    node: int
    epoch: int


Leads = tuple[tuple[Place, Lead], ...]
"""The leaders of partitions that `spread` would give to others."""

V = TypeVar("V")


def plain_leads(leads: Mapping[Place, Lead]) -> dict[Place, tuple[int, int]]:
    """Leaders in the form of the record."""
    return {place: (lead.node, lead.epoch) for place, lead in leads.items()}


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The cluster after `number` entries; `next_producer_id` is the lowest that was never reserved.

    Among the `nodes`, which each process sets and which are not stored, `spread` decides who leads a partition, unless `leads` names one
    of them. `epochs` are those that leaders have reported.
    """

    number: int = 0
    nodes: tuple[int, ...] = ()
    topics: Mapping[str, StoredTopic] = field(default_factory=dict)
    broker_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    next_producer_id: int = 0
    deleting: Mapping[str, frozenset[bytes]] = field(default_factory=dict)
    """Topics whose folders are still to be removed."""
    unidentified: frozenset[str] = frozenset()
    """Topics whose id lies in folders that cannot be read yet: the one they have is provisional, and never on record."""
    leads: Mapping[Place, Lead] = field(default_factory=dict)
    epochs: Mapping[Place, int] = field(default_factory=dict)
    rules: Rules = field(default_factory=dict)
    lost_rules: int = 0
    """Rules that were there and cannot be read: until the operator accepts that, no start serves without them."""
    rules_in_doubt: bool = False
    """Whether there may have been rules of which nothing is left: a broker with an authorizer does not serve without them."""
    collision_keys: Mapping[str, str] = field(default_factory=dict)
    partition_count: int = 0

    @classmethod
    def of(cls, topics: Iterable[StoredTopic], **others: object) -> Self:
        """A state with these topics and what follows from them."""
        return cls(**others).with_topics(topics)  # type: ignore[arg-type]

    def apply(self, entry: Entry) -> ClusterState:
        """The state after an entry. Names in the entry that do not exist are skipped."""
        return replace(entry.applied(self), number=self.number + 1)

    def save(
        self,
        file: ClusterFile,
        leads: Mapping[Place, tuple[int, int]] | None = None,
        *,
        has_journal: bool = False,
        lines: StateLines | None = None,
    ) -> None:
        """Durable when it returns; raises StorageFault. `lines` are the topics and rules, if they are encoded already."""
        file.save(
            self.known_topics(),
            self.broker_configs,
            self.next_producer_id,
            self.deleting,
            leads,
            rules=self.rules.values(),
            lost_rules=self.lost_rules,
            standing=Standing(self.rules_in_doubt, has_journal),
            lines=lines,
        )

    def lines(self) -> StateLines:
        """The topics and rules as every record of this state has them."""
        return encode_lines(self.known_topics(), self.rules.values())

    def known_topics(self) -> Iterable[StoredTopic]:
        """The topics to put on record: those with a provisional id are not."""
        if not self.unidentified:
            return self.topics.values()
        return [topic for name, topic in self.topics.items() if name not in self.unidentified]

    def leads_here(self, topic: StoredTopic, index: int, me: int) -> bool:
        return self.leader(topic.id, index) == me

    def leader(self, topic_id: bytes, index: int) -> int:
        """The node that leads a partition, live or not."""
        moved = self.leads.get((topic_id, index)) if self.leads else None
        if moved is not None and moved.node in self.nodes:
            return moved.node
        return spread.leader(self.nodes, topic_id, index)

    def leaders_follow_from(self) -> tuple[object, ...]:
        """Values that are replaced when leaders may change without their `records`, or a broker that serves readers."""
        return (self.nodes,)

    def records(self, topic_id: bytes, indexes: range) -> list[Lead | int | None]:
        """What `leads` and `epochs`, which are replaced with each change, have of these partitions."""
        places = [(topic_id, index) for index in indexes]
        leads = map(self.leads.get, places) if self.leads else ()
        return [*leads, *(map(self.epochs.get, places) if self.epochs else ())]

    def epoch(self, topic_id: bytes, index: int) -> int:
        """The newest leader epoch of a partition that a leader has reported."""
        place = topic_id, index
        moved = self.leads.get(place)
        return max(self.epochs.get(place, 0), 0 if moved is None else moved.epoch)

    def with_topics(self, topics: Iterable[StoredTopic]) -> Self:
        """The state with these topics added, or in place of those of the same names."""
        added = {topic.name: topic for topic in topics}
        count = sum(topic.partition_count - self._count_of(name) for name, topic in added.items())
        return replace(
            self,
            topics={**self.topics, **added},
            collision_keys={**self.collision_keys, **{collision_key(name): name for name in added}},
            partition_count=self.partition_count + count,
        )

    def _count_of(self, name: str) -> int:
        known = self.topics.get(name)
        return 0 if known is None else known.partition_count

    def without_topics(self, names: Iterable[str]) -> Self:
        gone = {name for name in names if name in self.topics}
        ids = {self.topics[name].id for name in gone}
        return replace(
            self,
            topics={name: topic for name, topic in self.topics.items() if name not in gone},
            collision_keys={key: name for key, name in self.collision_keys.items() if name not in gone},
            partition_count=self.partition_count - sum(map(self._count_of, gone)),
            unidentified=self.unidentified - gone,
            leads=_without(self.leads, ids),
            epochs=_without(self.epochs, ids),
        )


def _without(by_place: Mapping[Place, V], ids: Collection[bytes]) -> Mapping[Place, V]:
    return {place: value for place, value in by_place.items() if place[0] not in ids} if by_place else by_place


class Entry(Protocol):
    """One change of the cluster."""

    def applied(self, state: ClusterState) -> ClusterState: ...


@dataclass(frozen=True, slots=True)
class TopicsCreated:
    """New topics, and the leaders that were requested. If a name exists, the topic before was deleted by an entry that is lost."""

    topics: tuple[StoredTopic, ...]
    leads: Leads = ()

    def applied(self, state: ClusterState) -> ClusterState:
        known = {topic.name: state.topics[topic.name].id for topic in self.topics if topic.name in state.topics}
        gone = tuple(topic.name for topic in self.topics if known.get(topic.name, topic.id) != topic.id)
        if gone:
            state = TopicsDeleted(gone).applied(state)
        new = [topic for topic in self.topics if topic.name not in state.topics]
        return _with_leads(state.with_topics(new), self.leads, new)


@dataclass(frozen=True, slots=True)
class TopicsWithdrawn:
    """Topics whose folders could not be made, and of which nothing is left to be removed."""

    names: frozenset[str]

    def applied(self, state: ClusterState) -> ClusterState:
        return state.without_topics(self.names)


@dataclass(frozen=True, slots=True)
class TopicsDeleted:
    """Topics that are gone; their folders are to be removed."""

    names: tuple[str, ...]

    def applied(self, state: ClusterState) -> ClusterState:
        deleting = dict(state.deleting)
        for topic in (state.topics[name] for name in self.names if name in state.topics):
            deleting[topic.name] = deleting.get(topic.name, frozenset()) | {topic.id}
        return replace(state.without_topics(self.names), deleting=deleting)


@dataclass(frozen=True, slots=True)
class FoldersRemoved:
    """Deleted topics, by name and id, of which nothing is left on the disk."""

    topics: frozenset[tuple[str, bytes]]

    def applied(self, state: ClusterState) -> ClusterState:
        left = {
            name: frozenset(one for one in ids if (name, one) not in self.topics)
            for name, ids in state.deleting.items()
        }
        return replace(state, deleting={name: ids for name, ids in left.items() if ids})


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    """Topics with more partitions than before, and the leaders that were requested."""

    topics: tuple[StoredTopic, ...]
    leads: Leads = ()

    def applied(self, state: ClusterState) -> ClusterState:
        grown = list(_changed(state, self.topics))
        return _with_leads(state.with_topics(grown), self.leads, grown)


@dataclass(frozen=True, slots=True)
class TopicsFound:
    """Topics as they turned out to be: with fewer partitions than were added, or with the id that lies in a folder."""

    topics: tuple[StoredTopic, ...]

    def applied(self, state: ClusterState) -> ClusterState:
        found = list(_changed(state, self.topics))
        return replace(state.with_topics(found), unidentified=state.unidentified - {one.name for one in found})


@dataclass(frozen=True, slots=True)
class TopicConfigsChanged:
    """The whole set of overrides of each topic."""

    overrides: Mapping[str, Mapping[str, str]]

    def applied(self, state: ClusterState) -> ClusterState:
        changed = {
            name: replace(state.topics[name], overrides=dict(overrides), line="")
            for name, overrides in self.overrides.items()
            if name in state.topics
        }
        return replace(state.with_topics(changed.values()), unidentified=state.unidentified - changed.keys())


@dataclass(frozen=True, slots=True)
class BrokerConfigsChanged:
    """The whole dynamic configuration of one broker, or of all with an empty name."""

    node: str
    configs: Mapping[str, str]

    def applied(self, state: ClusterState) -> ClusterState:
        return replace(state, broker_configs={**state.broker_configs, self.node: dict(self.configs)})


@dataclass(frozen=True, slots=True)
class RulesChanged:
    """Rules that are new or changed, and those that are removed."""

    put: tuple[StoredRule, ...] = ()
    removed: frozenset[RuleId] = frozenset()

    def applied(self, state: ClusterState) -> ClusterState:
        left = {one: rule for one, rule in state.rules.items() if one not in self.removed}
        return replace(state, rules={**left, **{rule.id: rule for rule in self.put}})


@dataclass(frozen=True, slots=True)
class ProducerIdsReserved:
    """A block of producer ids that no other broker gives out."""

    first: int

    def applied(self, state: ClusterState) -> ClusterState:
        return replace(state, next_producer_id=max(state.next_producer_id, self.first + PRODUCER_ID_BLOCK_SIZE))


@dataclass(frozen=True, slots=True)
class LeadsChanged:
    """Partitions that another broker leads from now on, each in a new epoch."""

    leads: Leads

    def applied(self, state: ClusterState) -> ClusterState:
        return replace(state, leads={**state.leads, **dict(self.leads)})


@dataclass(frozen=True, slots=True)
class EpochsTold:
    """The leader epochs in which partitions are led: after a crash a leader goes on in a higher one."""

    epochs: tuple[tuple[Place, int], ...]

    def applied(self, state: ClusterState) -> ClusterState:
        return replace(state, epochs={**state.epochs, **dict(self.epochs)})


def _with_leads(state: ClusterState, leads: Leads, topics: Iterable[StoredTopic]) -> ClusterState:
    """With the leaders of these topics' partitions."""
    ids = {topic.id for topic in topics} if leads else ()
    return (
        replace(state, leads={**state.leads, **{place: lead for place, lead in leads if place[0] in ids}})
        if ids
        else state
    )


def _changed(state: ClusterState, topics: Iterable[StoredTopic]) -> Iterator[StoredTopic]:
    return (topic for topic in topics if topic.name in state.topics)


# -- what an entry asks of a broker


class Make(NamedTuple):
    """Make the folders of new partitions; the topic is new if they include its first one."""

    topic: StoredTopic
    indexes: tuple[int, ...]


class Delete(NamedTuple):
    """Take a topic out of service and remove its folders."""

    name: str
    id: bytes


class Identify(NamedTuple):
    """Know a topic by another id."""

    name: str
    id: bytes


class Configure(NamedTuple):
    """Give a topic other overrides."""

    name: str
    overrides: Mapping[str, str]


class ConfigureBrokers(NamedTuple):
    """Take up other dynamic configurations of brokers."""

    configs: Mapping[str, Mapping[str, str]]


class TakeRules(NamedTuple):
    """Go by these rules."""

    rules: Rules


class Open(NamedTuple):
    """Lead a partition, in this epoch."""

    topic: str
    partition: int
    epoch: int


class Close(NamedTuple):
    """Stop leading a partition."""

    topic: str
    partition: int


Step = Make | Delete | Identify | Configure | ConfigureBrokers | TakeRules | Open | Close


def transitions(before: ClusterState, after: ClusterState, me: int) -> list[Step]:
    """What the broker `me` has to do when the cluster changes from one state to another."""
    steps: list[Step] = []
    if before.topics is not after.topics:
        changed = _changed_names(before.topics, after.topics)
        steps += _departures(before, after, changed)
        for name in changed:
            known = before.topics.get(name)
            is_new = known is None or _is_deleted(known, after)
            steps += _arrivals(None if is_new else known, after.topics[name], after, me)
    if before.leads is not after.leads:
        steps += _changes_of_leads(before, after, me)
    if before.broker_configs is not after.broker_configs:
        steps.append(ConfigureBrokers(after.broker_configs))
    if before.rules is not after.rules:
        steps.append(TakeRules(after.rules))
    return steps


def _is_deleted(topic: StoredTopic, after: ClusterState) -> bool:
    return topic.id in after.deleting.get(topic.name, ())


def _changed_names(before: Mapping[str, StoredTopic], after: Mapping[str, StoredTopic]) -> list[str]:
    """The topics that are new or another; of tens of thousands in less than a millisecond."""
    return list(compress(after, map(is_not, after.values(), map(before.get, after))))


def _departures(before: ClusterState, after: ClusterState, changed: Collection[str]) -> Iterator[Step]:
    gone = before.topics.keys() - after.topics.keys() if len(before.topics) + len(changed) > len(after.topics) else ()
    for name in (*sorted(gone), *(name for name in changed if name in before.topics)):
        topic = before.topics[name]
        if name in gone or _is_deleted(topic, after):
            yield Delete(name, topic.id)


def _arrivals(known: StoredTopic | None, topic: StoredTopic, after: ClusterState, me: int) -> Iterator[Step]:
    if known is not None and known.id != topic.id:
        yield Identify(topic.name, topic.id)
    count = 0 if known is None else known.partition_count
    if topic.partition_count > count:
        added = range(count, topic.partition_count)
        yield Make(topic, tuple(index for index in added if after.leads_here(topic, index, me)))
    if known is not None and known.overrides != topic.overrides:
        yield Configure(topic.name, topic.overrides)


def _changes_of_leads(before: ClusterState, after: ClusterState, me: int) -> Iterator[Step]:
    names = {topic.id: name for name, topic in before.topics.items() if after.topics.get(name) is topic}
    for (topic_id, index), lead in after.leads.items():
        name, was = names.get(topic_id), before.leads.get((topic_id, index))
        if name is None or was == lead or index >= before.topics[name].partition_count:
            continue
        topic = after.topics[name]
        if after.leads_here(topic, index, me):
            yield Open(name, index, lead.epoch)
        elif before.leads_here(topic, index, me):
            yield Close(name, index)
