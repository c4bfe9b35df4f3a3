"""Tests on several workers: how many workers a broker gets, and how it reports one that does not start."""

import pytest

from tests.support.broker_process import WORKER_PORTS, WORKERS, WORKERS_VARIABLE, BrokerNotReadyError, BrokerProcess


def test_brokers_have_as_many_workers_as_the_run_says_unless_a_test_says_how_many(monkeypatch, tmp_path):
    monkeypatch.delenv(WORKERS_VARIABLE, raising=False)
    assert not any(WORKERS in word for word in BrokerProcess(tmp_path).command())
    monkeypatch.setenv(WORKERS_VARIABLE, "2")
    assert f"{WORKERS}=2" in BrokerProcess(tmp_path).command()
    command = BrokerProcess(tmp_path, {WORKERS: "3"}).command()
    assert [word for word in command if WORKERS in word] == [f"{WORKERS}=3"]


def test_workers_take_no_ports_that_somebody_else_may_have(monkeypatch, tmp_path):
    monkeypatch.setenv(WORKERS_VARIABLE, "2")
    assert f"{WORKER_PORTS}=PLAINTEXT:0" in BrokerProcess(tmp_path).command()
    listeners = {"listeners": "OPEN://127.0.0.1:1024,USERS://127.0.0.1:1025"}
    assert f"{WORKER_PORTS}=OPEN:0,USERS:0" in BrokerProcess(tmp_path, listeners).command()


def test_a_start_that_fails_is_told_with_its_status(tmp_path):
    with pytest.raises(BrokerNotReadyError, match=r"exit status 2\b"):
        BrokerProcess(tmp_path / "data", {"listeners": "nonsense"}).start()
