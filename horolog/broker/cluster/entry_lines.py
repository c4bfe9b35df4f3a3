"""Entries of `horolog-journal` as lines with a checksum each (`checked_lines`), in the forms that `horolog-cluster` has.

The first line is the head, which names the version of `horolog-cluster` that the journal continues, and its workers. The second line
repeats it, for without a head the entries could not be placed (version 1 had it once):

    {"version": 2, "base": <number of horolog-cluster>, "nodes": [<node>, ...]}

A broker alone writes version 3 and no nodes. Releases before it refuse that: they would take Kafka's checkpoints for older than the
journal. It goes back to `horolog-cluster` at a clean stop. In all versions
every further line is an entry, numbered from 1, with its kind and what that kind says:

    {"number": 7, "kind": "TopicsCreated", "topics": [{"name": ..., "id": ..., "partitions": ..., "configs": {...}}]}

A shortened journal (`file_journal`) also has `"whole": {"number": <entry>, "after": <entry>, "bytes": <size>}` in its head. The next
`bytes` bytes are the state after entry `number`, in the form of `horolog-cluster`, and stand for all entries up to it. The lines after
them begin with the entry that follows `after`, which is no later.

Topics that are made or grow have `leads`, in the form of `LeadsChanged`, if leaders were requested.

A whole line that cannot be read still counts as an entry, `Illegible`, which knows the consequences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from horolog.broker.cluster.cluster_state import (
    PRODUCER_ID_BLOCK_SIZE,
    BrokerConfigsChanged,
    ClusterState,
    Entry,
    EpochsTold,
    FoldersRemoved,
    Lead,
    Leads,
    LeadsChanged,
    PartitionsAdded,
    ProducerIdsReserved,
    RulesChanged,
    TopicConfigsChanged,
    TopicsCreated,
    TopicsDeleted,
    TopicsFound,
    TopicsWithdrawn,
)
from horolog.broker.config.topic_settings import as_unknown
from horolog.broker.log.storage import DataFolderError
from horolog.broker.on_record.checked_lines import decode_line, encode_line
from horolog.broker.on_record.cluster_file import Place, StoredTopic, parse_places, read_topic, show_places
from horolog.broker.on_record.stored_rules import read_rule
from horolog.protocol.uuids import parse_uuid, show_uuid

VERSION = 3
VERSION_OF_SEVERAL = 2
VERSION_WITH_ONE_HEAD = 1

DAMAGE: Final = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What reading a damaged line raises."""

Content = Mapping[str, Any]


class NewerJournal(DataFolderError):
    """The journal was begun by a later release, so its meaning is unknown."""


class UnknownKind(ValueError):
    """An entry is whole, and of a kind that this release does not know."""


class Whole(NamedTuple):
    """A whole state in a journal."""

    number: int
    """The entry that it is the state after."""
    after: int
    """The entry before the first one that is there as a line."""
    size_bytes: int


class Head(NamedTuple):
    """The first line of a journal."""

    base: int
    """The version of `horolog-cluster` that it continues."""
    nodes: tuple[int, ...]
    whole: Whole | None = None
    version: int = VERSION_OF_SEVERAL

    @property
    def is_of_one(self) -> bool:
        """Whether a broker alone has begun it: then Kafka's checkpoints are up to date, and there are no others."""
        return self.version == VERSION


def head_of_one(base: int) -> Head:
    """The head of the journal of a broker alone."""
    return Head(base, (), version=VERSION)


_KIND = re.compile(rb'"kind": "(\w+)"')
_OF_RULES = frozenset({"RulesChanged"})
_OF_SETTINGS = frozenset({"TopicConfigsChanged", "BrokerConfigsChanged"})
_OF_PRODUCER_IDS = frozenset({"ProducerIdsReserved"})


@dataclass(frozen=True, slots=True)
class Illegible:
    """An entry that was damaged at rest; its `kind`, if that can be read.

    What it may have said does no harm: lost rules keep a start from serving, no records are deleted under unknown settings, and producer
    ids that it may have reserved are skipped. Topics that it may have made are found by their folders.
    """

    kind: str | None = None

    def applied(self, state: ClusterState) -> ClusterState:
        if self.kind in _OF_RULES:
            state = replace(state, lost_rules=state.lost_rules + 1)
        if self.kind is None:
            state = with_rules_in_doubt(state)
        if self.kind is None or self.kind in _OF_SETTINGS:
            state = without_settings(state)
        if self.kind is None or self.kind in _OF_PRODUCER_IDS:
            state = replace(state, next_producer_id=state.next_producer_id + PRODUCER_ID_BLOCK_SIZE)
        return state


def with_rules_in_doubt(state: ClusterState) -> ClusterState:
    """If there are any rules, at least one counts as lost."""
    return replace(state, rules_in_doubt=True, lost_rules=state.lost_rules + bool(state.rules))


def without_settings(state: ClusterState) -> ClusterState:
    """How long topics keep their records is unknown: none are deleted until it is set again."""
    return state.with_topics(
        replace(topic, overrides=as_unknown(topic.overrides), line="") for topic in state.topics.values()
    )


def illegible(line: bytes) -> Sequence[Illegible]:
    """The entries that an unreadable line stands for: two if the newline between them was damaged."""
    kinds = [kind.decode() for kind in _KIND.findall(line)]
    if kinds and all(kind in FORMS for kind in kinds):
        return [Illegible(kind) for kind in kinds]
    return [Illegible()] * max(1, len(kinds))


def encode_head(head: Head) -> bytes:
    """The lines that a journal begins with."""
    content: dict[str, Any] = {"version": head.version, "base": head.base, "nodes": list(head.nodes)}
    if head.whole is not None:
        number, after, size_bytes = head.whole
        content["whole"] = {"number": number, "after": after, "bytes": size_bytes}
    line = encode_line(content).encode("ascii")
    return line if head.version == VERSION_WITH_ONE_HEAD else line * 2


def find_head(data: bytes) -> Head | None:
    """The head that a journal begins with, from either of its two lines; None if neither can be read. Raises NewerJournal."""
    first, _, behind = data.partition(b"\n")
    joined = first[len(first) // 2 + 1 :]  # the second line, if the newline before it was damaged
    for line in (first, behind.partition(b"\n")[0], joined):
        try:
            return decode_head(line)
        except DAMAGE:
            continue
    return None


def decode_head(line: bytes) -> Head:
    """Raises ValueError, KeyError and TypeError for damage, and NewerJournal."""
    content = decode_line(line)
    version = int(content["version"])
    if version > VERSION:
        raise NewerJournal(
            f"horolog-journal has version {version}, this release knows versions up to {VERSION}:"
            " start the release that wrote it, or a newer one"
        )
    told = content.get("whole")
    whole = None if told is None else Whole(int(told["number"]), int(told["after"]), int(told["bytes"]))
    return Head(int(content["base"]), tuple(int(node) for node in content["nodes"]), whole, version)


def encode_entry(number: int, entry: Entry, forms: Mapping[str, EntryForm] | None = None) -> bytes:
    """`forms` has the kinds that a journal has, by default those that all clusters have."""
    kind = type(entry).__name__
    return encode_line({"number": number, "kind": kind, **(forms or FORMS)[kind].show(entry)}).encode("ascii")


def decode_entry(line: bytes, forms: Mapping[str, EntryForm] | None = None) -> tuple[int, Entry]:
    """An entry with its number; raises ValueError, KeyError, TypeError and AttributeError for damage, and UnknownKind.

    Fields that this release does not know are left out: a later one adds fields to a kind only if a reader may ignore them.
    """
    content = decode_line(line)
    form = (forms or FORMS).get(content["kind"])
    if form is None:
        raise UnknownKind(f"kind {content['kind']!r}, which this release does not know")
    return int(content["number"]), form.read(content)


def _shown_topics(entry: Any) -> dict[str, Any]:
    return {"topics": [topic.content() for topic in entry.topics]}


def _read_topics(content: Content) -> tuple[StoredTopic, ...]:
    return tuple(map(read_topic, content["topics"]))


def _shown_leads(entry: Any) -> dict[str, Any]:
    return {"leads": shown_leads(dict(entry.leads))}


def shown_leads(leads: Mapping[Place, Lead]) -> dict[str, Any]:
    return show_places({place: list(lead) for place, lead in leads.items()})


def _read_leads(content: Content) -> Leads:
    return tuple(read_leads(content).items())


def read_leads(content: Content) -> dict[Place, Lead]:
    """The leaders that a line has; none if it has no `leads`."""
    found = parse_places(content.get("leads", {}))
    return {place: Lead(int(node), int(epoch)) for place, (node, epoch) in found.items()}


def _shown_new(entry: Any) -> dict[str, Any]:
    return {**_shown_topics(entry), **(_shown_leads(entry) if entry.leads else {})}


def _configs(content: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    return {str(name): dict(configs) for name, configs in content.items()}


class EntryForm(NamedTuple):
    """How a kind of entry is written, and read again."""

    show: Callable[[Any], Mapping[str, Any]]
    read: Callable[[Content], Entry]


FORMS: dict[str, EntryForm] = {
    "TopicsCreated": EntryForm(_shown_new, lambda content: TopicsCreated(_read_topics(content), _read_leads(content))),
    "PartitionsAdded": EntryForm(
        _shown_new, lambda content: PartitionsAdded(_read_topics(content), _read_leads(content))
    ),
    "TopicsFound": EntryForm(_shown_topics, lambda content: TopicsFound(_read_topics(content))),
    "TopicsDeleted": EntryForm(
        lambda entry: {"names": list(entry.names)}, lambda content: TopicsDeleted(tuple(map(str, content["names"])))
    ),
    "TopicsWithdrawn": EntryForm(
        lambda entry: {"names": sorted(entry.names)},
        lambda content: TopicsWithdrawn(frozenset(map(str, content["names"]))),
    ),
    "FoldersRemoved": EntryForm(
        lambda entry: {"topics": sorted([name, show_uuid(topic_id)] for name, topic_id in entry.topics)},
        lambda content: FoldersRemoved(
            frozenset((str(name), parse_uuid(topic_id)) for name, topic_id in content["topics"])
        ),
    ),
    "TopicConfigsChanged": EntryForm(
        lambda entry: {"configs": _configs(entry.overrides)},
        lambda content: TopicConfigsChanged(_configs(content["configs"])),
    ),
    "BrokerConfigsChanged": EntryForm(
        lambda entry: {"node": entry.node, "configs": dict(entry.configs)},
        lambda content: BrokerConfigsChanged(str(content["node"]), dict(content["configs"])),
    ),
    "RulesChanged": EntryForm(
        lambda entry: {"rules": [rule.as_json() for rule in entry.put], "removed": sorted(map(list, entry.removed))},
        lambda content: RulesChanged(
            tuple(map(read_rule, content["rules"])),
            frozenset((str(kind), str(key)) for kind, key in content["removed"]),
        ),
    ),
    "ProducerIdsReserved": EntryForm(
        lambda entry: {"first": entry.first}, lambda content: ProducerIdsReserved(int(content["first"]))
    ),
    "LeadsChanged": EntryForm(_shown_leads, lambda content: LeadsChanged(_read_leads(content))),
    "EpochsTold": EntryForm(
        lambda entry: {"epochs": show_places(dict(entry.epochs))},
        lambda content: EpochsTold(
            tuple((place, int(epoch)) for place, epoch in parse_places(content["epochs"]).items())
        ),
    ),
}
