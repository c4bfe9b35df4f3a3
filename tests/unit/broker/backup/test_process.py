"""The process beside a broker: its orders, its rounds, and what it says of them."""

import json
import os
import subprocess
import sys
from queue import SimpleQueue

import pytest

pytest.importorskip("obstore")

from horolog.base.clock import SystemClock
from horolog.broker.backup import process
from horolog.broker.backup.process import BackupOrders, Talk, read_on, rounds_of, serve
from horolog.broker.backup.rounds import RoundFailed
from horolog.broker.backup.silence import HeardDisk, HeardStore
from horolog.stores.faults import StoreError
from horolog.stores.opening import open_store
from tests.support import backed_up_folder
from tests.support.backed_up import BackedUp

ORDERS = {
    "url": "",
    "endpoint": "",
    "every_ms": 1_000,
    "history_ms": 60_000,
    "bytes_per_second": 0,
    "data_dirs": [],
}


NOTHING = ['{"ends": null}\n'] * 20


class Over(Exception):
    """The test has seen enough rounds."""


def served(rounds, *, times, heard=NOTHING):
    """What it says in so many rounds, and how long it pauses behind each."""
    said, paused, answers = [], [], iter(heard)
    clock = iter(range(1_000))

    def sleep(seconds):
        paused.append(seconds)
        if len(paused) == times:
            raise Over

    talk = Talk(lambda text: said.append(json.loads(text)), lambda: next(answers))
    with pytest.raises(Over):
        serve(rounds, BackupOrders(**ORDERS), talk, lambda: next(clock) * 0.25, sleep)
    return said, paused


def test_each_round_asks_where_the_logs_end():
    made = BackedUp()
    last = {topic: made.source.partitions[topic, 0].segments[-1] for topic in ("events", "table")}
    ends = json.dumps({"ends": [[topic, 0, one.base_offset, one.size_bytes] for topic, one in last.items()]}) + "\n"
    said, paused = served(made.rounds, times=2, heard=[ends, ends])
    asked, first, again, second = said
    assert (asked, again) == ({"ask": "ends"}, {"ask": "ends"})
    assert (first["moment"], first["is_exact"], second["moment"], second["shipped_bytes"]) == (0, True, 1, 0)
    assert paused == [0.75, 0.75]


def test_a_broker_that_cannot_say_where_its_logs_end():
    said, _ = served(BackedUp().rounds, times=1)
    assert [one["moment"] for one in said if "moment" in one] == [0]


@pytest.mark.parametrize("fault", [StoreError("the store is away"), RoundFailed("it changed")])
def test_a_round_that_fails_is_said_and_the_next_one_follows(fault):
    made = BackedUp()

    class Once:
        def __init__(self):
            self.failed = False

        def run(self, take_ends):
            if not self.failed:
                self.failed = True
                raise fault
            return made.rounds.run(take_ends)

    said, _ = served(Once(), times=2)
    assert said[0] == {"fault": str(fault)}
    assert said[-1]["moment"] == 0


def test_rounds_as_ordered(tmp_path):
    folder = backed_up_folder.make(tmp_path / "data")
    orders = BackupOrders(**ORDERS | {"url": f"file://{tmp_path}/copy", "data_dirs": [str(folder)]})
    now = SystemClock().monotonic
    store, disk = HeardStore(open_store(orders.url), orders.url, now), HeardDisk(now)
    done = rounds_of(orders, SystemClock(), store, disk).run()
    for one in (store, disk):
        assert repr(one.silence).endswith("since None>"), "there was an answer"
    assert done.moment.size_bytes == len(backed_up_folder.log_of(folder))


def test_the_end_of_its_input_ends_it():
    heard, ended = SimpleQueue(), []
    read_on(["a\n", "b\n"], heard, lambda: ended.append(heard.qsize()))
    assert ended == [2]


def test_a_whole_process(tmp_path):
    """It ships, and ends with its input even while it sleeps."""
    folder = backed_up_folder.make(tmp_path / "data")
    orders = ORDERS | {
        "url": f"file://{tmp_path}/copy",
        "data_dirs": [str(folder)],
        "every_ms": 3_600_000,
    }
    with subprocess.Popen(
        [sys.executable, "-m", process.__name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        child.stdin.write(json.dumps(orders) + "\n")
        child.stdin.flush()
        heard = {}
        while "moment" not in heard:
            heard = json.loads(child.stdout.readline())
            if "ask" in heard:
                child.stdin.write('{"ends": []}\n')
                child.stdin.flush()
        assert heard["moment"] == 0
        while heard != {"alive": True}:  # it pauses, and says so
            heard = json.loads(child.stdout.readline())
        child.stdin.close()
        assert child.wait(timeout=30) == 0


def test_the_main_function(monkeypatch):
    """With a round that ends it: what it reads, says and is nice about."""
    niceness, said = [], []

    def rounds(orders, *_):
        raise Over(orders)

    class Out:
        write, flush = said.append, staticmethod(lambda: said.append("flushed"))

    monkeypatch.setattr(process.signal, "signal", lambda *_: None)
    monkeypatch.setattr(os, "nice", niceness.append)
    monkeypatch.setattr(os, "_exit", lambda _: None)
    monkeypatch.setattr(sys, "stdin", [json.dumps(ORDERS | {"url": "file:///copy"}) + "\n"])
    monkeypatch.setattr(sys, "stdout", Out)
    monkeypatch.setattr(process, "look_on", lambda *_: None)
    monkeypatch.setattr(process, "rounds_of", rounds)
    monkeypatch.setattr(process, "serve", lambda rounds, orders, talk, *_: talk.say({"moment": 1}))
    with pytest.raises(Over):
        process.main()
    monkeypatch.setattr(process, "rounds_of", lambda *_: None)
    process.main()
    assert niceness == [process.NICENESS] * 2
    assert said == ['{"moment": 1}\n', "flushed"]


def test_what_does_not_answer_is_said_beside_a_round(monkeypatch):
    """The thread that looks says it, while the one that serves waits."""
    said = SimpleQueue()

    class Out:
        write, flush = staticmethod(said.put), staticmethod(lambda: None)

    monkeypatch.setattr(process.signal, "signal", lambda *_: None)
    monkeypatch.setattr(os, "nice", lambda _: None)
    monkeypatch.setattr(os, "_exit", lambda _: None)
    monkeypatch.setattr(sys, "stdin", [json.dumps(ORDERS | {"url": "file:///copy"}) + "\n"])
    monkeypatch.setattr(sys, "stdout", Out)
    monkeypatch.setattr(process, "rounds_of", lambda *_: None)
    monkeypatch.setattr(process, "serve", lambda *_: None)
    monkeypatch.setattr(process, "look_on", lambda silences, say, sleep: say({"fault": list(map(str, silences))}))
    process.main()
    assert json.loads(said.get(timeout=20)) == {
        "fault": [
            "<Silence: no request to the store has succeeded since None>",
            "<Silence: the disk has not answered since None>",
        ]
    }
