"""One simulated history: a seed drives clients, tools, faults and ends of the broker, and everything is checked after every start."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import NoReturn

from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import DataFolderError, StorageFault
from horolog.broker.log.storage.memory_disk import ALL, PowerCut
from horolog.protocol.errors import ErrorCode
from tests.simulation import access
from tests.simulation.access import ACCEPT, PRINCIPALS, Access, RuleAdministrator
from tests.simulation.admin import ALWAYS, Administrator
from tests.simulation.faults import SURVIVAL, Chaos
from tests.simulation.model import Attempt, Level, Outcome, PartitionModel, TopicModel
from tests.simulation.offsets import Committer, OffsetsModel
from tests.simulation.principals import GuardedConsumer, GuardedProducer, Visitor
from tests.simulation.producers import STORAGE_ERRORS, Actor, IdempotentProducer, PlainProducer
from tests.simulation.reading import Reader, Unreadable
from tests.simulation.themes import OFTEN, Theme, has_principals, theme_of
from tests.simulation.transactions import TIMEOUT_MS, TransactionalProducer
from tests.simulation.world import SimulationFailure, World, in_simulation

LEDGER = "ledger"
LEDGER_CONFIGS = {**ALWAYS, "segment.bytes": "900", "retention.ms": "-1"}
FIRST_CONFIGS = {**ALWAYS, "segment.bytes": "500", "retention.ms": "20000", "file.delete.delay.ms": "0"}
MOST_STARTS = 80
MOST_REOPENINGS, REOPENING_MS = 20, 2000
LOOK_AT_STOPPED_CHANCE = 0.3
END_STOPPED_CHANCE = 0.4


class Simulation:
    """See the module's docstring. `run` raises SimulationFailure when a promise is broken."""

    def __init__(self, seed: int, steps: int) -> None:
        self.seed = seed
        self.theme = self.make_theme()
        self.steps = steps
        self.step_number = 0
        self.world = self.make_world()
        self.topics: list[TopicModel] = []
        self.dead_ids: set[bytes] = set()
        self.outcomes: dict[str, Outcome] = {}
        self.offsets = OffsetsModel()
        self.producer_ids: set[int] = set()
        self.configs_may_be_lost = False
        self.syncs_fail = False
        self.pages_may_be_lost = False
        """What was written and not synced may be a hole, with what came later on the disk behind it."""
        self.mends_may_fail = False
        """The disk was failing at the last start: what it found damaged may be so still."""
        self._attempts = 0
        self._values = 0
        self._was_clean = False
        self._sent_again: set[Attempt] = set()
        self._admin = Administrator(self)
        self._reader = Reader(self)
        self._chaos = Chaos(self)
        self._member = Committer(self, "member", joins=True)
        self._actors: list[Actor] = [
            PlainProducer(self, "plain-1"),
            PlainProducer(self, "plain-2"),
            IdempotentProducer(self, "idempotent"),
            TransactionalProducer(self, "older", newer=False),
            self.newer_producer(),
            Committer(self, "alone", joins=False),
            self._member,
        ]
        self.access = Access(self) if has_principals(seed) else None
        if self.access is not None:
            self._actors += self._principals(self.access)
        self._operations = self._table()

    # -- what a simulation of several workers has otherwise

    ledger_partitions = 2
    has_doors = True
    """Whether users log in where there are principals."""
    somebody_may_be_behind = False
    """Whether a tool may be told of the cluster as it was a moment ago."""
    produced_again: frozenset[ErrorCode] = frozenset()
    """Answers to a Produce of a transaction after which it is sent again, and not given up."""

    def rules_hold_since(self, moment_s: float) -> bool:
        """Whether what was acknowledged before has been in force everywhere since then."""
        return True

    def let_changes_end(self) -> None:
        """Wait until changes that are under way are made, or fail."""
        self.world.loop.settle()

    def make_theme(self) -> Theme:
        return theme_of(self.seed)

    def make_world(self) -> World:
        return World(self.seed, self.settings())

    def settings(self) -> dict[str, str]:
        """Besides those that every history has."""
        if not has_principals(self.seed):
            return {}
        return {**access.SETTINGS, **(access.DOOR_SETTINGS if self.has_doors else {})}

    def _principals(self, known: Access) -> list[Actor]:
        rules = RuleAdministrator(self, known)
        writers = [GuardedProducer(self, known, who) for who in PRINCIPALS]
        readers = [GuardedConsumer(self, known, who) for who in PRINCIPALS]
        return [rules, *writers, *readers, *([Visitor(self, known)] if self.has_doors else [])]

    def simulated(self) -> AbstractContextManager[None]:
        return in_simulation(self.world)

    def newer_producer(self) -> Actor:
        """One that gets a new epoch with every transaction, and adds no partitions itself."""
        return TransactionalProducer(self, "newer", newer=True)

    def was_acknowledged(self, partition: PartitionModel, attempt: Attempt) -> None:
        """A producer was told where its records are."""

    def was_made(self, topic: TopicModel) -> None:
        """Somebody was told that a topic is there, with so many partitions."""

    def was_deleted(self, topic: TopicModel) -> None:
        """Somebody was told that a topic is gone."""

    def _table(self) -> tuple[list[Callable[[], None]], list[int]]:
        """What may happen in a step, and how often it does."""
        actors: list[tuple[Callable[[], None], int]] = [(actor.step, actor.weight) for actor in self._actors]
        others: list[tuple[Callable[[], None], int]] = [
            (self._pass_time, 24),
            (self._admin.create, 2),
            (self._admin.delete, 1),
            (self._admin.grow, 1),
            (self._admin.configure, 3),
            (self._admin.delete_records, 3),
            (self._admin.apply_retention, 5),
            (self._admin.compact, 4),
            (self._look_at_one, 4),
            (self._hang_up, 2),
            (self._chaos.end_at_an_operation, 3),
            (self._chaos.fail_disk, 2),
            (self._chaos.heal, 4),
            (self._chaos.jump, 1),
            (self._stop_cleanly, 1),
            (self._end_now, 1),
        ]
        operations, weights = zip(*actors, *others, strict=True)
        often = [OFTEN if one.__name__ in self.theme.often else 1 for one in operations]
        return list(operations), [weight * factor for weight, factor in zip(weights, often, strict=True)]

    # -- what the parts ask for

    def next_attempt(self) -> int:
        self._attempts += 1
        return self._attempts

    def next_value(self) -> int:
        self._values += 1
        return self._values

    @property
    def values_made(self) -> int:
        return self._values

    def sent_again(self, attempt: Attempt, partition: PartitionModel | None = None) -> None:
        """A retry may bring back what had been lost."""
        self._sent_again.add(attempt)
        if attempt.level in (Level.GONE, Level.REFUSED) or (partition and partition.may_have_forgotten(attempt)):
            attempt.level = Level.UNKNOWN
            attempt.base_offset = None

    def existing_topics(self) -> list[TopicModel]:
        return [one for one in self.topics if one.must_exist]

    def any_topic(self) -> TopicModel | None:
        there = self.existing_topics()
        return self.world.chance.choice(there) if there else None

    def any_partition(self) -> tuple[TopicModel, PartitionModel]:
        """A partition of a topic that is not for transactions."""
        there = [one for one in self.existing_topics() if one.name != LEDGER] or self.existing_topics()
        topic = self.world.chance.choice(there)
        return topic, self.world.chance.choice(topic.partitions)

    def transactional_partition(self) -> tuple[TopicModel, PartitionModel]:
        (topic,) = (one for one in self.topics if one.name == LEDGER)
        return topic, self.world.chance.choice(topic.partitions)

    def real(self, partition: PartitionModel) -> Partition:
        found = self.world.find(partition.topic, partition.index)
        if not isinstance(found, Partition):
            self.fail(f"{partition} is led by nobody")
        return found

    def may_fail(self, partition: PartitionModel | None) -> bool:
        """Whether the disk is a reason for an error."""
        if self._chaos.active:
            return True
        if partition is not None:
            return not self.takes_appends(partition)
        return any(not one.condition.takes_appends for one in self.world.partitions())

    def takes_appends(self, partition: PartitionModel) -> bool:
        found = self.world.find(partition.topic, partition.index)
        return isinstance(found, Partition) and found.condition.takes_appends

    def is_refused(self, partition: PartitionModel, attempt: Attempt, code: int, message: str | None) -> bool:
        """Whether an error means that nothing of it is in the log: what fails to be written is rolled back."""
        if attempt in self._sent_again:
            return False
        taken_back = (message or "").startswith("write ") and self.takes_appends(partition)
        return code not in STORAGE_ERRORS or taken_back

    @property
    def clock_has_jumped(self) -> bool:
        return self._chaos.has_jumped

    def fail(self, reason: str) -> NoReturn:
        raise SimulationFailure(reason)

    def report(self, problems: Iterable[str]) -> None:
        for problem in problems:
            self.fail(problem)

    # -- running

    def run(self) -> None:
        with self.simulated():
            self.world.start()
            self._admin.create(LEDGER, self.ledger_partitions, LEDGER_CONFIGS)
            self._admin.create(configs=FIRST_CONFIGS, count=1)
            for number in range(self.steps):
                self.step_number = number
                try:
                    self._step()
                except PowerCut:
                    self._recover()
            self._finish()

    def _step(self) -> None:
        if self.syncs_fail:
            self._look_and_perhaps_end()
        operations, weights = self._operations
        self.world.chance.choices(operations, weights)[0]()
        for _ in range(self.world.chance.choice((0, 1, 2, 4, 8))):
            self.world.loop.step()
        self.world.deliver()

    def _look_and_perhaps_end(self) -> None:
        """While a sync has failed: what the disk may not have is looked at, and left to another process, more often than chance would."""
        stopped = [one for one in self._all_partitions() if self._is_stopped(one)]
        if stopped and self.world.chance.random() < LOOK_AT_STOPPED_CHANCE:
            self.world.note("looks at stopped", len(stopped))
            self._check(stopped)
        if stopped and self.world.chance.random() < END_STOPPED_CHANCE:
            self._start_again(power=self.world.chance.random() < 0.2, clean=False)

    def _is_stopped(self, partition: PartitionModel) -> bool:
        found = self.world.find(partition.topic, partition.index)
        return isinstance(found, Partition) and found.condition.stopped is not None

    def _pass_time(self) -> None:
        by_ms = self.world.chance.choice((500, 500, 1000, 1000, 2000, 5000, 10_000))
        self.world.note("time passes", by_ms)
        self.world.loop.advance(by_ms)

    def _hang_up(self) -> None:
        actor = self.world.chance.choice(self._actors)
        self.world.note("hangs up", actor.name)
        actor.client.hang_up()

    def _look_at_one(self) -> None:
        _, partition = self.any_partition()
        self._check([partition])

    def _check(self, partitions: Iterable[PartitionModel]) -> None:
        for partition in partitions:
            if self.syncs_fail:
                partition.disk_failed()
            self._reader.check_partition(partition)

    def _all_partitions(self) -> list[PartitionModel]:
        return [partition for topic in self.existing_topics() for partition in topic.partitions]

    # -- ends and starts of the broker

    def has_stopped_well(self, *, is_calm: bool) -> bool:
        """Whether a stop has left everything as it was."""
        return is_calm

    @property
    def knows_older_batches(self) -> bool:
        """Whether the broker has stopped cleanly before this start: then producers may send again any of their last batches."""
        return self.theme.sends_older_again and self._was_clean

    def _stop_cleanly(self) -> None:
        self.world.note("clean stop")
        was_clean = not self._chaos.active and not self.may_fail(None)
        self.world.stop()
        has_stopped_well = self.has_stopped_well(is_calm=was_clean)
        self._start_again(power=self.world.chance.random() < 0.3, clean=was_clean)
        self._was_clean = has_stopped_well

    def _end_now(self) -> None:
        raise PowerCut

    def _recover(self) -> None:
        self._start_again(power=self.world.chance.random() < 0.6, clean=False)

    def _start_again(self, *, power: bool, clean: bool) -> None:
        """Start on all that is left, however often the broker ends while it starts; then look at everything."""
        self._ended(power=power, clean=clean)
        if self.world.chance.random() < self.theme.damage_chance:
            self._chaos.damage()
        for _ in range(MOST_STARTS):
            try:
                self._start()
                break
            except PowerCut:
                power = self.world.chance.random() < 0.5
                self._ended(power=power, clean=False)
        self.world.storage.power_off_after(ALL)
        self._chaos.heal()
        self._look_at_everything()

    def _ended(self, *, power: bool, clean: bool) -> None:
        self._was_clean = False
        self.world.note("power cut" if power else "process ended")
        self.world.lose_clients()
        if power:
            self.world.storage.crash(self.world.chance, survival=self.world.chance.choice(SURVIVAL))
        else:
            self.world.storage.die()
        self.world.storage.heal()
        self._chaos.active = False
        for topic in self.topics:
            for partition in topic.partitions:
                if self.syncs_fail:
                    partition.disk_failed()
                partition.broker_ended(power=power, clean=clean)
        if self.access is not None:
            self.access.ended()

    def _start(self) -> None:
        if self.world.chance.random() < 0.2:
            self._chaos.end_at_an_operation()
        elif self.world.chance.random() < self.theme.start_fault_chance:
            self._chaos.fail_disk()
        self.mends_may_fail = self._chaos.active
        if self.access is not None and self.configs_may_be_lost and self.world.given.get(ACCEPT) == "true":
            self.access.may_be_lost()
        try:
            self.world.start()
        except (DataFolderError, StorageFault) as fault:
            if self._are_rules_lost(fault):
                self.world.note("lost rules are accepted")
            elif not self._chaos.active:
                self.fail(f"the broker does not start: {fault}")
            self.world.note("start refused", type(fault).__name__)
            raise PowerCut from fault
        if self.theme.waits_for_disk:
            self._wait_for_disk()
        if self._chaos.active and any(one.condition.fault for one in self.world.partitions()):
            raise PowerCut  # offline until the next start, and that is how it should be
        self.world.note("started", self.world.starts)

    def _are_rules_lost(self, fault: Exception) -> bool:
        """Where the file was damaged, nobody serves without a rule of it until an operator accepts that."""
        if self.access is None or not self.configs_may_be_lost or ACCEPT not in str(fault):
            return False
        self.access.may_be_lost()
        self.world.set(ACCEPT, "true")
        return True

    def _wait_for_disk(self) -> None:
        """An offline partition is opened again once its disk works; members of groups do not wait for that."""
        self._chaos.heal()
        for _ in range(MOST_REOPENINGS):
            if any(one.condition.fault for one in self.world.partitions()):
                self.world.note("waits for disk")
                self._member.step()
                self.world.loop.advance(REOPENING_MS)
                self.world.loop.settle()
                self.world.deliver()

    def _look_at_everything(self) -> None:
        offline = {
            (one.topic, one.index): one.condition.fault for one in self.world.partitions() if one.condition.fault
        }
        if offline:
            self.fail(f"offline after a start: {offline}")
        self.reconcile(has_started=True)
        self._check(self._all_partitions())
        self._reader.check_offsets()
        for partition in self._all_partitions():
            partition.started()
        self.configs_may_be_lost = self.syncs_fail = self.pages_may_be_lost = False

    def reconcile(self, *, has_started: bool = False) -> None:
        """What there is must be what was promised; what was not answered is now one or the other."""
        self._admin.reconcile()
        if self.access is not None:
            self.access.reconcile(has_started=has_started)
        if has_started and not self.mends_may_fail and self.world.given.get(ACCEPT):
            self.world.set(ACCEPT, "false")  # the record says that they are accepted

    # -- the end

    def _finish(self) -> None:
        """Leave the world alone until every transaction has ended, and look at all that is there."""
        self.world.storage.power_off_after(ALL)
        self._chaos.heal()
        self.world.loop.settle()
        self.world.deliver()
        if self.may_fail(None) or self.syncs_fail:
            self.world.note("restart at the end")
            self.world.stop()
            self._ended(power=False, clean=False)
            self.world.start()
            self._look_at_everything()
        self.world.clock.set_wall_ms(max(self.world.clock.wall_ms(), self._chaos.latest_ms))
        for _ in range(4):
            self.world.loop.advance(TIMEOUT_MS + 10_000)
            self.world.loop.settle()
        self.world.deliver()
        self.reconcile()
        partitions = self._all_partitions()
        self._check(partitions)
        try:
            self._reader.check_halves(partitions)
        except Unreadable:
            self.fail("a partition cannot be read though the disk is well")
        self._reader.check_offsets()
        self._check_nothing_is_open(partitions)

    def _check_nothing_is_open(self, partitions: Iterable[PartitionModel]) -> None:
        for model in partitions:
            partition = self.real(model)
            if partition.last_stable_offset != partition.high_watermark:
                self.fail(f"{model}: a transaction is open for ever at {partition.last_stable_offset}")
