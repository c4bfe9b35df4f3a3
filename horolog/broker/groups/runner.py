"""Acts on decisions about groups: sets timers, sends responses, writes records, and reports when they are written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from horolog.broker.base.late_answers import ANSWERED_WITHIN_S
from horolog.broker.coordination.timers import Timer, Timers
from horolog.broker.groups import classic, kip848
from horolog.broker.groups.classic_events import Downgraded
from horolog.broker.groups.classic_group import ClassicGroup
from horolog.broker.groups.decision import Decision, GroupAnswer, GroupTimer, unbound
from horolog.broker.groups.journal import GroupJournal
from horolog.broker.groups.known import Known
from horolog.broker.groups.registry import Group, Registry
from horolog.broker.groups.share.share_decisions import decide_share
from horolog.broker.groups.share.share_group import ShareGroup
from horolog.broker.groups.streams.streams_decisions import decide_streams
from horolog.broker.groups.streams.streams_group import StreamsGroup
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import HeartbeatRequest

log = logging.getLogger(__name__)


class Runner:
    """See `decision` for the parts of a decision and their order."""

    def __init__(
        self, known: Known, timers: Timers, journal: GroupJournal, registry: Registry, lost: Callable[[int], None]
    ) -> None:
        """`lost` gets the shard of a KIP-848 group whose write failed: the shard is read again from the log."""
        self._known = known
        self._timers = timers
        self._journal = journal
        self._registry = registry
        self._lost = lost

    def __repr__(self) -> str:
        return f"<Runner of {self._registry!r} with {self._timers!r}>"

    def run(self, group: Group, event: Any) -> Decision[Any]:
        """Apply an event to a group, and act on the decision."""
        now_ms = self._known.now_ms()
        decision: Decision[Any]
        if isinstance(group, ClassicGroup):
            decision = classic.decide(group, event, self._known.settings, now_ms)
        elif isinstance(group, ShareGroup):
            decision = decide_share(group, event, self._known, now_ms)
        elif isinstance(group, StreamsGroup):
            decision = decide_streams(group, event, self._known, now_ms)
        else:
            decision = kip848.decide(group, event, self._known, now_ms)
        self.act(decision)
        return decision

    def heartbeat(self, group: ClassicGroup, request: HeartbeatRequest) -> ErrorCode:
        code, member = classic.heartbeat(group, request)
        if member is not None:
            self._start(group, member.session, member.session_timeout_ms)
        return code

    def committed(self, group_id: str, member_id: str) -> None:
        """A member commits offsets."""
        group = self._registry.groups.get(group_id)
        member = classic.committing(group, member_id) if isinstance(group, ClassicGroup) else None
        if member is not None and group is not None:
            self._start(group, member.session, member.session_timeout_ms)

    def act(self, decision: Decision[Any]) -> None:
        group = decision.group
        for level, message, arguments in decision.notes:
            log.log(level, message, *arguments)
        for timer, after_ms, unless_running in decision.timers:
            if after_ms is None:
                self._timers.stop(timer)
            elif not (unless_running and timer.running):
                self._start(group, timer, after_ms)
        if decision.successor is not None:
            self._registry.groups[group.id] = decision.successor
            self.run(decision.successor, Downgraded())
        _give(decision.answers)
        if decision.entries:
            clients_wait = Timer(partial(_give, decision.late))
            if decision.late:
                self._timers.start(clients_wait, round(ANSWERED_WITHIN_S * 1000))
            written = partial(self._written, decision, clients_wait)
            self._journal.append(group.shard, decision.entries, written, is_state=True)
        else:
            assert not decision.promises, f"{decision!r} waits for a write that does not come"
            assert decision.then is None, f"{decision!r} waits for a write that does not come"

    def _start(self, group: Group, timer: GroupTimer, after_ms: int) -> None:
        if timer.action is unbound:
            timer.action = partial(self._due, group, timer)
        self._timers.start(timer, after_ms)

    def _due(self, group: Group, timer: GroupTimer) -> None:
        self.run(group, timer.event)

    def _written(self, decision: Decision[Any], clients_wait: Timer, code: ErrorCode, _: int) -> None:
        group = decision.group
        self._timers.stop(clients_wait)
        if code and not isinstance(group, ClassicGroup):
            log.error("group %s could not be written (%s); reading it again from the log", group.id, code.name)
            self._lost(group.shard)
        for to, response, refusal in decision.promises:
            to(refusal if code else response)
        if decision.then is not None:
            self.run(group, decision.then(code))


def _give(answers: Iterable[GroupAnswer[Any]]) -> None:
    for to, response in answers:
        to(response)
