"""Histories of a share group on a broker that is killed: what was accepted is not delivered again, and all else is delivered.

What was answered holds: after the kill of a process always, and with `horolog.offsets.commit.sync` also after a power cut, which loses
unsynced writes, whole or in part.
"""

import asyncio
import random
from unittest.mock import patch

import pytest

from horolog.broker.log.storage import MemoryStorage
from horolog.broker.share import partition
from horolog.broker.share.partition import SharePartition
from horolog.broker.share.state import ShareState
from horolog.broker.share.state_batches import DeliveryState, PackedBatches
from horolog.broker.share.state_keeper import StateKeeper
from horolog.protocol.errors import ErrorCode
from tests.support.share_broker import Member, initialize, put, share_broker

DELIVERIES = 5
ACCEPT, RELEASE, REJECT = 1, 2, 3


class History:
    """What members were told; `held` are records of open sessions, with their delivery counts."""

    def __init__(self, seed, *, loses_power):
        self.loses_power = loses_power
        self.chance = random.Random(seed)
        self.storage = MemoryStorage()
        self.written = self.names = 0
        self.settled = set()
        self.least = {}
        self.broker = None
        self.members = []

    async def start(self):
        self.broker = share_broker(
            self.storage,
            share_coordinator_snapshot_update_records_per_snapshot=3,
            horolog_offsets_commit_sync=self.loses_power,
        )
        await self.broker.__aenter__()
        self.members = []

    async def kill(self):
        """The answers that have arrived are all that is known of it."""
        for listener in self.broker.broker.listeners:
            await listener.stop_accepting()
        self.broker.broker.logs.abandon()
        if self.loses_power:
            self.storage.crash(self.chance)
        await self.start()

    async def produce(self):
        counts = [self.chance.randint(1, 6) for _ in range(2)]
        await put(self.broker, *counts)
        self.written += sum(counts)

    async def fetch(self):
        if not self.members or self.chance.random() < 0.2:
            self.names += 1
            self.members.append((Member(self.broker, f"m{self.names}"), {}))
            assert not (await self.members[-1][0].fetch(max_records=0)).error_code
        member, held = self.chance.choice(self.members)
        strict = self.chance.random() < 0.3
        acquired = await member.acquire(max_records=self.chance.choice((1, 4, 50)), share_acquire_mode=int(strict))
        for first, last, count in acquired:
            for offset in range(first, last + 1):
                assert offset < self.written
                assert offset not in self.settled, "its delivery was complete"
                assert self.least.get(offset, 0) < count <= DELIVERIES
                assert all(offset not in other for _, other in self.members), "another member has it"
                held[offset] = count

    async def acknowledge(self):
        holders = [one for one in self.members if one[1]]
        if not holders:
            return
        member, held = self.chance.choice(holders)
        offset = self.chance.choice(sorted(held))
        kind = self.chance.choice((ACCEPT, ACCEPT, RELEASE, REJECT))
        assert await member.code((offset, offset, [kind])) == 0
        self.least[offset] = held.pop(offset)
        if kind != RELEASE or self.least[offset] >= DELIVERIES:
            self.settled.add(offset)

    async def leave(self):
        if self.members:
            member, held = self.members.pop(self.chance.randrange(len(self.members)))
            assert not (await member.fetch(epoch=-1)).error_code
            for offset, count in held.items():
                self.least[offset] = count
                if count >= DELIVERIES:
                    self.settled.add(offset)

    async def finish(self):
        """Every record that is not settled is delivered to a last member."""
        while self.members:
            await self.leave()
        member = Member(self.broker, "last")
        self.members.append((member, {}))
        seen = set()
        for _ in range(500):
            acquired = await member.acquire()
            if not acquired:
                break
            for first, last, _ in acquired:
                seen |= set(range(first, last + 1))
        assert seen == set(range(self.written)) - self.settled


async def run(seed, *, loses_power=True, steps=60):
    history = History(seed, loses_power=loses_power)
    await history.start()
    try:
        history.broker.topic("t", 1)
        await initialize(history.broker)
        async with asyncio.timeout(30):
            for _ in range(steps):
                await history.chance.choice(STEPS)(history)
            await history.finish()
    finally:
        await history.broker.__aexit__()


STEPS = [History.produce] * 2 + [History.fetch] * 4 + [History.acknowledge] * 5 + [History.leave, History.kill]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("loses_power", [False, True])
async def test_what_was_answered_survives_a_kill(seed, loses_power):
    await run(seed, loses_power=loses_power)


# -- bugs that these histories find


def answers_before_it_writes():
    return patch.object(StateKeeper, "write", lambda _self, _key, _request, done: done(ErrorCode.NONE))


def keeps_the_last_update_alone():
    original = ShareState.take_update

    def take(state, update):
        state._recent = PackedBatches()
        original(state, update)

    return patch.object(ShareState, "take_update", take)


def writes_snapshots_without_recent_updates():
    def snapshot(state, now_ms):
        values = state._values
        return values._replace(
            snapshot_epoch=values.snapshot_epoch + 1, written_ms=now_ms, batches=tuple(state._combined)
        )

    return patch.object(ShareState, "snapshot", snapshot)


def forgets_delivery_counts():
    original = SharePartition.__init__

    def begin(machine, start, batches=()):
        original(machine, start, [one._replace(delivery_count=0) for one in batches])

    return patch.object(SharePartition, "__init__", begin)


def accepts_what_a_leaving_member_holds():
    original = SharePartition._change

    def change(machine, runs, state, limits, batches):
        runs = list(runs)
        becomes = DeliveryState.ACKNOWLEDGED if state is DeliveryState.AVAILABLE else state
        original(machine, runs, becomes, limits, batches)

    return patch.object(SharePartition, "_change", change)


def delivers_without_end():
    return patch.object(partition, "_after", lambda _run, state, _limits: state)


def moves_on_past_what_is_not_settled():
    original = SharePartition.move_on

    def move_on(machine):
        if machine.runs and machine.runs.all[0].is_available:
            machine.runs.drop_before(machine.runs.all[0].last + 1)
        original(machine)

    return patch.object(SharePartition, "move_on", move_on)


PLANTED = [
    answers_before_it_writes,
    keeps_the_last_update_alone,
    writes_snapshots_without_recent_updates,
    forgets_delivery_counts,
    accepts_what_a_leaving_member_holds,
    delivers_without_end,
    moves_on_past_what_is_not_settled,
]


@pytest.mark.parametrize("plant", PLANTED, ids=lambda one: one.__name__)
async def test_a_planted_bug_is_found(plant):
    with plant():
        for seed in range(25):
            try:
                await run(seed)
            except AssertionError:
                return
    pytest.fail("no history has found it")
