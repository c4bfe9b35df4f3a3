"""Puts faults into a broker's gate: while one is armed for an API, another function handles its requests.

The route of an API without a fault is unchanged. Refusals are innermost, then come throttling, delays and drops. For faults after
the work, the handler gets a request of its own, whose response is sent when the fault lets it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from horolog.broker.coordination.timers import Timer, Timers
from horolog.broker.handlers import fetch
from horolog.broker.handlers.context import RequestContext
from horolog.broker.handlers.produce import ACKS_NONE, REFUSED_WITHOUT_ANSWER
from horolog.broker.handlers.refusals import refuse, refused_parts, with_refused_parts
from horolog.broker.handlers.throttling import MS, with_throttle_time
from horolog.broker.network.conversation import NOBODY
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.errors import ErrorCode, ProtocolError
from horolog.protocol.flat import value_of, with_value
from horolog.protocol.wire import ArrayType, Struct, StructType
from horolog.testing import fault as kinds
from horolog.testing.fault_scope import TOPICS, Named, Scope, index_of, partitions_field, topic_of

if TYPE_CHECKING:
    from horolog.broker.handlers import HandlerFunction
    from horolog.broker.handlers.context import BrokerView, ClientConnection
    from horolog.broker.handlers.gate import Gate
    from horolog.testing.fault import Fault

DESCRIBING = frozenset({ApiKey.METADATA, ApiKey.DESCRIBE_TOPIC_PARTITIONS})
LED = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.DELETE_RECORDS,
        *DESCRIBING,
    }
)
"""Requests to a partition's leader, and requests that show the leader."""
OF_SESSIONS = frozenset({ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH})
DROPPED = "a fault of a test"
MUTED_LONGER_S = 1.0
"""Requests after a held one continue with it, not by their own timer."""
NO_NODE = -1


def gate_with(base: Gate, faults: Sequence[Fault], timers: Timers) -> Gate:
    """See the module's docstring."""

    def gate(key: ApiKey, handle: HandlerFunction) -> HandlerFunction:
        handle = base(key, handle)
        here = [one for one in faults if one.scope.is_for_api(key)]
        refusing = [one for one in here if one.kind in {kinds.REFUSE, kinds.LEADER_AWAY}]
        if refusing:
            handle = _refusing(key, refusing, handle)
        for kind in (kinds.THROTTLE, kinds.DELAY, kinds.DROP):
            for fault in here:
                if fault.kind == kind:
                    handle = _wrapped(key, fault, handle, timers)
        return handle

    return gate


def _wrapped(key: ApiKey, fault: Fault, handle: HandlerFunction, timers: Timers) -> HandlerFunction:
    """A handler behind one fault that strikes whole requests."""
    strike = {
        kinds.THROTTLE: lambda: _throttled(key, fault, handle),
        kinds.DELAY: lambda: _delayed(fault, handle, timers),
        kinds.DROP: lambda: _dropped(fault, handle),
    }[fault.kind]()

    def guarded(broker: BrokerView, request: Any, context: RequestContext) -> object | None:
        if not (fault.is_armed and fault.scope.touches(key, broker, request, context)):
            return handle(broker, request, context)
        fault.hit()
        return strike(broker, request, context)

    return guarded


# -- refusals


def _refusing(key: ApiKey, faults: Sequence[Fault], handle: HandlerFunction) -> HandlerFunction:
    if key is ApiKey.FETCH:
        return _refusing_fetch(faults, handle)
    if key in DESCRIBING and all(one.scope.topic or one.kind == kinds.LEADER_AWAY for one in faults):
        return _describing(faults, handle)

    def guarded(broker: BrokerView, request: Any, context: RequestContext) -> object | None:
        refused: list[tuple[Any, ErrorCode]] = []
        for fault in faults:
            if not (fault.is_armed and fault.scope.touches(key, broker, request, context)):
                continue
            fault.hit()
            kept, struck = parted(key, broker, request, fault.scope)
            if kept is None and not refused:
                return refuse(key, request, context, fault.error, DROPPED)
            refused.append((struck, fault.error))
            if kept is None:
                return _of_parts(key, refused, context)
            request = kept
        if not refused:
            return handle(broker, request, context)
        if key is ApiKey.PRODUCE and value_of(API[key].request, request, "acks") == ACKS_NONE:
            context.connection.answered()  # earlier responses are still sent
            context.connection.close(REFUSED_WITHOUT_ANSWER)
        context.amend(lambda answer: with_refused_parts(key, answer, refused, context.version))
        return handle(broker, request, context)

    return guarded


def parted(key: ApiKey, broker: BrokerView, request: Any, scope: Scope) -> tuple[Any | None, Any]:
    """A request without the struck parts, or None if nothing is left, and one with only those."""
    cls = API[key].request
    field = next((name for name in cls.FIELDS if name in TOPICS and value_of(cls, request, name)), None)
    if scope.topic is None or field is None:
        return None, request
    kept: list[Any] = []
    struck: list[Any] = []
    for one in value_of(cls, request, field):
        _part(cls, field, one, lambda named: scope.has(broker, named), kept, struck)
    return with_value(cls, request, field, kept) if kept else None, with_value(cls, request, field, struck)


def _part(
    cls: type[Struct], field: str, one: Any, is_struck: Callable[[Named], bool], kept: list[Any], struck: list[Any]
) -> None:
    """Put an element of an array of topics into one of the two requests, or split its partitions between them."""
    array = cls.FIELDS[field].type
    assert isinstance(array, ArrayType)
    if not isinstance(array.element, StructType):
        (struck if is_struck(Named(one, None)) else kept).append(one)
        return
    struct = array.element.struct
    topic, place = topic_of(struct, one), partitions_field(struct)
    if place is None or not value_of(struct, one, place):
        (struck if is_struck(Named(topic, None)) else kept).append(one)
        return
    partitions = value_of(struct, one, place)
    hit = [each for each in partitions if is_struck(Named(topic, index_of(struct, place, each)))]
    missed = [each for each in partitions if not is_struck(Named(topic, index_of(struct, place, each)))]
    if hit:
        struck.append(with_value(struct, one, place, hit))
    if missed:
        kept.append(with_value(struct, one, place, missed))


def _of_parts(key: ApiKey, refused: list[tuple[Any, ErrorCode]], context: RequestContext) -> object:
    (request, code), *others = refused
    answer = refused_parts(key, request, context.version, code)
    whole: object = with_refused_parts(key, answer, others, context.version)
    return whole


def _describing(faults: Sequence[Fault], handle: HandlerFunction) -> HandlerFunction:
    """Metadata shows topics without a leader, or an error in their place."""

    def guarded(broker: BrokerView, request: Any, context: RequestContext) -> object | None:
        for fault in faults:
            if fault.is_armed and fault.scope.is_for_client(context):
                context.amend(partial(_tell, fault))
        return handle(broker, request, context)

    return guarded


def _tell(fault: Fault, answer: Any) -> Any:
    for topic in answer.topics:
        if fault.scope.topic not in (None, topic.name):
            continue
        if fault.kind == kinds.REFUSE:
            fault.hit()
            topic.error_code, topic.partitions = fault.error, []
            continue
        for one in topic.partitions:
            if fault.scope.partition in (None, one.partition_index):
                one.leader_id, one.error_code = NO_NODE, ErrorCode.LEADER_NOT_AVAILABLE
    return answer


def _refusing_fetch(faults: Sequence[Fault], handle: HandlerFunction) -> HandlerFunction:
    def guarded(broker: BrokerView, request: Any, context: RequestContext) -> object | None:
        here = [one for one in faults if one.is_armed and one.scope.touches(ApiKey.FETCH, broker, request, context)]
        if not here:
            return handle(broker, request, context)
        for fault in here:
            fault.hit()
            if fault.error in OF_SESSIONS:
                return refuse(ApiKey.FETCH, request, context, fault.error)
        return fetch.handle(broker, request, context, _struck_fetch(broker, here))

    return guarded


def _struck_fetch(broker: BrokerView, faults: Sequence[Fault]) -> type[fetch.PendingFetch]:
    """A fetch that finds an error where a fault strikes."""
    base = fetch.PendingFetch
    if broker.authorizer is not None:
        from horolog.broker.handlers.authorization.topics import GuardedFetch

        base = GuardedFetch

    class StruckFetch(base):  # type: ignore[misc, valid-type]
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self.known: dict[Any, Any] = {}  # every partition has to be looked up

        def _find(self, key: Any) -> Any:
            for fault in faults:
                if fault.scope.has(broker, Named(*key)):
                    return fault.error
            return super()._find(key)

    return StruckFetch


# -- throttling


def _throttled(key: ApiKey, fault: Fault, handle: HandlerFunction) -> HandlerFunction:
    def strike(broker: BrokerView, request: Any, context: RequestContext) -> object | None:
        def tell_to_wait(response: Any) -> Any:
            context.connection.mute(fault.span_ms / MS)
            return with_throttle_time(key, response, fault.span_ms)

        context.amend(tell_to_wait)
        return handle(broker, request, context)

    return strike


# -- delays and drops


def _delayed(fault: Fault, handle: HandlerFunction, timers: Timers) -> HandlerFunction:
    if fault.after_work:
        return _aside(handle, lambda _, give: _hold(fault, timers, give))

    def strike(broker: BrokerView, request: Any, context: RequestContext) -> None:
        """Requests after it wait as well: a connection is served in order."""

        def go_on() -> None:
            context.on_abandoned = None
            try:
                response = handle(broker, request, context)
            except ProtocolError as error:
                context.connection.close(str(error))
                return
            if response is not None:
                context.reply(_whole(response))
            context.connection.mute(0)

        context.on_abandoned = _hold(fault, timers, go_on)
        context.connection.mute(fault.span_ms / MS + MUTED_LONGER_S)

    return strike


def _whole(response: Any) -> Any:
    """A handler's whole response, even if it answers in steps."""
    if not isinstance(response, GeneratorType):
        return response
    while True:
        try:
            next(response)
        except StopIteration as ended:
            return ended.value


def _hold(fault: Fault, timers: Timers, action: Callable[[], None]) -> Callable[[], None]:
    """Call back when the delay or the fault ends; returns the function that cancels that."""

    def due() -> None:
        fault.held.pop(timer, None)
        action()

    def forget() -> None:
        fault.held.pop(timer, None)
        timers.stop(timer)

    timer = Timer(due)
    fault.held[timer] = None
    timers.start(timer, fault.span_ms)
    return forget


def _dropped(fault: Fault, handle: HandlerFunction) -> HandlerFunction:
    if fault.after_work:
        return _aside(handle, lambda context, _: context.connection.close(DROPPED))

    def strike(_: BrokerView, __: Any, context: RequestContext) -> None:
        context.connection.close(DROPPED)

    return strike


def _aside(handle: HandlerFunction, done: Callable[[RequestContext, Callable[[], None]], object]) -> HandlerFunction:
    """Do the work; `done` gets the request and a function for the response."""

    def strike(broker: BrokerView, request: Any, context: RequestContext) -> None:
        peer = _AsidePeer(context.connection)
        aside = RequestContext(
            peer, context.route, context.correlation_id, context.client_id, context.size_bytes, broker.clock.monotonic()
        )
        aside.changes, aside.throttle = context.changes, context.throttle

        def give() -> None:
            context.on_abandoned = None
            context.parts = aside.parts
            context.connection.answered()

        def answered() -> None:
            if aside.parts is not None and not peer.is_answered:
                peer.is_answered = True
                done(context, give)

        peer.on_answered = answered
        context.on_abandoned = aside.abandon
        response = handle(broker, request, aside)
        if response is not None:
            aside.reply(response)

    return strike


class _AsidePeer:
    """The connection without its responses; none is sent at once, so none is left in a file."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.carrier = NOBODY
        self.is_answered = False
        self.on_answered: Callable[[], None] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def answered(self) -> None:
        self.on_answered()
