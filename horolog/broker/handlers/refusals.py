"""The answer that refuses a request as a whole, for every api and version, made from the declarations of the messages.

The error stands at the top of the answer where that version has a place for it, else in each part that was asked for (a topic's
partition, a group, a resource), named as the request names it. So a client learns for every part that it is refused, and why.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from horolog.broker.handlers import produce
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.flat import value_of, values_of, with_structs
from horolog.protocol.messages import consumer_groups, groups, share_groups, streams_groups
from horolog.protocol.messages.metadata import MetadataResponseTopic
from horolog.protocol.messages.offsets import (
    OffsetCommitResponseTopic,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from horolog.protocol.messages.produce import PartitionProduceResponse
from horolog.protocol.messages.quotas import DescribeClientQuotasResponse
from horolog.protocol.messages.scram import (
    AlterUserScramCredentialsResult,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from horolog.protocol.messages.topics import (
    CreatableTopicResult,
    CreatePartitionsTopicResult,
    DeleteRecordsPartitionResult,
    DeleteRecordsTopicResult,
)
from horolog.protocol.messages.transactions import TransactionState, TxnOffsetCommitResponseTopic
from horolog.protocol.wire import NO_THROTTLING_MS, ArrayType, Field, Message, Struct, StructType, record_set

if TYPE_CHECKING:
    from collections.abc import Callable

    from horolog.broker.handlers import HandlerFunction
    from horolog.broker.handlers.context import BrokerView, RequestContext
    from horolog.broker.handlers.gate import Gate

    Decide = Callable[[ApiKey, Any, RequestContext], ErrorCode | None]

NAMES = {
    "group_id": (),
    "index": (),
    "key": (),
    "name": (),
    "partition": (),
    "partition_id": (),
    "partition_index": ("partition",),
    "producer_id": (),
    "resource_name": (),
    "resource_type": (),
    "topic": (),
    "topic_id": (),
    "topic_name": ("name",),
    "transactional_id": (),
    "user": ("name",),
}
"""Fields by which an answer names its parts, and other names for them in requests."""

NUMBERS = (
    "offset",
    "watermark",
    "timestamp",
    "timestamp_ms",
    "_epoch",
    "generation_id",
    "leader_id",
    "node_id",
    "port",
    "producer_id",
)
"""Endings of the names of fields that hold -1 where they have no value."""
NO_NUMBER = -1

HOLDING_ZERO = {
    TransactionState,
    consumer_groups.ConsumerGroupHeartbeatResponse,
    consumer_groups.DescribedGroup,
    share_groups.DescribedShareGroup,
    share_groups.ShareGroupHeartbeatResponse,
    streams_groups.DescribedStreamsGroup,
    streams_groups.StreamsGroupHeartbeatResponse,
}
"""Answers and parts in which such fields are 0."""

NOTES = {"metadata"}
"""Texts that are empty, not null, where there is none."""

ONLY_BESIDE_PARTS = {ApiKey.ADD_PARTITIONS_TO_TXN}
"""Their error at the top refuses the broker that sent the request, not its clients."""

ALSO_BESIDE_PARTS = {
    ApiKey.ELECT_LEADERS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
}
"""The error stands at the top and in the parts."""

ANSWERED_ONCE = {
    AlterUserScramCredentialsResult,
    CreatableTopicResult,
    CreatePartitionsTopicResult,
    DeleteRecordsPartitionResult,
    DeleteRecordsTopicResult,
    MetadataResponseTopic,
    groups.DeletableGroupResult,
    OffsetCommitResponseTopic,
    TxnOffsetCommitResponseTopic,
}
"""Parts that are answered once, however often a request names them: with the inner parts of all mentions."""

ANSWERED_ONCE_IN_V0 = {OffsetFetchResponseTopic, OffsetFetchResponsePartition}
"""Parts of which that holds in version 0 only; a topic without partitions is left out there."""

OF_ALL_ARRAYS = {AlterUserScramCredentialsResult}
"""Parts that stand for the elements of every array of the request."""

DENIALS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "The principal is not authorized to do this with the topic.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "The principal is not authorized to do this with the group.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "The principal is not authorized to do this with the cluster.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "The principal is not authorized to use the transactional id.",
}
"""The reasons that are given where the caller gives none."""

DENIALS_AS_KAFKA: dict[type[Struct], str | None] = {
    CreatePartitionsTopicResult: None,
    DescribeClientQuotasResponse: None,
    DescribeUserScramCredentialsResponse: None,
    DescribeUserScramCredentialsResult: None,
    consumer_groups.ConsumerGroupHeartbeatResponse: None,
    consumer_groups.DescribedGroup: None,
    share_groups.DescribedShareGroup: None,
    share_groups.ShareGroupHeartbeatResponse: None,
    streams_groups.DescribedStreamsGroup: None,
    streams_groups.StreamsGroupHeartbeatResponse: None,
    groups.Coordinator: "",
    groups.DescribedGroup: None,
    PartitionProduceResponse: None,
}
"""Answers and parts in which real brokers give no such reason."""

ECHOED = {"entity"}
"""Arrays that name a part, as the request has them."""

NOT_IN_THE_ANSWER = {"dirs"}
"""Levels of a request that the answer leaves out."""


def refusing(decide: Decide, why: str = "") -> Gate:
    """A gate by a decision on whole requests: the error that refuses one, or None."""

    def gate(key: ApiKey, handle: HandlerFunction) -> HandlerFunction:
        def guarded(broker: BrokerView, request: Any, context: RequestContext) -> object | None:
            code = decide(key, request, context)
            return handle(broker, request, context) if code is None else refuse(key, request, context, code, why)

        return guarded

    return gate


def refuse(key: ApiKey, request: Any, context: RequestContext, code: ErrorCode, why: str = "") -> object | None:
    """The answer of a handler that refuses the request, with the reason if the answer has room for one."""
    if key is ApiKey.PRODUCE:
        produce.refuse_all(request, context, code, why or None)  # which may have asked for no answer
        return None
    refusal = _Refusal(context.version, code, why)
    answer: object = with_structs(partial(refusal.of, key), API[key].request, request)
    return answer


def refuse_for_now(
    broker: BrokerView, key: ApiKey, request: Any, context: RequestContext, code: ErrorCode
) -> object | None:
    """Refuse a request that is to come again. The coordinator learns of one that would have begun a transaction, as if it had refused it."""
    if key is ApiKey.ADD_PARTITIONS_TO_TXN:
        broker.transactions.refused(request.v3_and_below_transactional_id)
    elif key is ApiKey.ADD_OFFSETS_TO_TXN:
        broker.transactions.refused(request.transactional_id)
    return refuse(key, request, context, code)


def refused_parts(key: ApiKey, request: Any, version: int, code: ErrorCode) -> Any:
    """The answer that refuses what a request asks for part by part, and nothing as a whole."""
    if key is ApiKey.PRODUCE:
        return produce.refused(request, code), NO_THROTTLING_MS, ()
    refusal = _Refusal(version, code, "")
    return with_structs(partial(refusal.of_parts, key), API[key].request, request)


def with_refused_parts(key: ApiKey, answer: Any, refused: Iterable[tuple[Any, ErrorCode]], version: int) -> Any:
    """The answer to the rest of a request, with the parts added that are refused; one that fails as a whole has no parts."""
    cls = API[key].response
    if "error_code" in cls.FIELDS and value_of(cls, answer, "error_code"):
        return answer
    for request, code in refused:
        more = refused_parts(key, request, version, code)
        for mine, others in zip(values_of(cls, answer), values_of(cls, more), strict=True):
            if isinstance(mine, list):
                mine += others
    return answer


class _Refusal:
    """One error in one version."""

    def __init__(self, version: int, code: ErrorCode, why: str) -> None:
        self._version = version
        self._code = code
        self._why = why

    def of(self, key: ApiKey, request: Struct) -> Struct:
        answer = API[key].response()
        self._fill(answer, request, at_the_top=key not in ONLY_BESIDE_PARTS)
        if key in ALSO_BESIDE_PARTS:
            self._fill(answer, request, at_the_top=False)
        return answer

    def of_parts(self, key: ApiKey, request: Struct) -> Struct:
        answer = API[key].response()
        self._fill(answer, request, at_the_top=False)
        return answer

    def _fill(self, answer: Struct, asked: Any, *, at_the_top: bool = True) -> None:
        self._follow(_recipe(type(answer), _kind(asked), self._version, at_the_top), answer, asked)

    def _follow(self, recipe: _Recipe, answer: Any, asked: Any) -> None:
        if recipe.place is not None:
            setattr(answer, recipe.place, self._code)
            why = self._reason(type(answer)) if recipe.tells_why else None
            if why is not None:
                answer.error_message = why
        for name in recipe.numbers:
            setattr(answer, name, NO_NUMBER)
        for name in recipe.notes:
            setattr(answer, name, "")
        for name in recipe.records:
            setattr(answer, name, b"")  # librdkafka does not read an answer with null
        for name in recipe.echoed:
            setattr(answer, name, getattr(asked, name))
        for name, source in recipe.names:
            value = asked if source is None else getattr(asked, source)
            if value is not None or name in recipe.may_be_null:
                setattr(answer, name, value)
        for array in recipe.arrays:
            setattr(answer, array.name, self._parts(array, asked))

    def _reason(self, struct: type[Struct]) -> str | None:
        return self._why or DENIALS_AS_KAFKA.get(struct, DENIALS.get(self._code))

    def _parts(self, array: _Array, asked: Any) -> list[Struct]:
        """A part for each that was asked for; one for all of a name where they are answered once."""
        parts: list[Struct] = []
        recipe, kind = None, None
        for each in (one for source in array.sources for one in _reached(asked, source)):
            if recipe is None or type(each) is not kind:
                kind = type(each)
                recipe = _recipe(array.struct, _kind(each), self._version, True)
            part = array.struct()
            self._follow(recipe, part, each)
            parts.append(part)
        return self._each_once(array.struct, parts) if self._is_answered_once(array.struct) else parts

    def _is_answered_once(self, struct: type[Struct]) -> bool:
        return struct in ANSWERED_ONCE or (self._version == 0 and struct in ANSWERED_ONCE_IN_V0)

    def _each_once(self, struct: type[Struct], parts: list[Struct]) -> list[Struct]:
        names = [name for name in struct.FIELDS if name in NAMES]
        inner = {name: one.type for name, one in struct.FIELDS.items() if isinstance(one.type, ArrayType)}
        once: dict[tuple[object, ...], Struct] = {}
        for part in parts:
            first = once.setdefault(tuple(getattr(part, name) for name in names), part)
            if first is not part:
                for name in inner:
                    getattr(first, name).extend(getattr(part, name))
        for name, declared in inner.items():
            element = declared.element
            if isinstance(element, StructType) and self._is_answered_once(element.struct):
                for part in once.values():
                    setattr(part, name, self._each_once(element.struct, getattr(part, name)))
        if inner and struct in ANSWERED_ONCE_IN_V0:
            return [part for part in once.values() if any(getattr(part, name) for name in inner)]
        return list(once.values())


class _Array(NamedTuple):
    """An array of an answer that holds errors, and the arrays of the request that lead to its parts."""

    name: str
    struct: type[Struct]
    sources: tuple[tuple[str, ...], ...]


class _Recipe(NamedTuple):
    """How a part of an answer reports a refusal: worked out once for all such parts."""

    place: str | None
    tells_why: bool
    numbers: tuple[str, ...]
    notes: tuple[str, ...]
    records: tuple[str, ...]
    echoed: tuple[str, ...]
    names: tuple[tuple[str, str | None], ...]
    """A field of the answer and one of the request; None: the element of the request is the name."""
    may_be_null: frozenset[str]
    arrays: tuple[_Array, ...]


def _kind(asked: Any) -> type[Struct] | None:
    return type(asked) if isinstance(asked, Struct) else None


@cache
def _recipe(answer: type[Struct], asked: type[Struct] | None, version: int, at_the_top: bool) -> _Recipe:
    fields = _fields(answer, version)
    place = next((name for name in fields if name.endswith("error_code")), None) if at_the_top else None
    is_message = issubclass(answer, Message)
    named = () if is_message else tuple(name for name in fields if name in NAMES)
    arrays = []
    numbers = []
    for name, declared in fields.items():
        inner = declared.type.element if isinstance(declared.type, ArrayType) else None
        if name == place or name in ECHOED:
            continue
        if inner is not None and not place:
            if isinstance(inner, StructType) and asked is not None and _has_place(inner.struct, version):
                arrays.append(_Array(name, inner.struct, _sources(inner.struct, asked, name, version)))
        elif _is_number(name, declared) and answer not in HOLDING_ZERO:
            numbers.append(name)
    return _Recipe(
        place,
        place is not None and "error_message" in fields,
        tuple(numbers),
        tuple(name for name in fields if name in NOTES),
        tuple(name for name, declared in fields.items() if declared.type is record_set),
        tuple(name for name in fields if name in ECHOED and name != place),
        _names(named, asked, version),
        frozenset(name for name in named if version in fields[name].nullable),
        tuple(arrays),
    )


def _is_number(name: str, declared: Field) -> bool:
    """Whether a field holds -1 where it has no value."""
    return name.endswith(NUMBERS) and not isinstance(declared.type, StructType) and not declared.make_default()


def _names(named: tuple[str, ...], asked: type[Struct] | None, version: int) -> tuple[tuple[str, str | None], ...]:
    if asked is None:
        return ((named[0], None),) if named else ()
    given = _fields(asked, version)
    sources = ((name, next((each for each in (name, *NAMES[name]) if each in given), None)) for name in named)
    return tuple((name, source) for name, source in sources if source is not None)


def _sources(part: type[Struct], asked: type[Struct], name: str, version: int) -> tuple[tuple[str, ...], ...]:
    if part in OF_ALL_ARRAYS:
        return tuple((each,) for each, one in _fields(asked, version).items() if isinstance(one.type, ArrayType))
    return (_source(asked, name, version),)


def _source(asked: type[Struct], name: str, version: int) -> tuple[str, ...]:
    """The array of the request that stands for this one of the answer: of the same name, or else its first."""
    arrays = {each: one.type for each, one in _fields(asked, version).items() if isinstance(one.type, ArrayType)}
    if not arrays:
        return ()
    chosen = name if name in arrays else next(iter(arrays))
    element = arrays[chosen].element
    if chosen in NOT_IN_THE_ANSWER and isinstance(element, StructType):
        return (chosen, *_source(element.struct, name, version))
    return (chosen,)


def _reached(asked: Any, source: tuple[str, ...]) -> Iterable[Any]:
    """The elements of a nested array."""
    if not source:
        return ()
    first, *rest = source
    elements: Iterable[Any] = getattr(asked, first) or ()
    return [inner for one in elements for inner in _reached(one, tuple(rest))] if rest else elements


def _fields(struct: type[Struct], version: int) -> dict[str, Field]:
    return {name: each for name, each in struct.FIELDS.items() if version in each.versions}


def _has_place(struct: type[Struct], version: int) -> bool:
    for name, declared in _fields(struct, version).items():
        if name.endswith("error_code"):
            return True
        inner = declared.type.element if isinstance(declared.type, ArrayType) else None
        if isinstance(inner, StructType) and _has_place(inner.struct, version):
            return True
    return False
