"""Waits until a topic has the records that a test expects, or a group has committed; raises `ExpectationFailed` otherwise.

The machine's clock counts, not the broker's. The log is read again only where it has changed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from horolog.base.readable import counted, format_duration
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.protocol.errors import ErrorCode
from horolog.testing.clock import Span, span_ms
from horolog.testing.matching import ExpectationFailed, ExpectedRecord, failure
from horolog.testing.reading import Seen, records_of, state_of, topic_named

if TYPE_CHECKING:
    from horolog.broker.server.app import Broker

LOOK_AGAIN_S = 0.005


async def expect(
    broker: Broker, topic: str, wanted: ExpectedRecord, count: int | None, within: Span | float
) -> list[Seen]:
    """The matching records, once there are `count`, or at least one if that is None."""
    wait_ms = span_ms(within)
    if count is not None and count < 0:
        raise ValueError(f"count={count}: expected a number of records")
    look = _Look(broker, topic, wanted)
    ends = asyncio.get_running_loop().time() + wait_ms / 1000
    while True:
        found = look.now()
        if len(found) == count or (count is None and found):
            return found
        too_many = count is not None and len(found) > count
        if too_many or asyncio.get_running_loop().time() >= ends:
            break
        await asyncio.sleep(LOOK_AGAIN_S)
    amount = "records" if count is None else counted(count, "record")
    told = wanted.told()
    asked = f"expected {amount}{told} within {format_duration(wait_ms)}, found {len(found) or 'none'}"
    raise look.failure(asked, found)


async def expect_none(broker: Broker, topic: str, wanted: ExpectedRecord, within: Span | float) -> None:
    """No record matches, now or until the time is over."""
    wait_ms = span_ms(within)
    look = _Look(broker, topic, wanted)
    ends = asyncio.get_running_loop().time() + wait_ms / 1000
    while not (found := look.now()):
        if asyncio.get_running_loop().time() >= ends:
            return
        await asyncio.sleep(LOOK_AGAIN_S)
    raise look.failure(f"expected no records{wanted.told()} for {format_duration(wait_ms)}, found {len(found)}", found)


class _Look:
    """A topic and its matching records; a topic that does not exist has none."""

    def __init__(self, broker: Broker, topic: str, wanted: ExpectedRecord) -> None:
        self._broker = broker
        self._topic = topic
        self._wanted = wanted
        self._state: object = None
        self._records: list[Seen] = []
        self._found: list[Seen] = []

    def now(self) -> list[Seen]:
        topic = self._broker.cluster.topics.get(self._topic)
        if topic is None:
            self._state, self._records, self._found = None, [], []
        elif (state := state_of(topic)) != self._state:
            self._state, self._records = state, records_of(topic)
            self._found = [one for one in self._records if not self._wanted.misses(one)]
        return self._found

    def failure(self, asked: str, found: list[Seen]) -> ExpectationFailed:
        try:
            topic_named(self._broker.cluster, self._topic)
        except ClusterError as error:
            return ExpectationFailed(f"{self._topic}: {asked}\n{error}")
        return failure(self._topic, asked, self._records, self._wanted, found)


def committed(broker: Broker, group: str, topic: str, partition: int) -> int | None:
    """The offset that a group has committed; None if it has not."""
    found = broker.groups.find(group)
    if isinstance(found, ErrorCode):
        return None
    offset = found.offsets.get((topic, partition))
    return None if offset is None else offset.offset


async def expect_committed(
    broker: Broker, group: str, topic: str, offset: int, partition: int, within: Span | float
) -> None:
    """Wait until the group has committed this offset, that of its next record."""
    wait_ms = span_ms(within)
    ends = asyncio.get_running_loop().time() + wait_ms / 1000
    while (now := committed(broker, group, topic, partition)) != offset:
        if asyncio.get_running_loop().time() >= ends:
            there = "none" if now is None else now
            raise ExpectationFailed(
                f"group {group}: expected committed offset {offset} of {topic}-{partition} within {format_duration(wait_ms)},"
                f" found {there}\n{_all_committed(broker, group)}"
            )
        await asyncio.sleep(LOOK_AGAIN_S)


def _all_committed(broker: Broker, group: str) -> str:
    found = broker.groups.find(group)
    if isinstance(found, ErrorCode):
        known = ", ".join(sorted(broker.groups.registry.groups)) or "none"
        return f"there is no group {group}; the groups here are: {known}"
    offsets = [f"{topic}-{index}: {one.offset}" for (topic, index), one in sorted(found.offsets.items())]
    return f"the group has committed: {', '.join(offsets) or 'nothing'}"
