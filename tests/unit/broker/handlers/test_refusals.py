"""Whatever is asked, in whatever version, can be refused so that the client learns which error it is, for all that it asked for."""

from __future__ import annotations

import random
from typing import Any

import pytest

from horolog.broker.handlers import HANDLERS, refusals
from horolog.broker.handlers.refusals import refuse, refused_parts, refusing, with_refused_parts
from horolog.broker.network.dispatch import Dispatcher
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.compile import decode, encode, flat_encoder
from horolog.protocol.error_finder import error_finder
from horolog.protocol.errors import ErrorCode
from horolog.protocol.flat import flat_of, struct_of
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from horolog.protocol.messages.groups import FindCoordinatorRequest
from horolog.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from horolog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from horolog.protocol.messages.offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseTopic,
)
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.wire import ArrayType
from tests.support.every_request import NAMES, World, request_of
from tests.support.memory_broker import MemoryBroker
from tests.support.message_values import random_message
from tests.support.request_contexts import request_context

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
WHY = "not for you"
EVERY = [(key, version) for key, one in HANDLERS.items() for version in range(one.min_version, one.max_version + 1)]


def full(request: Any, version: int) -> bool:
    """Whether something is asked for in every array."""
    arrays = [
        name for name, each in request.FIELDS.items() if isinstance(each.type, ArrayType) and version in each.versions
    ]
    asked = [getattr(request, name) for name in arrays]
    return all(asked) and all(full(each, version) for some in asked for each in some if hasattr(each, "FIELDS"))


def asked(key: ApiKey, version: int, chance: random.Random) -> Any:
    """A request that asks for something in every place, as it comes out of a frame."""
    request: Any = None
    while request is None or not full(request, version):
        made = random_message(API[key].request, version, chance)
        request = decode(API[key].request, version, encode(made, version))
    return request


def refused(key: ApiKey, request: Any, version: int) -> Any:
    """The answer as a client decodes it."""
    is_flat = HANDLERS[key].flat
    given = flat_of(request) if is_flat else request
    answer: Any = refuse(key, given, request_context(version), DENIED, WHY)
    if is_flat:
        answer = struct_of(API[key].response, answer)
    return decode(API[key].response, version, encode(answer, version), to_the_end=True)


@pytest.mark.parametrize(("key", "version"), [each for each in EVERY if each[0] is not ApiKey.PRODUCE])
def test_every_request_can_be_refused(key: ApiKey, version: int) -> None:
    answer = refused(key, asked(key, version, random.Random(version)), version)
    assert set(error_finder(API[key].response)(answer) or ()) == {DENIED}


@pytest.mark.parametrize(
    "key", [ApiKey.OFFSET_COMMIT, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.DELETE_RECORDS, ApiKey.CREATE_PARTITIONS]
)
def test_the_parts_of_a_request_are_refused_one_by_one(key: ApiKey) -> None:
    version = HANDLERS[key].max_version
    request = asked(key, version, random.Random(1))
    answer: Any = refused_parts(key, flat_of(request) if HANDLERS[key].flat else request, version, DENIED)
    if HANDLERS[key].flat:
        answer = struct_of(API[key].response, answer)
    told = decode(API[key].response, version, encode(answer, version), to_the_end=True)
    assert set(error_finder(API[key].response)(told) or ()) == {DENIED}


@pytest.mark.parametrize("version", range(HANDLERS[ApiKey.FETCH].max_version + 1))
def test_a_refused_fetch_has_empty_records_which_every_client_can_read(version: int) -> None:
    answer = refused(ApiKey.FETCH, asked(ApiKey.FETCH, version, random.Random(1)), version)
    request = asked(ApiKey.FETCH, 4, random.Random(1))
    parts: Any = refused_parts(ApiKey.FETCH, flat_of(request), 4, DENIED)
    for each in (answer, struct_of(API[ApiKey.FETCH].response, parts)):
        found = [partition.records for topic in each.responses for partition in topic.partitions]
        assert set(found) <= {b""}
    assert any(topic.partitions for topic in struct_of(API[ApiKey.FETCH].response, parts).responses)


def test_a_level_without_elements_reaches_none() -> None:
    assert refusals._source(MetadataRequestTopic, "topics", 1) == ()
    assert list(refusals._reached(MetadataRequestTopic(name="t"), ())) == []


@pytest.mark.parametrize(("key", "version"), EVERY)
async def test_the_gate_refuses_it_on_the_wire(key: ApiKey, version: int) -> None:
    async with MemoryBroker() as memory:
        seen: list[ApiKey] = []

        def decide(key: ApiKey, _: Any, __: Any) -> ErrorCode:
            seen.append(key)
            return DENIED

        memory.dispatcher = Dispatcher(memory.broker, gate=refusing(decide))
        wire = memory.connect()
        request = asked(key, version, random.Random(version))
        if key is ApiKey.PRODUCE:
            request.acks = 1
        answer = await wire.ask(request, version)
        assert set(error_finder(API[key].response)(answer) or ()) == {DENIED}
        assert seen == [key]


async def test_a_produce_that_wants_no_answer_is_refused_by_closing() -> None:
    async with MemoryBroker() as memory:
        memory.dispatcher = Dispatcher(memory.broker, gate=refusing(lambda *_: DENIED))
        wire = memory.connect()
        partition = PartitionProduceData(index=0, records=b"")
        wire.send(ProduceRequest(acks=0, topic_data=[TopicProduceData(name="t", partition_data=[partition])]), 7)
        assert wire.closed
        assert not wire.received


async def test_what_the_decision_allows_reaches_its_handler() -> None:
    async with MemoryBroker() as memory:

        def decide(_: ApiKey, request: MetadataRequest, __: Any) -> ErrorCode | None:
            return DENIED if any(each.name == "secret" for each in request.topics or ()) else None

        memory.topic("t")
        memory.dispatcher = Dispatcher(memory.broker, gate=refusing(decide))
        wire = memory.connect()
        for name, code in (("t", ErrorCode.NONE), ("secret", DENIED)):
            answer = await wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 9)
            assert [(each.name, each.error_code) for each in answer.topics] == [(name, code)]


def test_each_partition_is_named_with_the_error_and_no_number() -> None:
    partitions = [ListOffsetsPartition(partition_index=index, timestamp=17) for index in (3, 5)]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=partitions)])
    (topic,) = refused(ApiKey.LIST_OFFSETS, request, 1).topics
    assert topic.name == "t"
    assert [(each.partition_index, each.error_code, each.timestamp, each.offset) for each in topic.partitions] == [
        (3, DENIED, -1, -1),
        (5, DENIED, -1, -1),
    ]


@pytest.mark.parametrize(
    ("version", "expected"),
    [(0, [("secret", [0, 1])]), (1, [("secret", [0, 0]), ("empty", []), ("secret", [1, 0])])],
)
def test_the_oldest_answer_names_each_partition_once(version: int, expected: list[tuple[str, list[int]]]) -> None:
    named = [("secret", [0, 0]), ("empty", []), ("secret", [1, 0])]
    topics = [OffsetFetchRequestTopic(name=name, partition_indexes=indexes) for name, indexes in named]
    answer = refused_parts(ApiKey.OFFSET_FETCH, OffsetFetchRequest(group_id="g", topics=topics), version, DENIED)
    assert [(one.name, [each.partition_index for each in one.partitions]) for one in answer.topics] == expected


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.NOT_COORDINATOR])
def test_refused_parts_are_added_unless_the_rest_fails_as_a_whole(code: ErrorCode) -> None:
    topics = [OffsetFetchRequestTopic(name="secret", partition_indexes=[0])]
    answer = OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="t")], error_code=code)
    refused_ones = [(OffsetFetchRequest(group_id="g", topics=topics), DENIED)]
    found = with_refused_parts(ApiKey.OFFSET_FETCH, answer, refused_ones, 2)
    assert [one.name for one in found.topics] == (["t"] if code else ["t", "secret"])


def test_the_error_stands_at_the_top_where_there_is_a_place() -> None:
    request = FetchRequest(topics=[FetchTopic(topic="t", partitions=[FetchPartition(partition=3)])])
    (topic,) = refused(ApiKey.FETCH, request, 6).responses
    assert (topic.topic, topic.partitions[0].partition_index, topic.partitions[0].error_code) == ("t", 3, DENIED)
    newer = refused(ApiKey.FETCH, request, 7)
    assert (newer.error_code, newer.session_id, newer.responses) == (DENIED, 0, [])


def test_names_alone_are_answered_by_name_and_the_reason_is_told() -> None:
    answer = refused(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=["g", "h"]), 4)
    assert [(each.key, each.error_code, each.error_message) for each in answer.coordinators] == [
        ("g", DENIED, WHY),
        ("h", DENIED, WHY),
    ]


@pytest.mark.parametrize("version", range(14))
def test_parts_of_a_produce_are_refused_as_any_others_without_a_way_round(version):
    """Its tuples are made at once: 60,000 partitions took 0.7 s of the thread by way of structs."""
    ids = {name: name.encode().ljust(16) for name in NAMES}
    request = request_of(ApiKey.PRODUCE, World(ids), version)
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    told = refused_parts(ApiKey.PRODUCE, flat_of(request), version, code)
    usual = refusals._Refusal(version, code, "").of_parts(ApiKey.PRODUCE, request)
    answers = [
        (one.name, one.topic_id, [each.error_code for each in one.partition_responses]) for one in usual.responses
    ]
    assert [(name, topic_id, [each[1] for each in parts]) for name, topic_id, parts in told[0]] == answers
    encoded = []
    flat_encoder(API[ApiKey.PRODUCE].response, version)(told, encoded)
    assert b"".join(encoded) == encode(usual, version)
