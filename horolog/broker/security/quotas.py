"""The quotas of clients: which one applies to a user and a client id, which clients share it, and how long a client over it waits.

The first entity that matches a client and has a value applies: user and client id, user and default client id, user; the same three
for the default user; client id, default client id. If it names a client id, each client id has a rate of its own; otherwise all
clients of the user share one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from horolog.broker.base.metrics import Described, Kind, Metrics
from horolog.broker.config.setting_types import INT64_MAX
from horolog.broker.config.settings import Settings
from horolog.broker.on_record.stored_rules import Rules
from horolog.broker.security.acls import plain_host
from horolog.broker.security.quota_entities import (
    CLIENT_ID,
    CONNECTION,
    FETCH,
    IP,
    MUTATION,
    PRODUCE,
    REQUEST,
    USER,
    Entity,
    Values,
    stored_quotas,
)
from horolog.broker.security.quota_rates import Rate, TokenBucket, Windows

THROTTLE_SECONDS: Final = Described(
    "throttle_seconds",
    Kind.HISTOGRAM,
    "Throttle time of requests and connections over a quota.",
    ("quota",),
)
FAMILIES: Final = (THROTTLE_SECONDS,)

DEFAULT: Final = None
Sharer = tuple[str | None, str | None]
"""The user and the client id that share one rate; None stands for any."""


BETWEEN_HELD_S: Final = 0.0005
"""The time between held requests: they are looked at one after the other, however many there are."""
EARLY_S: Final = 0.001
"""How early a timer may be."""

M = TypeVar("M", Rate, TokenBucket)


class Limit(NamedTuple):
    """The quota that applies to a client, and who shares it."""

    value: float
    sharer: Sharer


class QuotaTable:
    """The quotas of the cluster, reduced to the share of one broker."""

    __slots__ = ("_by_kind",)

    def __init__(self, quotas: Mapping[Entity, Values], defaults: Values, parts: int) -> None:
        """`defaults` apply to client ids without a quota."""
        self._by_kind: dict[str, dict[Entity, float]] = {}
        of_clients = {((CLIENT_ID, DEFAULT),): defaults}
        for entity, values in (*of_clients.items(), *quotas.items()):
            for kind, value in values.items():
                self._by_kind.setdefault(kind, {})[_compared(entity)] = value / parts

    def __repr__(self) -> str:
        return f"<QuotaTable {self._by_kind}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QuotaTable) and self._by_kind == other._by_kind

    __hash__ = None  # type: ignore[assignment]

    def has(self, kind: str) -> bool:
        return kind in self._by_kind

    def of_client(self, kind: str, user: str, client_id: str) -> Limit | None:
        quotas = self._by_kind.get(kind)
        if quotas is None:
            return None
        for user_key in (user, DEFAULT):
            for client_key in (client_id, DEFAULT):
                value = quotas.get(((CLIENT_ID, client_key), (USER, user_key)))
                if value is not None:
                    return Limit(value, (user, client_id))
            value = quotas.get(((USER, user_key),))
            if value is not None:
                return Limit(value, (user, None))
        for client_key in (client_id, DEFAULT):
            value = quotas.get(((CLIENT_ID, client_key),))
            if value is not None:
                return Limit(value, (None, client_id))
        return None

    def of_address(self, address: str) -> float | None:
        quotas = self._by_kind.get(CONNECTION, {})
        return quotas.get(((IP, plain_host(address)),), quotas.get(((IP, DEFAULT),)))


def _compared(entity: Entity) -> Entity:
    """The entity, with its address written as those of connections are."""
    return tuple((kind, plain_host(name) if kind == IP and name is not None else name) for kind, name in entity)


class _Meters(Generic[M]):
    """One meter for each sharer of a quota; meters that no longer say anything are dropped once in the span of all windows."""

    __slots__ = ("_by_sharer", "_new", "_swept_s", "_windows")

    def __init__(self, new: Callable[[Windows], M], windows: Windows) -> None:
        self._new: Callable[[Windows], M] = new
        self._windows = windows
        self._by_sharer: dict[object, M] = {}
        self._swept_s = 0.0

    def __repr__(self) -> str:
        return f"<_Meters of {len(self._by_sharer)}>"

    def __len__(self) -> int:
        return len(self._by_sharer)

    def of(self, sharer: object, now_s: float) -> M:
        meter = self._by_sharer.get(sharer)
        if meter is None:
            if now_s - self._swept_s >= self._windows.all_s:
                self._swept_s = now_s
                self._by_sharer = {one: kept for one, kept in self._by_sharer.items() if not kept.says_nothing(now_s)}
            meter = self._by_sharer[sharer] = self._new(self._windows)
        return meter


class _Hold:
    """Until when the clients that share a quota wait, and when the last of their held requests is looked at again."""

    __slots__ = ("last_s", "until_s")

    def __init__(self) -> None:
        self.until_s = self.last_s = 0.0

    def __repr__(self) -> str:
        return f"<_Hold until {self.until_s:g}>"

    def wait_s(self, now_s: float) -> float:
        if now_s >= self.until_s - EARLY_S:
            return 0.0
        self.last_s = max(self.until_s, self.last_s + BETWEEN_HELD_S)
        return self.last_s - now_s


class ClientQuotas:
    """What clients have used of their quotas; `take` is a watcher of the cluster's rules, `watchers` are called when quotas change."""

    __slots__ = (
        "_defaults",
        "_holds",
        "_meters",
        "_metrics",
        "_monotonic",
        "_mutations",
        "_parts",
        "_table",
        "_windows",
        "watchers",
    )

    def __init__(self, settings: Settings, monotonic: Callable[[], float], metrics: Metrics, parts: int = 1) -> None:
        """`parts`: how many brokers share what the quotas allow, in equal parts."""
        self._parts = parts
        self._monotonic = monotonic
        self._metrics = metrics
        of_settings = {PRODUCE: settings.quota_producer_default, FETCH: settings.quota_consumer_default}
        self._defaults = {kind: float(value) for kind, value in of_settings.items() if value != INT64_MAX}
        self._windows = Windows(settings.quota_window_num, settings.quota_window_size_seconds)
        mutations = Windows(settings.controller_quota_window_num, settings.controller_quota_window_size_seconds)
        self._meters = {kind: _Meters(Rate, self._windows) for kind in (PRODUCE, FETCH, REQUEST, CONNECTION)}
        self._mutations = _Meters(TokenBucket, mutations)
        self._table = QuotaTable({}, self._defaults, parts)
        self._holds: dict[tuple[str, Sharer], _Hold] = {}
        self.watchers: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        count = sum(map(len, self._meters.values())) + len(self._mutations)
        return f"<ClientQuotas {self._table!r}, {count} who used them>"

    def take(self, rules: Rules) -> None:
        """Apply these rules from now on; what was used stays used."""
        table = QuotaTable(dict(stored_quotas(rules)), self._defaults, self._parts)
        if table != self._table:  # users and access lists change, too
            self._table = table
            self._holds.clear()
            for changed in self.watchers:
                changed()

    def has(self, kind: str) -> bool:
        return self._table.has(kind)

    def charge(self, kind: str, user: str, client_id: str, amount: float) -> float:
        """Count what a client has used; return for how many seconds it has to wait."""
        limit = self._table.of_client(kind, user, client_id)
        if limit is None:
            return 0.0
        now_s = self._monotonic()
        meter = self._meters[kind].of(limit.sharer, now_s)
        meter.record(amount, now_s)
        wait_s = meter.wait_s(limit.value, now_s)
        return min(wait_s, self._windows.length_s) if kind == REQUEST else wait_s

    def hold(self, kind: str, user: str, client_id: str, wait_s: float) -> None:
        """Make all clients that share this client's quota wait for `wait_s`, on every connection."""
        limit = self._table.of_client(kind, user, client_id)
        if limit is None:
            return
        now_s = self._monotonic()
        found = self._holds.get((kind, limit.sharer))
        if found is None:
            self._holds = {key: one for key, one in self._holds.items() if one.until_s > now_s}
            found = self._holds[kind, limit.sharer] = _Hold()
        found.until_s = max(found.until_s, now_s + wait_s)

    def held_s(self, kind: str, user: str, client_id: str) -> float:
        """For how long a client's request is held now; each held request gets a different time."""
        if not self._holds:
            return 0.0
        limit = self._table.of_client(kind, user, client_id)
        found = None if limit is None else self._holds.get((kind, limit.sharer))
        return 0.0 if found is None else found.wait_s(self._monotonic())

    def give_back(self, kind: str, user: str, client_id: str, amount: float) -> None:
        """Take back a charge."""
        limit = self._table.of_client(kind, user, client_id)
        if limit is not None:
            now_s = self._monotonic()
            self._meters[kind].of(limit.sharer, now_s).record(-amount, now_s)

    def most_at_once(self, kind: str, user: str, client_id: str) -> float:
        """What a client may use in all windows: more would exceed its quota even after a rest."""
        limit = self._table.of_client(kind, user, client_id)
        return math.inf if limit is None else limit.value * (self._windows.number - 1) * self._windows.length_s

    def mutate(self, user: str, client_id: str, count: int, *, strict: bool) -> tuple[bool, float]:
        """Whether a client may change this many partitions, and for how many seconds it has to wait.

        A strict quota refuses a client that is over it already; one that is not strict counts the change, and makes the client wait.
        """
        limit = self._table.of_client(MUTATION, user, client_id)
        if limit is None:
            return True, 0.0
        now_s = self._monotonic()
        bucket = self._mutations.of(limit.sharer, now_s)
        if strict and (wait_s := bucket.wait_s(limit.value, now_s)):
            return False, wait_s
        bucket.record(count, limit.value, now_s)
        return True, 0.0 if strict else bucket.wait_s(limit.value, now_s)

    def connect(self, address: str) -> float:
        """Count a connection; return the seconds after which to close it if it is one too many, else 0."""
        limit = self._table.of_address(address)
        if limit is None:
            return 0.0
        now_s = self._monotonic()
        rate = self._meters[CONNECTION].of(address, now_s)
        rate.record(1, now_s)
        wait_s = min(rate.wait_s(limit, now_s), self._windows.length_s)
        if wait_s:
            rate.record(-1, now_s)
            self.told(CONNECTION, wait_s)
        return wait_s

    def told(self, kind: str, wait_s: float) -> None:
        """Record that a client has to wait."""
        self._metrics.histogram(THROTTLE_SECONDS, kind).observe(wait_s)
