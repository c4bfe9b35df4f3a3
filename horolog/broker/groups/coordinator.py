"""The group coordinator: finds the group of a request, and passes the request to the protocol that the group speaks.

Every method takes the request and a callback for the response, which is called at once or later. A request whose write fails has no
effect: a group of the newer protocol is then read again from the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from functools import partial

from horolog.base.clock import Clock
from horolog.broker.base.topic_names import GROUP_OFFSETS
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.commit.committer import Committer
from horolog.broker.coordination.timers import Timers
from horolog.broker.groups.classic import join_error
from horolog.broker.groups.classic_events import (
    Client,
    JoinGroup,
    LeaveGroup,
    SyncGroup,
)
from horolog.broker.groups.classic_group import ClassicGroup, new_member_id
from horolog.broker.groups.commits import CommitAnswer, CommitRequest, Commits, TxnCommitAnswer, TxnCommitRequest
from horolog.broker.groups.consumer_group import ConsumerGroup
from horolog.broker.groups.expiry import GroupExpiry
from horolog.broker.groups.finder import Finder
from horolog.broker.groups.held import HeldByGroups
from horolog.broker.groups.journal import GroupJournal
from horolog.broker.groups.kip848 import HeartbeatRefusal, check_heartbeat, heartbeat_error
from horolog.broker.groups.kip848_events import Heartbeat, Leave
from horolog.broker.groups.known import Known
from horolog.broker.groups.loading import Loader
from horolog.broker.groups.member_bytes import Owner
from horolog.broker.groups.offset_fetch import OffsetFetch
from horolog.broker.groups.registry import Group, Registry
from horolog.broker.groups.runner import Runner
from horolog.broker.groups.shards import Shards
from horolog.broker.groups.share.share_coordinator import ShareCoordinator
from horolog.broker.groups.share.share_group import ShareGroup
from horolog.broker.groups.streams.streams_coordinator import StreamsCoordinator
from horolog.broker.groups.topic_patterns import MayDescribe
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from horolog.protocol.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupResponse,
)
from horolog.protocol.messages.offsets import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from horolog.protocol.records.batch import Entry

log = logging.getLogger(__name__)

LAST_LEAVE_OF_ONE = 2


class GroupCoordinator:
    """All groups of this broker."""

    def __init__(
        self, cluster: Cluster, committer: Committer, clock: Clock, timers: Timers, expiry_clock: Clock | None = None
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._timers = timers
        self._journal = GroupJournal(cluster, committer, clock)
        self.registry = Registry(self._journal.absence)
        self._held = HeldByGroups(cluster, clock, self.registry)
        self._known = known = Known(cluster, clock)
        self._runner = Runner(known, timers, self._journal, self.registry, self._lost)
        self._finder = Finder(known, self._journal, self.registry, self._runner)
        self.commits = Commits(cluster, clock, self._journal, self.registry, self._runner.committed)
        self._offset_fetch = OffsetFetch(cluster, self._journal, self.registry, self.commits)
        self._expiry = GroupExpiry(cluster, expiry_clock or clock, self._journal, self.registry, self.commits)
        self.share = ShareCoordinator(cluster, known, self._journal, self.registry, self._runner, self._held)
        self.streams = StreamsCoordinator(cluster, known, self._journal, self.registry, self._runner, self._held)
        self.shards = Shards(self.registry, self._journal, Loader(self.registry, clock), timers, self._runner)

    def __repr__(self) -> str:
        return f"<GroupCoordinator: {self.registry!r}, {self._timers!r}>"

    # -- start

    def load(self) -> Iterator[None]:
        """Read the log, one piece a step; see `shards`."""
        return self.shards.load()

    def _lost(self, shard: int) -> None:
        self.shards.reload(shard)

    # -- the classic protocol

    def join(
        self,
        request: JoinGroupRequest,
        version: int,
        client: Client,
        answer: Callable[[JoinGroupResponse], None],
    ) -> None:
        code = self._check_join(request)
        if code:
            answer(join_error(code, request.member_id))
            return
        group = self._finder.to_join(request)
        if isinstance(group, ErrorCode):
            answer(join_error(group, request.member_id))
            return
        if not self._held.takes_join(group, request, client):
            answer(join_error(ErrorCode.GROUP_MAX_SIZE_REACHED, request.member_id))
            return
        self._runner.run(group, JoinGroup.read(request, version, client, new_member_id, answer))
        if isinstance(group, ClassicGroup) and (group.members or group.pending):
            self.registry.groups.setdefault(group.id, group)

    def _check_join(self, request: JoinGroupRequest) -> ErrorCode:
        code = self._check_group_id(request.group_id)
        settings = self._cluster.settings
        lowest, highest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
        if not code and not lowest <= request.session_timeout_ms <= highest:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        return code

    def _check_group_id(self, group_id: str) -> ErrorCode:
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        if not (self.registry.loading or self.registry.elsewhere):
            return ErrorCode.NONE
        return self.registry.load_error(self._journal.shard_of(group_id))

    def sync(self, request: SyncGroupRequest, answer: Callable[[SyncGroupResponse], None], owner: Owner = None) -> None:
        """`owner` is the principal of the request."""
        code = self._check_group_id(request.group_id)
        group = self.registry.groups.get(request.group_id)
        if code or group is None:
            answer(SyncGroupResponse(error_code=code or ErrorCode.UNKNOWN_MEMBER_ID))
        elif not self._held.takes_sync(group, request, owner):
            answer(SyncGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED))
        else:
            self._runner.run(group, SyncGroup.read(request, answer))

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        code = self._check_group_id(request.group_id)
        group = self.registry.groups.get(request.group_id)
        if code or group is None:
            return code or ErrorCode.UNKNOWN_MEMBER_ID
        if isinstance(group, ClassicGroup):
            return self._runner.heartbeat(group, request)
        told = self._runner.run(group, request).result
        assert isinstance(told, ErrorCode)
        return told

    def leave(
        self, request: LeaveGroupRequest, version: int
    ) -> tuple[ErrorCode, list[tuple[MemberIdentity, ErrorCode]]]:
        """The error of the whole request, and the code of each member."""
        members = request.members
        if version <= LAST_LEAVE_OF_ONE:
            members = [MemberIdentity(member_id=request.member_id)]
        code = self._check_group_id(request.group_id)
        if code:
            return code, []
        group = self.registry.groups.get(request.group_id)
        if group is None:
            codes = [ErrorCode.UNKNOWN_MEMBER_ID for _ in members]
        else:
            codes = self._runner.run(group, LeaveGroup(members)).result
        return ErrorCode.NONE, list(zip(members, codes, strict=True))

    # -- the newer protocol

    def consumer_heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        version: int,
        client: Client,
        answer: Callable[[ConsumerGroupHeartbeatResponse], None],
        may_describe: MayDescribe | None = None,
    ) -> None:
        refusal = check_heartbeat(request, version)
        if refusal is None and (code := self._check_group_id(request.group_id)):
            refusal = HeartbeatRefusal(code, "the group is being loaded")
        entries: list[Entry] = []
        group = None if refusal is not None else self._finder.for_heartbeat(request, entries)
        if refusal is None and isinstance(group, HeartbeatRefusal):
            refusal = group
        if isinstance(group, ConsumerGroup) and not self._held.takes_heartbeat(group, request, client):
            refusal = HeartbeatRefusal(
                ErrorCode.GROUP_MAX_SIZE_REACHED, "The limit for the data of group members is reached."
            )
        if refusal is not None or not isinstance(group, ConsumerGroup):
            assert refusal is not None
            answer(heartbeat_error(refusal))
        elif request.member_epoch < 0:
            self._runner.run(group, Leave(request, answer))
        else:
            self._finder.heartbeat(group, Heartbeat(request, client, entries, answer, may_describe))

    def try_out(self, pattern: str, may_describe: MayDescribe | None) -> Generator[None, None, None]:
        """Match a pattern in steps, before a heartbeat with it is handled."""
        return self._known.try_out(pattern, may_describe)

    # -- offsets

    def commit(self, request: CommitRequest, version: int, done: Callable[[CommitAnswer], None]) -> None:
        self.commits.commit(request, version, done)

    def fetch_offsets(
        self, request: OffsetFetchRequest, version: int, done: Callable[[OffsetFetchResponse], None]
    ) -> None:
        self._offset_fetch.fetch(request, version, done)

    def delete_offsets(self, request: OffsetDeleteRequest, done: Callable[[OffsetDeleteResponse], None]) -> None:
        self.commits.delete(request, done)

    def expire_offsets(self) -> None:
        """Remove expired offsets, and groups with nothing left; delete the states of topics that are deleted."""
        self._expiry.run()
        self.share.sweep()

    def ensure_topic(self, done: Callable[[ErrorCode], None]) -> None:
        """Create the topic of offsets if it is missing; clients look up their coordinator before anything else."""
        self._journal.when_made(lambda refusal: done(ErrorCode.NONE if refusal is None else refusal.code))

    # -- transactions

    def offsets_place(self, group_id: str) -> tuple[str, int]:
        """The partition that keeps a group's offsets, led here or not, created on first use; raises ClusterError."""
        self._journal.make_topic()
        return GROUP_OFFSETS, self._journal.shard_of(group_id)

    def txn_commit(self, request: TxnCommitRequest, done: Callable[[TxnCommitAnswer], None]) -> None:
        """Append offsets in a producer's transaction; they count once it is committed."""
        self.commits.txn_commit(request, done)

    def complete_txn(self, producer_id: int, committed: bool) -> None:
        """The markers of a producer's transaction are written."""
        self.commits.complete_txn(producer_id, committed=committed)

    # -- listing, describing and deleting groups

    def find(self, group_id: str) -> Group | ErrorCode:
        code = self.registry.load_error(self._journal.shard_of(group_id))
        group = self.registry.groups.get(group_id)
        if code or group is None:
            return code or ErrorCode.GROUP_ID_NOT_FOUND
        return group

    def groups(self) -> list[Group]:
        return list(self.registry.groups.values())

    @property
    def is_loading(self) -> bool:
        return self.registry.is_loading

    def delete_group(self, group_id: str, done: Callable[[ErrorCode], None]) -> None:
        group = self.find(group_id)
        if isinstance(group, ErrorCode):
            done(group)
            return
        code = group.check_delete()
        if code:
            done(code)
        elif isinstance(group, ShareGroup):
            self.share.delete_states(group, partial(_states_deleted, self._expiry, group, done))
        else:
            self._expiry.delete(group, partial(_deleted, done))


def _deleted(done: Callable[[ErrorCode], None], code: ErrorCode) -> None:
    done(ErrorCode.COORDINATOR_NOT_AVAILABLE if code else ErrorCode.NONE)


def _states_deleted(expiry: GroupExpiry, group: ShareGroup, done: Callable[[ErrorCode], None], code: ErrorCode) -> None:
    """The persister has deleted the states of the group, or not; a member may have joined meanwhile."""
    code = code or group.check_delete()
    if code:
        done(code)
    else:
        expiry.delete(group, partial(_deleted, done))
