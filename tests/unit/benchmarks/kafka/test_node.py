"""A node's settings, that only its own processes are ended, and, where the jars are, that it runs."""

import os
from pathlib import Path

import pytest

from benchmarks import kafka, peer, process
from benchmarks.kafka import node

VERSION = "3.9.2"


@pytest.mark.parametrize(
    ("version", "raft"), [("0.10.2.2", False), ("0.11.0.3", False), ("3.9.2", True), ("4.3.1", True)]
)
def test_every_listener_is_on_loopback(version, raft, tmp_path):
    lines = node.properties(version, tmp_path, 1000, 2000)
    addresses = [
        value for key, value in lines.items() if key in ("listeners", "zookeeper.connect", "controller.quorum.voters")
    ]
    assert all(part.count("127.0.0.1") == 1 for value in addresses for part in value.split(","))
    assert ("process.roles" in lines) == raft
    assert ("zookeeper.connect" in lines) != raft


def test_a_large_heap_is_refused(tmp_path):
    with pytest.raises(ValueError, match="1024 MiB"):
        kafka.start(VERSION, tmp_path, heap_mib=2048)


def test_a_process_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "broker.pid").write_text(str(os.getpid()))
    kafka.stop(tmp_path)
    assert not (tmp_path / "broker.pid").exists()


def test_stopping_twice_does_nothing(tmp_path):
    kafka.stop(tmp_path)


def at_hand():
    try:
        kafka.libs(VERSION)
    except kafka.MissingJarsError:
        return False
    return not kafka.missing_tools("java")


@pytest.mark.kafka_jars
@pytest.mark.java
@pytest.mark.slow
@pytest.mark.skipif(not at_hand(), reason=f"no jars of Kafka {VERSION} or no Java")
def test_a_node_runs_and_is_gone_afterwards(tmp_path: Path):
    with kafka.running(VERSION, data=tmp_path / "node", num_partitions=3) as broker:
        with peer.Peer(broker.address) as asker:
            asker.create_topics(["t"], 2, {})
            assert asker.leaders(["t"]) == (1, {"t": 2})
        assert "num.partitions=3" in (tmp_path / "node" / "server.properties").read_text()
        assert process.is_alive(broker.pid)
    assert not process.is_alive(broker.pid)
    assert not list((tmp_path / "node").glob("*.pid"))
