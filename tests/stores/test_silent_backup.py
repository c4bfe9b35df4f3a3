"""A backup whose store or disk does not answer, or whose process is stopped: the broker says so within half a minute, until it goes on."""

import json
import os
import signal
import urllib.request

import pytest

pytest.importorskip("obstore")
pytest.importorskip("confluent_kafka")

from urllib.parse import urlsplit

from confluent_kafka import Producer

from benchmarks.process import children, free_ports
from tests.support import s3_server, store_proxy
from tests.support.broker_process import BrokerProcess
from tests.support.store_proxy import FINE, HELD
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

WITHIN_S = 60
FAILS = "the backup fails: no request to the store has succeeded for 15 s: "


class Watched:
    """A broker as its HTTP port shows it."""

    def __init__(self, port):
        self._at = f"http://127.0.0.1:{port}"

    def _get(self, path):
        with urllib.request.urlopen(self._at + path, timeout=20) as answer:
            return answer.read().decode()

    def figure(self, name):
        lines = dict(one.rsplit(" ", 1) for one in self._get("/metrics").splitlines() if not one.startswith("#"))
        return float(lines[f"horolog_backup_{name}"])

    def warnings(self):
        """Those of the backup; the broker is ready."""
        found = json.loads(self._get("/ready"))
        assert found["ready"], found
        return [one for one in found["warnings"] if "backup" in one]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_store_that_never_answers_is_said_and_what_was_missed_follows(s3_folder, monkeypatch, workers):
    with s3_server.running(s3_folder) as server, store_proxy.running(urlsplit(server.endpoint).port) as proxy:
        server.enter(monkeypatch)
        monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
        http = free_ports(1)[0]
        settings = {
            "horolog.backup.store": server.url("backup"),
            "horolog.backup.store.endpoint": proxy.endpoint,
            "horolog.backup.ms": "1000",
            "horolog.http.listen": f"127.0.0.1:{http}",
            "horolog.workers": str(workers),
        }
        proxy.weather = HELD  # from the start on: no round has begun yet
        broker, watched = BrokerProcess(s3_folder / "data", settings), Watched(http)
        broker.start()
        try:
            wait_until(lambda: watched.figure("failures_total") >= 1, WITHIN_S)
            assert watched.figure("moments_total") == 0
            assert watched.figure("age_seconds") >= 15
            (warning,) = watched.warnings()
            assert FAILS in warning
            assert "it has made no moment since the start" in warning
            proxy.weather = FINE
            wait_until(lambda: watched.figure("moments_total") >= 2, WITHIN_S)
            assert watched.warnings() == []
            assert watched.figure("age_seconds") < 15
            failures = watched.figure("failures_total")
            proxy.weather = HELD
            producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
            producer.produce("t", b"v")
            assert producer.flush(WITHIN_S) == 0, "the broker does not wait for its backup"
            wait_until(lambda: watched.figure("failures_total") > failures, WITHIN_S)
            (warning,) = watched.warnings()
            assert FAILS in warning
            assert "its newest moment is" in warning
            size = watched.figure("bytes_total")
            proxy.weather = FINE
            wait_until(lambda: watched.figure("bytes_total") > size, WITHIN_S)
            wait_until(lambda: watched.warnings() == [], WITHIN_S)
            assert broker.log().count("no request to the store has succeeded") == 2, "once for each time"
        finally:
            broker.kill()


class Backed:
    """A running broker with a backup into a folder."""

    def __init__(self, folder):
        http = free_ports(1)[0]
        settings = {
            "horolog.backup.store": f"file://{folder}/copy",
            "horolog.backup.ms": "1000",
            "horolog.http.listen": f"127.0.0.1:{http}",
        }
        self.broker, self.watched = BrokerProcess(folder / "data", settings), Watched(http)
        self.broker.start()
        self.producer = Producer({"bootstrap.servers": self.broker.address, "log_level": 0})

    def produce(self):
        self.producer.produce("t", b"v")
        assert self.producer.flush(WITHIN_S) == 0, "the broker does not wait for its backup"

    def has_failed(self, fault):
        """Whether the broker's HTTP port and its log show it, and both only once."""
        wait_until(lambda: self.watched.figure("failures_total") >= 1, WITHIN_S)
        (warning,) = self.watched.warnings()
        assert fault in warning
        assert self.broker.log().count(fault) == 1
        return True

    def goes_on(self):
        moments = self.watched.figure("moments_total")
        wait_until(lambda: self.watched.figure("moments_total") > moments, WITHIN_S)
        wait_until(lambda: self.watched.warnings() == [], WITHIN_S)
        return self.watched.figure("failures_total") == 1


@pytest.fixture
def backed(tmp_path):
    made = Backed(tmp_path)
    yield made
    made.broker.stop()


def test_a_process_that_is_stopped_is_noticed_until_it_goes_on(backed):
    backed.produce()
    wait_until(lambda: backed.watched.figure("moments_total") >= 1, WITHIN_S)
    (process,) = children(backed.broker.pid)
    os.kill(process, signal.SIGSTOP)
    try:
        assert backed.has_failed("its process has given no sign of life for 15 s")
        backed.produce()
    finally:
        os.kill(process, signal.SIGCONT)
    assert backed.goes_on()


def test_a_disk_that_does_not_answer_is_noticed_until_it_does(backed, tmp_path):
    """A pipe in the place of a small file lets its reader hang: the broker read that file as it started."""
    backed.produce()
    wait_until(lambda: backed.watched.figure("moments_total") >= 1, WITHIN_S)
    path = tmp_path / "data" / "t-0" / "leader-epoch-checkpoint"
    content = path.read_bytes()
    path.unlink()
    os.mkfifo(path)
    backed.produce()
    assert backed.has_failed(f"the disk has not answered for 15 s: reading {path}")
    backed.produce()
    aside = path.with_name("pipe")
    path.rename(aside)
    path.write_bytes(content)
    aside.write_bytes(content)
    assert backed.goes_on()
