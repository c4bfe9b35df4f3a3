"""Decides which requests a fault strikes: by API, topic, partition and client id, found by the declarations of the messages.

A fetch in a session names only what has changed: there the session's partitions count as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from horolog.broker.config.listeners import PEERS
from horolog.broker.handlers import HANDLERS
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.flat import element_of, value_of
from horolog.protocol.wire import ArrayType, Struct, StructType
from horolog.testing.clock import Span, span_ms

if TYPE_CHECKING:
    from horolog.broker.handlers.context import BrokerView, RequestContext

TOPICS = frozenset({"topics", "topic_data", "topic_names", "topic_partitions", "v3_and_below_topics"})
NESTED = frozenset({"groups", "transactions"})
"""Arrays of a request that name topics, and those whose elements have such arrays."""
NAMES = ("name", "topic", "topic_name", "topic_id")
PARTITIONS = ("partitions", "partition_data", "partition_indexes")
INDEXES = ("partition_index", "partition", "index")
PLACE_OF_SESSION = 7
"""Of `session_id` in a Fetch."""
NOT_STRUCK_UNASKED = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
"""A fault without an API does not strike these: no client gets further without them."""


class Named(NamedTuple):
    """A topic that a request names, by name or id, with one partition or all (None)."""

    topic: str | bytes
    partition: int | None


Apis = str | ApiKey | tuple[str | ApiKey, ...] | list[str] | None
"""The name of an API ("produce", "InitProducerId"), several, or None for all."""


class Struck(TypedDict, total=False):
    """What a test names beside the API: the requests that a fault strikes, how many of them, and for how long."""

    topic: str | None
    partition: int | None
    client_id: str | None
    times: int | None
    lasts: Span | float | None


class Scope(NamedTuple):
    """The requests that a fault strikes, how many of them, and for how long; None stands for any."""

    apis: frozenset[ApiKey] | None = None
    topic: str | None = None
    partition: int | None = None
    client_id: str | None = None
    times: int | None = None
    lasts_ms: int | None = None

    def is_for_api(self, key: ApiKey) -> bool:
        if self.apis is not None:
            return key in self.apis
        return key not in NOT_STRUCK_UNASKED and (self.topic is None or key in NAMING_TOPICS)

    def is_for_client(self, context: RequestContext) -> bool:
        return context.listener != PEERS and self.client_id in (None, context.client_id)

    def has(self, broker: BrokerView, named: Named) -> bool:
        """Whether this part of a request is struck."""
        if self.topic is None:
            return True
        topic = named.topic
        if isinstance(topic, bytes):
            known = broker.cluster.by_id.get(topic)
            topic = "" if known is None else known.name
        return topic == self.topic and (None in (self.partition, named.partition) or named.partition == self.partition)

    def touches(self, key: ApiKey, broker: BrokerView, request: Any, context: RequestContext) -> bool:
        """Whether a request is struck, at least in part."""
        if not self.is_for_client(context):
            return False
        return self.topic is None or any(self.has(broker, one) for one in named_by(key, broker, request))


def scope_of(
    api: Apis = None,
    topic: str | None = None,
    partition: int | None = None,
    client_id: str | None = None,
    times: int | None = None,
    lasts: Span | float | None = None,
) -> Scope:
    """The scope from a test's arguments; raises ValueError."""
    if partition is not None and topic is None:
        raise ValueError("a partition needs its topic: give topic=, too")
    if times is not None and times < 1:
        raise ValueError(f"times={times}: expected at least 1")
    apis = None
    if api is not None:
        apis = frozenset(map(api_named, [api] if isinstance(api, str | ApiKey) else api))
    return Scope(apis, topic, partition, client_id, times, None if lasts is None else length_ms(lasts))


def length_ms(span: Span | float) -> int:
    """A duration that is longer than none; raises ValueError."""
    found_ms = span_ms(span)
    if found_ms <= 0:
        raise ValueError(f"{span!r}: expected a duration above 0")
    return found_ms


def api_named(name: str | ApiKey) -> ApiKey:
    """`produce`, `Produce`, `INIT_PRODUCER_ID` and `InitProducerId` are names."""
    if isinstance(name, ApiKey):
        return name
    found = _BY_NAME.get(_plain(name))
    if found is None:
        close = get_close_matches(_plain(name), _BY_NAME, n=1)
        hint = f"; do you mean {API[_BY_NAME[close[0]]].name}?" if close else ""
        raise ValueError(f"there is no API {name!r}{hint}")
    return found


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def named_by(key: ApiKey, broker: BrokerView, request: Any) -> Iterator[Named]:
    """All topics and partitions of a request."""
    yield from _named_in(API[key].request, request)
    if key is ApiKey.FETCH:
        session = broker.fetch_sessions.find(request[PLACE_OF_SESSION])
        for topic, index in () if session is None else session.positions:
            yield Named(topic, index)


def _named_in(cls: type[Struct], request: Any) -> Iterator[Named]:
    for field, declared in cls.FIELDS.items():
        if isinstance(declared.type, ArrayType) and (field in TOPICS or field in NESTED):
            for one in value_of(cls, request, field) or ():
                yield from _named_by_element(declared.type, field, one)


def _named_by_element(array: ArrayType[Any], field: str, one: Any) -> Iterator[Named]:
    if not isinstance(array.element, StructType):
        yield Named(one, None)
        return
    struct = array.element.struct
    if field in NESTED:
        yield from _named_in(struct, one)
    else:
        yield from parts_of(struct, one)


def parts_of(struct: type[Struct], one: Any) -> Iterator[Named]:
    """The topics and partitions that an element of an array of topics names."""
    topic = topic_of(struct, one)
    place = partitions_field(struct)
    if place is None:
        yield Named(topic, None)
        return
    for each in value_of(struct, one, place) or ():
        yield Named(topic, index_of(struct, place, each))


def topic_of(struct: type[Struct], one: Any) -> str | bytes:
    """A topic's name; its id if there is no name."""
    values = [value_of(struct, one, name) for name in NAMES if name in struct.FIELDS]
    found: str | bytes = next((value for value in values if value), "")
    return found


def partitions_field(struct: type[Struct]) -> str | None:
    return next((name for name in PARTITIONS if name in struct.FIELDS), None)


def index_of(struct: type[Struct], place: str, each: Any) -> int:
    """The number of a partition; the element may be just the number."""
    if isinstance(each, int):
        return each
    inner = element_of(struct, place)
    index: int = value_of(inner, each, next(name for name in INDEXES if name in inner.FIELDS))
    return index


_BY_NAME = {_plain(key.name): key for key in HANDLERS}
NAMING_TOPICS = frozenset(key for key in HANDLERS if TOPICS & set(API[key].request.FIELDS)) | {
    ApiKey.OFFSET_FETCH,
    ApiKey.ADD_PARTITIONS_TO_TXN,
}
