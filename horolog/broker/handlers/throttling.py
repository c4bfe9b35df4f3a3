"""Who is over a quota is told to wait in the answer, and is not read from for as long: decided here for every request that is answered.

Where no quota asks for it an api's function stays the handler itself, and costs nothing more. Else each request has a `Throttle`, as part of
its route: it is charged for bytes of Produce when the request comes, for the time of a thread and bytes of Fetch when it is answered.

Who was told to wait waits on every connection, also on those that are opened meanwhile: a request that the quota counts is held before it
is decoded. What a client sends without a wait, and what a quota refuses by itself (changes of topics), is never held.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from horolog.broker.listeners import PEERS
from horolog.broker.security.quota_entities import FETCH, MUTATION, PRODUCE, REQUEST
from horolog.protocol.apis import API, ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from horolog.broker.handlers import HandlerFunction
    from horolog.broker.handlers.context import BrokerView, Peer, RequestContext, Route
    from horolog.broker.security.quotas import ClientQuotas
    from horolog.protocol.primitives import Part

FIRST_STRICT: Final = {ApiKey.CREATE_TOPICS: 6, ApiKey.DELETE_TOPICS: 5, ApiKey.CREATE_PARTITIONS: 3}
"""The versions from which on clients understand that a quota refuses them."""

MUTATING: Final = {*FIRST_STRICT, ApiKey.METADATA}
"""Metadata makes topics on the way. Those that are too many are not made; nobody is told, nor waits."""

_BYTES: Final = {ApiKey.PRODUCE: PRODUCE, ApiKey.FETCH: FETCH}
_EXEMPT: Final = {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.WRITE_TXN_MARKERS}
"""Part of a login, and what brokers ask: nobody is slowed there."""

_NEVER_HELD: Final = {*_EXEMPT, ApiKey.API_VERSIONS}
"""What connections begin with."""

THROTTLE_TIME: Final = "throttle_time_ms"
PER_CENT: Final = 100.0
MS: Final = 1000
LEAST_WAIT_S: Final = 0.001


def within_quotas(broker: BrokerView, key: ApiKey, handle: HandlerFunction, *, flat: bool) -> HandlerFunction:
    """The function that requests of an api go to: the handler, or one that charges for it."""
    quotas = broker.quotas
    counts_bytes = key in _BYTES and quotas.has(_BYTES[key])
    counts_time = key not in _EXEMPT and quotas.has(REQUEST)
    if not (counts_bytes or counts_time or (key in MUTATING and quotas.has(MUTATION))):
        return handle
    put = putting(key, flat=flat)
    charges_size = counts_bytes and key is ApiKey.PRODUCE
    monotonic = broker.clock.monotonic

    def charged(broker: BrokerView, request: Any, context: RequestContext) -> object | None:
        if context.connection.listener == PEERS:
            return handle(broker, request, context)
        throttle = Throttle(quotas, context, key, monotonic if counts_time else None)
        context.route = _ThrottledRoute(context.route, throttle, put)
        if charges_size:
            throttle.charge_size(context.size_bytes)
        answer = handle(broker, request, context)
        throttle.handled()
        return answer

    return charged


def held_by_quotas(broker: BrokerView, key: ApiKey, version: int) -> Callable[[Peer, str | None], float] | None:
    """A function that tells for how many seconds a request of a client is held; none where no quota asks for it."""
    quotas = broker.quotas
    kinds = [
        kind
        for kind, counts in (
            (_BYTES.get(key, ""), key in _BYTES),
            (REQUEST, key not in _NEVER_HELD),
            (MUTATION, version < FIRST_STRICT.get(key, 0)),
        )
        if counts and quotas.has(kind)
    ]
    if not kinds:
        return None

    def wait_s(connection: Peer, client_id: str | None) -> float:
        if connection.listener == PEERS:
            return 0.0
        return max(quotas.held_s(kind, connection.principal.name, client_id or "") for kind in kinds)

    return wait_s


def may_change(context: RequestContext, count: int) -> bool:
    """Whether the client's quota allows that so many partitions are made or removed."""
    throttle = context.route.throttle
    return throttle is None or throttle.allows_mutation(count)


class Throttle:
    """What one request is charged, and for how long its client has to wait."""

    __slots__ = (
        "_began_s",
        "_client_id",
        "_connection",
        "_key",
        "_kind",
        "_monotonic",
        "_quotas",
        "_told",
        "_took_s",
        "_user",
        "_version",
        "_wait_s",
    )

    def __init__(
        self, quotas: ClientQuotas, context: RequestContext, key: ApiKey, monotonic: Callable[[], float] | None
    ) -> None:
        """Without a clock its time is not charged."""
        self._quotas = quotas
        self._connection = context.connection
        self._user = context.principal.name
        self._client_id = context.client_id or ""
        self._key = key
        self._version = context.version
        self._monotonic = monotonic
        self._began_s = 0.0 if monotonic is None else monotonic()
        self._took_s = -1.0
        self._wait_s = 0.0
        self._kind = self._told = ""

    def __repr__(self) -> str:
        return f"<Throttle of {self._user} as {self._client_id!r}: {self._wait_s:g} s>"

    def handled(self) -> None:
        """Nothing more is done for it now: what it waits for is no work of a thread."""
        if self._monotonic is not None:
            self._took_s = self._monotonic() - self._began_s

    def charge_size(self, size_bytes: int) -> None:
        """A Produce is charged at once, for not every one is answered."""
        self._wait(PRODUCE, self._quotas.charge(PRODUCE, self._user, self._client_id, size_bytes))
        self._begin_wait()

    @property
    def most_fetched_bytes(self) -> float:
        return self._quotas.most_at_once(FETCH, self._user, self._client_id)

    def refuses_fetch(self, size_bytes: int) -> bool:
        """Whether so much may not leave now; the client is to ask again after the wait."""
        self._charge_time()
        wait_s = self._quotas.charge(FETCH, self._user, self._client_id, size_bytes)
        self._wait(FETCH, wait_s)
        if not self._wait_s:
            return False
        self._quotas.give_back(FETCH, self._user, self._client_id, size_bytes)
        return True

    def allows_mutation(self, count: int) -> bool:
        """Whether so many partitions may be made or removed."""
        strict = self._version >= FIRST_STRICT.get(self._key, 0)
        allowed, wait_s = self._quotas.mutate(self._user, self._client_id, count, strict=strict)
        if self._key in FIRST_STRICT:
            self._wait(MUTATION, wait_s)
        return allowed

    def answered(self) -> int:
        """The milliseconds that the answer tells."""
        self._charge_time()
        self._begin_wait()
        return round(self._wait_s * MS)

    def _begin_wait(self) -> None:
        """From now on; whoever waits already is counted again if it is for another quota."""
        if not self._wait_s:
            return
        if self._kind != self._told:
            self._told = self._kind
            self._quotas.told(self._kind, self._wait_s)
        self._connection.mute(self._wait_s)

    def _charge_time(self) -> None:
        """Once; an answer that is given before the handler ends is charged for what was done until then."""
        if self._monotonic is None:
            return
        if self._took_s < 0:
            self.handled()
        self._monotonic = None
        self._wait(REQUEST, self._quotas.charge(REQUEST, self._user, self._client_id, self._took_s * PER_CENT))

    def _wait(self, kind: str, wait_s: float) -> None:
        """The longest wait is for all quotas; none that an answer could not tell."""
        if wait_s > LEAST_WAIT_S:
            self._quotas.hold(kind, self._user, self._client_id, wait_s)
        if wait_s > max(self._wait_s, LEAST_WAIT_S):
            self._wait_s, self._kind = wait_s, kind


class _ThrottledRoute:
    """The route of one request that is charged."""

    __slots__ = ("_encode", "_put", "holds_frame", "meter", "name", "response_header_version", "throttle", "version")

    def __init__(self, route: Route, throttle: Throttle, put: Callable[[Any, int], Any]) -> None:
        self.throttle: Throttle | None = throttle
        self._encode = route.encode
        self._put = put
        self.name = route.name
        self.version = route.version
        self.response_header_version = route.response_header_version
        self.meter = route.meter
        self.holds_frame = route.holds_frame

    def encode(self, response: Any, parts: list[Part]) -> None:
        wait_ms = 0 if self.throttle is None else self.throttle.answered()
        self._encode(self._put(response, wait_ms) if wait_ms else response, parts)


def putting(key: ApiKey, *, flat: bool) -> Callable[[Any, int], Any]:
    """A function that gives an answer with the time to wait in it; others may have the answer, too, and keep theirs."""
    fields = list(API[key].response.FIELDS)
    if THROTTLE_TIME not in fields:
        return lambda response, _: response
    place = fields.index(THROTTLE_TIME)

    def put_in_tuple(response: tuple[Any, ...], wait_ms: int) -> tuple[Any, ...]:
        return (*response[:place], wait_ms, *response[place + 1 :])

    def put(response: Any, wait_ms: int) -> Any:
        changed = copy.copy(response)
        changed.throttle_time_ms = wait_ms
        return changed

    return put_in_tuple if flat else put
