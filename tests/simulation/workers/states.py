"""What the cluster is after each entry of the workers' journal: the same wherever and whenever somebody looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from horolog.broker.cluster import found_journals, settling
from horolog.broker.cluster.cluster_state import ClusterState
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.on_record.cluster_file import ClusterFile


def shown(state: ClusterState) -> str:
    """All that a state says, in an order of its own."""
    topics = [
        (one.name, one.id.hex(), one.partition_count, _sorted(one.overrides), _sorted(one.folders))
        for _, one in sorted(state.topics.items())
    ]
    parts = {
        "topics": topics,
        "configs": {node: _sorted(configs) for node, configs in sorted(state.broker_configs.items())},
        "producer ids": state.next_producer_id,
        "deleting": {name: sorted(one.hex() for one in ids) for name, ids in sorted(state.deleting.items())},
        "leads": _places(state.leads),
        "epochs": _places(state.epochs),
        "rules": sorted(rule.line for rule in state.rules.values()),
    }
    return repr(parts)


def _sorted(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted((key, value) for key, value in values.items())


def _places(values: Mapping[tuple[bytes, int], Any]) -> list[tuple[str, int, Any]]:
    return sorted((topic_id.hex(), index, value) for (topic_id, index), value in values.items())


def leads_without_epoch(before: ClusterState, after: ClusterState) -> Iterator[str]:
    """Every change of a leader has an epoch of its own: readers tell by it what the former leader had and the next one has not."""
    topics = {topic.id: topic for topic in before.topics.values()}
    for (topic_id, index), lead in after.leads.items():
        known = topics.get(topic_id)
        if known is None or index >= known.partition_count:
            continue
        leader, epoch = before.leader(topic_id, index), before.epoch(topic_id, index)
        if after.leader(topic_id, index) != leader and lead.epoch <= epoch:
            yield f"{known.name}-{index} went from worker {leader} to {lead.node}, and both lead it in epoch {epoch}"


class States:
    """The states of one journal by their numbers, as they were seen first."""

    def __init__(self) -> None:
        self._seen: dict[int, str] = {}
        self._latest: dict[int, ClusterState] = {}
        self._looked_at: dict[int, int] = {}
        self.was_shortened = False

    def look(self, node: int, state: ClusterState) -> Iterator[str]:
        """The faults of what a worker takes the cluster for."""
        if self._looked_at.get(node) == state.number:
            return
        self._looked_at[node] = state.number
        yield from self._compare(state, f"worker {node}")
        before, self._latest[node] = self._latest.get(node), state
        if before is not None and before.number < state.number:
            yield from leads_without_epoch(before, state)

    def replay(self, disk: MemoryStorage, data_dir: str, nodes: tuple[int, ...]) -> Iterator[str]:
        """The faults of what a start would make of the journal as it lies on the disk, entry by entry."""
        found = found_journals.find(disk, [data_dir])
        stored = ClusterFile(disk, data_dir, lambda: [data_dir]).load()
        if found is None or not settling.goes_on(found, stored):
            return
        state = settling.beginning(settling.state_of(stored, nodes), found)
        if found.whole is not None:
            self.was_shortened = True
            yield from self._compare(state, "a whole state")
        for entry in found.read.entries:
            state = state.apply(entry)
            yield from self._compare(state, "a replay")
        if self._seen and max(self._seen) > state.number:
            yield f"the journal ends at {state.number}, and {max(self._seen)} was applied"

    def _compare(self, state: ClusterState, whose: str) -> Iterator[str]:
        now = shown(state)
        seen = self._seen.setdefault(state.number, now)
        if seen != now:
            yield f"after entry {state.number} the cluster is one thing to {whose}, and was another:\n{now}\n{seen}"
