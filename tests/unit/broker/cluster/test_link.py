"""A worker's side of its link: what it says arrives, and it waits for the others no longer than it has to."""

import asyncio
import json
import socket

import pytest

from horolog.broker.cluster import link as link_module
from horolog.broker.cluster.link import Lines, WorkerLink, encode, receive_orders
from tests.support.waiting import until


class Supervisor:
    """The other end, by hand."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer

    def say(self, word, *values):
        self.writer.write(encode(word, *values))

    async def hear(self):
        async with asyncio.timeout(60):
            return json.loads(await self.reader.readline())


@pytest.fixture
async def ends():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    link = WorkerLink(1, asyncio.get_running_loop(), asyncio.get_running_loop().time)
    await link.connect(ours)
    reader, writer = await asyncio.open_connection(sock=theirs)
    yield link, Supervisor(reader, writer)
    writer.close()
    await link.close()


def test_messages_come_out_of_bytes_however_they_are_cut():
    data = encode("live", [1, 2]) + encode("go") + encode("applied", 2, 7)
    lines = Lines()
    found = [message for byte in data for message in lines.feed(bytes([byte]))]
    assert found == [["live", [1, 2]], ["go"], ["applied", 2, 7]]
    assert Lines().feed(data) == found
    assert Lines().feed(b"") == []


class TestOrders:
    @pytest.fixture
    def pair(self):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            yield ours, theirs

    def test_they_come_first_and_nothing_behind_them_is_taken(self, pair):
        ours, theirs = pair
        theirs.sendall(encode("begin", {"a": "b" * 100_000}) + encode("go"))
        assert receive_orders(ours) == {"a": "b" * 100_000}
        assert ours.recv(100) == encode("go")

    def test_a_supervisor_that_goes_before_it_says_anything(self, pair):
        ours, theirs = pair
        theirs.sendall(b"[")
        theirs.close()
        with pytest.raises(ConnectionError, match="ended"):
            receive_orders(ours)

    def test_a_supervisor_that_says_something_else_first(self, pair):
        ours, theirs = pair
        theirs.sendall(encode("go", 1))
        with pytest.raises(ConnectionError, match="says go before"):
            receive_orders(ours)


async def test_what_a_worker_says(ends):
    link, supervisor = ends
    link.settled()
    link.ready()
    link.failed("no port", 1)
    link.stopping()
    link.applied(7)
    heard = [await supervisor.hear() for _ in range(5)]
    assert heard == [["settled"], ["ready"], ["failed", "no port", 1], ["stopping"], ["applied", 7]]
    assert repr(link) == "<WorkerLink of 1, live are [1]>"


async def test_it_answers_when_it_is_asked_whether_it_is_there(ends):
    _, supervisor = ends
    supervisor.say("ping")
    assert await supervisor.hear() == ["pong"]


async def test_amid_long_work_it_says_once_in_a_while_that_it_goes_on(ends, monkeypatch):
    link, supervisor = ends
    link.goes_on()
    link.applied(1)
    assert await supervisor.hear() == ["applied", 1]
    monkeypatch.setattr(link_module, "GOES_ON_EVERY_S", 0.0)
    link.goes_on()
    assert await supervisor.hear() == ["pong"]


async def test_it_goes_when_it_is_told(ends):
    link, supervisor = ends
    going = asyncio.create_task(link.go())
    await asyncio.sleep(0)
    assert not going.done()
    supervisor.say("go")
    async with asyncio.timeout(60):
        await going


async def test_it_does_not_go_when_the_supervisor_goes_first(ends):
    link, supervisor = ends
    lost = []
    link.on_lost = lambda: lost.append(True)
    supervisor.writer.close()
    with pytest.raises(ConnectionError):
        await asyncio.wait_for(link.go(), 60)
    assert lost == [True]
    link.ready()  # nobody hears it
    await link.close()


async def test_who_lives_is_told_once_for_each_change_and_it_is_one_of_them(ends):
    link, supervisor = ends
    told = []
    link.on_live_changed = told.append
    for live in ([1, 2], [2, 1], [2], [2, 3]):
        supervisor.say("live", live)
    await until(lambda: link.live == {1, 2, 3})
    assert told == [{1, 2}, {1, 2, 3}]


async def test_another_has_written_the_journal(ends):
    link, supervisor = ends
    told = []
    link.on_journal = told.append
    supervisor.say("journal", 12)
    await until(lambda: told == [12])


async def test_it_stands_still_when_it_is_asked_and_says_where_its_logs_end(ends):
    link, supervisor = ends
    supervisor.say("stand", 3)
    assert await supervisor.hear() == ["ends", 3, None], "without a backup it says nothing of its logs"
    link.on_stand = lambda number: [("t", 0, 0, number)]
    supervisor.say("stand", 4)
    assert await supervisor.hear() == ["ends", 4, [["t", 0, 0, 4]]]


async def test_a_word_that_it_does_not_know_is_a_fault_of_ours(ends):
    link, _ = ends
    with pytest.raises(ValueError, match="says sing"):
        link.data_received(encode("sing"))


class TestJournalIsAt:
    async def test_alone_it_waits_for_nobody(self, ends):
        link, supervisor = ends
        told = []
        link.journal_is_at(3, lambda: told.append(3))
        assert told == [3]
        assert await supervisor.hear() == ["journal", 3]

    async def test_it_waits_until_all_that_live_have_applied_it(self, ends):
        link, supervisor = ends
        supervisor.say("live", [1, 2, 3])
        await until(lambda: len(link.live) == 3)
        told = []
        link.journal_is_at(3, lambda: told.append(3))
        link.journal_is_at(4, lambda: told.append(4))
        for node, number in ((2, 2), (2, 4), (3, 3)):
            supervisor.say("applied", node, number)
        await until(lambda: told)
        assert told == [3], "the third node is at 3"
        supervisor.say("applied", 3, 4)
        await until(lambda: told == [3, 4])

    async def test_one_that_has_read_on_by_itself_is_not_waited_for(self, ends):
        link, supervisor = ends
        supervisor.say("live", [1, 2])
        supervisor.say("applied", 2, 9)
        await until(lambda: link.applied_by(2) == 9)
        assert link.applied_by(3) == 0
        told = []
        link.journal_is_at(9, lambda: told.append(9))
        assert told == [9]

    async def test_one_that_ends_is_not_waited_for(self, ends):
        link, supervisor = ends
        supervisor.say("live", [1, 2])
        await until(lambda: len(link.live) == 2)
        told = []
        link.journal_is_at(3, lambda: told.append(3))
        assert told == []
        supervisor.say("live", [1])
        await until(lambda: told == [3])

    async def test_one_that_is_slow_is_waited_for_so_long(self, ends, monkeypatch, caplog):
        monkeypatch.setattr(link_module, "APPLIED_WITHIN_S", 0.02)
        link, supervisor = ends
        supervisor.say("live", [1, 2])
        await until(lambda: len(link.live) == 2)
        told = []
        link.journal_is_at(3, lambda: told.append(3))
        await until(lambda: told == [3])
        assert "workers [2] did not apply entry 3" in caplog.text
        supervisor.say("applied", 2, 3)
        await until(lambda: link._others_at == {2: 3})
        assert told == [3], "nobody is told twice"
