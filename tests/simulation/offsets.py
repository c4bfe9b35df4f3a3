"""Committed offsets: who commits them in the simulation, and which values a group may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from horolog.protocol.errors import ErrorCode
from horolog.protocol.group_metadata import write_assignment
from horolog.protocol.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from horolog.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.simulation.model import TopicModel
from tests.simulation.producers import Actor

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

NOTHING = -1
TRANSACTIONAL_GROUP = "transactional-group"
"""Its offsets are committed in transactions."""


class OffsetKey(NamedTuple):
    group: str
    topic: TopicModel
    partition: int


class OffsetsModel:
    """Of each group and partition, the offsets that may be committed: one, unless something was not answered."""

    def __init__(self) -> None:
        self.possible: dict[OffsetKey, set[int]] = {}
        self._next = 0

    def next_offset(self, key: OffsetKey) -> int:
        """An offset that was never committed; every commit has one of its own, ascending."""
        self.possible.setdefault(key, {NOTHING})
        self._next += 1
        return self._next

    def asked(self, offsets: Mapping[OffsetKey, int]) -> None:
        for key, offset in offsets.items():
            self.possible[key].add(offset)

    def committed(self, offsets: Mapping[OffsetKey, int]) -> None:
        for key, offset in offsets.items():
            self.possible[key] = {one for one in self.possible[key] if one >= offset} | {offset}

    def forget(self, topic: TopicModel) -> None:
        for key in [one for one in self.possible if one.topic is topic]:
            del self.possible[key]

    def wrong(self, key: OffsetKey, offset: int) -> str | None:
        if offset in self.possible[key]:
            return None
        return f"{key.group}, {key.topic}-{key.partition}: offset {offset} is none of {sorted(self.possible[key])}"


class Committer(Actor):
    """Commits offsets of a group, as a member of it or without joining."""

    def __init__(self, simulation: Simulation, name: str, *, joins: bool) -> None:
        super().__init__(simulation, name)
        self._joins = joins
        self._waiting = False
        self._member, self._generation = "", -1
        self._synced = False

    def step(self) -> None:
        if self._waiting:
            return
        if not self._joins:
            self._commit()
        elif self._generation < 0:
            self._join()
        elif not self._synced:
            self._sync()
        elif self.chance.random() < 0.1:
            self._leave()
        elif self.chance.random() < 0.2:
            self._heartbeat()
        else:
            self._commit()

    def _start_over(self, code: int = 0) -> None:
        if code not in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.MEMBER_ID_REQUIRED):
            self._member = ""
        self._generation, self._synced = -1, False

    def _ask(self, request: Any, version: int, answered: Any) -> None:
        self._waiting = True

        def done(answer: Any) -> None:
            self._waiting = False
            if answer is None:
                self._start_over()
            else:
                answered(answer)

        self.client.send(request, version, done)

    def _join(self) -> None:
        def answered(answer: Any) -> None:
            self.world.note("join", self.name, answer.error_code, answer.generation_id)
            self._start_over(answer.error_code)
            if not answer.error_code:
                self._generation = answer.generation_id
            if answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                self._member = answer.member_id

        request = JoinGroupRequest(
            group_id=self.name,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id=self._member,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        self._ask(request, self.chance.choice((2, 5, 9)), answered)

    def _sync(self) -> None:
        def answered(answer: Any) -> None:
            self.world.note("sync", self.name, answer.error_code)
            self._synced = not answer.error_code
            if answer.error_code:
                self._start_over(answer.error_code)

        assignment = SyncGroupRequestAssignment(member_id=self._member, assignment=write_assignment(0, {}))
        request = SyncGroupRequest(
            group_id=self.name,
            generation_id=self._generation,
            member_id=self._member,
            assignments=[assignment],
            protocol_type="consumer",
            protocol_name="range",
        )
        self._ask(request, self.chance.choice((0, 3, 5)), answered)

    def _heartbeat(self) -> None:
        request = HeartbeatRequest(group_id=self.name, generation_id=self._generation, member_id=self._member)
        self._ask(request, 3, lambda answer: self._start_over(answer.error_code) if answer.error_code else None)

    def _leave(self) -> None:
        self.world.note("leave", self.name)
        request = LeaveGroupRequest(group_id=self.name, member_id=self._member)
        self._ask(request, 1, lambda _: self._start_over())

    def _commit(self) -> None:
        topic, partition = self.simulation.any_partition()
        if partition is None:
            return
        key = OffsetKey(self.name, topic, partition.index)
        offsets = self.simulation.offsets
        offset = offsets.next_offset(key)
        offsets.asked({key: offset})
        data = [OffsetCommitRequestPartition(partition_index=partition.index, committed_offset=offset)]
        request = OffsetCommitRequest(
            group_id=self.name,
            generation_id_or_member_epoch=self._generation,
            member_id=self._member,
            topics=[OffsetCommitRequestTopic(name=topic.name, topic_id=topic.id, partitions=data)],
        )
        self.world.note("commit offset", self.name, partition, offset)

        def answered(answer: Any) -> None:
            code = answer.topics[0].partitions[0].error_code
            self.world.note("offset committed", self.name, offset, code)
            if not code and key in offsets.possible:
                offsets.committed({key: offset})
            elif code and self._joins:
                self._start_over(code)

        self._ask(request, self.chance.choice((2, 5, 7, 9)), answered)
