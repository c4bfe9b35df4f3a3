"""A consumer in its group: it reports what it is given and has to give up, and positions are committed in time."""

import asyncio

import pytest

from horolog.base.clock import ManualClock
from horolog.client.admin.admin import Admin
from horolog.client.consuming.group_session import GroupSession
from horolog.client.consuming.membership import Membership
from horolog.client.consuming.positions import Positions
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import Committed, TopicPartition
from horolog.client.wire.client import Client
from horolog.client.wire.retry import RetryPolicy
from horolog.protocol.errors import ErrorCode
from horolog.testing import horolog_broker

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Member:
    """One session of group g; `told` lists what its listeners heard."""

    def __init__(self, address, *, auto_commit_ms=None, strategies=("range",)):
        self.clock = ManualClock()
        self.client = Client(address, clock=self.clock, retry=RetryPolicy(1, 2, 200), request_timeout_ms=5000)
        self.positions = Positions(1000)
        self.changed = asyncio.Event()
        membership = Membership(
            self.client,
            "g",
            session_timeout_ms=10_000,
            max_poll_interval_ms=10**8,
            heartbeat_ms=10,
            instance_id=None,
            strategies=strategies,
            changed=self.changed.set,
        )
        self.session = GroupSession(self.client, "g", self.positions, membership, auto_commit_ms=auto_commit_ms)
        self.told = []

    async def assigned(self, partitions):
        self.told.append(("assigned", partitions))

    def revoked(self, partitions):
        self.told.append(("revoked", partitions))

    def subscribe(self):
        self.session.subscribe(["t"], None, self.assigned, self.revoked)

    async def poll(self):
        """As a poll that waits for a moment; the session's clock stands."""
        await self.session.settle(self.clock.monotonic() + 0.02)

    def read_to(self, **offsets):
        for name, offset in offsets.items():
            self.positions.get({"a": A, "b": B}[name]).position = offset

    async def committed(self):
        found = await Admin(self.client).group_offsets("g", [A, B])
        return [each and each.offset for each in found.values()]

    async def close(self, *, commit=True):
        await self.session.close(commit=commit)
        await self.client.close()


@pytest.fixture
async def broker():
    async with asyncio.timeout(60), horolog_broker() as running:
        running.create_topic("t", 2)
        yield running


@pytest.fixture
def address(broker):
    return broker.bootstrap


async def joined(address, **options):
    member = Member(address, **options)
    member.subscribe()
    while not member.positions.partitions:
        await member.poll()
    return member


async def until(holds, *members):
    """Poll all of them until it is so."""
    while not holds():
        await asyncio.gather(*(member.poll() for member in members))
        await asyncio.sleep(0.002)


async def test_a_member_alone_is_given_all_and_told(address):
    member = await joined(address)
    assert member.positions.partitions == [A, B]
    assert member.told == [("assigned", [A, B])]
    await member.close()
    assert member.told[-1] == ("revoked", [A, B])
    assert member.positions.partitions == []


async def test_a_join_that_takes_longer_than_the_poll_goes_on_behind_it(address):
    member = Member(address)
    member.subscribe()
    await member.session.settle(member.clock.monotonic())
    assert member.positions.partitions == []
    await until(lambda: member.positions.partitions, member)
    await member.close()
    unfinished = Member(address)
    unfinished.subscribe()
    await unfinished.session.settle(unfinished.clock.monotonic())
    await unfinished.close()
    assert unfinished.told == []


async def test_all_is_given_up_before_another_member_gets_some(address):
    one = await joined(address, auto_commit_ms=10**9)
    one.read_to(a=3, b=4)
    other = Member(address)
    other.subscribe()
    await until(lambda: len(one.positions.partitions) == 1 == len(other.positions.partitions), one, other)
    assert one.told[1] == ("revoked", [A, B])
    assert one.told[2][0] == other.told[0][0] == "assigned"
    assert await one.committed() == [3, 4]
    await other.close()
    await until(lambda: len(one.positions.partitions) == 2, one)
    await one.close()


async def test_a_cooperative_member_gives_up_only_what_it_loses(address):
    one = await joined(address, strategies=("cooperative-sticky",), auto_commit_ms=10**9)
    one.read_to(a=3, b=4)
    other = Member(address, strategies=("cooperative-sticky",))
    other.subscribe()
    await until(lambda: len(one.positions.partitions) == 1 == len(other.positions.partitions), one, other)
    (kept,) = one.positions.partitions
    lost = B if kept == A else A
    assert [each for each in one.told if each[0] == "revoked"] == [("revoked", [lost])]
    assert one.positions.get(kept).position == (3 if kept == A else 4)
    assert await one.committed() == [3, 4]
    await other.close()
    await one.close()


async def test_positions_are_committed_when_they_are_due(address):
    member = await joined(address, auto_commit_ms=5000)
    member.read_to(a=7)
    await member.poll()
    assert await member.committed() == [None, None]
    member.clock.advance(5000)
    await member.poll()
    while await member.committed() != [7, None]:
        await member.poll()
    member.clock.advance(5000)
    await member.poll()
    member.read_to(b=2)
    await member.close()
    other = Member(address)
    assert await other.committed() == [7, 2], "the end commits the rest"
    await other.close()


async def test_the_end_need_not_commit(address):
    member = await joined(address, auto_commit_ms=5000)
    member.read_to(a=7)
    await member.close(commit=False)
    other = Member(address)
    assert await other.committed() == [None, None]
    await other.close()


async def test_offsets_are_committed_by_hand_and_a_refusal_is_raised(address):
    member = await joined(address)
    await member.session.commit({A: Committed(5)})
    assert await member.committed() == [5, None]
    member.session.membership.state.generation = 99
    with pytest.raises(KafkaError) as caught:
        await member.session.commit({A: Committed(6)})
    assert caught.value.code == ErrorCode.ILLEGAL_GENERATION
    assert member.session.membership.state.lost
    await member.close()


async def test_what_was_lost_is_given_up_without_a_commit(address):
    member = await joined(address, auto_commit_ms=5000)
    member.read_to(a=7)
    await member.session.membership._send_leave("as after too long a time without a poll")
    member.session.membership.state.left()
    await until(lambda: len(member.told) == 3, member)
    assert member.told[1:] == [("revoked", [A, B]), ("assigned", [A, B])]
    assert await member.committed() == [None, None]
    await member.close()


async def test_a_commit_that_fails_is_made_up_for_by_the_next(broker, address):
    member = await joined(address, auto_commit_ms=0)
    member.read_to(a=7)
    with broker.faults.refuse("COORDINATOR_LOAD_IN_PROGRESS", "offset_commit") as refused:
        await member.poll()
        await asyncio.wait({member.session._commit_task})
    assert refused.hits == 1
    assert await member.committed() == [None, None]
    while await member.committed() != [7, None]:
        await member.poll()
    await member.close()


async def test_a_fault_of_the_membership_is_raised_once(address):
    member = await joined(address)
    member.session.membership.fault = KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaError, match="GROUP_AUTHORIZATION_FAILED"):
        await member.poll()
    await member.poll()
    await member.close()


async def test_a_session_that_never_subscribed_commits_from_outside(address):
    member = Member(address)
    await member.session.commit({B: Committed(9)})
    assert await member.committed() == [None, 9]
    await member.close()
    assert member.told == []
