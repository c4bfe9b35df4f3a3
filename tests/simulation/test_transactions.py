"""Transactions in virtual time: clients of both kinds, timeouts, failing disks, kills and power cuts, in any order and at every write.

Whatever happens: no aborted record is shown, no committed one is missed, nothing is half committed, and in the end no transaction is open.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from horolog.broker.log.storage.memory_disk import PowerCut
from horolog.broker.transactions.states import VERSION_0, VERSION_2, Producer, TransactionState
from horolog.protocol.errors import ErrorCode
from tests.support.at_once import at_once
from tests.support.history import History, Outcome
from tests.support.transaction_world import TransactionWorld
from tests.support.transactional import batch

STEPS = 400
CLIENTS = 3
TIMEOUT_MS = 10_000
TRY_AGAIN = {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_NOT_AVAILABLE}


class Client:
    """One producer program: transactions one after the other, each of a few writes, as clients do it."""

    def __init__(self, world: TransactionWorld, history: History, number: int) -> None:
        self.world = world
        self.history = history
        self.id = f"x{number}"
        self.version = VERSION_2 if number % 2 else VERSION_0
        self.chance = world.chance
        self.transaction = 0
        self.producer: Producer | None = None
        self.begin_anew()

    def begin_anew(self) -> None:
        """The program starts, or starts again: whatever was open is left to the coordinator."""
        self.producer = None
        self.asked: Callable[[], None] | None = None
        self.connect()
        self.doomed = False
        self.open: list[tuple[str, int]] = []
        self.sequences: dict[tuple[str, int], int] = {}
        self.begin_next()

    def connect(self) -> None:
        self.waiting = False
        self.connection = object()
        self.start_number = self.world.starts

    def ask(self, request: Callable[[], None]) -> None:
        """Send a request that is sent again, as it was, should its answer get lost."""
        self.waiting = True
        self.asked = request
        request()

    def begin_next(self) -> None:
        self.transaction += 1
        self.name = f"{self.id}-{self.transaction}"
        self.writes = 0
        self.open = []
        self.doomed = False

    def step(self) -> None:
        if self.start_number != self.world.starts:
            self.connect()  # the last connection went with the broker, and with it the answer
            if self.chance.random() < 0.3:
                self.begin_anew()
        if self.waiting:
            return
        if self.asked is not None:
            self.ask(self.asked)
        elif self.producer is None:
            self._initialize()
        elif self.doomed or self.chance.random() < 0.1:
            self._end(commit=False)
        elif self.writes and self.chance.random() < 0.3:
            self._end(commit=True)
        else:
            self._write()

    def _answered(self, connection: object) -> bool:
        """Whether an answer that comes is for this connection."""
        if connection is not self.connection:
            return False
        self.waiting = False
        self.asked = None
        return True

    def _initialize(self) -> None:
        def request() -> None:
            connection = self.connection

            def done(code: ErrorCode, producer: Producer | None) -> None:
                if self._answered(connection) and code == ErrorCode.NONE:
                    self.producer = producer
                    self.sequences = {}

            self.world.coordinator.initialize(self.id, TIMEOUT_MS, None, done)

        self.ask(request)

    def _write(self) -> None:
        assert self.producer is not None
        place = self.chance.choice(self.world.places())
        if self.version == VERSION_0 and place not in self.open:
            code = at_once(self.world.coordinator.add, self.id, self.producer, [place], VERSION_0)
            if code == ErrorCode.NONE:
                self.open.append(place)
            elif code not in TRY_AGAIN:
                self.begin_anew()
            return
        value = f"{self.name}:{self.writes}".encode()
        self.writes += 1
        self.history.attempt(value, place, self.name)
        sequence = self.sequences.get(place, 0)
        self.sequences[place] = sequence + 1
        records = batch([value], *self.producer, sequence, timestamp=self.world.clock.wall_ms())
        self.ask(lambda: self._send(value, place, records))

    def _send(self, value: bytes, place: tuple[str, int], records: bytes) -> None:
        connection = self.connection

        def done(well: bool) -> None:
            if well and offset is not None:
                self.history.acknowledge(value, offset)
            if self._answered(connection) and not well:
                self.doomed = True

        version = 12 if self.version == VERSION_2 else 11
        offset = self.world.produce(self.id, place, records, version, done)
        if offset is None:
            done(False)

    def _end(self, *, commit: bool) -> None:
        assert self.producer is not None
        name, before = self.name, self.producer

        def request() -> None:
            connection = self.connection

            def done(code: ErrorCode, producer: Producer | None) -> None:
                if code == ErrorCode.NONE:
                    self.history.outcomes.setdefault(name, Outcome.UNKNOWN)
                    self.history.end(name, Outcome.COMMITTED if commit else Outcome.ABORTED)
                if not self._answered(connection):
                    return
                if code == ErrorCode.NONE:
                    if producer != before:
                        self.sequences = {}
                    self.producer = producer
                    self.begin_next()
                elif code in TRY_AGAIN:
                    self.asked = request
                else:
                    self.begin_anew()  # fenced by a timeout

            self.world.coordinator.end(self.id, before, self.version, done, commit=commit)

        self.ask(request)


class Reader:
    """A consumer of committed records, in one partition after the other."""

    def __init__(self, world: TransactionWorld, history: History) -> None:
        self.world = world
        self.history = history
        self.positions = dict.fromkeys(world.places(), 0)

    def step(self) -> None:
        place = self.world.chance.choice(self.world.places())
        rows, self.positions[place] = self.world.read_committed(place, self.positions[place])
        self.history.poll("reader", place, rows)

    def after_power_cut(self) -> None:
        """As clients that are told that the log is shorter than they thought."""
        for place in self.positions:
            end_offset = self.world.partition(place).high_watermark
            if self.positions[place] > end_offset:
                self.positions[place] = end_offset
                self.history.seek("reader", place)


def finish(world: TransactionWorld, history: History) -> None:
    """Leave the world alone until every transaction has ended, and look at all that is there."""
    world.storage.heal()
    for _ in range(4):
        world.settle()
        world.coordinator.finish_prepared()
        world.clock.advance(TIMEOUT_MS + 1)
        world.coordinator.abort_timed_out()
    world.settle()
    assert all(one.is_idle for one in world.coordinator), list(world.coordinator)
    final = {}
    for place in world.places():
        partition = world.partition(place)
        assert partition.last_stable_offset == partition.high_watermark, f"{partition} is held back for ever"
        final[place], _ = world.read_committed(place, partition.log_start_offset)
    problems = history.problems(final)
    assert not problems, problems


def calm_step(world: TransactionWorld, clients: list[Client], reader: Reader) -> None:
    number = world.chance.random()
    if number < 0.5:
        world.loop.step(world.chance)
    elif number < 0.95:
        world.chance.choice(clients).step()
    else:
        reader.step()


def one_step(world: TransactionWorld, clients: list[Client], reader: Reader) -> None:
    number = world.chance.random()
    if number < 0.96:
        calm_step(world, clients, reader)
    elif number < 0.98:
        world.clock.advance(world.chance.choice([1, 100, TIMEOUT_MS]))
        world.coordinator.abort_timed_out()
        world.coordinator.finish_prepared()
    else:
        world.chance.choice(clients).begin_anew()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(40))
def test_any_order_of_events(seed: int) -> None:
    world, history = TransactionWorld(seed), History()
    clients = [Client(world, history, number) for number in range(CLIENTS)]
    reader = Reader(world, history)
    for _ in range(STEPS):
        number = world.chance.random()
        if number < 0.005:
            world.kill()
        elif number < 0.01:
            world.cut_power()
            reader.after_power_cut()
        elif number < 0.015:
            world.storage.fail("write", "-", torn_bytes=world.chance.choice([0, 30]))
        else:
            one_step(world, clients, reader)
    assert history.writes
    world.storage.heal()
    if any(partition.condition.fault for partition in world.logs.partitions.values()):
        world.kill()
    finish(world, history)


def run_until(changes: int, *, power: bool) -> tuple[int, int]:
    """The same history each time, ended at its n-th change of the disk; how many transactions ended, and how many changes were left."""
    world, history = TransactionWorld(1), History()
    clients = [Client(world, history, number) for number in range(2)]
    reader = Reader(world, history)
    world.settle()
    world.chance = random.Random(7)
    for client in clients:
        client.chance = world.chance
    world.storage.power_off_after(changes)
    finished = False
    try:
        for _ in range(500):
            calm_step(world, clients, reader)
        finished = True
    except PowerCut:
        pass
    if power:
        world.logs.partitions.clear()  # nothing can be closed any more
        world.storage.crash(random.Random(changes))
        world.start()
        reader.after_power_cut()
    else:
        world.kill()
    finish(world, history)
    ended = sum(outcome != Outcome.UNKNOWN for outcome in history.outcomes.values())
    return ended, finished


@pytest.mark.slow
@pytest.mark.parametrize("power", [False, True], ids=["kill", "power cut"])
def test_an_end_at_every_write(power: bool) -> None:
    most_ended = changes = 0
    finished = False
    while not finished:
        changes += 1
        ended, finished = run_until(changes, power=power)
        most_ended = max(most_ended, ended)
    assert changes > 100
    assert most_ended > 8


def test_a_decided_transaction_is_not_carried_out_before_the_decision_is_on_the_disk() -> None:
    world, history = TransactionWorld(3), History()
    client = Client(world, history, 0)
    for _ in range(60):
        client.step()
        world.settle()
        if client.writes > 2:
            break
    ends = {place: world.partition(place).log_end_offset for place in world.places()}
    client._end(commit=True)
    while world.loop.callbacks:  # the write is done, the sync of it is not
        callback, arguments = world.loop.callbacks.pop(0)
        callback(*arguments)
    assert world.loop.tasks
    assert {place: world.partition(place).log_end_offset for place in world.places()} == ends
    world.settle()
    assert {place: world.partition(place).log_end_offset for place in world.places()} != ends
    assert world.coordinator.get(client.id).state == TransactionState.COMPLETE_COMMIT


def test_a_transaction_that_was_said_to_be_over_is_over_after_a_power_cut() -> None:
    """Else the first records of the next one would get its markers."""
    world, history = TransactionWorld(3), History()
    client = Client(world, history, 0)
    while Outcome.COMMITTED not in history.outcomes.values():
        client.step()
        world.loop.step(world.chance)
    world.logs.partitions.clear()
    world.storage.crash()
    world.start()
    assert world.coordinator.get(client.id).state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
