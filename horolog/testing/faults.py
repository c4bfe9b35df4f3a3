"""Faults on demand: a call arms each, and it ends with its `with`, after a number of requests, or after a time.

    with broker.faults.refuse("NOT_ENOUGH_REPLICAS", "produce", topic="orders", times=2) as fault:
        ...
    assert fault.hits == 2

All take `times` (the number of requests struck), `lasts` (a duration, by the broker's clock), `client_id`, and most also the
API, the topic and the partition; if omitted, any matches. The broker's gate changes when a fault is armed, and changes back:
a request of an API without one takes its usual path.
"""

from __future__ import annotations

import asyncio
import re
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Unpack

from horolog.broker.coordination.timers import LoopTimers, Timer
from horolog.protocol.errors import ErrorCode
from horolog.testing import fault as kinds
from horolog.testing.clock import Span
from horolog.testing.fault import Fault
from horolog.testing.fault_gate import LED, gate_with
from horolog.testing.fault_scope import Apis, Struck, length_ms, scope_of

if TYPE_CHECKING:
    from horolog.broker.server.app import Broker
    from horolog.testing.full_disk import Fullness


class FaultKinds:
    """The kinds of faults; `arm` puts one into force."""

    def arm(self, fault: Fault) -> Fault:
        """Let the fault strike from now on."""
        raise NotImplementedError

    def refuse(self, error: str | int, api: Apis = None, **struck: Unpack[Struck]) -> Fault:
        """Answer with an error code, by its name in Kafka or its number, and do nothing."""
        return self.arm(Fault(kinds.REFUSE, scope_of(api, **struck), error=code_named(error)))

    def delay(self, by: Span | float, api: Apis = None, *, after_work: bool = False, **struck: Unpack[Struck]) -> Fault:
        """Delay requests, and all after them on the connection; `after_work`: serve at once, and answer later."""
        scope = scope_of(api, **struck)
        return self.arm(Fault(kinds.DELAY, scope, span_ms=length_ms(by), after_work=after_work))

    def drop(self, api: Apis = None, *, after_work: bool = False, **struck: Unpack[Struck]) -> Fault:
        """Close the connection before anything is done; `after_work`: do the work, and lose the response."""
        return self.arm(Fault(kinds.DROP, scope_of(api, **struck), after_work=after_work))

    def throttle(self, by: Span | float, api: Apis = None, **struck: Unpack[Struck]) -> Fault:
        """Tell clients to wait (`throttle_time_ms`), and read nothing from them meanwhile, as quotas do."""
        return self.arm(Fault(kinds.THROTTLE, scope_of(api, **struck), span_ms=length_ms(by)))

    def leader_away(
        self,
        topic: str | None = None,
        partition: int | None = None,
        *,
        client_id: str | None = None,
        lasts: Span | float | None = None,
    ) -> Fault:
        """Partitions have no leader: NOT_LEADER_OR_FOLLOWER, and metadata says so. The same leader is back at the end."""
        scope = scope_of(None, topic, partition, client_id, lasts=lasts)._replace(apis=LED)
        return self.arm(Fault(kinds.LEADER_AWAY, scope, error=ErrorCode.NOT_LEADER_OR_FOLLOWER))

    def disk_full(
        self, topic: str | None = None, partition: int | None = None, *, lasts: Span | float | None = None
    ) -> Fault:
        """Every write fails: on the whole disk, or in the logs of a topic or of one partition."""
        return self.arm(Fault(kinds.DISK_FULL, scope_of(None, topic, partition, lasts=lasts)))


class Faults(FaultKinds):
    """The faults of one broker, on its event loop."""

    def __init__(self, broker: Broker, fullness: Fullness) -> None:
        self._broker = broker
        self._fullness = fullness
        self._base = broker.dispatcher.gate
        self._loop = asyncio.get_running_loop()
        self._numbers = 0
        self._filled: dict[Fault, re.Pattern[str]] = {}
        self.armed: list[Fault] = []
        self.timers = LoopTimers(broker.clock, self._loop)

    def __repr__(self) -> str:
        return f"<Faults {self.armed}>"

    def forget_all(self) -> None:
        """End all faults of a run that is over: the next one starts without any."""
        for fault in self.armed:
            fault.is_armed = False
        self.armed.clear()
        self.close()

    def follow(self, broker: Broker) -> None:
        """Apply to the next run of the broker."""
        self._broker = broker
        self._base = broker.dispatcher.gate
        self.timers = LoopTimers(broker.clock, self._loop)

    def arm(self, fault: Fault) -> Fault:
        self._numbers += 1
        fault.number = self._numbers
        fault.on_spent = partial(self._spent, fault)
        fault.on_end = partial(self.end, fault)
        if fault.kind == kinds.DISK_FULL:
            self._filled[fault] = self._fullness.fill(fault.scope.topic, fault.scope.partition)
        if fault.scope.lasts_ms is not None:
            self.timers.start(Timer(fault.on_end), fault.scope.lasts_ms)
        self.armed.append(fault)
        self._changed()
        return fault

    def _spent(self, fault: Fault) -> None:
        """End the fault, but not in the middle of the last request it strikes; held requests wait for their time."""
        self._loop.call_soon(self._forget, fault)

    def end(self, fault: Fault) -> None:
        """End the fault; held requests continue."""
        fault.is_armed = False
        self._forget(fault)
        for timer in list(fault.held):
            self.timers.stop(timer)
            timer.action()

    def clear(self) -> None:
        """End all faults."""
        for fault in list(self.armed):
            self.end(fault)

    def close(self) -> None:
        """Stop the timers and free the full disks, as the broker stops."""
        self.timers.close()
        for fault in self._filled:
            self._fullness.clear(self._filled[fault])
        self._filled.clear()

    def _forget(self, fault: Fault) -> None:
        if fault not in self.armed:
            return
        self.armed.remove(fault)
        if fault in self._filled:
            self._fullness.clear(self._filled.pop(fault))
            self._broker.time_has_moved()  # work that the full disk stopped continues at once
        self._changed()

    def _changed(self) -> None:
        """End requests that wait for records: the next ones meet the current faults."""
        broker = self._broker
        broker.dispatcher.go_by(gate_with(self._base, self.armed, self.timers) if self.armed else self._base)
        broker.logs.resources.changes.note()
        broker.waiting.expire_all()


def code_named(error: str | int) -> ErrorCode:
    """An error by its name in Kafka or its number; raises ValueError."""
    if isinstance(error, int):
        code = next((one for one in ErrorCode if one == error), ErrorCode.NONE)
    elif error.upper() in ErrorCode.__members__:
        code = ErrorCode[error.upper()]
    else:
        close = get_close_matches(error.upper(), ErrorCode.__members__, n=1)
        raise ValueError(f"there is no error {error!r}{f'; do you mean {close[0]}?' if close else ''}")
    if code is ErrorCode.NONE:
        raise ValueError(f"{error!r} is not an error code of Kafka")
    return code
