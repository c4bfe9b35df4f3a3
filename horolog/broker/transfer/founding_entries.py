"""The first entries of the journal of a cluster that did not begin empty: one broker that is a member from the first to the last of them.

Its WAL has what does not lie in segments. The last entry lets it leave, so its partitions have no leader: the first broker that starts
leads them all, in the epoch behind the one that they are given here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from horolog.broker.bucket.bucket_entries import BrokerLeft, BrokerRegistered
from horolog.broker.bucket.names import Wal
from horolog.broker.cluster.cluster_state import (
    BrokerConfigsChanged,
    Entry,
    Lead,
    ProducerIdsReserved,
    RulesChanged,
    TopicsCreated,
)
from horolog.broker.on_record.cluster_file import Place, StoredTopic
from horolog.broker.on_record.stored_rules import StoredRule

FIRST_ENTRY = 1


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a cluster begins with."""

    node: int
    host: str
    """For people who read the journal."""
    topics: Sequence[StoredTopic]
    epochs: Mapping[Place, int]
    """The newest leader epoch of each partition; 0 for those that are not named."""
    broker_configs: Mapping[str, Mapping[str, str]]
    rules: Sequence[StoredRule]
    next_producer_id: int

    @property
    def wal(self) -> Wal:
        return Wal(self.node, FIRST_ENTRY)

    def entries(self, wal_end: int) -> list[Entry]:
        """`wal_end`: all numbers of the WAL are below it. How many entries there are does not depend on it."""
        topics = tuple(replace(one, folders={}, line="") for one in self.topics)
        places = [(one.id, index) for one in topics for index in range(one.partition_count)]
        leads = tuple((place, Lead(self.node, self.epochs.get(place, 0))) for place in places)
        entries: list[Entry] = [BrokerRegistered(self.node, self.host, ())]
        if topics:
            entries.append(TopicsCreated(topics, leads))
        entries += [BrokerConfigsChanged(node, configs) for node, configs in sorted(self.broker_configs.items())]
        if self.rules:
            entries.append(RulesChanged(tuple(self.rules)))
        if self.next_producer_id:
            entries.append(ProducerIdsReserved(self.next_producer_id))
        return [*entries, BrokerLeft(self.wal, wal_end)]
