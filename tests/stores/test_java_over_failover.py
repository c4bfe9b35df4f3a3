"""A broker of three dies under Java's clients: an idempotent producer, a member of a consumer group, and one of a share group all go on."""

import subprocess
from contextlib import ExitStack

import pytest

pytest.importorskip("obstore")
pytest.importorskip("confluent_kafka")

from tests.interop.toolchains import java_program
from tests.stores.test_three_brokers import WITHIN_S, three_brokers

pytestmark = [pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.timeout(300)]

PARTITIONS = 3
SETTINGS = (
    "group.share.heartbeat.interval.ms=300",
    "group.share.min.heartbeat.interval.ms=100",
    "share.coordinator.state.topic.num.partitions=3",
)


def test_members_of_both_kinds_of_groups_read_all_that_is_acknowledged_when_a_broker_dies(tmp_path):
    program = java_program("4.3.1", "Failover", needs=())(tmp_path)
    with three_brokers(tmp_path, {"t": PARTITIONS}, *SETTINGS) as (cluster, admin), ExitStack() as stack:
        errors = stack.enter_context((tmp_path / "errors").open("w+"))
        java = subprocess.Popen(
            [*program, cluster.servers, "t", str(PARTITIONS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        stack.callback(java.wait)
        stack.callback(java.kill)
        assert java.stdout.readline() == "going\n", (tmp_path / "errors").read_text()[-2000:]
        cluster.kill(cluster.leaders(admin)[0])
        java.stdin.write("killed\n")
        java.stdin.flush()
        assert java.stdout.readline() == "on\n"
        said, _ = java.communicate("stop\n", timeout=2 * WITHIN_S)
        assert said.splitlines() == ["acknowledged all along", "not read []", "not shared []", "faults []"]
