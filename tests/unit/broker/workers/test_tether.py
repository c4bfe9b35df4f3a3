"""The supervisor's end of a link: each word is a call, and silence is counted in questions."""

import asyncio
import json
import socket

import pytest

from horolog.broker.cluster.link import encode
from horolog.broker.workers.tether import MOST_UNANSWERED, Tether
from tests.support.waiting import until


class Heard:
    """Keeps the calls."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *values: self.calls.append((name, *values))

    def __repr__(self):
        return "worker 2"


async def connected():
    """A tether, who hears it, and the worker's end of its link."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    heard = Heard()
    tether = Tether(heard)
    await tether.connect(ours, asyncio.get_running_loop())
    return tether, heard, theirs


@pytest.fixture
async def ends():
    tether, heard, theirs = await connected()
    reader, writer = await asyncio.open_connection(sock=theirs)
    yield tether, heard, reader, writer
    writer.close()
    tether.connection_lost(None)


async def test_what_a_worker_says_becomes_calls(ends):
    _, heard, _, writer = ends
    said = [
        ("settled",),
        ("ready",),
        ("failed", "no", 2),
        ("stopping",),
        ("journal", 7),
        ("applied", 8),
        ("ends", 2, None),
    ]
    writer.write(b"".join(encode(*one) for one in said))
    writer.close()
    await until(lambda: len(heard.calls) == 8)
    assert heard.calls == [*said, ("gone",)]


async def test_last_words_are_heard_though_nobody_hears_the_orders():
    """A write to a link that has been closed ends it before what lies in it is read."""
    tether, heard, theirs = await connected()
    theirs.sendall(encode("settled") + encode("failed", "the port is taken", 7))
    theirs.close()
    tether.begin({"a": 1})
    await until(lambda: ("gone",) in heard.calls)
    assert heard.calls == [("settled",), ("failed", "the port is taken", 7), ("gone",)]


async def test_last_words_that_nobody_knows_do_not_keep_its_end_from_being_told():
    tether, heard, theirs = await connected()
    theirs.sendall(encode("sings"))
    theirs.close()
    with pytest.raises(ValueError, match="sings"):
        tether.connection_lost(None)
    assert heard.calls == [("gone",)]


async def test_what_the_supervisor_says_arrives(ends):
    tether, _, reader, _ = ends
    tether.begin({"a": 1})
    tether.go()
    tether.live(frozenset({3, 2}))
    tether.journal(7)
    tether.applied(3, 7)
    tether.stand(4)
    async with asyncio.timeout(60):
        lines = [json.loads(await reader.readline()) for _ in range(6)]
    assert lines == [["begin", {"a": 1}], ["go"], ["live", [2, 3]], ["journal", 7], ["applied", 3, 7], ["stand", 4]]


async def test_nothing_is_said_before_the_orders(ends):
    """The first worker may have settled the folder while the link of the second is being made."""
    tether, _, reader, _ = ends
    tether.go()
    tether.live(frozenset({1}))
    tether.begin({"a": 1})
    tether.journal(1)
    async with asyncio.timeout(60):
        lines = [json.loads(await reader.readline()) for _ in range(4)]
    assert lines == [["begin", {"a": 1}], ["go"], ["live", [1]], ["journal", 1]]


async def test_silence_is_counted_in_questions(ends):
    tether, _, _, writer = ends
    for _ in range(MOST_UNANSWERED):
        assert not tether.is_silent()
    assert tether.is_silent()
    assert repr(tether) == f"<Tether of worker 2, {MOST_UNANSWERED} unanswered>"
    writer.write(encode("pong"))
    await until(lambda: ", 0 unanswered" in repr(tether))
    assert not tether.is_silent()


async def test_nobody_is_told_anything_when_the_worker_has_gone(ends):
    tether, heard, _, writer = ends
    writer.close()
    await until(lambda: heard.calls == [("gone",)])
    tether.go()
    assert not tether.is_silent()


async def test_a_word_that_it_does_not_know_is_a_fault_of_ours(ends):
    with pytest.raises(ValueError, match="says sing"):
        ends[0].data_received(encode("sing"))
