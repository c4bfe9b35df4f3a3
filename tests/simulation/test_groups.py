"""Groups of both protocols in virtual time: members come, work, fall silent, lose answers and come back, and the broker is killed.

Whatever the order of events: no partition has two owners in one generation, members hold no partition together in the newer protocol, no
acknowledged offset is lost or moves back, and once the world is left alone every group comes to rest with everything assigned.
"""

import random

import pytest

from horolog.protocol.errors import ErrorCode
from horolog.protocol.group_metadata import read_assignment, write_assignment
from tests.support.group_members import ClassicClient, ConsumerClient, commit, committed
from tests.support.group_world import GroupWorld

PARTITIONS = 5
STEPS = 300
REJOIN = {ErrorCode.REBALANCE_IN_PROGRESS}
ANEW = {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


class History:
    """What was promised: who owns what in which generation, and which offsets were acknowledged or at least asked for."""

    def __init__(self):
        self.owners = {}
        self.acknowledged = dict.fromkeys(range(PARTITIONS), -1)
        self.attempted = dict.fromkeys(range(PARTITIONS), -1)

    def assigned(self, generation, member_id, partitions):
        for partition in partitions:
            owner = self.owners.setdefault((generation, partition), member_id)
            assert owner == member_id, f"{partition} has two owners in generation {generation}"

    def start_at(self, world, partition):
        """Where a new owner begins: not before what was acknowledged, not behind what was ever committed."""
        offset = committed(world, partition=partition).committed_offset
        assert self.acknowledged[partition] <= offset <= self.attempted[partition]
        return offset

    def commit(self, world, partition, offset, **member):
        self.attempted[partition] = max(self.attempted[partition], offset)
        code = commit(world, offset, partition=partition, **member)
        if not code:
            assert offset >= self.acknowledged[partition], "an acknowledged offset moved back"
            self.acknowledged[partition] = offset
        return code


class ClassicWorker(ClassicClient):
    """A consumer as clients are: joins, assigns if it leads, reads on from the committed offset, commits."""

    def __init__(self, world, history, **fields):
        super().__init__(world, **fields)
        self.history = history
        self.positions = {}
        self.ghost = {}
        self.phase = "away"

    def start_over(self):
        self.id = "" if self.instance_id is None or self.phase == "away" else self.id
        self.positions = {}
        self.phase = "joining"
        self.send_join()

    def send_join(self):
        self.broker = self.world.coordinator
        super().send_join()

    def step(self):
        if self.phase == "away":
            self._haunt()
            self.start_over()
        elif self.phase != "working" and self.broker is not self.world.coordinator:
            self.phase = "joining"  # the connection went with the broker
            self.send_join()
        elif self.phase == "joining":
            self._joining()
        elif self.phase == "syncing":
            self._syncing()
        else:
            self._working()

    def _haunt(self):
        """What was under way when it fell silent arrives late: it must not move anything back."""
        for partition, position in self.ghost.items():
            member = {"member_id": self.id, "generation_id_or_member_epoch": self.generation}
            self.history.commit(self.world, partition, position + 1, group_instance_id=self.instance_id, **member)
        self.ghost = {}

    def _joining(self):
        if self.joined is None:
            return
        code = self.joined.error_code
        if code == ErrorCode.MEMBER_ID_REQUIRED or code in REJOIN:
            self.send_join()
        elif code in ANEW:
            self.id = ""
            self.start_over()
        else:
            assert not code
            self.phase = "syncing"
            self.send_sync(self._assignments() if self.leads and not self.joined.skip_assignment else None)

    def _assignments(self):
        members = [one.member_id for one in self.joined.members]
        return {
            member_id: write_assignment(0, {"t": range(place, PARTITIONS, len(members))})
            for place, member_id in enumerate(members)
        }

    def _syncing(self):
        if self.synced is None:
            return
        code = self.synced.error_code
        if code:
            assert code in REJOIN | ANEW
            self._back(code)
            return
        mine = [p for one in read_assignment(self.synced.assignment).assigned_partitions for p in one.partitions]
        self.history.assigned(self.generation, self.instance_id or self.id, mine)
        self.positions = {partition: self.history.start_at(self.world, partition) for partition in mine}
        self.phase = "working"

    def _back(self, code):
        self.positions = {}
        if code in ANEW:
            self.id = ""
        self.phase = "joining"
        self.send_join()

    def _working(self):
        for partition in self.positions:
            member = {"member_id": self.id, "generation_id_or_member_epoch": self.generation}
            offset = self.positions[partition] + 1
            code = self.history.commit(self.world, partition, offset, group_instance_id=self.instance_id, **member)
            if not code:
                self.positions[partition] = offset
        code = self.heartbeat()
        if code:
            assert code in REJOIN | ANEW
            self._back(code)

    def leave_politely(self):
        if self.phase != "away" and self.id:
            self.leave()
        self.go_silent()

    def go_silent(self):
        self.ghost = self.positions or self.ghost
        self.phase, self.positions = "away", {}

    def is_done(self):
        return self.phase == "working"


class ConsumerWorker(ConsumerClient):
    """A consumer of the newer protocol: gives back what it is told to, and only then says so."""

    def __init__(self, world, history, member_id, **fields):
        super().__init__(world, member_id, **fields)
        self.history = history
        self.positions = {}
        self.ghost = {}
        self.away = True

    def step(self):
        if self.away:
            for partition, position in self.ghost.items():
                member = {"member_id": self.id, "generation_id_or_member_epoch": self.epoch}
                self.history.commit(self.world, partition, position + 1, **member)
            self.away, self.ghost = False, {}
            self.epoch, self.owned = 0, {}
        self._commit()
        before = self.epoch, self.owned
        response = self.beat(full=self.world.chance.random() < 0.1)
        if response is None or self.world.chance.random() < 0.1:
            self.epoch, self.owned = before  # the answer is lost on its way
            return
        if response.error_code:
            assert response.error_code in {*ANEW, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND}
            self.epoch, self.owned, self.positions = 0, {}, {}
            return
        self.positions = {one: place for one, place in self.positions.items() if one in self.partitions}
        for partition in self.partitions:
            if partition not in self.positions:
                self.positions[partition] = self.history.start_at(self.world, partition)

    def _commit(self):
        for partition, position in list(self.positions.items()):
            member = {"member_id": self.id, "generation_id_or_member_epoch": self.epoch}
            if not self.history.commit(self.world, partition, position + 1, **member):
                self.positions[partition] = position + 1

    def leave_politely(self):
        if not self.away:
            epoch = self.epoch
            self.beat(-1)
            self.epoch = epoch
        self.go_silent()

    def go_silent(self):
        self.ghost = self.positions or self.ghost
        self.away, self.owned, self.positions = True, {}, {}

    def is_done(self):
        return not self.away and self.epoch > 0


def one_owner_each(world, workers):
    """Of those that the coordinator still counts as members."""
    group = world.coordinator.registry.groups.get("g")
    holders = {}
    for worker in workers:
        if group is not None and worker.id in group.members:
            for partition in worker.positions:
                assert holders.setdefault(partition, worker) is worker, f"{partition} is held twice"


def disturb(world, worker):
    """Something goes wrong, or time passes."""
    chance = world.chance.random()
    if chance < 0.04:
        world.restart()
    elif chance < 0.06:
        world.storage.fail("write", "__consumer_offsets")
    elif chance < 0.12:
        worker.leave_politely()
    elif chance < 0.20:
        worker.go_silent()
    elif chance < 0.24:
        world.advance(world.chance.choice([11_000, 25_000, 50_000]))
    else:
        world.advance(world.chance.randint(1, 1_500))


def make_world(seed):
    world = GroupWorld({"group.initial.rebalance.delay.ms": seed % 2 * 1_000})
    world.topic(partitions=PARTITIONS)
    world.chance = random.Random(seed)
    return world


def run(world, workers, check=lambda: None):
    for _ in range(STEPS):
        worker = world.chance.choice(workers)
        worker.step()
        world.tick()
        check()
        disturb(world, worker)
        check()
    world.storage.heal()
    for _ in range(60):
        for worker in workers:
            worker.step()
            world.tick()
        world.advance(2_000)
        check()
    assert all(worker.is_done() for worker in workers)
    assert sorted(partition for worker in workers for partition in worker.positions) == list(range(PARTITIONS))


@pytest.mark.parametrize("seed", range(12))
def test_classic_groups(seed):
    world = make_world(seed)
    history = History()
    workers = [
        ClassicWorker(world, history, version=world.chance.choice([1, 5, 9])),
        ClassicWorker(world, history, version=5),
        ClassicWorker(world, history, version=9, instance_id="static"),
    ]
    run(world, workers)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(12))
def test_groups_of_the_newer_protocol(seed):
    world = make_world(seed)
    history = History()
    workers = [ConsumerWorker(world, history, name) for name in "ABC"]
    run(world, workers, lambda: one_owner_each(world, workers))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(12))
def test_groups_that_migrate_to_and_fro(seed):
    """Members of both protocols in one group: it becomes one of the newer kind with the first of those, and classic with the last."""
    world = make_world(seed)
    history = History()
    workers = [
        ClassicWorker(world, history, version=world.chance.choice([1, 5])),
        ClassicWorker(world, history, version=9),
        ConsumerWorker(world, history, "A"),
        ConsumerWorker(world, history, "B"),
    ]
    run(world, workers, lambda: one_owner_each(world, workers))
