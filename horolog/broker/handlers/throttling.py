"""Throttling by quotas: a client that is over a quota is asked to wait by the answer, and the broker does not read from it for as long.

Where no quota applies, an api's function stays the handler itself, and costs nothing more. Otherwise each request has a
`Throttle`. Bytes of Produce are charged when the request arrives; the time of a thread and bytes of Fetch with the answer.

The wait holds for every connection of the client, also for those that it opens meanwhile: a request that the quota counts is held
before it is decoded. Requests that a quota refuses by itself (changes of topics) are never held.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from horolog.broker.config.listeners import PEERS
from horolog.broker.security.quota_entities import FETCH, MUTATION, PRODUCE, REQUEST
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.flat import with_value

if TYPE_CHECKING:
    from collections.abc import Callable

    from horolog.broker.handlers import HandlerFunction
    from horolog.broker.handlers.context import BrokerView, ClientConnection, RequestContext
    from horolog.broker.security.quotas import ClientQuotas

FIRST_STRICT: Final = {ApiKey.CREATE_TOPICS: 6, ApiKey.DELETE_TOPICS: 5, ApiKey.CREATE_PARTITIONS: 3}
"""The first versions whose clients understand a refusal by a quota."""

MUTATING: Final = {*FIRST_STRICT, ApiKey.METADATA}
"""Metadata creates topics on the way. Those beyond the quota are not created; the client gets neither an error for it nor a wait."""

_BYTES: Final = {ApiKey.PRODUCE: PRODUCE, ApiKey.FETCH: FETCH, ApiKey.SHARE_FETCH: FETCH}
_EXEMPT: Final = {
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
}
"""Parts of a login, and requests of brokers: they are not slowed."""

_NEVER_HELD: Final = {*_EXEMPT, ApiKey.API_VERSIONS}
"""The requests that connections begin with."""

THROTTLE_TIME: Final = "throttle_time_ms"
PER_CENT: Final = 100.0
MS: Final = 1000
LEAST_WAIT_S: Final = 0.001


def within_quotas(broker: BrokerView, key: ApiKey, handle: HandlerFunction) -> HandlerFunction:
    """The function that requests of an api go to: the handler, or one that charges for it."""
    quotas = broker.quotas
    counts_bytes = key in _BYTES and quotas.has(_BYTES[key])
    counts_time = key not in _EXEMPT and quotas.has(REQUEST)
    if not (counts_bytes or counts_time or (key in MUTATING and quotas.has(MUTATION))):
        return handle
    charges_size = counts_bytes and key is ApiKey.PRODUCE
    monotonic = broker.clock.monotonic

    def charged(broker: BrokerView, request: Any, context: RequestContext) -> object | None:
        if context.connection.listener == PEERS:
            return handle(broker, request, context)
        throttle = Throttle(quotas, context, key, monotonic if counts_time else None)
        context.throttle = throttle
        context.amend(partial(_with_wait, throttle, key))
        if charges_size:
            throttle.charge_size(context.size_bytes)
        answer = handle(broker, request, context)
        throttle.handled()
        return answer

    return charged


def held_by_quotas(
    broker: BrokerView, key: ApiKey, version: int
) -> Callable[[ClientConnection, str | None], float] | None:
    """A function that returns for how many seconds a client's request is held; None where no quota applies."""
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

    def wait_s(connection: ClientConnection, client_id: str | None) -> float:
        if connection.listener == PEERS:
            return 0.0
        return max(quotas.held_s(kind, connection.principal.name, client_id or "") for kind in kinds)

    return wait_s


def held_back(broker: BrokerView, key: ApiKey, version: int) -> Callable[[ClientConnection, str | None], float] | None:
    """The same, and for producers by a committer whose records are not safe as fast as they come."""
    by_quotas, committer = held_by_quotas(broker, key, version), broker.committer
    if key is not ApiKey.PRODUCE or not committer.holds_all:
        return by_quotas

    def wait_s(connection: ClientConnection, client_id: str | None) -> float:
        return max(committer.producers_wait_s(), 0.0 if by_quotas is None else by_quotas(connection, client_id))

    return wait_s


def may_change(context: RequestContext, count: int) -> bool:
    """Whether the client's quota allows this many partitions to be created or deleted."""
    throttle = context.throttle
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
        """Without `monotonic` its time is not charged."""
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
        """The handler has returned: a wait from now on is not a time of a thread."""
        if self._monotonic is not None:
            self._took_s = self._monotonic() - self._began_s

    def charge_size(self, size_bytes: int) -> None:
        """Charge a Produce at once, since not every one is answered."""
        self._wait(PRODUCE, self._quotas.charge(PRODUCE, self._user, self._client_id, size_bytes))
        self._begin_wait()

    @property
    def most_fetched_bytes(self) -> float:
        return self._quotas.most_at_once(FETCH, self._user, self._client_id)

    def refuses_fetch(self, size_bytes: int) -> bool:
        """Whether an answer of this size may not leave now; the client asks again after the wait."""
        self._charge_time()
        wait_s = self._quotas.charge(FETCH, self._user, self._client_id, size_bytes)
        self._wait(FETCH, wait_s)
        if not self._wait_s:
            return False
        self._quotas.give_back(FETCH, self._user, self._client_id, size_bytes)
        return True

    def charge_fetch(self, size_bytes: int) -> None:
        """Charge an answer that leaves in any case: records that a member has acquired are not held back."""
        self._charge_time()
        self._wait(FETCH, self._quotas.charge(FETCH, self._user, self._client_id, size_bytes))

    def allows_mutation(self, count: int) -> bool:
        """Whether this many partitions may be created or deleted."""
        strict = self._version >= FIRST_STRICT.get(self._key, 0)
        allowed, wait_s = self._quotas.mutate(self._user, self._client_id, count, strict=strict)
        if self._key in FIRST_STRICT:
            self._wait(MUTATION, wait_s)
        return allowed

    def answered(self) -> int:
        """The throttle time of the answer in milliseconds."""
        self._charge_time()
        self._begin_wait()
        return round(self._wait_s * MS)

    def _begin_wait(self) -> None:
        """Begin the wait now; a wait that has begun already is counted again if it is for another quota."""
        if not self._wait_s:
            return
        if self._kind != self._told:
            self._told = self._kind
            self._quotas.told(self._kind, self._wait_s)
        self._connection.mute(self._wait_s)

    def _charge_time(self) -> None:
        """Charge the time once; an answer that is given before the handler ends is charged for the work until then."""
        if self._monotonic is None:
            return
        if self._took_s < 0:
            self.handled()
        self._monotonic = None
        self._wait(REQUEST, self._quotas.charge(REQUEST, self._user, self._client_id, self._took_s * PER_CENT))

    def _wait(self, kind: str, wait_s: float) -> None:
        """The longest wait counts for all quotas; a wait too short for the answer to express is dropped."""
        if wait_s > LEAST_WAIT_S:
            self._quotas.hold(kind, self._user, self._client_id, wait_s)
        if wait_s > max(self._wait_s, LEAST_WAIT_S):
            self._wait_s, self._kind = wait_s, kind


def _with_wait(throttle: Throttle, key: ApiKey, response: Any) -> Any:
    wait_ms = throttle.answered()
    return with_throttle_time(key, response, wait_ms) if wait_ms else response


def with_throttle_time(key: ApiKey, response: Any, wait_ms: int) -> Any:
    """A copy of a response with the throttle time in it, if it has room for one."""
    cls = API[key].response
    return with_value(cls, response, THROTTLE_TIME, wait_ms) if THROTTLE_TIME in cls.FIELDS else response
