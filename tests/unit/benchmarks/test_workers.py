"""What several workers give: whom each connection goes to, whose processor time counts, and the table."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import peer, process, workers
from benchmarks.brokers import Running


def results(*rates):
    metrics = {"p50_ms": 1.0, "p99_ms": 2.0, "broker_share": 1.5, "client_share": 0.4}
    by = {f"horolog-{count}": [{"rate": rate, **metrics}] for count, rate in enumerate(rates, 1)}
    return {case.name: by for case in workers.CASES}


def test_the_table_tells_each_rate_beside_the_first_and_who_took_the_cores():
    lines = workers.table(results(1000.0, 1600.0, 500.0), ["horolog-1", "horolog-2", "horolog-3"])
    assert len(lines) == 2 + len(workers.CASES)
    assert "1.60, 0.50" in lines[2]
    assert "1.50 cores, generator 0.40" in lines[2]


def test_one_broker_alone_is_beside_nobody():
    assert workers.table(results(1000.0), ["horolog-1"])[2].split("|")[-2].strip() == "-"


def test_brokers_and_their_load_have_cores_of_their_own(monkeypatch, tmp_path):
    has, started_on = [{0, 1, 2}], []
    monkeypatch.setattr("os.sched_getaffinity", lambda _: has[0])
    monkeypatch.setattr("os.sched_setaffinity", lambda _, cores: has.append(set(cores)))
    monkeypatch.setattr(workers.brokers, "start", lambda *_: started_on.append(has[-1]))
    workers.start(tmp_path, [1, 2], None, apart=True)
    assert (started_on, has[-1]) == ([{0}, {0}], {1, 2})
    has[0] = {0}
    with pytest.raises(process.StartError):
        workers.start(tmp_path, [1], None, apart=True)


def test_connections_go_to_the_leaders_of_their_partitions(monkeypatch):
    class Asked:
        def __init__(self, address):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def placement(self, topics):
            return peer.Placed({1: "a:1", 2: "b:2"}, {topics[0]: {n: 1 + n % 2 for n in range(workers.PARTITIONS)}})

    monkeypatch.setattr(workers, "Peer", Asked)
    for case in workers.CASES:
        found = workers.targets("any:0", "t", case)
        assert [address for address, _ in found] == [("a:1", "b:2")[n % 2] for n in range(case.connections)]
        assert len({load.frames[0] for _, load in found}) == workers.PARTITIONS


def test_the_processor_time_of_workers_is_their_brokers():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        broker = workers.Broker("horolog-2", Running("horolog-2", "a:1", os.getpid(), Path(), 0.0))
        assert {os.getpid(), child.pid} <= set(broker.pids)
        assert broker.cpu_seconds() >= process.fine_cpu_seconds(os.getpid()) * 0.5
    finally:
        child.kill()
        child.wait(60)


def test_a_broker_that_does_not_start_is_told(monkeypatch, capsys):
    def refuse(*_):
        raise process.StartError("it ended at once")

    monkeypatch.setattr(workers.brokers, "start", refuse)
    assert workers.main(["1", "2"]) == 1
    assert "it ended at once" in capsys.readouterr().err


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_broker_is_named_by_its_workers(count):
    assert workers.name_of(count) == f"horolog-{count}"
