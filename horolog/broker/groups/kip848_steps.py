"""The steps of requests of either protocol in a group of the newer one: members, epochs and assignments.

Each step changes the group and adds records and timers to the decision, the `ConsumerStep` that is passed to all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from horolog.broker.groups.assignors import ASSIGNORS, Assignment, Subscriber
from horolog.broker.groups.consumer_group import ClassicPart, ConsumerGroup, ConsumerMember
from horolog.broker.groups.decision import GroupTimer, KnownStep
from horolog.broker.groups.group_epochs import TopicsRead, begin_epoch
from horolog.broker.groups.group_settings import SESSION_TIMEOUT
from horolog.broker.groups.kip848_events import NOT_COME_BACK, NOT_GIVEN_BACK, Overdue
from horolog.broker.groups.known import Known
from horolog.broker.groups.migration import can_become_classic, to_classic
from horolog.broker.groups.reconcile import JOIN_EPOCH, MemberState
from horolog.broker.groups.reconcile import reconcile as next_current


class ConsumerStep(KnownStep[ConsumerGroup]):
    """A decision about a consumer group."""

    __slots__ = ()


# -- members


def replace(step: ConsumerStep, holder: ConsumerMember, member_id: str) -> ConsumerMember:
    """A static member is back under a new id: it gets the state kept for it."""
    group = step.group
    stop_timers(step, holder)
    step.entries += group.member_tombstones(holder.id)
    group.remove(holder)
    member = ConsumerMember(member_id, holder.instance_id)
    member.topics, member.regex = holder.topics, holder.regex
    member.rack_id, member.assignor, member.principal = holder.rack_id, holder.assignor, holder.principal
    member.rebalance_timeout_ms = holder.rebalance_timeout_ms
    if holder.classic is not None:  # without its timer, which belongs to the old member
        member.classic = ClassicPart(holder.classic.session_timeout_ms, holder.classic.protocols)
    member.target = holder.target
    member.current = holder.current._replace(epoch=JOIN_EPOCH, state=MemberState.STABLE, revoking={})
    group.add(member)
    step.entries += [group.member_entry(member), group.target_entry(member), group.current_entry(member)]
    return member


def remove(step: ConsumerStep, members: Sequence[ConsumerMember]) -> None:
    """Remove members; the others get their partitions with their next heartbeats.

    If only members of the classic protocol are left, the group becomes a classic group, and they have to rejoin.
    """
    group = step.group
    for member in members:
        stop_timers(step, member)
        group.remove(member)
        step.entries += group.member_tombstones(member.id)
    group.epoch += 1
    if not can_become_classic(group, step.known):
        step.entries.append(group.group_entry())
        return
    for member in group.members.values():
        stop_timers(step, member)
    step.successor, entries = to_classic(group, step.known, step.now_ms)
    step.entries += entries


# -- epochs and targets


def refresh(step: ConsumerStep, *, bump: bool) -> None:
    """Begin a new epoch if members or topics have changed, and compute its target assignment."""
    topics = topics_of(step.group, step.known)
    if begin_epoch(step, topics, bump=bump):
        _assign(step, topics)


def topics_of(group: ConsumerGroup, known: Known) -> dict[str, tuple[bytes, int]]:
    """Id and partition count of every existing topic that the group reads."""
    names: set[str] = set()
    for member in {_wish(member, known): member for member in group.members.values()}.values():
        names.update(member.topics)
        names |= pattern_topics(member, known)
    found = {}
    for name in names:
        topic = known.topics.get(name)
        if topic is not None:
            found[name] = (topic.id, topic.partition_count)
    return found


def _assign(step: ConsumerStep, topics: TopicsRead) -> None:
    group = step.group
    wanted: dict[object, frozenset[bytes]] = {}
    subscribers = {}
    for member in group.members.values():
        key = _wish(member, step.known)
        if key not in wanted:
            names = frozenset(member.topics) | pattern_topics(member, step.known)
            wanted[key] = frozenset(topics[name][0] for name in names if name in topics)
        subscribers[member.id] = Subscriber(wanted[key], member.target, member.instance_id)
    target = ASSIGNORS[group.assignor](subscribers, dict(topics.values()))
    for member in group.members.values():
        if member.target != target[member.id]:
            member.target = target[member.id]
            step.entries.append(group.target_entry(member))
    group.assignment_epoch = group.epoch
    step.entries.append(group.assignment_entry())


def pattern_topics(member: ConsumerMember, known: Known) -> frozenset[str]:
    """The topics that a member's pattern matches: with access lists only those that it may describe.

    A member without a heartbeat since the broker's start, whose principal is unknown, keeps the topics of its target.
    """
    if member.regex is None:
        return frozenset()
    if member.sight is not None:
        return known.matching(member.regex, member.sight.may_describe)
    matching = known.matching(member.regex)
    if not known.settings.authorizer_class_name:
        return matching
    return matching.intersection(topic.name for one in member.target if (topic := known.by_id.get(one)) is not None)


def _wish(member: ConsumerMember, known: Known) -> tuple[object, ...]:
    """A key that is equal for members with the same subscription."""
    if member.sight is not None:
        return member.topics, member.regex, member.sight.may_describe
    if member.regex is not None and known.settings.authorizer_class_name:
        return member.topics, member.regex, member.id
    return member.topics, member.regex


def reconcile(step: ConsumerStep, member: ConsumerMember, owned: Assignment | None) -> None:
    """Move one member as far towards its target as is possible now."""
    group = step.group
    current = next_current(member.current, group.assignment_epoch, member.target, group.is_free, owned)
    if current != member.current:
        group.set_current(member, current)
        step.entries.append(group.current_entry(member))
    watch_revocation(step, member)


# -- time


def start_session(step: ConsumerStep, member: ConsumerMember) -> None:
    classic = member.classic
    timeout_ms = step.known.group_setting(step.group.id, SESSION_TIMEOUT)
    step.start(member.session, timeout_ms if classic is None else classic.session_timeout_ms)


def watch_revocation(step: ConsumerStep, member: ConsumerMember) -> None:
    """Give a member its rebalance timeout to give partitions back."""
    if member.current.state is not MemberState.UNREVOKED:
        step.stop(member.rebalance)
        return
    if member.rebalance is None:
        member.rebalance = GroupTimer(Overdue(member, NOT_GIVEN_BACK))
    step.start(member.rebalance, max(0, member.rebalance_timeout_ms), unless_running=True)


def expect(step: ConsumerStep, member: ConsumerMember) -> None:
    """Give a member of the classic protocol its rebalance timeout for the next step."""
    assert member.classic is not None
    if member.classic.comeback is None:
        member.classic.comeback = GroupTimer(Overdue(member, NOT_COME_BACK))
    step.start(member.classic.comeback, max(0, member.rebalance_timeout_ms), unless_running=True)


def has_come(step: ConsumerStep, member: ConsumerMember) -> None:
    """The member has taken the expected step."""
    if member.classic is not None:
        step.stop(member.classic.comeback)


def stop_timers(step: ConsumerStep, member: ConsumerMember) -> None:
    step.stop(member.session)
    step.stop(member.rebalance)
    has_come(step, member)
