"""Requests of group members as raw frames, and a member that joins with them: ten thousand of these need no client library."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from benchmarks.frames import request, text
from benchmarks.peer import BrokerError, Peer

OFFSET_COMMIT, JOIN_GROUP, SYNC_GROUP = 8, 11, 14
COMMIT_VERSION, JOIN_VERSION, SYNC_VERSION = 2, 2, 1
SESSION_MS = 600_000


def offset_commit(group: str, topic: str, partitions: Sequence[int], offset: int) -> bytes:
    """OffsetCommit v2 by nobody in particular: no generation, no member."""
    body = text(group) + struct.pack(">i", -1) + text("") + struct.pack(">qi", -1, 1) + text(topic)
    body += struct.pack(">i", len(partitions))
    for partition in partitions:
        body += struct.pack(">iq", partition, offset) + text("")
    return request(OFFSET_COMMIT, COMMIT_VERSION, body)


def commit_error_at(topic: str) -> int:
    """Length, correlation id, topics, name, partitions, partition."""
    return 4 + 4 + 4 + len(text(topic)) + 4 + 4


def commit_reply_size(topic: str) -> int:
    return commit_error_at(topic) + 2


def join_group(group: str, member: str) -> bytes:
    """JoinGroup v2 of a consumer."""
    subscription = struct.pack(">hi", 0, 1) + text("t") + struct.pack(">i", 0)
    body = text(group) + struct.pack(">ii", SESSION_MS, SESSION_MS) + text(member) + text("consumer")
    body += struct.pack(">i", 1) + text("range") + struct.pack(">i", len(subscription)) + subscription
    return request(JOIN_GROUP, JOIN_VERSION, body)


def sync_group(group: str, generation: int, member: str) -> bytes:
    """SyncGroup v1 of a leader that is alone."""
    assignment = struct.pack(">hi", 0, 1) + text("t") + struct.pack(">iii", 1, 0, -1)
    body = text(group) + struct.pack(">i", generation) + text(member)
    body += struct.pack(">i", 1) + text(member) + struct.pack(">i", len(assignment)) + assignment
    return request(SYNC_GROUP, SYNC_VERSION, body)


def become_member(peer: Peer, group: str) -> None:
    """Join a group of its own and get its assignment; it stays until its session ends."""
    reply = peer.call(join_group(group, ""))
    error, generation = struct.unpack_from(">hi", reply, 4)
    if error:
        raise BrokerError(f"JoinGroup {group}: error {error}")
    at = 10
    names = []
    for _ in range(3):
        size = struct.unpack_from(">h", reply, at)[0]
        names.append(reply[at + 2 : at + 2 + size].decode())
        at += 2 + size
    error = struct.unpack_from(">h", peer.call(sync_group(group, generation, names[2])), 4)[0]
    if error:
        raise BrokerError(f"SyncGroup {group}: error {error}")
