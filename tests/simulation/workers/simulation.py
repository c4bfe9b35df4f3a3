"""One history of several workers on one folder: what holds of one broker holds of all of them together, whoever ends in between.

Besides: no two of them acknowledge the same offset, a topic that was made is there whichever is asked, every beginning of the journal
replays to the same state, and when nothing goes wrong any more everything is served within 30 seconds of virtual time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from horolog.broker.cluster import worker_checkpoints
from horolog.broker.log.files import checkpoints
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.storage.memory_disk import ALL, PowerCut
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.simulation.model import Attempt, Level, PartitionModel, TopicModel
from tests.simulation.producers import Actor, IdempotentProducer, PlainProducer
from tests.simulation.simulation import Simulation
from tests.simulation.themes import OFTEN, Theme
from tests.simulation.transactions import TransactionalProducer
from tests.simulation.workers.faults import WorkerChaos
from tests.simulation.workers.producers import PipeliningProducer
from tests.simulation.workers.states import States
from tests.simulation.workers.themes import theme_of
from tests.simulation.workers.world import CALM_MS, Unanswered, WorkersWorld, in_workers_simulation
from tests.simulation.world import DATA, World

METADATA_VERSION = 12
KNOWN_EVERYWHERE_MS, MOST_LOOKS = 2000, 20
STEP_MS = (0, 0, 0, 1, 2, 5, 20, 100)
"""A step takes a while: messages arrive, syncs end."""
BATCHES_AT_A_STOP = 8
WRITES_BEFORE_A_DECISION, WRITE_MS = 10, 200
OTHER_COUNT_CHANCE = 0.25


class WorkersSimulation(Simulation):
    """See the module's docstring. `workers` run at first; later starts may have fewer, or one broker alone."""

    ledger_partitions = 4
    has_doors = False
    produced_again = frozenset(
        {
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.CONCURRENT_TRANSACTIONS,
            ErrorCode.NOT_COORDINATOR,
            ErrorCode.NOT_ENOUGH_REPLICAS,
        }
    )

    def __init__(self, seed: int, steps: int, workers: int) -> None:
        self.most_workers = workers
        self.workers_world: WorkersWorld
        self.worker_chaos: WorkerChaos
        self.states = States()
        self._written_to: tuple[TopicModel, PartitionModel] | None = None
        super().__init__(seed, steps)
        self.workers_world.is_excused = lambda: self._chaos.active

    def make_theme(self) -> Theme:
        return theme_of(self.seed)

    def make_world(self) -> World:
        self.workers_world = WorkersWorld(self.seed, self.most_workers, self.settings())
        return self.workers_world

    def newer_producer(self) -> Actor:
        return PipeliningProducer(self, "newer", newer=True)

    def simulated(self) -> AbstractContextManager[None]:
        return in_workers_simulation(self.workers_world)

    def _table(self) -> tuple[list[Callable[[], None]], list[int]]:
        self.worker_chaos = chaos = WorkerChaos(self)
        operations, weights = super()._table()
        others: list[tuple[Callable[[], None], int]] = [
            (chaos.end_worker, 3),
            (chaos.end_worker_at_a_change, 4),
            (chaos.end_worker_at_a_message, 4),
            (chaos.stop_worker, 1),
            (chaos.end_supervisor, 1),
            (chaos.hang, 2),
            (chaos.cut, 3),
            (chaos.slow_down, 2),
            (chaos.fail_journal, 1),
            (chaos.hand_over, 6),
            (chaos.hand_over_coordinator, 1),
            (self._transact, 2),
            (chaos.elect, 1),
            (chaos.hand_over_amid_writes, 0),
            (chaos.lose_an_entry, 0),
            (chaos.lose_a_decision, 0),
            (self.stop_after_batches, 0),
            (chaos.hurt_record, 0),
        ]
        for operation, weight in others:
            operations.append(operation)
            weights.append(weight * (OFTEN if operation.__name__ in self.theme.often else 1))
            weights[-1] += OFTEN if operation.__name__ in self.theme.also else 0
        return operations, weights

    @contextmanager
    def written_to(self, topic: TopicModel, partition: PartitionModel) -> Iterator[None]:
        """Producers write to this partition, and to no other."""
        self._written_to = topic, partition
        try:
            yield
        finally:
            self._written_to = None

    def any_partition(self) -> tuple[TopicModel, PartitionModel]:
        return self._written_to or super().any_partition()

    def write(self) -> None:
        """Somebody who does not wait for the answer sends something."""
        self.world.chance.choice([one for one in self._actors if isinstance(one, PlainProducer)]).step()

    def stop_after_batches(self) -> None:
        """A producer that has not heard of the last answers before a clean stop sends its batches again after it."""
        (producer,) = (one for one in self._actors if isinstance(one, IdempotentProducer))
        with self.written_to(*self.any_partition()):
            for is_after in (False, True):
                for _ in range(BATCHES_AT_A_STOP):
                    producer.step()
                    self.world.loop.settle()
                    self.world.deliver()
                if not is_after:
                    self._stop_cleanly()

    def decide_something(self) -> bool:
        """Have a producer ask for a transaction over several partitions to be committed; False if that cannot be."""
        producer = self.world.chance.choice([one for one in self._actors if isinstance(one, TransactionalProducer)])
        for _ in range(WRITES_BEFORE_A_DECISION):
            producer.write_more()
            self.world.loop.advance(WRITE_MS)
            self.world.deliver()
        return producer.commit()

    def has_stopped_well(self, *, is_calm: bool) -> bool:
        """As the files say that the next start goes by; not if the disk does not let them be read."""
        storage, world = self.world.storage, self.workers_world
        try:
            if world.count == 1:
                return storage.exists(f"{DATA}/{checkpoints.CLEAN_SHUTDOWN}")
            found = worker_checkpoints.load_all(storage, DATA).found
        except StorageFault:
            return False
        return len(found) == world.count and all(one.has_stopped for one in found.values())

    def _transact(self) -> None:
        """Beside what they do anyway."""
        self.world.chance.choice([one for one in self._actors if isinstance(one, TransactionalProducer)]).step()

    # -- what the parts ask for

    def may_fail(self, partition: PartitionModel | None) -> bool:
        if super().may_fail(partition):
            return True
        world = self.workers_world
        return partition is None and (not world.is_whole or world.has_been_calm_ms < CALM_MS)

    @property
    def somebody_may_be_behind(self) -> bool:  # type: ignore[override]
        return not self.workers_world.is_undisturbed

    def rules_hold_since(self, moment_s: float) -> bool:
        return self.workers_world.is_undisturbed_since(moment_s)

    def let_changes_end(self) -> None:
        super().let_changes_end()
        self.world.loop.advance(KNOWN_EVERYWHERE_MS)
        if self.workers_world.has_lost_power:
            raise PowerCut

    def disk_is_failing(self) -> None:
        self._chaos.active = True

    def was_acknowledged(self, partition: PartitionModel, attempt: Attempt) -> None:
        """Two leaders would give the same offset out twice."""
        assert attempt.base_offset is not None
        offsets = range(attempt.base_offset, attempt.base_offset + len(attempt.records))
        for other in partition.attempts:
            if other is attempt or other.base_offset is None or other.level < Level.WRITTEN:
                continue
            last = other.base_offset + len(other.records) - 1
            if other.base_offset < offsets.stop and last >= offsets.start and partition.damaged.isdisjoint(offsets):
                self.fail(f"{partition}: {attempt} was acknowledged where {other} is")

    def was_made(self, topic: TopicModel) -> None:
        self._everybody_has(topic.name, len(topic.partitions))

    def was_deleted(self, topic: TopicModel) -> None:
        self._everybody_has(topic.name, None)

    def _everybody_has(self, name: str, count: int | None) -> None:
        """Whoever answers a change has waited for the others, unless something kept them from it."""
        world = self.workers_world
        if not world.is_undisturbed:
            return
        for node in world.nodes:
            request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
            answer = world.ask_node(node, request, METADATA_VERSION)
            if answer is None or not world.is_undisturbed:
                return
            (told,) = answer.topics
            there = None if told.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else len(told.partitions)
            if there != count:
                self.fail(f"topic {name} has {there} partitions at worker {node}, not {count}")
        world.counts["known everywhere"] += 1

    # -- running

    def _step(self) -> None:
        try:
            super()._step()
        except Unanswered as request:
            self.world.note("nobody has answered", request)
            self._find_out()
        self.world.loop.advance(self.world.chance.choice(STEP_MS))
        self.world.deliver()
        if self.workers_world.has_lost_power:
            raise PowerCut
        self.look_at_states()

    def _find_out(self) -> None:
        """Whether what nobody has answered was done: what a worker that has ended left in the journal is known to all soon."""
        self._chaos.heal()
        for _ in range(MOST_LOOKS):
            self.world.loop.advance(KNOWN_EVERYWHERE_MS)
            if self.workers_world.has_lost_power:
                raise PowerCut
            if not self.workers_world.awake:
                continue
            try:
                self.reconcile()
            except Unanswered:
                continue
            return
        self.fail("it cannot be found out which topics there are")

    def look_at_states(self) -> None:
        for process in self.workers_world.processes:
            if process.broker is not None and self.workers_world.count > 1:
                self.report(self.states.look(process.node, process.broker.cluster.state))

    def _replay(self) -> None:
        """What the journal says to those who come later."""
        if self.workers_world.count > 1 and not self._chaos.active:
            self.report(self.states.replay(self.world.storage, DATA, self.workers_world.nodes))
            if self.states.was_shortened:
                self.world.note("journal was shortened")

    # -- ends and starts

    def end_all(self, *, power: bool) -> None:
        self._start_again(power=power, clean=False)

    def _ended(self, *, power: bool, clean: bool) -> None:
        self.workers_world.end()
        super()._ended(power=power, clean=clean)
        self._replay()
        self.states = States()
        if self.world.chance.random() < OTHER_COUNT_CHANCE:
            self.workers_world.count = self.world.chance.randint(1, self.most_workers)
            self.world.note("workers", self.workers_world.count)

    def _stop_cleanly(self) -> None:
        self._calm_down()
        super()._stop_cleanly()

    def _calm_down(self) -> None:
        self.worker_chaos.calm_down()

    def _look_at_everything(self) -> None:
        self.look_at_states()
        try:
            super()._look_at_everything()
        except Unanswered as request:
            self.fail(f"{request} is not answered right after a start")

    # -- the end

    def _finish(self) -> None:
        world = self.workers_world
        self.world.storage.power_off_after(ALL)
        self._chaos.heal()
        self._calm_down()
        if not self.world.loop.run_until(lambda: world.is_whole, CALM_MS):
            self.fail(f"not all workers serve within {CALM_MS} ms of calm: {world.supervisor}")
        self.world.loop.advance(CALM_MS)
        try:
            super()._finish()
        except Unanswered as request:
            self.fail(f"{request} is not answered at the end")
        self.look_at_states()
        self._replay()
        self._check_everything_is_led()

    def _check_everything_is_led(self) -> None:
        """By one worker each."""
        for topic in self.existing_topics():
            for model in topic.partitions:
                leaders = self.workers_world.leaders(topic.name, model.index)
                if len(leaders) != 1:
                    self.fail(f"{model} is led by {leaders}")
