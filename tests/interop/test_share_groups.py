"""Share groups: the newest Java consumer, Kafka's tool and raw frames get from horolog what they get from a real Kafka."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks import kafka
from tests.interop.clients import execute
from tests.interop.toolchains import HERE, build
from tests.support.broker_process import BrokerProcess
from tests.support.fixtures import BrokerStarter
from tests.support.raw_wire import RawWire
from tests.support.share_dialogue import talk

pytestmark = [pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.timeout(400)]

RELEASE = "4.3.1"
TOOL = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
SETTINGS = {
    "group.share.heartbeat.interval.ms": "300",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.min.record.lock.duration.ms": "1000",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}
"""Members hear of their partitions soon, and locks run out soon."""
OURS_ALONE = {"offsets without a group"}
"""A real Kafka answers UNKNOWN_SERVER_ERROR."""
PARTS = {
    "implicit": [
        "first 0:1 1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1 9:1",
        "committed {}",
        "second 10:1 11:1 12:1 13:1 14:1",
        "released 10:2 11:2 12:2 13:2 14:2 15:1 16:1",
    ],
    "explicit": [
        "round 0:1 1:1 2:1 3:1 4:1 5:1",
        "round 2:2 3:2 5:2",
        "round 2:3",
        "round 3:3",
        "round 5:3",
    ],
    "locks": [
        "locked 0:1 1:1",
        "renewed [Optional.empty]",
        "again 0:2 1:2",
        "the released one first true",
        "the renewed lock lasted longer true",
        "late [InvalidRecordStateException]",
    ],
    "resets": ["earliest 0:1 1:1 2:1", "latest", "later 3:1", "by_duration:PT1H 0:1 1:1 2:1 3:1"],
    "committed": ["committed 0:1 1:1 4:1 5:1"],
    "strict": ["round 0:1 1:1 2:1", "round 3:1 4:1 5:1", "round 6:1 7:1 8:1"],
    "two": ["records 200", "twice 0"],
}
"""What each part of the script prints: records as value:deliveries."""

Script = Callable[..., list[str]]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Script:
    """Runs one part of the script at an address; returns the lines that it prints."""
    try:
        jars = kafka.libs(RELEASE)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {RELEASE}: {error}")
    classes = tmp_path_factory.mktemp("classes")
    build(["javac", "-nowarn", "-d", str(classes), "-cp", f"{jars}/*", str(HERE / "java" / "ShareScript.java")], HERE)

    def run(address: str, part: str, name: str) -> list[str]:
        scratch = tmp_path_factory.mktemp(part)
        java = ["java", "-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{classes}:{jars}/*"]
        said, complaints = execute([*java, "ShareScript", address, part, name], scratch)
        return said.splitlines() or complaints.splitlines()[-5:]

    return run


@pytest.fixture(scope="module", params=["horolog", "workers", pytest.param("kafka", marks=pytest.mark.long)])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "kafka":
        with kafka.running(RELEASE, **SETTINGS) as node:
            yield node.address
        return
    workers = {"horolog.workers": "2"} if request.param == "workers" else {}
    broker = BrokerProcess(tmp_path_factory.mktemp("data"), SETTINGS | workers).start()
    yield broker.address
    broker.stop()
    assert "Traceback" not in broker.log()


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_a_share_consumer_sees_what_it_sees_on_kafka(address: str, script: Script, part: str) -> None:
    assert script(address, part, f"{part}-{uuid.uuid4()}") == PARTS[part]


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_was_accepted_is_not_delivered_again_after_a_kill(
    start_broker: BrokerStarter, script: Script, workers: str
) -> None:
    broker = start_broker(**(SETTINGS | {"horolog.workers": workers}))
    assert script(broker.address, "before", "killed") == [
        "locked 0:1 1:1 2:1 3:1 4:1 5:1",
        "written [Optional.empty]",
    ]
    broker.kill()
    broker.start()
    assert script(broker.address, "after", "killed") == ["again 3:2 4:2 5:2", "more"]


@pytest.mark.one_worker("its frames go to one worker, and another may coordinate the group")
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


@pytest.mark.slow
def test_kafkas_tool(address: str, script: Script) -> None:
    name, topic = "group-tool", "shares-tool"
    assert script(address, "implicit", "tool") == PARTS["implicit"]
    assert name in tool(address, "--list").split()
    assert "Empty" in tool(address, "--describe", "--group", name, "--state")
    assert tool(address, "--describe", "--group", name).split()[-5:] == [name, topic, "0", "10", "7"]
    # the start that is kept does not follow at once; records after it that are complete are not behind
    tool(address, "--reset-offsets", "--group", name, "--topic", topic, "--to-earliest", "--execute")
    assert tool(address, "--describe", "--group", name).split()[-5:] == [name, topic, "0", "0", "17"]
    tool(address, "--delete-offsets", "--group", name, "--topic", topic)
    assert "17" not in tool(address, "--describe", "--group", name).split()
    tool(address, "--delete", "--group", name)
    assert name not in tool(address, "--list").split()
