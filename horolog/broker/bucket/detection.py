"""Decides whom a broker takes for gone: a machine without a clock, network or store. It bears on how soon partitions move, never on records.

A member is suspected if its port refuses connections, if nothing was heard from it for a while, or if it says that it has not heard
from the store for as long. It answers with an entry of its own. A suspicion without an answer ends with a fence; so does one that all
other members share for long, although it was answered. Other suspicions end by themselves. A broker that is suspected suspects no other.
"""

from __future__ import annotations

from typing import NamedTuple

from horolog.broker.bucket.bucket_entries import Suspected, SuspicionEnded
from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.names import Wal

ANSWERED_WITHIN_S = 1.2
"""A suspected broker reads of it in this time, and answers: it reads the journal every 0.7 s, and `READS_EVERY_S` later others read its answer."""
READS_EVERY_S = 0.2
"""How often a broker reads the journal that waits for the answer of another."""
ANSWERED_FOR_S = 10.0
"""How long a suspicion goes on after an answer."""
STARTS_WITHIN_S = 30.0
"""How long a broker may take from its registration until it listens."""
BETWEEN_FENCES_S = 5.0
"""A slow store must not end all brokers; one whose port refuses does not count."""
AWAY_S = 1.0
"""A broker that was not asked for so long stood still itself, and has heard from no other."""


class FenceOff(NamedTuple):
    """End the WAL of this member."""

    wal: Wal


Act = Suspected | SuspicionEnded | FenceOff


class _Heard:
    """One incarnation of another member, as far as it is known here."""

    __slots__ = ("has_answered", "heard_s", "is_refused", "silent_s", "suspected_s", "wal")

    def __init__(self, wal: Wal, now: float) -> None:
        self.wal = wal
        self.heard_s = now
        self.has_answered = False
        self.is_refused = False
        self.silent_s = 0.0
        """For how long it had not heard from the store when it answered last."""
        self.suspected_s: float | None = None
        """Since when this broker suspects it."""


class Detection:
    """What one broker thinks of the other members."""

    def __init__(self, me: Wal, timeout_s: float) -> None:
        self._me = me
        self._timeout_s = timeout_s
        self._others: dict[int, _Heard] = {}
        self._state = BucketState()
        self._fenced_s = float("-inf")
        self._asked_s: float | None = None

    def __repr__(self) -> str:
        return f"<Detection of {self._me}: {sorted(self._others)}>"

    def state_is(self, state: BucketState, now: float) -> None:
        """The journal was read up to this state."""
        gone = self._state.fenced != state.fenced
        if gone:
            self._fenced_s = now
        self._state = state
        for node in [node for node, one in self._others.items() if not state.is_member(one.wal)]:
            del self._others[node]
        for node, member in state.members.items():
            if node != self._me.node and node not in self._others:
                self._others[node] = _Heard(Wal(node, member.incarnation), now)
        for node, one in self._others.items():
            is_mine = self._me.node in state.suspicions.get(node, {})
            one.suspected_s = (one.suspected_s or now) if is_mine else None

    def heard(self, node: int, silent_s: float, now: float) -> None:
        """A member has answered; its store has not for so long."""
        one = self._others.get(node)
        if one is not None:
            one.heard_s, one.has_answered, one.is_refused, one.silent_s = now, True, False, silent_s

    def hears_of_store(self, now: float) -> bool:
        """Whether another member has answered a short while ago that it hears from the store."""
        return any(
            one.has_answered and not one.silent_s and now - one.heard_s < self._timeout_s
            for one in self._others.values()
        )

    def refused(self, node: int) -> None:
        """The port of a member refuses connections. It counts once the member was heard: until then it may be starting."""
        one = self._others.get(node)
        if one is not None:
            one.is_refused = one.has_answered

    @property
    def waits_for_answer(self) -> bool:
        """Whether this broker suspects a member that has not answered."""
        return any(
            one.suspected_s is not None and node not in self._state.suspicions[node]
            for node, one in self._others.items()
        )

    def is_against(self, wal: Wal) -> bool:
        """Whether the reason for which a member would be fenced goes on."""
        one = self._others.get(wal.node)
        return one is not None and one.wal == wal and (one.is_refused or one.suspected_s is not None)

    def due(self, now: float) -> list[Act]:
        """The acts that are due now."""
        if self._asked_s is not None and now - self._asked_s > AWAY_S:
            for one in self._others.values():
                one.heard_s = max(one.heard_s, now - self._timeout_s / 2)
        self._asked_s = now
        mine = self._state.suspicions.get(self._me.node, {})
        if not self._state.is_member(self._me):
            return []
        if mine and self._me.node not in mine:
            return [Suspected(self._me.node, self._me.node)]
        return [
            act for one in self._others.values() if (act := self._act(one, now, is_suspected=bool(mine))) is not None
        ]

    def _act(self, one: _Heard, now: float, *, is_suspected: bool) -> Act | None:
        if one.is_refused and not is_suspected:
            return FenceOff(one.wal)
        is_gone = self._is_gone(one, now)
        if one.suspected_s is None:
            return Suspected(one.wal.node, self._me.node) if is_gone and not is_suspected else None
        if not is_gone:
            return SuspicionEnded(one.wal.node, self._me.node)
        lasts_s = now - one.suspected_s
        if one.wal.node not in self._state.suspicions[one.wal.node]:
            return FenceOff(one.wal) if lasts_s >= ANSWERED_WITHIN_S and self._may_fence(now) else None
        if lasts_s < (ANSWERED_FOR_S if one.has_answered else STARTS_WITHIN_S):
            return None
        if self._is_outvoted(one.wal.node) and self._may_fence(now):
            return FenceOff(one.wal)
        return SuspicionEnded(one.wal.node, self._me.node)

    def _is_gone(self, one: _Heard, now: float) -> bool:
        """A broker that registered after this one may be starting."""
        is_starting = not one.has_answered and one.wal.incarnation > self._me.incarnation
        allowed_s = STARTS_WITHIN_S if is_starting else self._timeout_s
        return now - one.heard_s >= allowed_s or one.silent_s >= self._timeout_s

    def _is_outvoted(self, node: int) -> bool:
        """Whether all other members suspect it. Of two that are alone with each other the higher number goes."""
        others = self._state.members.keys() - {node}
        return others <= self._state.suspicions[node].keys() and (len(others) > 1 or node > self._me.node)

    def _may_fence(self, now: float) -> bool:
        return now - self._fenced_s >= BETWEEN_FENCES_S
