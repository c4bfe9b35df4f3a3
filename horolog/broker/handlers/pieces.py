"""How a long request is cut into pieces, each of which is a short request of the same API: gate and handler see nothing else.

The parts of most requests do not depend on each other: topics, partitions, groups, resources. `SPLITS` names their arrays, from the
outer to the inner, and the arrays of the answer that stand for them. Where parts of one name do depend on each other, because a
request may name each only once, they go together in one piece; mentions that change no answer are dropped first.

Requests whose parts are all or nothing are not in the table; they are bounded by what one request may hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from horolog.base.acl_types import Operation
from horolog.broker.cluster.topic import NO_TOPIC_ID
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.flat import getter, with_value
from horolog.protocol.wire import ArrayType, Struct, StructType

if TYPE_CHECKING:
    from horolog.broker.handlers.context import BrokerView

YIELD_EVERY: Final = 1024
UNKNOWN_WEIGHT: Final = 64
"""The weight of a null that stands for everything."""

Name = Callable[["BrokerView", Any], Hashable]


@dataclass(frozen=True, slots=True)
class Split:
    """How requests of one API are cut.

    `told` has fewer arrays where the answer leaves out the outer ones of the request. Parts of one `name` go together, at most `most`
    with the same `words`; `inner_name` keeps parts inside a part together. `arrange` settles over all parts what would be lost
    between pieces.
    """

    asked: tuple[str, ...]
    told: tuple[str, ...]
    name: Name | None = None
    most: int = 1
    words: Name | None = None
    inner_name: Callable[[Any], Hashable] | None = None
    arrange: Callable[[Sequence[Any]], Generator[None, None, list[Any]]] | None = None
    whole_with: tuple[Operation, ...] = ()
    """With one of these operations on the cluster, a client's request is served as a whole: it is stored with one write."""


class Piece(NamedTuple):
    """A request with a part of the whole: elements of the array at `depth`; the outer arrays have one element each.

    The outer elements are new from the array `fresh` on; those of the arrays before it are the last piece's.
    """

    request: Any
    depth: int
    fresh: int


class Pace:
    """How many elements a piece has: as many as take about two milliseconds."""

    LEAST_S, MOST_S = 0.001, 0.003
    MOST_ELEMENTS = 2048

    __slots__ = ("room",)

    def __init__(self, room: int = 16) -> None:
        self.room = room

    def __repr__(self) -> str:
        return f"<Pace of {self.room} elements>"

    def took(self, seconds: float) -> None:
        if seconds < self.LEAST_S:
            self.room = min(self.room * 2, self.MOST_ELEMENTS)
        elif seconds > self.MOST_S:
            self.room = max(self.room // 2, 1)


class Fields:
    """Nested arrays: how they are read and replaced."""

    __slots__ = ("_readers", "_structs", "names")

    def __init__(self, struct: type[Struct], names: Sequence[str], *, flat: bool) -> None:
        self.names = names
        self._readers: list[Callable[[Any], Any]] = []
        self._structs: list[type[Struct]] = []
        for name in names:
            self._readers.append(getter(struct, name, flat=flat))
            self._structs.append(struct)
            declared = struct.FIELDS[name].type
            assert isinstance(declared, ArrayType)
            if isinstance(declared.element, StructType):
                struct = declared.element.struct

    def __repr__(self) -> str:
        return f"<Fields {'.'.join(self.names)}>"

    def __len__(self) -> int:
        return len(self.names)

    def of(self, holder: Any, depth: int) -> Any:
        return self._readers[depth](holder)

    def replaced(self, holder: Any, depth: int, value: object) -> Any:
        """A copy with another value of the array at a depth."""
        return with_value(self._structs[depth], holder, self.names[depth], value)


class Cutter:
    """Cuts requests of one API and version."""

    __slots__ = ("_fields", "split")

    def __init__(self, key: ApiKey, split: Split, *, flat: bool) -> None:
        self.split = split
        self._fields = Fields(API[key].request, split.asked, flat=flat)

    def __repr__(self) -> str:
        return f"<Cutter of {self._fields!r}>"

    def has_parts(self, request: Any) -> bool:
        """Whether there is something to cut: null and an empty array often stand for everything."""
        return bool(self._fields.of(request, 0))

    def weight(self, request: Any) -> int:
        """How many elements a request has, those of inner arrays among them."""
        return self._weight(request, 0)

    def _weight(self, holder: Any, depth: int) -> int:
        elements = self._fields.of(holder, depth)
        if elements is None:
            return UNKNOWN_WEIGHT
        if depth + 1 == len(self._fields):
            return len(elements)
        return len(elements) + sum(self._weight(each, depth + 1) for each in elements)

    def arranged(self, broker: BrokerView, request: Any) -> Generator[None, None, Any]:
        """The request without mentions that change no answer, and with parts of one name next to each other."""
        split = self.split
        elements = self._fields.of(request, 0) or ()
        if split.arrange is not None:
            elements = yield from split.arrange(elements)
        elif split.name is not None:
            words = split.words or split.name
            groups: dict[Hashable, list[Any]] = {}
            mentions: Counter[Hashable] = Counter()
            for number, each in enumerate(elements):
                said = words(broker, each)
                mentions[said] += 1
                if mentions[said] <= split.most:
                    groups.setdefault(split.name(broker, each), []).append(each)
                if number % YIELD_EVERY == YIELD_EVERY - 1:
                    yield
            elements = [each for group in groups.values() for each in group]
        else:
            return request
        return self._fields.replaced(request, 0, elements)

    def pieces(self, broker: BrokerView, request: Any, pace: Pace) -> Iterator[Piece]:
        """The pieces of an arranged request; the pace at that moment decides how large each is."""
        name = None if self.split.name is None else lambda each: self.split.name(broker, each)  # type: ignore[misc]
        return self._cut(request, 0, 0, name, pace, lambda holder: holder)

    def _cut(
        self,
        holder: Any,
        depth: int,
        fresh: int,
        name: Callable[[Any], Hashable] | None,
        pace: Pace,
        build: Callable[[Any], Any],
    ) -> Iterator[Piece]:
        """`build` makes the request from the holder of the array at `depth`."""
        fields = self._fields
        if depth + 1 == len(fields):
            for elements in _runs(fields.of(holder, depth) or (), name, pace):
                yield Piece(build(fields.replaced(holder, depth, elements)), depth, fresh)
                fresh = depth
            return
        piece: list[Any] = []
        weight = 0
        last: Hashable = None

        def made(elements: list[Any]) -> Any:
            return build(fields.replaced(holder, depth, elements))

        for each in fields.of(holder, depth) or ():
            its_weight = 1 + self._weight(each, depth + 1)
            its_name = None if name is None else name(each)
            if piece and weight + its_weight > pace.room and (name is None or its_name != last):
                yield Piece(made(piece), depth, fresh)
                fresh, piece, weight = depth, [], 0
            last = its_name
            if not piece and its_weight > pace.room and fields.of(each, depth + 1):
                begin = min(fresh, depth)
                yield from self._cut(each, depth + 1, begin, self.split.inner_name, pace, lambda one: made([one]))
                fresh = depth
            else:
                piece.append(each)
                weight += its_weight
        if piece:
            yield Piece(made(piece), depth, fresh)


def _runs(elements: Sequence[Any], name: Callable[[Any], Hashable] | None, pace: Pace) -> Iterator[list[Any]]:
    """The elements in their order, so many together as the pace at that moment has room for; those of one name are not parted."""
    start = 0
    while start < len(elements):
        end = start + pace.room
        if name is not None:
            while end < len(elements) and name(elements[end]) == name(elements[end - 1]):
                end += 1
        yield list(elements[start:end])
        start = end


def _together(most: int | None = None) -> Callable[[Sequence[Any]], Generator[None, None, list[Any]]]:
    """Each topic once, with the mentions of a partition next to each other; those beyond `most` change no answer."""

    def arrange(elements: Sequence[Any]) -> Generator[None, None, list[Any]]:
        topics: dict[str, tuple[Any, list[Any]]] = {}
        for topic in elements:
            topics.setdefault(topic[0], (topic, []))[1].extend(topic[-1])
            yield
        arranged = []
        for topic, mentions in topics.values():
            arranged.append((*topic[:-1], _by_partition(mentions, most)))
            yield
        return arranged

    return arrange


def _by_partition(mentions: list[Any], most: int | None) -> list[Any]:
    if len({one[0] for one in mentions}) == len(mentions):
        return mentions
    partitions: dict[int, list[Any]] = {}
    for one in mentions:
        partitions.setdefault(one[0], []).append(one)
    return [one for each in partitions.values() for one in each[:most]]


def _each_once(
    field: str, index_of: Callable[[Any], int]
) -> Callable[[Sequence[Any]], Generator[None, None, list[Any]]]:
    """Each topic once, with the last mention of each partition that its `field` names."""

    def arrange(elements: Sequence[Any]) -> Generator[None, None, list[Any]]:
        topics: dict[str, tuple[Any, dict[int, Any]]] = {}
        for topic in elements:
            _, partitions = topics.setdefault(topic.name, (topic, {}))
            partitions.update((index_of(one), one) for one in getattr(topic, field))
            yield
        arranged = []
        for topic, partitions in topics.values():
            once = copy(topic)
            setattr(once, field, list(partitions.values()))
            arranged.append(once)
        return arranged

    return arrange


def _deleted_name(broker: BrokerView, asked: Any) -> Hashable:
    """The topic of an element of DeleteTopics; one request may name a topic by its name and by its id."""
    if isinstance(asked, str):
        return asked
    topic = broker.cluster.by_id.get(asked.topic_id) if asked.name is None and asked.topic_id != NO_TOPIC_ID else None
    return asked.name if topic is None and asked.name is not None else asked.topic_id if topic is None else topic.name


def _named(*fields: str) -> Name:
    """Names an element by some of its fields, or by itself if none are given."""
    if not fields:
        return lambda _, element: element
    read = attrgetter(*fields)
    return lambda _, element: read(element)


_PARTITIONS: Final = Split(("topics", "partitions"), ("topics", "partitions"))
_BY_INDEX: Final = Split(("topics", "partition_indexes"), ("topics", "partitions"))
_RESOURCES: Final = Split(("resources",), ("responses",), _named("resource_type", "resource_name"), most=2)
_ALTER: Final = (Operation.ALTER,)

SPLITS: Final[dict[tuple[ApiKey, int], Split]] = {
    (ApiKey.LIST_OFFSETS, 0): _PARTITIONS,
    (ApiKey.LIST_OFFSETS, 1): Split(
        ("topics", "partitions"), ("topics", "partitions"), inner_name=itemgetter(0), arrange=_together(most=2)
    ),
    (ApiKey.METADATA, 0): Split(("topics",), ("topics",), _named("name", "topic_id")),
    (ApiKey.OFFSET_COMMIT, 0): _PARTITIONS,
    (ApiKey.OFFSET_COMMIT, 1): Split(
        ("topics", "partitions"), ("topics", "partitions"), inner_name=itemgetter(0), arrange=_together()
    ),
    (ApiKey.OFFSET_COMMIT, 2): _PARTITIONS,
    (ApiKey.OFFSET_FETCH, 0): Split(
        ("topics", "partition_indexes"), ("topics", "partitions"), arrange=_each_once("partition_indexes", int)
    ),
    (ApiKey.OFFSET_FETCH, 1): _BY_INDEX,
    (ApiKey.OFFSET_FETCH, 8): Split(("groups", "topics", "partition_indexes"), ("groups", "topics", "partitions")),
    (ApiKey.FIND_COORDINATOR, 4): Split(("coordinator_keys",), ("coordinators",)),
    (ApiKey.LEAVE_GROUP, 3): Split(("members",), ("members",)),
    (ApiKey.DESCRIBE_GROUPS, 0): Split(("groups",), ("groups",)),
    (ApiKey.CREATE_TOPICS, 0): Split(("topics",), ("topics",), _named("name"), most=2),
    (ApiKey.DELETE_TOPICS, 0): Split(("topic_names",), ("responses",), _named(), most=2),
    (ApiKey.DELETE_TOPICS, 6): Split(
        ("topics",), ("responses",), _deleted_name, most=2, words=_named("name", "topic_id")
    ),
    (ApiKey.DELETE_RECORDS, 0): Split(
        ("topics", "partitions"),
        ("topics", "partitions"),
        arrange=_each_once("partitions", attrgetter("partition_index")),
    ),
    (ApiKey.OFFSET_FOR_LEADER_EPOCH, 0): _PARTITIONS,
    (ApiKey.WRITE_TXN_MARKERS, 0): Split(
        ("markers", "topics", "partition_indexes"), ("markers", "topics", "partitions")
    ),
    (ApiKey.TXN_OFFSET_COMMIT, 0): _PARTITIONS,
    (ApiKey.CREATE_ACLS, 0): Split(("creations",), ("results",), whole_with=_ALTER),
    (ApiKey.DELETE_ACLS, 0): Split(("filters",), ("filter_results",), whole_with=_ALTER),
    (ApiKey.DESCRIBE_CONFIGS, 0): Split(("resources",), ("results",)),
    (ApiKey.ALTER_CONFIGS, 0): _RESOURCES,
    (ApiKey.ALTER_REPLICA_LOG_DIRS, 0): Split(
        ("dirs", "topics", "partitions"), ("results", "partitions"), whole_with=_ALTER
    ),
    (ApiKey.CREATE_PARTITIONS, 0): Split(("topics",), ("results",), _named("name"), most=2),
    (ApiKey.DELETE_GROUPS, 0): Split(("groups_names",), ("results",), _named()),
    (ApiKey.ELECT_LEADERS, 0): Split(
        ("topic_partitions", "partitions"), ("replica_election_results", "partition_result")
    ),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, 0): _RESOURCES,
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0): Split(("topics", "partitions"), ("responses", "partitions")),
    (ApiKey.ALTER_CLIENT_QUOTAS, 0): Split(("entries",), ("entries",), whole_with=(Operation.ALTER_CONFIGS,)),
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0): Split(("users",), ("results",), _named("name"), most=2),
    (ApiKey.OFFSET_DELETE, 0): _PARTITIONS,
    (ApiKey.CONSUMER_GROUP_DESCRIBE, 0): Split(("group_ids",), ("groups",)),
    (ApiKey.SHARE_GROUP_DESCRIBE, 0): Split(("group_ids",), ("groups",)),
    (ApiKey.STREAMS_GROUP_DESCRIBE, 0): Split(("group_ids",), ("groups",)),
    (ApiKey.DESCRIBE_PRODUCERS, 0): _BY_INDEX,
    (ApiKey.DESCRIBE_TRANSACTIONS, 0): Split(("transactional_ids",), ("transaction_states",)),
}
"""By API and the first version that it holds for."""


def split_of(key: ApiKey, version: int) -> Split | None:
    """How requests of a version are cut; None where they are served as a whole."""
    firsts = [first for each, first in SPLITS if each is key and first <= version]
    return SPLITS[key, max(firsts)] if firsts else None
