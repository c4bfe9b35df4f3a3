"""Offsets of groups whose members have epochs: who may commit, fetch and delete them, and when they expire."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Generic, Protocol, TypeVar

from horolog.broker.groups.offsets import Committed
from horolog.protocol.errors import ErrorCode
from horolog.protocol.topic_partition import TopicPartition

FIRST_COMMIT_WITH_MEMBER_EPOCH = 9

CommittedPartition = tuple[str, bytes, int]
"""The name and id of a topic, and a partition."""


class _InEpoch(Protocol):
    @property
    def epoch(self) -> int: ...


class MemberWithEpoch(Protocol):
    """A member of such a group."""

    @property
    def current(self) -> _InEpoch: ...


Member = TypeVar("Member", bound=MemberWithEpoch)


class GroupWithEpochs(ABC, Generic[Member]):
    """The part that consumer groups and streams groups have in common."""

    __slots__ = ()

    members: Mapping[str, Member]
    subscribed: frozenset[str]

    @property
    def is_empty(self) -> bool:
        return not self.members

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, version: int, *, transactional: bool
    ) -> ErrorCode:
        """Whether a commit by this member, or from outside of the group (epoch -1), is accepted."""
        if epoch < 0 and not self.members:
            return ErrorCode.NONE
        if transactional and epoch < 0 and not member_id and instance_id is None:
            return ErrorCode.NONE
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return self._check_commit_by(member, epoch, version, transactional=transactional)

    def _check_commit_by(self, member: Member, epoch: int, version: int, *, transactional: bool) -> ErrorCode:
        if not transactional and version < FIRST_COMMIT_WITH_MEMBER_EPOCH:
            return ErrorCode.UNSUPPORTED_VERSION
        return ErrorCode.NONE if epoch == member.current.epoch else ErrorCode.STALE_MEMBER_EPOCH

    def has_kept(self, member_id: str, epoch: int, partitions: Iterable[CommittedPartition]) -> bool:
        """Whether a member has had partitions since an earlier epoch: as in Kafka 4.3, it may commit them with that one (KIP-1251).

        Such a commit was on its way while the member entered a newer epoch.
        """
        member = self.members.get(member_id)
        if member is None or epoch > member.current.epoch:
            return False
        got = (self._got_in(member, *one) for one in partitions)
        return all(since is not None and since <= epoch for since in got)

    @abstractmethod
    def _got_in(self, member: Member, topic: str, topic_id: bytes, index: int) -> int | None:
        """The epoch in which a member got a partition; None if it has not got it."""

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """A client that names a member must be that member, in its current epoch."""
        if not member_id and epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member.current.epoch == epoch else ErrorCode.STALE_MEMBER_EPOCH

    def check_offset_delete(self) -> ErrorCode:
        return ErrorCode.NONE

    def check_delete(self) -> ErrorCode:
        return ErrorCode.NON_EMPTY_GROUP if self.members else ErrorCode.NONE

    def reads(self, topic: str) -> bool:
        """Whether a member reads a topic, named or matched by its pattern."""
        return bool(self.members) and topic in self.subscribed

    def expiry_starts(self, partition: TopicPartition, committed: Committed) -> int | None:
        """Offsets of a topic that a member reads do not expire."""
        return None if self.reads(partition[0]) else committed.commit_ms
