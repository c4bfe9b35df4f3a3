"""A standstill counts if all workers stood still at one instant."""

import asyncio
import socket
import threading
from time import monotonic

import pytest

from horolog.broker.workers import standstill
from horolog.broker.workers.standstill import ALL_STAND, Standstills, socket_of, stand_still
from tests.support.waiting import until

WITHIN_S = 30.0


class Worker:
    """Stands still in a thread, as a worker does in its loop, and says where its log ends."""

    def __init__(self, company, name):
        self.company = company
        self.name = name
        self.within_s = WITHIN_S
        self.stood = []

    def stand(self, number):
        self.company.begin(lambda: self._stand(number))

    def _stand(self, number):
        stood = stand_still(self.company.folder, number, monotonic, self.within_s)
        self.stood.append(stood)
        ends = [(self.name, 0, 0, number)] if stood else None
        self.company.loop.call_soon_threadsafe(self.company.standstills.ends, number, ends)


class Deaf(Worker):
    """Never stands still."""

    def stand(self, number):
        self.stood.append(False)


class Company:
    def __init__(self, folder):
        self.folder = str(folder)
        self.threads = []
        self.loop = asyncio.get_running_loop()
        self.workers = [Worker(self, "a"), Worker(self, "b"), Worker(self, "c")]
        self.standstills = Standstills(self.folder, self.loop, lambda: self.workers)

    def begin(self, function):
        self.threads.append(threading.Thread(target=function, daemon=True))
        self.threads[-1].start()

    async def taken(self):
        found = []
        self.standstills.take(found.append)
        await until(lambda: found)
        return found[0]


@pytest.fixture
async def company(tmp_path):
    one = Company(tmp_path / "sockets")
    await one.standstills.start()
    yield one
    one.standstills.stop()
    for thread in one.threads:
        await asyncio.to_thread(thread.join, WITHIN_S)


async def test_all_stand_still_and_say_where_their_logs_end(company):
    for number in (1, 2):
        assert sorted(await company.taken()) == [("a", 0, 0, number), ("b", 0, 0, number), ("c", 0, 0, number)]


async def test_without_workers_there_are_no_ends(company):
    company.workers = []
    assert await company.taken() == []


async def test_one_that_does_not_stand_still_keeps_the_others_only_so_long(company):
    company.workers[1] = Deaf(company, "b")
    for one in company.workers:
        one.within_s = 0.05
    assert await company.taken() is None
    await until(lambda: all(one.stood == [False] for one in company.workers))
    company.workers[1] = Worker(company, "b")
    for one in company.workers:
        one.within_s = WITHIN_S
    assert len(await company.taken()) == 3


async def test_one_that_has_given_up_before_all_stood_still_makes_it_count_for_nothing(company):
    """The others hear that all stand, for it was connected; what it reports shows that it was not."""
    hasty = company.workers[0] = Worker(company, "a")
    hasty.within_s = 0.01
    late = company.workers[2]
    begun = threading.Event()

    def stand(number):
        company.begin(lambda: (begun.wait(WITHIN_S), late._stand(number)))

    late.stand = stand
    found = []
    company.standstills.take(found.append)
    await until(lambda: hasty.stood == [False])
    begun.set()
    await until(lambda: found)
    assert found == [None]


async def test_a_worker_that_ends_leaves_it_without_an_answer(company, monkeypatch):
    monkeypatch.setattr(standstill, "ANSWERS_WITHIN_S", 0.05)
    company.workers = [Deaf(company, "a")]
    assert await company.taken() is None


async def test_the_next_one_ends_the_one_before(company):
    company.workers = [Deaf(company, "a")]
    found = []
    company.standstills.take(found.append)
    company.workers = []
    company.standstills.take(found.append)
    assert found == [None, []]


async def test_answers_to_an_earlier_one_are_not_heard(company):
    company.workers = [Deaf(company, "a")]
    found = []
    company.standstills.take(found.append)
    company.standstills.ends(7, [("a", 0, 0, 1)])
    assert found == []
    assert not await asyncio.to_thread(stand_still, company.folder, 7, monotonic, WITHIN_S), "its connection is closed"
    company.standstills.ends(1, [("a", 0, 0, 1)])
    company.standstills.ends(1, [("a", 0, 0, 1)])
    assert found == [[("a", 0, 0, 1)]]


async def test_a_stop_ends_it(company):
    company.workers = [Deaf(company, "a")]
    found = []
    company.standstills.take(found.append)
    assert repr(company.standstills) == "<Standstills, 1 so far, 0 of 1 workers are in it>"
    company.standstills.stop()
    assert found == [None]


def test_a_wait_for_the_supervisor_is_part_of_the_time(tmp_path):
    clock = iter([0.0, WITHIN_S + 1])
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(socket_of(str(tmp_path)))
        server.listen()
        assert not stand_still(str(tmp_path), 5, lambda: next(clock), WITHIN_S)
    assert next(clock, None) is None


def test_without_a_supervisor_nothing_stands_still(tmp_path):
    assert not stand_still(str(tmp_path), 1, monotonic)


async def test_a_number_may_come_in_pieces(company):
    company.workers = [Deaf(company, "a")]
    found = []
    company.standstills.take(found.append)
    reader, writer = await asyncio.open_unix_connection(socket_of(company.folder))
    connections = company.standstills._connected
    for piece, count in ((b"", 0), (b"1", 0), (b"\n", 1)):
        writer.write(piece)
        await until(lambda count=count: len(connections) == count)
    async with asyncio.timeout(WITHIN_S):
        assert await reader.read(1) == ALL_STAND
    writer.close()


def test_a_worker_waits_with_its_whole_thread(tmp_path):
    """Until the byte comes; a supervisor that goes lets it go on."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(socket_of(str(tmp_path)))
        server.listen()
        found = []
        for answer in (ALL_STAND, b""):
            waiting = threading.Thread(target=lambda: found.append(stand_still(str(tmp_path), 5, monotonic, WITHIN_S)))
            waiting.start()
            connection, _ = server.accept()
            assert connection.recv(10) == b"5\n"
            assert waiting.is_alive()
            connection.sendall(answer)
            connection.close()
            waiting.join(WITHIN_S)
        assert found == [True, False]
