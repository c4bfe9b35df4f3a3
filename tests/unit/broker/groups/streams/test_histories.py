"""Any history of a streams group: members that come, stay silent, lose responses and are slow to give back, kills, topics that go.

A task is active with one member at a time, counted from what members were given until they have given it back; a process has it in one
role. In the end all tasks are handed out. The same histories find bugs that are planted here.
"""

import random
from collections import Counter

import pytest

from horolog.broker.groups.reconcile import MemberState
from horolog.broker.groups.streams import streams_decisions, streams_reconcile
from horolog.broker.groups.streams.sticky_assignor import Assigning
from horolog.broker.groups.streams.streams_group import StreamsGroup
from horolog.broker.groups.streams.streams_reconcile import next_tasks
from horolog.broker.groups.streams.task_holders import TaskHolders
from horolog.broker.groups.streams.tasks import NO_TASKS, Role, TaskSet, read_tasks, written_tasks
from tests.support.at_once import delete_topic
from tests.support.streams_world import StreamsWorld

SEEDS = range(40)
STEPS = 60
COUNT = 3
MEMBERS = {"a1": "a", "a2": "a", "b1": "b", "c1": "c"}
"""Members and their processes."""
ALL = {(name, index) for name in ("0", "1") for index in range(COUNT)}


class Worker:
    """A member that runs a task from the response that gives it until it has said that it gives it back."""

    def __init__(self, world, name):
        self.world, self.name = world, name
        self.stop()

    def __repr__(self):
        return f"<Worker {self.name} in epoch {self.epoch}>"

    def stop(self):
        self.epoch, self.given, self.runs, self.last = 0, NO_TASKS, NO_TASKS, None

    def beat(self, *, gives_back=True, is_lost=False):
        if self.epoch and gives_back:
            self.runs = self.given
        fields = {"process_id": MEMBERS[self.name], "rebalance_timeout_ms": 20_000}
        if self.epoch:
            fields = {}
        if self.epoch and (gives_back or self.runs == self.given):
            names = ("active_tasks", "standby_tasks", "warmup_tasks")
            fields = dict(zip(names, map(written_tasks, self.runs), strict=True))
        answer = self.world.beat(self.name, self.epoch, **fields)
        if is_lost:
            return
        if answer.error_code:
            self.stop()
            return
        self.epoch, self.last = answer.member_epoch, answer
        if answer.active_tasks is not None:
            self.given = TaskSet(*map(read_tasks, (answer.active_tasks, answer.standby_tasks, answer.warmup_tasks)))
            self.runs |= self.given

    def leave(self):
        if self.epoch:
            self.world.beat(self.name, -1)
        self.stop()


class History:
    """One seed's history."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.world = StreamsWorld()
        self.world.topic("t", COUNT)
        self.workers = {name: Worker(self.world, name) for name in MEMBERS}
        self.standbys = 0

    def run(self):
        steps = (self.beat, self.beat, self.beat, self.slow, self.lost, self.leave, self.wait, self.kill, self.change)
        for _ in range(STEPS):
            self.chance.choice(steps)()
            self.check()
        self.end()

    def one(self):
        return self.workers[self.chance.choice(list(self.workers))]

    def beat(self):
        self.one().beat()

    def slow(self):
        self.one().beat(gives_back=False)

    def lost(self):
        self.one().beat(is_lost=True)

    def leave(self):
        self.one().leave()

    def wait(self):
        self.world.advance(self.chance.choice((1_000, 15_000, 30_000)))

    def kill(self):
        self.world.restart()

    def change(self):
        if self.chance.random() < 0.5:
            self.standbys = self.chance.randrange(3)
            self.world.configure("streams.num.standby.replicas", str(self.standbys))
        elif "t" in self.world.cluster.topics:
            delete_topic(self.world.cluster, "t")
        else:
            self.world.topic("t", COUNT)

    def live(self):
        """The workers that the broker knows: others are fenced with their next heartbeat."""
        members = self.world.coordinator.registry.groups["g"].members if self.known else {}
        return [one for one in self.workers.values() if one.epoch and one.name in members]

    @property
    def known(self):
        return "g" in self.world.coordinator.registry.groups

    def check(self):
        active = Counter(task for one in self.live() for role, task in one.runs.each() if role is Role.ACTIVE)
        assert not active or max(active.values()) == 1, active
        if self.known:
            self.check_members()

    def check_members(self):
        """The broker's own view, by process and role."""
        members = self.world.group().members.values()
        held = Counter()
        for one in members:
            both = one.current.assigned | one.current.revoking
            held.update({(task, one.process_id): 1 for _, task in both.each()})
            assert one.current.epoch <= self.world.group().epoch
            assert one.current.state is not MemberState.STABLE or one.current.revoking.is_empty
        assert not held or max(held.values()) == 1, held

    def end(self):
        if "t" not in self.world.cluster.topics:
            self.world.topic("t", COUNT)
        for _ in range(6):
            self.world.advance(5_000)  # a member that missed what it was asked to give back is removed, and joins again
            for one in [*self.workers.values()] * 5:
                one.beat()
        self.check()
        assert self.world.group().state_name == "Stable"
        assert set(self.world.group().members) == set(MEMBERS)
        tasks = [pair for one in self.workers.values() for pair in one.runs.each()]
        assert {task for role, task in tasks if role is Role.ACTIVE} == ALL
        assert len([task for role, task in tasks if role is Role.ACTIVE]) == len(ALL)
        copies = Counter(task for role, task in tasks if role is Role.STANDBY)
        wanted = min(self.standbys, len(set(MEMBERS.values())) - 1)
        assert copies == {("1", index): wanted for index in range(COUNT) if wanted}
        assert all(one.last.status == [] for one in self.workers.values())


def run_all():
    for seed in SEEDS:
        History(seed).run()


def test_histories():
    run_all()


def _gives_at_once(current, target_epoch, target, is_free, owned):
    """A member is taken to have given back what it never reported."""
    return next_tasks(current, target_epoch, target, is_free, TaskSet() if owned is None else owned)


def _does_not_wait(self, process_id, role, task):
    return True


def _forgets_what_is_given_back(self, member_id, process_id, current):
    HOLD(self, member_id, process_id, current._replace(revoking=NO_TASKS))


def _state_alone(self, member, role, task):
    """Copies in one's own process are not waited for."""
    return role is not Role.ACTIVE or IS_FREE(self, member, role, task)


def _copies_anywhere(self, member, task):
    return False


HOLD, IS_FREE = TaskHolders.hold, StreamsGroup.is_free


@pytest.mark.parametrize(
    ("where", "name", "bug"),
    [
        (streams_decisions, "next_tasks", _gives_at_once),
        (TaskHolders, "is_free", _does_not_wait),
        (TaskHolders, "hold", _forgets_what_is_given_back),
        (StreamsGroup, "is_free", _state_alone),
        (streams_reconcile, "_owns_any", lambda owned, tasks: False),
        (streams_decisions, "_refresh", lambda step, metadata_hash, bump: None),
        (Assigning, "has", _copies_anywhere),
    ],
    ids=lambda one: getattr(one, "__name__", str(one)),
)
def test_planted_bugs_are_found(monkeypatch, where, name, bug):
    monkeypatch.setattr(where, name, bug)
    with pytest.raises(AssertionError):
        run_all()
