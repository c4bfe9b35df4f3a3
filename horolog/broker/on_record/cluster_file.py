"""Keeps what the partition folders cannot say in one small file, written whole and atomically, the same in every data folder.

The file is `horolog-cluster`, of lines with a checksum each (`checked_lines`). The first is the head:

    {"version": 1, "number": <how often it was written>, "topics": <number of topic lines>, "next_producer_id": <lowest id never reserved>,
     "broker_configs": {"<node id, or empty for all nodes>": {"<key>": "<value>"}}, "deleting": {"<name>": ["<topic id>"]}}

and every further line is a topic:

    {"name": "<name>", "id": "<topic id>", "partitions": <count>, "configs": {"<key>": "<value>"}, "folders": {"<directory id>": [<partition>, ...]}}

A user, an access list or a quota has a line of its own behind those (`stored_rules`):

    {"rule": "<kind>", "key": "<key>", "content": {...}}

The head then has version 2, which older releases do not open, for they would serve without the rules; `"rules": <number of these lines>`,
and `"lost_rules": <number>` of those that could not be read and are not accepted as lost (`horolog.lost.rules.accept`).

It has version 3 if the file is not the whole record: `"journal": true` while several workers serve the folder, for `horolog-journal` has
what they have changed since (a release that does not know journals would take topics for unknown and delete their records), and
`"rules_in_doubt": true` if rules may have been lost without a trace. A clean stop writes version 1 or 2 again, unless secrets are
encrypted (`security.password_encoder`): a release that does not know that would serve without them.

If workers lead partitions that were moved, the head also has `"leads": {"<topic id>": {"<partition>": [<node>, <leader epoch>]}}`. A
broker alone leads everything: it does not write it again. `number` also says which `horolog-journal` goes on from here.

`folders` is there if there are several data folders: it says in which of them each partition lies, so that a partition whose folder is
away is not made again elsewhere. Of several files the one with the highest `number` counts: a folder that was away has an older one.

Topic ids are 16 bytes in URL-safe base64 without padding, as in `partition.metadata`. `deleting` has topics whose folders
were to be removed when the file was written: folders of that name and id that are left at start are removed, not served.

A line that cannot be trusted is left out and reported, and the file is kept next to the new one with the ending `.damaged`. Topics are
then still found from their folders. A line of a topic is encoded once and kept: writing 3,500 topics joins 3,500 strings.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from zlib import crc32

from horolog.broker.base.own_thread import in_pieces
from horolog.broker.log.storage import DAMAGED_SUFFIX, DataFolderError, FileMissing, Storage, StorageFault
from horolog.broker.on_record.checked_lines import encode_line, read_lines
from horolog.broker.on_record.stored_rules import ENCRYPTED, RuleId, StoredRule, read_rule
from horolog.protocol.uuids import parse_uuid, show_uuid

log = logging.getLogger(__name__)

FILE_NAME = "horolog-cluster"
JOURNAL = "horolog-journal"
"""What several workers have changed since the file was written: see `cluster.file_journal`."""
VERSION = 3
VERSION_WITH_RULES = 2
VERSION_WITHOUT_RULES = 1
TOPIC_ID_SIZE_BYTES = 16
MAX_REPORTED_DAMAGES = 10
TOPICS_AT_ONCE = 1000
"""How many lines are taken until other threads may go on: the file is written beside the event loop."""

Place = tuple[bytes, int]
"""A partition, by its topic's id."""


class NewerClusterFile(DataFolderError):
    """The file was written by a later release: its meaning is unknown, and no new file takes its place."""


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """A topic as the file has it."""

    name: str
    id: bytes
    partition_count: int
    overrides: Mapping[str, str]
    folders: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """By directory id; empty where there is one folder."""
    line: str = field(default="", compare=False, repr=False)  # as the file has it

    def __post_init__(self) -> None:
        if not self.line:
            object.__setattr__(self, "line", encode_line(self.content()))

    def places(self) -> dict[int, str]:
        """The ids of the data folders that partitions lie in, as far as they are on record."""
        return {index: one for one, indexes in self.folders.items() for index in indexes}

    def content(self) -> dict[str, Any]:
        """The topic as a line has it."""
        content = {
            "name": self.name,
            "id": show_uuid(self.id),
            "partitions": self.partition_count,
            "configs": dict(self.overrides),
        }
        if self.folders:
            content["folders"] = {one: list(indexes) for one, indexes in self.folders.items()}
        return content


@dataclass(slots=True)
class StoredCluster:
    """The file's whole content; `next_producer_id` is None when the head was lost or there was no file."""

    topics: dict[str, StoredTopic] = field(default_factory=dict)
    broker_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    next_producer_id: int | None = None
    deleting: dict[str, set[bytes]] = field(default_factory=dict)
    damages: list[str] = field(default_factory=list)
    found: bool = False
    head_found: bool = False
    number: int = 0
    leads: dict[Place, tuple[int, int]] = field(default_factory=dict)
    """Node and leader epoch of the partitions that were moved."""
    rules: dict[RuleId, StoredRule] = field(default_factory=dict)
    lost_rules: int = 0
    """The least number of rules that were there and cannot be read."""
    rules_in_doubt: bool = False
    """Whether there may have been others of which nothing is left."""
    has_journal: bool = False
    """Whether a journal goes on from here."""
    epochs: Mapping[Place, int] = field(default_factory=dict)
    """Leader epochs that leaders have reported: the state that workers keep in their journal has them, the file has none."""


class Standing(NamedTuple):
    """What a file says of itself as a record."""

    rules_in_doubt: bool = False
    """Whether there may have been rules of which nothing is left."""
    has_journal: bool = False
    """Whether a journal goes on from here."""

    @property
    def is_whole(self) -> bool:
        return not any(self)


WHOLE = Standing()


class StateLines(NamedTuple):
    """The lines of topics and rules, to be written behind the heads of any number of files."""

    pieces: Sequence[bytes]
    topics: int
    rules: int
    has_secrets: bool
    """Whether a rule is encrypted."""


class ClusterFile:
    """Reads and writes the file, one in every usable data folder; `usable` is called each time."""

    def __init__(self, storage: Storage, data_dir: str, usable: Callable[[], Sequence[str]] | None = None) -> None:
        self._storage = storage
        self._path = f"{data_dir}/{FILE_NAME}"
        self._usable = usable or (lambda: [data_dir])
        self._number = 0
        """The highest number that a file may have: a write that failed may have got as far as its last step."""
        self._written_number = 0
        self._sum: int | None = None
        """The checksum of what was read or written last."""

    def __repr__(self) -> str:
        return f"ClusterFile({self._path!r})"

    def __str__(self) -> str:
        return self._path

    @property
    def number(self) -> int:
        """How often the file was written at least: a failed write does not count, for it may have left nothing."""
        return self._written_number

    @property
    def next_number(self) -> int:
        """The number of the next file, unless writing it fails."""
        return self._number + 1

    def load(self) -> StoredCluster:
        """The newest of the files; an undamaged one if two are equally new."""
        read = [one for data_dir in self._usable() if (one := self._load(f"{data_dir}/{FILE_NAME}")) is not None]
        found = [one for one, _ in read]
        newest, self._sum = max(
            read, key=lambda one: (one[0].number, not one[0].damages), default=(StoredCluster(), None)
        )
        if any(one.number < newest.number for one in found):
            log.warning("the copies of %s in the data folders differ: using the newest", FILE_NAME)
        self._number = self._written_number = newest.number
        return newest

    def go_on_from(self, number: int) -> None:
        """Make the next file newer than that, even if the one that was read is an older copy."""
        self._number = max(self._number, number)
        self._written_number = max(self._written_number, number)

    def is_hurt(self) -> bool:
        """Whether the file differs from what was read or written last; False if it cannot be read."""
        try:
            return any(self._sum_of(f"{one}/{FILE_NAME}") != self._sum for one in self._usable())
        except StorageFault:
            return False

    def _sum_of(self, path: str) -> int | None:
        try:
            return crc32(self._storage.read_all(path))
        except FileMissing:
            return None

    def _load(self, path: str) -> tuple[StoredCluster, int] | None:
        try:
            data = self._storage.read_all(path)
        except FileMissing:
            return None
        stored = parse(bytes(data))
        if stored.damages:
            self._keep(path, bytes(data))
        return stored, crc32(data)

    def _keep(self, path: str, data: bytes) -> None:
        """Keep a copy of a damaged file. Without room for it there is none for a new file either, and the damaged one stays."""
        try:
            self._storage.write_atomically(path + DAMAGED_SUFFIX, data)
        except StorageFault as fault:
            log.error("%s is damaged, and no copy of it could be written: %s", path, fault)

    def save(
        self,
        topics: Iterable[StoredTopic],
        broker_configs: Mapping[str, Mapping[str, str]],
        next_producer_id: int,
        deleting: Mapping[str, Iterable[bytes]],
        leads: Mapping[Place, tuple[int, int]] | None = None,
        *,
        rules: Iterable[StoredRule] = (),
        lost_rules: int = 0,
        standing: Standing = WHOLE,
        lines: StateLines | None = None,
    ) -> None:
        """Durable when it returns, in one folder at least; raises StorageFault if it is in none. `lines` are those of the topics and rules."""
        self._number += 1
        data = encode(
            encode_lines(topics, rules) if lines is None else lines,
            number=self._number,
            broker_configs=broker_configs,
            next_producer_id=next_producer_id,
            deleting=deleting,
            leads=leads,
            lost_rules=lost_rules,
            standing=standing,
        )
        data_dirs = self._usable()
        faults: list[StorageFault] = []
        for data_dir in data_dirs:
            try:
                self._storage.write_atomically(f"{data_dir}/{FILE_NAME}", data)
            except StorageFault as fault:
                faults.append(fault)
        if len(faults) == len(data_dirs):
            raise faults[0]
        self._sum, self._written_number = crc32(data), self._number
        for one in faults:
            log.error("%s is not written in every data folder: %s", FILE_NAME, one)


def encode(
    lines: StateLines,
    *,
    number: int,
    broker_configs: Mapping[str, Mapping[str, str]],
    next_producer_id: int,
    deleting: Mapping[str, Iterable[bytes]],
    leads: Mapping[Place, tuple[int, int]] | None = None,
    epochs: Mapping[Place, int] | None = None,
    lost_rules: int = 0,
    standing: Standing = WHOLE,
) -> bytes:
    """The whole content of a file."""
    pieces, topic_count, rule_count, has_secrets = lines
    has_rules = bool(rule_count or lost_rules)
    has_secrets |= _has_secrets(text for one in broker_configs.values() for text in one.values())
    head = {
        "version": _version(has_rules=has_rules, is_part=not standing.is_whole or has_secrets),
        "number": number,
        "topics": topic_count,
        "next_producer_id": next_producer_id,
        "broker_configs": {node: dict(configs) for node, configs in broker_configs.items()},
        "deleting": {name: sorted(map(show_uuid, ids)) for name, ids in deleting.items()},
    }
    if leads:
        head["leads"] = show_places({place: list(lead) for place, lead in leads.items()})
    if epochs:
        head["epochs"] = show_places(epochs)
    if has_rules:
        head |= {"rules": rule_count, "lost_rules": lost_rules}
    if standing.rules_in_doubt:
        head["rules_in_doubt"] = True
    if standing.has_journal:
        head["journal"] = True
    return b"".join((encode_line(head).encode("ascii"), *pieces))


def encode_lines(topics: Iterable[StoredTopic], rules: Iterable[StoredRule]) -> StateLines:
    """In pieces, between which other threads may go on."""
    topic_lines = [topic.line for topic in in_pieces(topics, TOPICS_AT_ONCE)]
    rule_lines = [rule.line for rule in in_pieces(rules, TOPICS_AT_ONCE)]
    lines = topic_lines + rule_lines
    starts = range(0, len(lines), TOPICS_AT_ONCE)
    pieces = ["".join(lines[start : start + TOPICS_AT_ONCE]).encode("ascii") for start in in_pieces(starts, 1)]
    return StateLines(pieces, len(topic_lines), len(rule_lines), any(ENCRYPTED in line for line in rule_lines))


def _has_secrets(texts: Iterable[str]) -> bool:
    """Whether a setting is encrypted (`security.password_encoder`), which earlier releases do not know."""
    return any(text.startswith(ENCRYPTED) for text in texts)


def _version(*, has_rules: bool, is_part: bool) -> int:
    """The lowest version whose readers do no harm with the file."""
    if is_part:
        return VERSION
    return VERSION_WITH_RULES if has_rules else VERSION_WITHOUT_RULES


def parse(data: bytes) -> StoredCluster:
    """Everything of the file that can be trusted, and what could not."""
    stored = StoredCluster(found=True)
    expected: _Counts | None = None

    def take_head(content: Mapping[str, Any]) -> None:
        nonlocal expected
        expected = _read_head(content, stored)

    def take_other(content: Mapping[str, Any], line: str) -> None:
        if "rule" in content:
            rule = read_rule(content, line)
            stored.rules[rule.id] = rule
            return
        topic = read_topic(content, line)
        stored.topics[topic.name] = topic

    stored.damages += [f"line {one.number}: {one.reason}" for one in read_lines(data, take_head, take_other)]
    if expected is None:
        stored.damages.append("the head is missing")
        stored.rules_in_doubt = True
        stored.lost_rules = int(bool(stored.rules))  # no more are known of
    else:
        if len(stored.topics) != expected.topics:
            stored.damages.append(f"{len(stored.topics)} of {expected.topics} topics are readable")
        if len(stored.rules) != expected.rules:
            stored.damages.append(f"{len(stored.rules)} of {expected.rules} rules are readable")
            stored.lost_rules += abs(expected.rules - len(stored.rules))
    del stored.damages[MAX_REPORTED_DAMAGES:]
    return stored


class _Counts(NamedTuple):
    """The numbers of lines that a head announces."""

    topics: int
    rules: int


def _read_head(content: Mapping[str, Any], stored: StoredCluster) -> _Counts:
    if int(content["version"]) > VERSION:
        advice = (
            "start the release that wrote it, or a newer one;"
            " before an older one that release has to stop cleanly, or to start once with horolog.workers=1"
        )
        raise NewerClusterFile(
            f"{FILE_NAME} has version {content['version']}, this release knows versions up to {VERSION}; {advice}"
        )
    stored.deleting = {name: set(map(parse_uuid, texts)) for name, texts in content["deleting"].items()}
    stored.broker_configs = {node: dict(configs) for node, configs in content["broker_configs"].items()}
    stored.number = int(content.get("number", 0))
    leads: Mapping[Place, Sequence[int]] = parse_places(content.get("leads", {}))
    stored.leads = {place: (int(node), int(epoch)) for place, (node, epoch) in leads.items()}
    stored.epochs = {place: int(epoch) for place, epoch in parse_places(content.get("epochs", {})).items()}
    stored.next_producer_id = int(content["next_producer_id"])
    stored.lost_rules = int(content.get("lost_rules", 0))
    stored.rules_in_doubt = bool(content.get("rules_in_doubt", False))
    stored.has_journal = bool(content.get("journal", False))
    stored.head_found = True
    return _Counts(int(content["topics"]), int(content.get("rules", 0)))


def show_places(by_place: Mapping[Place, Any]) -> dict[str, dict[str, Any]]:
    """Values of partitions as JSON has them: by the topic's id, then by the partition's number."""
    by_topic: dict[bytes, dict[str, Any]] = {}
    for (topic_id, index), value in by_place.items():
        by_topic.setdefault(topic_id, {})[str(index)] = value
    return {show_uuid(topic_id): each for topic_id, each in by_topic.items()}


def parse_places(shown: Mapping[str, Mapping[str, Any]]) -> dict[Place, Any]:
    """Raises ValueError."""
    found: dict[Place, Any] = {}
    for one, each in shown.items():
        topic_id = parse_uuid(one)  # once: a topic may have thousands of partitions
        found.update(((topic_id, int(index)), value) for index, value in each.items())
    return found


def read_topic(content: Mapping[str, Any], line: str = "") -> StoredTopic:
    """The topic of a line's content. Raises KeyError, TypeError and ValueError."""
    return StoredTopic(
        name=str(content["name"]),
        id=parse_uuid(content["id"]),
        partition_count=int(content["partitions"]),
        overrides=dict(content["configs"]),
        folders={str(one): [int(index) for index in indexes] for one, indexes in content.get("folders", {}).items()},
        line=line,
    )
