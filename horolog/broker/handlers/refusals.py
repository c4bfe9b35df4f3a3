"""The answer that refuses a request as a whole, for every api and version, made from how messages are declared.

The error stands at the top of the answer where that version has a place for it, else beside each part that was asked for (a topic's
partition, a group, a resource), which are named as the request names them. So a client learns for all that it asked that it
is refused, and why.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from horolog.broker.handlers import HANDLERS
from horolog.broker.handlers.produce import refuse_all
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.flat import flat_of, struct_of
from horolog.protocol.messages.groups import DeletableGroupResult
from horolog.protocol.messages.topics import CreatableTopicResult, CreatePartitionsTopicResult
from horolog.protocol.wire import ArrayType, Field, Struct, StructType

if TYPE_CHECKING:
    from collections.abc import Callable

    from horolog.broker.handlers import HandlerFunction
    from horolog.broker.handlers.context import BrokerView, RequestContext
    from horolog.broker.handlers.gate import Gate
    from horolog.protocol.errors import ErrorCode

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
"""Fields by which an answer names its parts, and what a request may call them instead."""

NUMBERS = ("offset", "watermark", "timestamp", "_epoch", "generation_id", "leader_id", "node_id", "port", "producer_id")
"""How fields end that hold -1 where there is nothing to tell."""
NO_NUMBER = -1

ONLY_BESIDE_PARTS = {ApiKey.ADD_PARTITIONS_TO_TXN}
"""The error at the top says that the asking broker may not ask, not that its clients may not."""

ALSO_BESIDE_PARTS = {
    ApiKey.ELECT_LEADERS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
}
"""The error stands at the top and beside the parts."""

ANSWERED_ONCE = {CreatableTopicResult, CreatePartitionsTopicResult, DeletableGroupResult}
"""Parts that are told once, however often a request names them."""

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
    """What a handler gives back that refuses the request; the reason is told where the answer has room for one."""
    if key is ApiKey.PRODUCE:
        refuse_all(request, context, code, why or None)  # which may have asked for no answer
        return None
    refusal = _Refusal(context.version, code, why)
    if HANDLERS[key].flat:
        return flat_of(refusal.of(key, struct_of(API[key].request, request)))
    return refusal.of(key, request)


def refused_parts(key: ApiKey, request: Any, version: int, code: ErrorCode) -> Any:
    """The answer that refuses what a request asks for part by part, and nothing as a whole."""
    refusal = _Refusal(version, code, "")
    if HANDLERS[key].flat:
        return flat_of(refusal.of_parts(key, struct_of(API[key].request, request)))
    return refusal.of_parts(key, request)


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

    def _fill(self, answer: Any, asked: Any, *, at_the_top: bool = True) -> None:
        fields = self._fields(answer)
        place = next((name for name in fields if name.endswith("error_code")), None) if at_the_top else None
        for name, declared in fields.items():
            if name == place:
                setattr(answer, name, self._code)
            elif name == "error_message" and place and self._why:
                setattr(answer, name, self._why)
            elif name in ECHOED:
                setattr(answer, name, getattr(asked, name))
            elif isinstance(declared.type, ArrayType) and not place:
                self._fill_parts(answer, name, declared.type, asked)
            elif name.endswith(NUMBERS) and not getattr(answer, name):
                setattr(answer, name, NO_NUMBER)

    def _fill_parts(self, answer: Any, name: str, type_: ArrayType[Any], asked: Any) -> None:
        """An answer's array, if errors stand in it: a part for each that was asked for."""
        if not isinstance(type_.element, StructType) or not self._has_place(type_.element.struct):
            return
        struct = type_.element.struct
        parts: dict[object, Struct] = {}
        for each in self._parts_of(asked, name):
            part = struct()
            self._fill(part, each)
            named = self._name(part, each)
            parts.setdefault(named if struct in ANSWERED_ONCE else len(parts), part)
        setattr(answer, name, list(parts.values()))

    def _parts_of(self, asked: Any, name: str) -> Iterable[Any]:
        """The array of the request that stands for this one of the answer: of the same name, or else its first."""
        arrays = [each for each, declared in self._fields(asked).items() if isinstance(declared.type, ArrayType)]
        if not arrays:
            return ()
        chosen = name if name in arrays else arrays[0]
        parts = getattr(asked, chosen) or ()
        return [inner for one in parts for inner in self._parts_of(one, name)] if chosen in NOT_IN_THE_ANSWER else parts

    def _name(self, part: Struct, asked: Any) -> tuple[object, ...]:
        """Name a part as it was asked for; the name."""
        names = [name for name in self._fields(part) if name in NAMES]
        if isinstance(asked, Struct):
            given = self._fields(asked)
            for name in names:
                source = next((each for each in (name, *NAMES[name]) if each in given), None)
                if source and (getattr(asked, source) is not None or self._version in part.FIELDS[name].nullable):
                    setattr(part, name, getattr(asked, source))
        else:
            setattr(part, names[0], asked)
        return tuple(getattr(part, name) for name in names)

    def _fields(self, struct: Struct) -> dict[str, Field]:
        return {name: each for name, each in struct.FIELDS.items() if self._version in each.versions}

    def _has_place(self, struct: type[Struct]) -> bool:
        for name, declared in struct.FIELDS.items():
            if self._version not in declared.versions:
                continue
            if name.endswith("error_code"):
                return True
            inner = declared.type.element if isinstance(declared.type, ArrayType) else None
            if isinstance(inner, StructType) and self._has_place(inner.struct):
                return True
        return False
