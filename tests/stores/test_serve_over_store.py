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

    def __init__(self, folder, node, *more, address=None):
        self.http = free_port()
        self.address = address or f"127.0.0.1:{free_port()}"
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


def members_of(folder):
    """The brokers of the cluster, by the journal in the store."""
    listed = [sys.executable, "-m", "horolog", "store", "ls", f"file://{folder}/store"]
    said = subprocess.run(listed, cwd=PROJECT, capture_output=True, text=True, timeout=WITHIN_S, check=True).stdout
    _, _, *lines = said.partition("\ntopic ")[0].splitlines()
    return {int(line.split()[0]) for line in lines}


@pytest.mark.timeout(200)
def test_a_broker_that_cannot_start_is_no_member_of_the_cluster(tmp_path):
    """Brokers 3 and 4 have registered when they find out."""
    (tmp_path / "store").mkdir()
    first = Served(tmp_path, 1)
    try:
        assert "ready on" in first.process.stdout.readline()
        (tmp_path / "2").mkdir()
        (tmp_path / "2" / "meta.properties").write_text("version=1\nnode.id=7\ncluster.id=AAAAAAAAAAAAAAAAAAAAAQ\n")
        for node, address, setting, reason in (
            (2, None, "broker.rack=r", "belongs to node.id=7, but this broker has node.id=2"),
            (3, None, f"horolog.http.listen=127.0.0.1:{first.http}", f"127.0.0.1:{first.http}: address already in use"),
            (4, first.address, "broker.rack=r", f"{first.address}: address already in use"),
        ):
            refused = Served(tmp_path, node, setting, address=address)
            _, said = refused.process.communicate(timeout=WITHIN_S)
            assert refused.process.returncode == 1
            assert reason in said
            assert members_of(tmp_path) == {1}
    finally:
        assert first.stop()[0] == 0
