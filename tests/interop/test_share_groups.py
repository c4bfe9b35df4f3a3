"""Share groups: the newest Java consumer, Kafka's tool and raw frames get from horolog what they get from a real Kafka."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import kafka
from tests.interop.toolchains import java_program
from tests.support.broker_process import BrokerProcess
from tests.support.fixtures import BrokerStarter
from tests.support.raw_wire import RawWire
from tests.support.share_dialogue import talk

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

RELEASE = "4.3.1"
TOOL = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
SETTINGS = {
    "group.share.heartbeat.interval.ms": "300",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.min.record.lock.duration.ms": "1000",
    "offsets.topic.num.partitions": "1",
}
"""Members hear of their partitions soon, and locks run out soon."""
ALL_CHECKS = 10
OURS_ALONE = {"offsets without a group"}
"""A real Kafka answers UNKNOWN_SERVER_ERROR."""


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


def shares(scratch: Path, address: str, part: str) -> dict[str, str]:
    """The details of the checks that failed, by name; all that were done are in the keys."""
    command = [*java_program(RELEASE, "Shares", needs=())(scratch), address, part]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    checks = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {one["check"]: one["detail"] if not one["ok"] else "" for one in checks}


@pytest.mark.slow
def test_java_share_consumers(address: str, tmp_path: Path) -> None:
    done = shares(tmp_path, address, "all")
    assert len(done) == ALL_CHECKS
    assert not any(done.values()), done


@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_was_accepted_is_not_delivered_again_after_a_kill(
    start_broker: BrokerStarter, tmp_path: Path, workers: str
) -> None:
    broker = start_broker(**(SETTINGS | {"horolog.workers": workers}))
    assert shares(tmp_path, broker.address, "accept") == {}
    broker.kill()
    broker.start()
    assert shares(tmp_path, broker.address, "rest") == {"the rest comes again": ""}


@pytest.mark.kafka_jars
def test_members_and_administrators_are_answered_as_by_kafka(start_broker: BrokerStarter, tmp_path: Path) -> None:
    ours = start_broker(**SETTINGS)
    try:
        with (
            kafka.running(RELEASE, data=tmp_path / "kafka", **SETTINGS) as node,
            RawWire(node.address) as there,
            RawWire(ours.address) as here,
        ):
            expected, found = talk(there, "x"), talk(here, "x")
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {RELEASE}: {error}")
    assert [title for title, _ in found] == [title for title, _ in expected]
    for (title, theirs), (_, mine) in zip(expected, found, strict=True):
        if title not in OURS_ALONE:
            assert mine == theirs, title


def tool(broker: BrokerProcess, *arguments: str) -> str:
    try:
        jars = kafka.libs(RELEASE)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {RELEASE}: {error}")
    java = ["java", "-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{jars}/*", TOOL]
    command = [*java, "--bootstrap-server", broker.address, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.kafka_jars
def test_kafkas_tool(start_broker: BrokerStarter, tmp_path: Path) -> None:
    broker, name = start_broker(**SETTINGS), "implicit"
    assert shares(tmp_path, broker.address, "once") == {"implicit acknowledgement": ""}
    assert tool(broker, "--list").split() == [name]
    assert "Empty" in tool(broker, "--describe", "--group", name, "--state")
    assert tool(broker, "--describe", "--group", name).split()[-5:] == [name, name, "0", "20", "0"]
    # the start that is kept does not follow at once; records after it that are complete are not behind
    tool(broker, "--reset-offsets", "--group", name, "--topic", name, "--to-earliest", "--execute")
    assert tool(broker, "--describe", "--group", name).split()[-5:] == [name, name, "0", "0", "25"]
    tool(broker, "--delete-offsets", "--group", name, "--topic", name)
    assert "25" not in tool(broker, "--describe", "--group", name).split()
    tool(broker, "--delete", "--group", name)
    assert tool(broker, "--list").split() == []
