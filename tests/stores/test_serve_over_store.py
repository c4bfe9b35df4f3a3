"""`horolog serve` with a store in its settings: two processes are one cluster, say how they are, and stop without a trace."""

import json
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

pytest.importorskip("obstore")
pytest.importorskip("confluent_kafka")

from confluent_kafka.admin import AdminClient, NewTopic

from tests.stores.test_three_brokers import QUIET, WITHIN_S, free_port
from tests.support.style import PROJECT
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow


class Served:
    """One process of the command."""

    def __init__(self, folder, node, *more):
        self.port, self.http = free_port(), free_port()
        self.address = f"127.0.0.1:{self.port}"
        given = {
            "node.id": node,
            "horolog.store": f"file://{folder}/store",
            "horolog.store.flush.ms": 10,
            "horolog.http.listen": f"127.0.0.1:{self.http}",
            "broker.rack": f"rack{node}",
        }
        words = [f"{key}={value}" for key, value in given.items()]
        words = [word for one in (*words, *more) for word in ("--set", one)]
        command = [sys.executable, "-m", "horolog", "serve", "--listen", self.address, "--data", f"{folder}/{node}"]
        self.process = subprocess.Popen(
            [*command, *words], cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def get(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http}{path}", timeout=WITHIN_S) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.read().decode()

    def is_ready(self):
        return json.loads(self.get("/ready"))["ready"]

    def stop(self):
        self.process.terminate()
        _, said = self.process.communicate(timeout=WITHIN_S)
        return self.process.returncode, said


@pytest.mark.timeout(200)
def test_two_processes_with_a_store_are_one_cluster(tmp_path):
    (tmp_path / "store").mkdir()
    brokers = []
    try:
        for node in (1, 2):
            brokers.append(Served(tmp_path, node, "horolog.replication.factor.accept=true"))
            assert "ready on" in brokers[-1].process.stdout.readline()
        first, second = brokers
        admin = AdminClient({"bootstrap.servers": first.address, **QUIET})
        admin.create_topics([NewTopic("t", 4, 3)])["t"].result(WITHIN_S)
        found = admin.describe_cluster(request_timeout=WITHIN_S).result(WITHIN_S).nodes
        assert {(node.id, node.rack) for node in found} == {(1, "rack1"), (2, "rack2")}
        leaders = {one.leader for one in admin.list_topics("t", timeout=WITHIN_S).topics["t"].partitions.values()}
        assert leaders == {1, 2}
        wait_until(lambda: first.is_ready() and second.is_ready(), pause_s=0.05)
        metrics = second.get("/metrics")
        assert "\nhorolog_store_member_brokers 2\n" in metrics
        assert '\nhorolog_store_requests_total{kind="create",outcome="done"} ' in metrics
        assert "\nhorolog_store_takeover_seconds_count " in metrics
        code, said = brokers.pop().stop()
        assert code == 0
        assert "experimental" in said
        wait_until(lambda: "\nhorolog_store_member_brokers 1\n" in first.get("/metrics"), pause_s=0.05)
    finally:
        codes = [one.stop()[0] for one in brokers]
    assert codes == [0]


def test_a_store_that_is_none_ends_the_start_in_one_line(tmp_path):
    broker = Served(tmp_path, 1, "horolog.store=ftp://b/p")
    _, said = broker.process.communicate(timeout=WITHIN_S)
    assert (broker.process.returncode, said.splitlines()[-1]) == (
        2,
        "horolog: horolog.store: ftp://b/p: expected s3://BUCKET/FOLDER, gs://, az:// or file:///FOLDER",
    )
