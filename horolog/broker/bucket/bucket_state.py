"""A cluster of brokers over a store as a value: its members, the leader of each partition, and where the records of each lie. Pure.

Every partition has a leader on record, or none. A lead changes only together with the end of the WAL in which the leader before it wrote,
and only to the next epoch: an entry of `bucket_entries` that was decided on another state moves nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, cast

from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.seams import Lineage, Stretch
from horolog.broker.cluster import spread
from horolog.broker.cluster.cluster_state import NO_EPOCH, NO_NODE, ClusterState, Entry, Lead, LeadsChanged
from horolog.broker.on_record.cluster_file import Place, StoredTopic


class MemberListener(NamedTuple):
    """A listener of a broker, at the address that it advertises."""

    name: str
    protocol: str
    host: str
    port: int

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


class ClusterMember(NamedTuple):
    """A broker that has registered, and has neither left nor been fenced."""

    incarnation: int
    """The number of the entry that registered it."""
    host: str
    """The machine that it runs on, for people."""
    listeners: tuple[MemberListener, ...]
    rack: str | None = None


Suspicions = Mapping[int, Mapping[int, int]]
"""Members that others suspect, each with the members that suspect it and the numbers of their entries. What a member says of itself is its answer."""


@dataclass(frozen=True, slots=True)
class BucketState(ClusterState):
    """`leads` has every partition, `nodes` are the members."""

    members: Mapping[int, ClusterMember] = field(default_factory=dict)
    lineages: Mapping[Place, Lineage] = field(default_factory=dict)
    fenced: frozenset[Wal] = frozenset()
    """WALs of brokers that may have gone on for a while without knowing that they were fenced."""
    suspicions: Suspicions = field(default_factory=dict)

    def apply(self, entry: Entry) -> BucketState:
        """The state after an entry: new partitions have leaders, and deleted ones have no lineage."""
        if isinstance(entry, LeadsChanged):  # of workers: it ends no WAL
            return replace(self, number=self.number + 1)
        after = cast("BucketState", entry.applied(self))
        if after.topics is not self.topics:
            after = _with_new_partitions(_without_gone(after), _changed(self, after))
        return replace(after, number=self.number + 1)

    def leader(self, topic_id: bytes, index: int) -> int:
        lead = self.leads.get((topic_id, index))
        return NO_NODE if lead is None else lead.node

    def leaders_follow_from(self) -> tuple[object, ...]:
        return self.nodes, self.members, self.suspicions

    def wal_of(self, node: int) -> Wal | None:
        """The WAL of a member."""
        member = self.members.get(node)
        return None if member is None else Wal(node, member.incarnation)

    def is_member(self, wal: Wal) -> bool:
        """Whether the broker that writes this WAL is a member: it has not ended."""
        return self.wal_of(wal.node) == wal

    @property
    def written_wals(self) -> frozenset[Wal]:
        """The WALs that members write."""
        return frozenset(Wal(node, member.incarnation) for node, member in self.members.items())

    @property
    def read_wals(self) -> frozenset[Wal]:
        """The WALs that lineages name: leaders read them, now or later."""
        return frozenset(stretch.wal for line in self.lineages.values() for stretch in line)

    def was_member(self, node: int) -> bool:
        """Whether a broker of this number was a member, as far as is known: it was fenced, or leaders still read what it has written."""
        return any(wal.node == node for wal in self.fenced | self.read_wals)

    def is_first(self, node: int) -> bool:
        """Whether a member has the lowest number: it looks after objects that belong to no leader."""
        return min(self.members, default=None) == node

    def gone(self, topic_ids: Iterable[bytes]) -> list[bytes]:
        """Those that no topic has."""
        known = {one.id for one in self.topics.values()}
        return [one for one in topic_ids if one not in known]

    def spent(self, wals: Iterable[Wal]) -> list[Wal]:
        """Those that no broker writes, and that no leader reads, now or later."""
        read = self.read_wals
        return [one for one in wals if one.incarnation <= self.number and not self.is_member(one) and one not in read]

    def led_by(self, node: int) -> list[Place]:
        """The partitions that a member leads, or those without a leader."""
        return [place for place, lead in self.leads.items() if lead.node == node]

    def ended(self, wal: Wal, end: int, leads: Mapping[Place, Lead]) -> BucketState:
        """The state in which a WAL ends before that number for these partitions, each of which gets another leader.

        A lead that does not follow on the one that is known, or goes to a broker that is no member, is left out.
        """
        known, lineages = dict(self.leads), dict(self.lineages)
        for place, lead in leads.items():
            line = lineages.get(place, ())
            if line and line[-1].wal == wal and line[-1].end is None and self._follows(place, lead):
                known[place] = lead
                lineages[place] = (*line[:-1], line[-1]._replace(end=end), *self.begun(lead))
        return replace(self, leads=known, lineages=lineages)

    def adopted(self, node: int) -> BucketState:
        """The state in which a member leads all that had no leader."""
        orphans = self.led_by(NO_NODE)
        if not orphans:
            return self
        leads = {place: Lead(node, self._next_epoch(place)) for place in orphans}
        lines = {place: (*self.lineages.get(place, ()), *self.begun(lead)) for place, lead in leads.items()}
        return replace(self, leads={**self.leads, **leads}, lineages={**self.lineages, **lines})

    def with_members(self, members: Mapping[int, ClusterMember]) -> BucketState:
        """The state with these members; suspicions of others, and by them, are over."""
        suspicions = {
            node: left
            for node, by in self.suspicions.items()
            if node in members and (left := {one: number for one, number in by.items() if one in members})
        }
        return replace(self, members=members, nodes=tuple(sorted(members)), suspicions=suspicions)

    def _follows(self, place: Place, lead: Lead) -> bool:
        if lead.node == NO_NODE:
            return lead.epoch == self.leads[place].epoch
        return lead.node in self.members and lead.epoch == self._next_epoch(place)

    def _next_epoch(self, place: Place) -> int:
        return self.leads[place].epoch + 1

    def begun(self, lead: Lead) -> Lineage:
        """The stretch that begins with a lead; none without a leader."""
        wal = self.wal_of(lead.node)
        return () if wal is None else (Stretch(lead.epoch, wal),)


def orphaned(state: BucketState, places: Iterable[Place]) -> dict[Place, Lead]:
    """The leads of partitions that lose their leader, and for which there is no other."""
    return {place: Lead(NO_NODE, state.leads[place].epoch) for place in places}


def _changed(before: BucketState, after: BucketState) -> Iterator[StoredTopic]:
    return (topic for name, topic in after.topics.items() if before.topics.get(name) is not topic)


def _without_gone(state: BucketState) -> BucketState:
    ids = {topic.id for topic in state.topics.values()}
    if all(topic_id in ids for topic_id, _ in state.lineages):
        return state
    return replace(
        state, lineages=_of(state.lineages, ids), leads={p: o for p, o in state.leads.items() if p[0] in ids}
    )


def _of(lineages: Mapping[Place, Lineage], ids: Collection[bytes]) -> dict[Place, Lineage]:
    return {place: line for place, line in lineages.items() if place[0] in ids}


def _with_new_partitions(state: BucketState, topics: Iterable[StoredTopic]) -> BucketState:
    """Partitions that are new begin in epoch 0, or the one that was requested, with the leader that was requested, or the one that `spread` gives."""
    leads: dict[Place, Lead] = {}
    for topic in topics:
        for index in range(topic.partition_count):
            if (topic.id, index) not in state.lineages:
                leads[topic.id, index] = _first_lead(state, topic.id, index)
    if not leads:
        return state
    lines = {place: state.begun(lead) for place, lead in leads.items()}
    return replace(state, leads={**state.leads, **leads}, lineages={**state.lineages, **lines})


def _first_lead(state: BucketState, topic_id: bytes, index: int) -> Lead:
    wanted = state.leads.get((topic_id, index))
    if wanted is not None and wanted.node in state.members:
        return wanted
    return Lead(spread.leader(state.nodes, topic_id, index), 0) if state.nodes else Lead(NO_NODE, NO_EPOCH)
