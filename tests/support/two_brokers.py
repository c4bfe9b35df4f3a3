"""Two brokers of one cluster in one thread and virtual time, connected in memory; either may end at any step.

Each has its own disk with the same topics; the first leads even partitions, the second odd ones. A broker that ended restarts at
once on its disk: after a kill with all that was written, after a power cut with what was synced and some of the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from horolog.base.clock import ManualClock
from horolog.broker.base.java_hash import partition_for
from horolog.broker.base.own_thread import AtOnce
from horolog.broker.base.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from horolog.broker.cluster.cluster_state import Lead, LeadsChanged
from horolog.broker.cluster.membership import Members
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.config.settings import load
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.log.storage.memory_disk import ALL
from horolog.broker.network.dispatch import Dispatcher
from horolog.broker.network.limits import ConnectionLimits
from horolog.broker.on_record.internal_topics import overrides_of
from horolog.broker.server.app import Broker
from horolog.broker.server.process import sole
from horolog.protocol.wire import Message
from tests.simulation.loop import SimulatedLoop
from tests.support.at_once import at_once
from tests.support.members import among
from tests.support.memory_peers import MemoryPeers, PeerNetwork

DATA = "/data"
NODES = (1, 2)
TOPIC = "t"
SHARDS = 2
CLIENT = 100
WAIT_MS = 20
LONGEST_MS = 120_000
START_MS = 1_700_000_000_000

Leads = Mapping[tuple[str, int], int]


def leader_of(index: int) -> int:
    return NODES[index % len(NODES)]


def name_in(shard: int, prefix: str = "x") -> str:
    """A group or transactional id that the leader of this shard coordinates."""
    names = (f"{prefix}{number}" for number in range(100))
    return next(one for one in names if partition_for(one, SHARDS) == shard)


class Node:
    """One running broker."""

    def __init__(self, pair: TwoBrokers, number: int) -> None:
        self.number = number
        self.storage = MemoryStorage(lambda: pair.clock.wall_ms() * 1_000_000)
        settings = {"node.id": str(number), "listeners": "PLAINTEXT://127.0.0.1:0", **pair.settings}
        self.settings, _ = load(None, {}, settings)
        self.starts = 0
        self._pair = pair
        self.loop: SimulatedLoop
        self.peers: MemoryPeers
        self.broker: Broker

    def start(self) -> None:
        self.starts += 1
        pair = self._pair
        self.loop = SimulatedLoop(pair.clock, pair.chance)
        self.peers = MemoryPeers(pair.network, self.number, self.loop)
        with (
            patch("horolog.broker.server.app.ThreadPoolExecutor", lambda *_, **__: self.loop),
            patch("horolog.broker.server.app.listen_addresses", lambda _: ()),
        ):
            loop: Any = self.loop
            process = replace(sole(self.settings, AtOnce()), peers=self.peers)
            self.broker = Broker(self.settings, pair.clock, self.storage, [DATA], loop, process)
            self.broker.placement.members = Members(self.number, NODES, frozenset(NODES))
            self._form_cluster()
            with contextlib.suppress(StopIteration):
                self.broker.start().send(None)
                raise AssertionError("a start without listeners has nothing to wait for")
        pair.network.join(self.number, Dispatcher(self.broker), ConnectionLimits.of(self.settings), self.loop)

    def _form_cluster(self) -> None:
        """Create the same topics, with the same ids, before anything else; the leaders are not on the disk."""
        cluster = self.broker.cluster
        names = iter(self._pair.topics)
        cluster._new_topic_id = lambda: self._pair.topics[next(names)][0]
        opened = cluster.open

        def open_and_form(now_ms: int) -> None:
            opened(now_ms)
            if not cluster.topics:
                new = [NewTopic(name, count, 1, overrides) for name, (_, count, overrides) in self._pair.topics.items()]
                at_once(cluster.create_topics, new)
            leads = self._pair.leads
            among(cluster, *(node for node in NODES if node != self.number))
            self.lead_as({place: node for place, node in leads.items() if node != self.number})

        cluster.open = open_and_form  # type: ignore[method-assign]

    def lead_as(self, leads: Leads, epoch: int = 0) -> None:
        """Set the leaders of these partitions, in an epoch."""
        cluster = self.broker.cluster
        changed = tuple(((cluster.topics[name].id, index), Lead(node, epoch)) for (name, index), node in leads.items())
        assert at_once(cluster.changes.make, lambda _: LeadsChanged(changed)) == {}

    def end(self, *, power_cut: bool) -> None:
        self._pair.network.leave(self.number)
        if power_cut:
            self.broker.logs.abandon()
            self.storage.crash(self._pair.chance)
        else:
            self.storage.power_off_after(ALL)
            self.broker.logs.abandon()


class TwoBrokers:
    """See the module's docstring. `before_step` gets the number of each step before it is taken."""

    def __init__(self, seed: int = 0, partitions: int = 4, **settings: object) -> None:
        self.chance = random.Random(seed)
        self.clock = ManualClock(START_MS)
        self.network = PeerNetwork()
        self.settings = {
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": str(SHARDS),
            "transaction.state.log.num.partitions": str(SHARDS),
            **{key.replace("_", "."): str(value) for key, value in settings.items()},
        }
        made, _ = load(None, {}, self.settings)
        counts = {TOPIC: partitions, GROUP_OFFSETS: SHARDS, TRANSACTION_STATE: SHARDS}
        self.topics = {
            name: (uuid.UUID(int=number, version=4).bytes, count, overrides_of(name, made) or {})
            for number, (name, count) in enumerate(counts.items(), start=1)
        }
        self.leads: dict[tuple[str, int], int] = {
            (name, index): leader_of(index) for name, count in counts.items() for index in range(count)
        }
        self.steps = 0
        self.before_step: Callable[[int], None] = lambda _: None
        self.nodes = {number: Node(self, number) for number in NODES}
        for node in self.nodes.values():
            node.start()
        self.settle()

    # -- time

    def step(self) -> bool:
        """Run one waiting thing at one of the brokers; False if nothing waits."""
        busy = [node for node in self.nodes.values() if not node.loop.idle]
        if not busy:
            return False
        self.steps += 1
        self.before_step(self.steps)
        return self.chance.choice(busy).loop.step() or True

    def settle(self) -> None:
        for _ in range(100_000):
            if not self.step():
                return
        raise AssertionError("the brokers do not come to rest")

    def pass_time(self, by_ms: int) -> None:
        for _ in range(-(-by_ms // WAIT_MS)):
            self.clock.advance(WAIT_MS)
            for node in self.nodes.values():
                node.loop.advance(0)
            self.settle()

    def restart(self, number: int, *, power_cut: bool = False) -> None:
        node = self.nodes[number]
        node.end(power_cut=power_cut)
        node.start()

    async def stop(self) -> None:
        for node in self.nodes.values():
            await node.broker.stop()

    # -- clients

    def begin(self, node: int, request: Message, version: int, client: int = CLIENT) -> list[Any]:
        """Send a request; the response, or None if there is none, is put into the list."""
        answers: list[Any] = []
        loop = self.nodes[node].loop
        MemoryPeers(self.network, client, loop).ask(node, request, version, answers.append, LONGEST_MS)
        return answers

    def ask(self, node: int, request: Message, version: int, client: int = CLIENT) -> Any:
        answers = self.begin(node, request, version, client)
        for _ in range(LONGEST_MS // WAIT_MS):
            while not answers and self.step():
                pass
            if answers:
                return answers[0]
            self.pass_time(WAIT_MS)
        raise AssertionError(f"{type(request).__name__} v{version} is never answered")

    def coordinator(self, name: str, topic: str = TRANSACTION_STATE) -> int:
        """The coordinator of a group or a transactional id."""
        return self.leads[topic, partition_for(name, SHARDS)]

    # -- inspection

    def partition(self, index: int, topic: str = TOPIC) -> Partition:
        found = self.nodes[self.leads[topic, index]].broker.cluster.topics[topic].find(index)
        assert isinstance(found, Partition)
        return found


def stopped(pair: TwoBrokers) -> None:
    asyncio.run(pair.stop())
