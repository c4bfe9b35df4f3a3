"""Streams groups: applications of Kafka Streams get from horolog what they get from a real Kafka, and so do Kafka's tool and raw frames."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import kafka
from tests.interop.toolchains import java_program
from tests.support.fixtures import BrokerStarter
from tests.support.raw_wire import RawWire
from tests.support.streams_dialogue import talk

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

RELEASE = "4.3.1"
TOOL = "org.apache.kafka.tools.streams.StreamsGroupCommand"
SETTINGS = {
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.min.heartbeat.interval.ms": "100",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
"""Members hear of their tasks soon."""
ALL_CHECKS = 6


@pytest.fixture(params=["1", "2", pytest.param("kafka", marks=pytest.mark.kafka_jars)])
def address(request: pytest.FixtureRequest, start_broker: BrokerStarter, tmp_path: Path) -> Iterator[str]:
    """Of horolog with one process and with two workers, and of Kafka."""
    if request.param != "kafka":
        broker = start_broker(**(SETTINGS | {"horolog.workers": request.param}))
        yield broker.address
        assert "Traceback" not in broker.log()
        return
    try:
        with kafka.running(RELEASE, data=tmp_path / "kafka", **SETTINGS) as node:
            yield node.address
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {RELEASE}: {error}")


def applications(scratch: Path, address: str, part: str) -> dict[str, str]:
    """The details of the checks that failed, by name; all that were done are in the keys."""
    program = java_program(RELEASE, "StreamsGroups", artifact="kafka-streams", needs=())(scratch)
    command = [*program, address, str(scratch / "states"), part]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    checks = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {one["check"]: one["detail"] if not one["ok"] else "" for one in checks}


@pytest.mark.slow
def test_applications(address: str, tmp_path: Path) -> None:
    done = applications(tmp_path, address, "all")
    assert len(done) == ALL_CHECKS
    assert not any(done.values()), done


@pytest.mark.kafka_jars
@pytest.mark.one_worker("one connection asks about groups of all coordinators")
def test_members_are_answered_as_by_kafka(start_broker: BrokerStarter, tmp_path: Path) -> None:
    at_once = {"group.streams.initial.rebalance.delay.ms": "0", "group.streams.assignment.interval.ms": "0"}
    ours = start_broker(**(SETTINGS | at_once))
    try:
        with (
            kafka.running(RELEASE, data=tmp_path / "kafka", **(SETTINGS | at_once)) as node,
            RawWire(node.address) as there,
            RawWire(ours.address) as here,
        ):
            expected, found = talk(there), talk(here)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {RELEASE}: {error}")
    assert [title for title, _ in found] == [title for title, _ in expected]
    for (title, theirs), (_, mine) in zip(expected, found, strict=True):
        assert mine == theirs, title


def tool(address: str, *arguments: str) -> str:
    try:
        jars = kafka.libs(RELEASE)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {RELEASE}: {error}")
    java = ["java", "-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{jars}/*", TOOL]
    command = [*java, "--bootstrap-server", address, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.kafka_jars
def test_kafkas_tool(address: str, tmp_path: Path) -> None:
    name = "words"
    assert applications(tmp_path, address, "once") == {"words": ""}
    assert tool(address, "--list").split() == [name]
    assert "Empty" in tool(address, "--describe", "--group", name, "--state")
    reset = tool(address, "--reset-offsets", "--group", name, "--input-topic", "words-in", "--to-earliest", "--execute")
    assert [line.split()[1:] for line in sorted(reset.strip().splitlines()[1:])] == [
        ["words-in", str(index), "0"] for index in range(3)
    ], reset
    assert "words-in" in tool(address, "--delete-offsets", "--group", name, "--input-topic", "words-in")
    tool(address, "--delete", "--group", name)
    assert not tool(address, "--list").split()
