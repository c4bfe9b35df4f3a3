"""Tests on several workers: which of them run, and how many workers a broker gets."""

import pytest

from tests.conftest import is_chosen, is_run
from tests.support.broker_process import WORKER_PORTS, WORKERS, WORKERS_VARIABLE, BrokerNotReadyError, BrokerProcess

NAMES = [f"tests/wire/test_prober.py::test_case[{number}]" for number in range(300)]


def test_a_seed_chooses_a_third_of_the_tests_and_others_choose_others():
    parts = [{name for name in NAMES if is_chosen(str(seed), name)} for seed in range(30)]
    assert all(70 < len(part) < 130 for part in parts)
    assert set().union(*parts) == set(NAMES)
    assert parts[0] == {name for name in NAMES if is_chosen("0", name)}


@pytest.mark.parametrize("is_long", [False, True])
def test_without_a_seed_every_test_runs(is_long):
    assert all(is_run(name, is_long=is_long, part_of=None, long_part_of=None) for name in NAMES)


def test_of_the_long_tests_alone_a_third_runs():
    assert all(is_run(name, is_long=False, part_of=None, long_part_of="7") for name in NAMES)
    chosen = {name for name in NAMES if is_run(name, is_long=True, part_of=None, long_part_of="7")}
    assert chosen == {name for name in NAMES if is_chosen("7", name)}


def test_a_third_of_all_tests_has_a_third_of_the_long_ones():
    for is_long in (False, True):
        chosen = {name for name in NAMES if is_run(name, is_long=is_long, part_of="7", long_part_of="8")}
        assert chosen == {name for name in NAMES if is_chosen("7", name)}


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
