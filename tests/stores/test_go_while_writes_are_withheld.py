"""The store of three brokers takes no writes for a while: producers, transactions and members of groups of franz-go go on by themselves."""

import subprocess
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

pytest.importorskip("obstore")
pytest.importorskip("confluent_kafka")

from tests.interop.toolchains import go_program
from tests.stores.test_three_brokers import WITHIN_S, three_brokers
from tests.support import s3_server, store_proxy

PARTITIONS = 3


@pytest.mark.timeout(600)
def test_what_clients_were_told_holds_after_writes_were_withheld(s3_folder, monkeypatch):
    program = go_program("withheld")(s3_folder)
    with ExitStack() as stack:
        server = stack.enter_context(s3_server.running(s3_folder))
        proxy = stack.enter_context(store_proxy.running(urlsplit(server.endpoint).port))
        server.enter(monkeypatch)
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        cluster, _ = stack.enter_context(three_brokers(s3_folder, {"t": PARTITIONS}, url="s3://lake/cluster"))
        errors = stack.enter_context((s3_folder / "errors").open("w+"))
        go = subprocess.Popen(
            [*program, cluster.servers, "t"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        stack.callback(go.wait)
        stack.callback(go.kill)

        def told(line=""):
            if line:
                go.stdin.write(f"{line}\n")
                go.stdin.flush()
            return go.stdout.readline()

        assert told() == "going\n", (s3_folder / "errors").read_text()[-2000:]
        proxy.weather = store_proxy.READABLE
        assert told("held") == "waited\n"
        proxy.weather = store_proxy.FINE
        assert told("released") == "on\n"
        said, _ = go.communicate("stop\n", timeout=2 * WITHIN_S)
        assert said.splitlines() == ["wrong []", "faults []"]
