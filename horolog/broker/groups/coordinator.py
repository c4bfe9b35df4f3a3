"""The group coordinator: finds the group that a request is for, and hands it to the protocol that the group speaks.

Every method takes the request and a function for the answer, which may be called at once or later. What fails on the disk is as if it had
not been asked for: a group of the newer protocol is then read again from the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial

from horolog.broker.clock import Clock
from horolog.broker.cluster import Cluster
from horolog.broker.cluster_errors import ClusterError
from horolog.broker.committer import Committer
from horolog.broker.groups.classic import Classic, join_error
from horolog.broker.groups.classic_group import ClassicGroup, Member, State
from horolog.broker.groups.commits import Commits
from horolog.broker.groups.consumer import Consumer, Refusal, check_heartbeat, heartbeat_error
from horolog.broker.groups.consumer_group import ConsumerGroup, ConsumerMember
from horolog.broker.groups.expiry import Expiry
from horolog.broker.groups.fetches import Fetches
from horolog.broker.groups.journal import Journal
from horolog.broker.groups.loading import Folded, Loader
from horolog.broker.groups.migration import can_become_classic, to_classic, to_consumer
from horolog.broker.groups.mixed import Mixed
from horolog.broker.groups.offsets import GroupOffsets
from horolog.broker.groups.records import Entry
from horolog.broker.groups.registry import Group, Registry
from horolog.broker.groups.timers import Timer, Timers
from horolog.broker.groups.topic_patterns import TopicPatterns
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.suspects import BeingMended
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from horolog.protocol.messages.coordinator_records import MemberMetadata
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
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from horolog.protocol.messages.transactions import TxnOffsetCommitRequest, TxnOffsetCommitResponse

log = logging.getLogger(__name__)

LAST_LEAVE_OF_ONE = 2
NO_GENERATION = -1
PIECES_AT_ONCE = 4
"""Of the log, when a partition of it is read again while everything else waits: a few megabytes."""
END = object()


class GroupCoordinator:
    """All groups of this broker."""

    def __init__(
        self, cluster: Cluster, committer: Committer, clock: Clock, timers: Timers, expiry_clock: Clock | None = None
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._timers = timers
        self.registry = Registry()
        self._journal = Journal(cluster, committer, clock)
        self.classic = Classic(lambda: cluster.settings, clock, timers, self._journal)
        self.consumer = Consumer(cluster, timers, TopicPatterns(cluster, clock), self._write, self._after_removal)
        self._mixed = Mixed(cluster, timers, self.consumer, self._write)
        self.commits = Commits(cluster, clock, self._journal, self.registry, self._is_alive)
        self._fetches = Fetches(cluster, self._journal, self.registry, self.commits)
        self._expiry = Expiry(cluster, expiry_clock or clock, self._journal, self.registry, self.commits)
        self._loader = Loader(self.registry, clock, self._classic_member, self.consumer.make_member)

    def __repr__(self) -> str:
        return f"<GroupCoordinator: {self.registry!r}, {self._timers!r}>"

    # -- start

    def load(self) -> Iterator[None]:
        """Read the log, a piece with every step. Until a group's partition is read, requests for it are told to come again.

        One that can not be read is offline, and its groups are loading, until it is `reopened`: what it holds is not forgotten.
        """
        self.registry.loading = set(range(len(self._journal.partitions)))
        for shard in sorted(self.registry.loading):
            yield from self._load(shard)

    def _load(self, shard: int) -> Iterator[None]:
        folded = Folded()
        if self._journal.is_offline(shard):
            return
        try:
            for piece in self._journal.read(shard):
                folded.take(piece)
                yield
        except BeingMended as damage:
            log.warning("partition %s of the group topic is read once it is mended: %s", shard, damage)
            return
        except StorageFault as fault:
            self._journal.put_offline(shard, fault)
            return
        self._loader.load(shard, folded)
        self.registry.loading.discard(shard)
        for group in self.registry.of_shard(shard):
            if isinstance(group, ClassicGroup):
                self.classic.start_sessions(group)
            else:
                self.consumer.start_sessions(group)

    def _classic_member(self, group: ClassicGroup, stored: MemberMetadata, protocol: str) -> None:
        rebalance_ms = stored.rebalance_timeout if stored.rebalance_timeout >= 0 else stored.session_timeout
        member = self.classic.make_member(
            group,
            stored.member_id,
            stored.group_instance_id,
            (stored.client_id, stored.client_host),
            stored.session_timeout,
            rebalance_ms,
            ((protocol, bytes(stored.subscription)),),
            bytes(stored.assignment),
        )
        group.add(member)

    def _reload(self, shard: int) -> None:
        """What could not be written has not happened: make the groups of a partition anew from what the log has.

        A short log is read at once. Of a longer one a part with every turn: until then its groups are loading, as at a start.
        """
        if shard in self.registry.loading:
            return
        self.registry.loading.add(shard)
        for group in self.registry.of_shard(shard):
            if isinstance(group, ClassicGroup):
                self.classic.kill(group)
            else:
                self.consumer.stop(group)
            del self.registry.groups[group.id]
        self._read_on(self._load(shard))

    def _read_on(self, steps: Iterator[None]) -> None:
        for _ in range(PIECES_AT_ONCE):
            if next(steps, END) is END:
                return
        self._timers.start(Timer(partial(self._read_on, steps)), 0)

    def reopened(self, shard: int) -> None:
        """A partition of the log is back that could not be read before. What is known of groups in memory is newer than it."""
        if shard in self.registry.loading:
            self._read_on(self._load(shard))
        elif not any(True for _ in self.registry.of_shard(shard)):
            self._reload(shard)

    def mended(self, shard: int) -> None:
        """A partition that was found damaged while it was loaded can be read now."""
        if shard in self.registry.loading:
            self._read_on(self._load(shard))

    # -- the classic protocol

    def join(
        self,
        request: JoinGroupRequest,
        version: int,
        client: tuple[str, str],
        answer: Callable[[JoinGroupResponse], None],
    ) -> None:
        code = self._check_join(request)
        if code:
            answer(join_error(code, request.member_id))
            return
        group = self.registry.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup) and not group.is_empty:
            self._mixed.join(group, request, version, client, answer)
            return
        if isinstance(group, ConsumerGroup):
            group = self._to_classic(group)
        if group is None:
            if request.member_id:
                answer(join_error(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
                return
            if len(self.registry.groups) >= self._cluster.settings.horolog_groups_max:
                answer(join_error(ErrorCode.GROUP_MAX_SIZE_REACHED, ""))
                return
            shard = self._journal.shard_of(request.group_id)
            group = ClassicGroup(request.group_id, shard, GroupOffsets(), self._clock.wall_ms())
        self.classic.join(group, request, version, client, answer)
        if group.members or group.pending:
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
        return self.registry.load_error(self._journal.shard_of(group_id))

    def sync(self, request: SyncGroupRequest, answer: Callable[[SyncGroupResponse], None]) -> None:
        code = self._check_group_id(request.group_id)
        group = self.registry.groups.get(request.group_id)
        if code or group is None:
            answer(SyncGroupResponse(error_code=code or ErrorCode.UNKNOWN_MEMBER_ID))
        elif isinstance(group, ConsumerGroup):
            self._mixed.sync(group, request, answer)
        else:
            self.classic.sync(group, request, answer)

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        code = self._check_group_id(request.group_id)
        group = self.registry.groups.get(request.group_id)
        if code or group is None:
            return code or ErrorCode.UNKNOWN_MEMBER_ID
        if isinstance(group, ConsumerGroup):
            return self._mixed.heartbeat(group, request)
        return self.classic.heartbeat(group, request.member_id, request.group_instance_id, request.generation_id)

    def leave(
        self, request: LeaveGroupRequest, version: int
    ) -> tuple[ErrorCode, list[tuple[MemberIdentity, ErrorCode]]]:
        """The error of the whole request, and what became of each member."""
        members = request.members
        if version <= LAST_LEAVE_OF_ONE:
            members = [MemberIdentity(member_id=request.member_id)]
        code = self._check_group_id(request.group_id)
        if code:
            return code, []
        group = self.registry.groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            codes = self.classic.leave(group, members)
        elif group is not None:
            codes = self._mixed.leave(group, members)
        else:
            codes = [ErrorCode.UNKNOWN_MEMBER_ID for _ in members]
        return ErrorCode.NONE, list(zip(members, codes, strict=True))

    def _is_alive(self, group_id: str, member_id: str) -> None:
        """A member that commits is there, as one that sends a heartbeat is."""
        group = self.registry.groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, ClassicGroup) else None
        if member is not None and isinstance(group, ClassicGroup) and group.state is not State.DEAD:
            self._timers.start(member.session, member.session_timeout_ms)

    # -- the newer protocol

    def consumer_heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        version: int,
        client: tuple[str, str],
        answer: Callable[[ConsumerGroupHeartbeatResponse], None],
    ) -> None:
        refusal = check_heartbeat(request, version)
        if refusal is None and (code := self._check_group_id(request.group_id)):
            refusal = Refusal(code, "the group is being loaded")
        entries: list[Entry] = []
        group = None if refusal is not None else self._consumer_group(request, entries)
        if refusal is None and isinstance(group, Refusal):
            refusal = group
        if refusal is not None or not isinstance(group, ConsumerGroup):
            assert refusal is not None
            answer(heartbeat_error(refusal))
        elif request.member_epoch < 0:
            self.consumer.leave(group, request, answer)
        else:
            self._heartbeat(group, request, client, entries, answer)

    def _heartbeat(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        client: tuple[str, str],
        entries: list[Entry],
        answer: Callable[[ConsumerGroupHeartbeatResponse], None],
    ) -> None:
        """A group that is made for a member counts only if the member is taken."""
        groups = self.registry.groups
        before = groups.get(group.id)
        groups[group.id] = group
        self.consumer.heartbeat(group, request, client, entries, answer)
        if before is group:
            return
        if request.member_id not in group.members and groups.get(group.id) is group:
            del groups[group.id]
            if before is not None:
                groups[group.id] = before
        elif isinstance(before, ClassicGroup):
            self.classic.kill(before, ErrorCode.REBALANCE_IN_PROGRESS)
            for member in group.members.values():
                self.consumer.start_session(group, member)

    def _consumer_group(self, request: ConsumerGroupHeartbeatRequest, entries: list[Entry]) -> ConsumerGroup | Refusal:
        """The group of a heartbeat: there already, new, or made of a classic one; then `entries` gets what has to go."""
        group = self.registry.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if request.member_epoch == 0:
            if group is None and len(self.registry.groups) >= self._cluster.settings.horolog_groups_max:
                return Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, "This broker keeps no more groups.")
            if group is None or (group.is_empty and not group.pending):
                offsets = GroupOffsets() if group is None else group.offsets
                if group is not None and not group.is_simple:
                    entries.append(group.tombstone())
                shard = self._journal.shard_of(request.group_id)
                made = ConsumerGroup(request.group_id, shard, offsets, self._clock.wall_ms())
                if group is not None:  # numbers that were used for the classic group are not used again
                    made.epoch = made.assignment_epoch = group.generation
                return made
            upgraded = to_consumer(group, self._cluster, self.consumer.make_member, self._clock.wall_ms())
            if upgraded is not None:
                entries += upgraded[1]
                return upgraded[0]
        message = (
            f"Group {request.group_id} is not a consumer group." if group else f"Group {request.group_id} not found."
        )
        return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, message)

    def _to_classic(self, group: ConsumerGroup) -> ClassicGroup:
        """A group that nobody is in any more may change its protocol; its offsets stay."""
        classic = ClassicGroup(group.id, group.shard, group.offsets, self._clock.wall_ms())
        classic.generation = group.epoch
        classic.protocol_type = group.protocol_type
        self.registry.groups[group.id] = classic
        self._write(group, [*group.tombstones(), classic.entry()], lambda _: None)
        return classic

    def _after_removal(self, group: ConsumerGroup) -> list[Entry]:
        """A group that only has members of the classic protocol left becomes a classic group, and has them join again."""
        if not can_become_classic(group, self._cluster):
            return [group.group_entry()]
        self.consumer.stop(group)
        made, entries = to_classic(group, self._cluster, self._downgraded_member, self._clock.wall_ms())
        self.registry.groups[group.id] = made
        self.classic.start_sessions(made)
        self.classic.begin_rebalance(made)
        return entries

    def _downgraded_member(self, group: ClassicGroup, member: ConsumerMember, assignment: bytes) -> Member:
        assert member.classic is not None
        return self.classic.make_member(
            group,
            member.id,
            member.instance_id,
            (member.client_id, member.client_host),
            member.classic.session_timeout_ms,
            member.rebalance_timeout_ms,
            member.classic.protocols,
            assignment,
        )

    def _write(self, group: ConsumerGroup, entries: list[Entry], done: Callable[[ErrorCode], None]) -> None:
        def written(code: ErrorCode, _: int) -> None:
            if code:
                log.error("group %s could not be written (%s): it is read again from the log", group.id, code.name)
                self._reload(group.shard)
            done(ErrorCode.COORDINATOR_NOT_AVAILABLE if code else ErrorCode.NONE)

        self._journal.append(group.shard, entries, written, is_state=True)

    # -- offsets

    def commit(self, request: OffsetCommitRequest, version: int, done: Callable[[OffsetCommitResponse], None]) -> None:
        self.commits.commit(request, version, done)

    def fetch_offsets(
        self, request: OffsetFetchRequest, version: int, done: Callable[[OffsetFetchResponse], None]
    ) -> None:
        self._fetches.fetch(request, version, done)

    def delete_offsets(self, request: OffsetDeleteRequest, done: Callable[[OffsetDeleteResponse], None]) -> None:
        self.commits.delete(request, done)

    def expire_offsets(self) -> None:
        """Forget offsets that have outlived their time, and groups that have nothing left."""
        self._expiry.run()

    def ensure_topic(self) -> ErrorCode:
        """Have the topic of offsets; clients ask for their coordinator before anything else."""
        try:
            self._journal.open()
        except ClusterError as error:
            return error.code
        return ErrorCode.NONE

    # -- transactions

    def offsets_partition(self, group_id: str) -> Partition:
        """The partition that keeps a group's offsets, made with the first use; raises ClusterError."""
        self._journal.open()
        return self._journal.partitions[self._journal.shard_of(group_id)]

    def txn_commit(self, request: TxnOffsetCommitRequest, done: Callable[[TxnOffsetCommitResponse], None]) -> None:
        """Append offsets in a producer's transaction; they count once it is committed."""
        self.commits.txn_commit(request, done)

    def complete_txn(self, producer_id: int, committed: bool) -> None:
        """The markers of a producer's transaction are written."""
        self.commits.complete_txn(producer_id, committed=committed)

    # -- looking at groups, and removing them

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
        return bool(self.registry.loading)

    def delete_group(self, group_id: str, done: Callable[[ErrorCode], None]) -> None:
        group = self.find(group_id)
        if isinstance(group, ErrorCode):
            done(group)
            return
        code = group.check_delete()
        if code:
            done(code)
        else:
            self._expiry.delete(group, partial(self._deleted, done))

    @staticmethod
    def _deleted(done: Callable[[ErrorCode], None], code: ErrorCode) -> None:
        done(ErrorCode.COORDINATOR_NOT_AVAILABLE if code else ErrorCode.NONE)
