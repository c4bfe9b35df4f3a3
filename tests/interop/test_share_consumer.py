"""Java's KafkaShareConsumer sees the same on horolog, with one process and with two workers, and on a real Kafka."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks import kafka
from tests.interop.clients import execute
from tests.interop.toolchains import HERE, build
from tests.support.broker_process import BrokerProcess

pytestmark = [pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(400)]

RELEASE = "4.3.1"
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
        "released 1:2",
        "expired 0:2",
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
        with kafka.running(RELEASE) as node:
            yield node.address
        return
    settings = {"horolog.workers": "2"} if request.param == "workers" else {}
    broker = BrokerProcess(tmp_path_factory.mktemp("data"), settings).start()
    yield broker.address
    broker.stop()


@pytest.mark.parametrize("part", PARTS)
def test_a_share_consumer_sees_what_it_sees_on_kafka(address: str, script: Script, part: str) -> None:
    assert script(address, part, f"{part}-{uuid.uuid4()}") == PARTS[part]


@pytest.mark.parametrize("workers", [1, 2])
def test_what_was_accepted_is_not_delivered_again_after_a_kill(tmp_path: Path, script: Script, workers: int) -> None:
    settings = {"horolog.workers": "2"} if workers > 1 else {}
    broker = BrokerProcess(tmp_path / "data", settings).start()
    assert script(broker.address, "before", "killed") == [
        "locked 0:1 1:1 2:1 3:1 4:1 5:1",
        "written [Optional.empty]",
    ]
    broker.kill()
    broker.start()
    assert script(broker.address, "after", "killed") == ["again 3:2 4:2 5:2", "more"]
    broker.stop()
