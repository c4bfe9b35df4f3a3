"""The simulated machine: messages keep their order, a process ends alone, and what others do in the middle of a step is theirs."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.log.storage.memory_disk import ALL, PowerCut
from tests.simulation.workers.machine import Machine
from tests.simulation.workers.network import SLOW_MS, Network
from tests.simulation.workers.process import Process

PATH = "/sockets/1"


class Hearing(asyncio.Protocol):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.heard = b""
        self.ends: list[Exception | None] = []
        self.wire: Any = None

    def connection_made(self, transport: Any) -> None:
        self.wire = transport

    def data_received(self, data: bytes) -> None:
        self.heard += data

    def connection_lost(self, error: Exception | None) -> None:
        self.ends.append(error)


class Two:
    """A machine with two processes."""

    def __init__(self, seed: int = 1) -> None:
        self.clock = ManualClock()
        self.disk = MemoryStorage()
        chance = random.Random(seed)
        self.network = Network(self.clock, chance)
        self.machine = Machine(self.clock, chance, self.network)
        self.processes = [Process(name, self.clock, chance, self.disk, self.network) for name in ("one", "other")]
        for process in self.processes:
            process.on_end = self.machine.remove
            self.machine.add(process)

    def connected(self) -> tuple[Hearing, Hearing]:
        """Two ends of a connection that the first process has opened to the second."""
        ours, theirs = Hearing(), Hearing()
        one, other = self.processes

        async def listen() -> None:
            await other.loop.create_unix_server(lambda: theirs, PATH)

        async def connect() -> None:
            await one.loop.create_unix_connection(lambda: ours, PATH)

        other.run(other.loop.create_task, listen())
        self.machine.settle()
        one.run(one.loop.create_task, connect())
        assert self.machine.run_until(lambda: theirs.wire is not None and ours.wire is not None, 10_000)
        return ours, theirs


@pytest.mark.parametrize("seed", range(10))
def test_what_is_written_arrives_in_its_order(seed: int) -> None:
    two = Two(seed)
    ours, theirs = two.connected()
    for number in range(50):
        two.network.delays_ms = SLOW_MS if number % 7 == 0 else (0, 0, 1)
        ours.wire.write(b"%d," % number)
        two.machine.step()
    ours.wire.close()
    two.machine.advance(200_000)
    assert theirs.heard == b"".join(b"%d," % number for number in range(50))
    assert (theirs.ends, ours.ends) == ([None], [None])


def test_nobody_hears_what_is_on_its_way_when_a_connection_is_cut() -> None:
    two = Two()
    ours, theirs = two.connected()
    two.network.delays_ms = (5,)
    ours.wire.write(b"lost")
    two.network.between_processes()[0].cut()
    two.machine.advance(100)
    assert theirs.heard == b""
    assert [type(one) for one in theirs.ends + ours.ends] == [ConnectionResetError, ConnectionResetError]


def test_what_a_process_has_written_is_heard_after_its_end() -> None:
    two = Two()
    ours, theirs = two.connected()
    two.network.delays_ms = (5,)
    ours.wire.write(b"last words")
    two.processes[0].end()
    two.machine.advance(100)
    assert theirs.heard == b"last words"
    assert theirs.ends == [None]
    assert ours.ends == [], "nothing goes on in a process that has ended"


def test_nobody_is_found_where_a_process_has_ended() -> None:
    two = Two()
    two.connected()
    two.processes[1].end()
    one = two.processes[0]
    one.run(one.loop.create_task, one.loop.create_unix_connection(Hearing, PATH))
    two.machine.advance(100)
    (failure,) = one.failures
    assert failure.endswith(f"ConnectionRefusedError: nobody listens at {PATH}\n")


def test_one_that_hangs_hears_it_all_later() -> None:
    two = Two()
    ours, theirs = two.connected()
    two.processes[1].hangs = True
    ours.wire.write(b"hello")
    two.machine.advance(1000)
    assert theirs.heard == b""
    two.processes[1].hangs = False
    two.machine.advance(10)
    assert theirs.heard == b"hello"


@pytest.mark.parametrize("has_left", [True, False])
def test_a_process_ends_at_a_message(has_left: bool) -> None:
    two = Two()
    ours, theirs = two.connected()
    one = two.processes[0]
    two.network.end_at_message(one.loop, 2, one.end, has_left=has_left)
    one.run(ours.wire.write, b"first,")
    one.run(ours.wire.write, b"second")
    two.machine.advance(100)
    assert one.has_ended
    assert theirs.heard == (b"first,second" if has_left else b"first,")


def test_a_process_ends_at_a_change_and_the_other_goes_on() -> None:
    two = Two()
    one, other = two.processes
    one.storage.power_off_after(2)
    one.run(one.storage.make_dir, "/a")
    one.run(one.storage.make_dir, "/b")
    one.run(one.storage.make_dir, "/c")
    other.run(other.storage.make_dir, "/d")
    assert (one.has_ended, other.has_ended) == (True, False)
    assert two.disk.list_dir("/") == ["a", "b", "d"]


def test_all_end_when_the_machine_does() -> None:
    two = Two()
    one, other = two.processes
    two.disk.power_off_after(1)
    one.run(one.storage.make_dir, "/a")
    with pytest.raises(PowerCut):
        other.storage.list_dir("/")
    assert one.has_ended
    two.disk.die()
    assert two.disk.list_dir("/") == ["a"]
    assert not one.storage.ends_at_a_change or one.storage._changes_left < ALL


def test_others_go_on_between_two_operations_but_not_while_a_lock_is_held() -> None:
    two = Two()
    one, other = two.processes
    seen: list[str] = []
    one.storage.create("/file").close()

    def work() -> None:
        seen.append("other")
        other.loop.call_soon(work)

    other.loop.call_soon(work)
    lock = one.storage.lock_in_turn("/file")
    for _ in range(2000):
        one.storage.list_dir("/")
    assert not seen
    lock.release()
    for _ in range(2000):
        one.storage.list_dir("/")
    assert seen
