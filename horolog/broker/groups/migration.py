"""Turns a live group of one protocol into one of the other, as values: it answers no request and writes nothing.

A classic group can become one of the newer protocol if its members speak the usual consumer protocol, because the broker can then
read their subscriptions and assignments. A group of the newer protocol whose members all speak the classic one becomes classic again.
"""

from __future__ import annotations

from horolog.broker.groups.assignors import Assignment
from horolog.broker.groups.classic_events import Client, Protocols, Timeouts
from horolog.broker.groups.classic_group import (
    CONSUMER_PROTOCOL,
    ClassicGroup,
    GroupState,
    Member,
    record_of,
    subscribed_by,
)
from horolog.broker.groups.consumer_group import ClassicPart, ConsumerGroup, ConsumerMember
from horolog.broker.groups.known import Known
from horolog.broker.groups.reconcile import Current
from horolog.protocol.errors import DecodeError
from horolog.protocol.group_metadata import read_assignment, read_subscription, version_of, write_assignment
from horolog.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from horolog.protocol.records.batch import Entry

MAY_UPGRADE = frozenset({"bidirectional", "upgrade"})
MAY_DOWNGRADE = frozenset({"bidirectional", "downgrade"})


# -- from classic to the newer protocol


def to_consumer(group: ClassicGroup, known: Known, now_ms: int) -> tuple[ConsumerGroup, list[Entry]] | None:
    """The new group, and the records of the conversion; None if its members' metadata cannot be read."""
    if known.settings.group_consumer_migration_policy not in MAY_UPGRADE or group.protocol_type != CONSUMER_PROTOCOL:
        return None
    if len(group.members) > known.settings.group_consumer_max_size:
        return None
    made = ConsumerGroup(group.id, group.shard, group.offsets, now_ms)
    made.epoch = made.assignment_epoch = group.generation
    try:
        for member in group.members.values():
            made.add(_consumer_member(group, member, known))
    except DecodeError:
        return None
    return made, [group.tombstone(), *_entries(made)]


def _consumer_member(group: ClassicGroup, old: Member, known: Known) -> ConsumerMember:
    subscription = read_subscription(old.metadata(group.protocol_name) or first_metadata(old.protocols))
    member = ConsumerMember(old.id, old.instance_id)
    member.client_id, member.client_host, member.principal = old.client_id, old.client_host, old.principal
    member.rack_id = subscription.rack_id
    member.topics = tuple(sorted(set(subscription.topics)))
    member.rebalance_timeout_ms = old.rebalance_timeout_ms
    member.classic = ClassicPart(old.session_timeout_ms, old.protocols)
    member.target = assigned_to(old.assignment, known)
    member.current = Current(group.generation, group.generation, assigned=member.target)
    return member


def first_metadata(protocols: Protocols) -> bytes:
    return protocols[0][1] if protocols else b""


def assigned_to(data: bytes, known: Known) -> Assignment:
    """The assignment of a member by its leader, by topic id; missing topics are left out. Raises DecodeError."""
    return by_id({one.topic: frozenset(one.partitions) for one in read_assignment(data).assigned_partitions}, known)


def owned_by(subscription: ConsumerProtocolSubscription, known: Known) -> Assignment:
    return by_id({one.topic: frozenset(one.partitions) for one in subscription.owned_partitions}, known)


def by_id(topics: dict[str, frozenset[int]], known: Known) -> Assignment:
    return {known.topics[name].id: indexes for name, indexes in topics.items() if name in known.topics and indexes}


def _entries(group: ConsumerGroup) -> list[Entry]:
    members = group.members.values()
    return [
        *(group.member_entry(member) for member in members),
        group.group_entry(),
        *(group.target_entry(member) for member in members),
        group.assignment_entry(),
        *(group.current_entry(member) for member in members),
    ]


# -- from the newer protocol to classic


def can_become_classic(group: ConsumerGroup, known: Known) -> bool:
    """Whether the last member that spoke the newer protocol is gone."""
    settings = known.settings
    return (
        settings.group_consumer_migration_policy in MAY_DOWNGRADE
        and 0 < len(group.members) <= settings.group_max_size
        and all(member.classic is not None for member in group.members.values())
    )


def to_classic(group: ConsumerGroup, known: Known, now_ms: int) -> tuple[ClassicGroup, list[Entry]]:
    """The new group with its members' assignments, and the records of the conversion."""
    made = ClassicGroup(group.id, group.shard, group.offsets, now_ms)
    made.generation = group.epoch
    made.protocol_type = CONSUMER_PROTOCOL
    for member in group.members.values():
        made.add(_classic_member(member, known))
    made.protocol_name = made.select_protocol()
    made.state = GroupState.STABLE
    made.subscribed = subscribed_by(made)
    made.stored = record_of(made)
    return made, [*group.tombstones(), made.entry(made.stored)]


def _classic_member(old: ConsumerMember, known: Known) -> Member:
    assert old.classic is not None
    timeouts = Timeouts(old.classic.session_timeout_ms, old.rebalance_timeout_ms)
    client = Client(old.client_id, old.client_host, old.principal)
    member = Member(old.id, old.instance_id, client, timeouts, old.classic.protocols)
    member.assignment = classic_assignment(old, known)
    return member


def classic_assignment(member: ConsumerMember, known: Known) -> bytes:
    """A member's assignment as a leader would have written it."""
    assert member.classic is not None
    topics = {
        known.by_id[topic_id].name: sorted(indexes)
        for topic_id, indexes in member.current.assigned.items()
        if topic_id in known.by_id
    }
    return write_assignment(version_of(first_metadata(member.classic.protocols)), topics)
