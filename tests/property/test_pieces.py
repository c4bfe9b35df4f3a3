"""A long request is answered as it would be as a whole: for every API that is cut, as somebody with rights on a part of what it names."""

from __future__ import annotations

import random
from copy import copy
from typing import Any

import pytest

from horolog.broker.handlers import HANDLERS
from horolog.broker.handlers.pieces import Pace, split_of
from horolog.broker.network import dispatch, long_requests
from horolog.protocol.apis import ApiKey
from horolog.protocol.messages.metadata import MetadataRequestTopic
from horolog.protocol.messages.topics import CreatableTopic, DeleteTopicState
from horolog.protocol.wire import NO_UUID, ArrayType, Message, StructType
from tests.support.every_request import ABSENT, NAMES, OPEN, SECRET, UNKNOWN_ID, World, request_of
from tests.support.guarded_broker import GuardedBroker, acl

CUT = [
    (key, version)
    for key, handler in HANDLERS.items()
    for version in range(handler.min_version, handler.max_version + 1)
    if split_of(key, version) is not None
]
USERS = ("alice", "bob", "admin")
JOINED_BY_TOPIC = {ApiKey.DELETE_RECORDS, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT}
"""As a whole, they answer a topic once that the request names several times."""


class Fixed(Pace):
    """Pieces of so many elements, whatever they take."""

    size = 1
    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(self.size)

    def took(self, seconds: float) -> None:
        """It stays as it is."""


def grown(request: Message, key: ApiKey, version: int, world: World, rng: random.Random) -> Message:
    """The request with more of what it names: in any order, some of it many times."""
    split = split_of(key, version)
    assert split is not None
    return _grown(request, split.asked, world, rng)


def _grown(holder: Any, path: tuple[str, ...], world: World, rng: random.Random) -> Any:
    name, *inner = path
    elements = getattr(holder, name)
    if not elements:
        return holder
    declared = holder.FIELDS[name].type
    assert isinstance(declared, ArrayType)
    made = []
    for _ in range(rng.randrange(1, 14 if not inner else 6)):
        each = rng.choice(elements)
        if isinstance(declared.element, StructType):
            each = copy(each)
            if inner:
                each = _grown(each, tuple(inner), world, rng)
            elif hasattr(each, "partition_index"):
                each.partition_index = rng.randrange(4)
            elif hasattr(each, "partition"):
                each.partition = rng.randrange(4)
        elif isinstance(each, int):
            each = rng.randrange(4)
        made.append(each)
    changed = copy(holder)
    setattr(changed, name, made)
    return changed


def more_names(request: Any, key: ApiKey, version: int, world: World) -> Any:
    """What `every_request` leaves out: topics that are named by their ids, and both ways."""
    if key is ApiKey.METADATA and version >= 12:
        request.topics += [MetadataRequestTopic(name=None, topic_id=world.id_of(name)) for name in NAMES]
    if key is ApiKey.DELETE_TOPICS and version >= 6:
        request.topics += [
            DeleteTopicState(name=None, topic_id=world.id_of(OPEN)),
            DeleteTopicState(name=OPEN, topic_id=NO_UUID),
            DeleteTopicState(name=SECRET, topic_id=UNKNOWN_ID),
        ]
    if key is ApiKey.CREATE_TOPICS:
        request.topics.append(CreatableTopic(name=OPEN, num_partitions=1, replication_factor=1))
        request.validate_only = version % 2 == 1
    return request


def shown(value: Any, ids: dict[bytes, str]) -> str:
    """An answer without its order and without how often it says a thing, and without what differs between two brokers."""
    if isinstance(value, list):
        return "[" + ", ".join(sorted({shown(one, ids) for one in value})) + "]"
    if hasattr(value, "FIELDS"):
        fields = (f"{name}={shown(getattr(value, name), ids)}" for name in value.FIELDS if name != "cluster_id")
        return f"{type(value).__name__}({', '.join(fields)})"
    if isinstance(value, bytes) and len(value) == 16 and value not in (NO_UUID, UNKNOWN_ID):
        return ids.get(value, "an id")
    return repr(value)


def each_topic_once(topics: list[Any]) -> list[Any]:
    """A topic that is named again is answered wherever a piece names it, or in one place: it says the same."""
    merged: dict[Any, Any] = {}
    for topic in topics:
        first = merged.setdefault((topic.name, getattr(topic, "topic_id", None)), topic)
        if first is not topic:
            first.partitions += topic.partitions
    return list(merged.values())


async def answers(key: ApiKey, version: int, seed: int) -> list[str]:
    """What each user is told, one after the other, by a broker of its own."""
    rng = random.Random(seed)
    told = []
    async with GuardedBroker(advertised_listeners="PLAINTEXT://here:9092") as memory:
        for name in (OPEN, SECRET, "kept"):
            memory.topic(name, 2)
        rules = ("READ", "WRITE", "DESCRIBE", "CREATE", "DELETE", "ALTER", "ALTER_CONFIGS", "DESCRIBE_CONFIGS")
        memory.put(*(acl("alice", one, name=OPEN, prefixed=True) for one in rules))
        memory.put(*(acl("alice", one, "GROUP", OPEN) for one in ("READ", "DELETE", "DESCRIBE")))
        memory.put(*(acl("alice", one, "TRANSACTIONAL_ID", OPEN) for one in ("WRITE", "DESCRIBE")))
        topics = memory.broker.cluster.topics
        ids = {topic.id: name for name, topic in topics.items()}
        for user in USERS:
            world = World(
                {name: topic.id for name, topic in topics.items()}, mark=user, leader=memory.broker.placement.me
            )
            request = more_names(request_of(key, world, version), key, version, world)
            answer = await memory.wire(user).ask(grown(request, key, version, world, rng), version)
            if key in JOINED_BY_TOPIC:
                answer.topics = each_topic_once(answer.topics)
            told.append(shown(answer, ids))
        told.append(str(sorted(topics)))
    return told


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("key", "version"), CUT, ids=lambda one: one.name if isinstance(one, ApiKey) else f"v{one}")
async def test_pieces_are_answered_as_the_whole(key: ApiKey, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_requests, "SHORT_ELEMENTS", 0)
    monkeypatch.setattr(long_requests, "Pace", Fixed)
    for size in (1, 3):
        number = 10 * version + size
        monkeypatch.setattr(Fixed, "size", size)
        with monkeypatch.context() as whole:
            whole.setattr(dispatch, "_short_bytes", lambda key, *, is_split: 1 << 40)
            expected = await answers(key, version, number)
        monkeypatch.setattr(dispatch, "_short_bytes", lambda key, *, is_split: 0)
        assert await answers(key, version, number) == expected


def test_every_name_that_is_absent_stays_so() -> None:
    """Else the comparison above would say less than it seems."""
    assert ABSENT in NAMES
    assert {key for key, _ in CUT} >= {ApiKey.METADATA, ApiKey.OFFSET_FETCH, ApiKey.LIST_OFFSETS}
