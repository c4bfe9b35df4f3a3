"""The benchmark of TLS and logins: each load against a real broker for a moment, and the table."""

import pytest

from benchmarks import security
from benchmarks.brokers import HOROLOG
from benchmarks.peer import BrokerError

A_MOMENT = security.Plan(1, 0.1, 2000)


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    root = tmp_path_factory.mktemp("secured")
    started = security.start(HOROLOG, root, security.make_certificate(root))
    yield started
    started.running.stop()


@pytest.mark.parametrize("case", security.CASES, ids=lambda case: case.name)
def test_each_load_is_measured(broker, case):
    found = security.measure(broker, case, A_MOMENT)
    assert found["count"] >= found["requests"] > 0
    assert found["cpu_s_per_million"] > 0


def test_a_wrong_password_is_no_login(broker, monkeypatch):
    monkeypatch.setattr(security, "PASSWORD", "another")
    with pytest.raises(BrokerError, match="error 58"):
        security.log_in(broker.login)


def test_the_password_is_salted_once(broker, monkeypatch):
    before = security.salted_once.cache_info()
    for _ in range(2):
        security.log_in(broker.login)
    after = security.salted_once.cache_info()
    assert after.misses - before.misses <= 1
    assert after.hits > before.hits


def test_what_one_connection_finds_wrong_ends_the_load():
    def connect():
        raise BrokerError("no")

    with pytest.raises(BrokerError):
        security.repeat(1, 0.1, connect)


def test_the_table_tells_rates_and_processor_time_beside_the_other():
    metrics = {"rate": 300.0, "cpu_s_per_million": 50.0, "p50_ms": 1.0, "p99_ms": 2.0, "client_share": 0.4}
    other = metrics | {"rate": 100.0, "cpu_s_per_million": 200.0}
    results = {case.name: {HOROLOG: [metrics], "4.3.1": [other]} for case in security.CASES}
    lines = security.table(results, [HOROLOG, "4.3.1"])
    assert len(lines) == 2 + len(security.CASES)
    assert "3.00, 0.25" in lines[2]
