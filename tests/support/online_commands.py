"""Commands that talk to a broker, as a user types them: on our broker, and on a real Kafka where its jars and Java are at hand."""

import json
import time
from collections.abc import Iterator

import pytest

from benchmarks import kafka
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique

KAFKA = "4.3.1"
HOUR_MS = 3_600_000
NOW_MS = time.time_ns() // 1_000_000
TIMES = [NOW_MS - 5 * HOUR_MS + number * HOUR_MS for number in range(5)]  # five, four ... one hours ago


@pytest.fixture(
    scope="session",
    params=[
        "horolog",
        pytest.param("kafka", marks=[pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.timeout(300)]),
    ],
)
def address(request: pytest.FixtureRequest, session_broker: BrokerProcess, tmp_path_factory) -> Iterator[str]:
    if request.param == "horolog":
        yield session_broker.address
        return
    try:
        kafka.libs(KAFKA)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {KAFKA}: {error}")
    with kafka.running(KAFKA, data=tmp_path_factory.mktemp("kafka")) as node:
        yield node.address


@pytest.fixture
def run(horolog, address, monkeypatch):
    """A command at that broker; times are shown and read in UTC."""
    monkeypatch.setenv("HOROLOG_TZ", "UTC")

    def run_there(*words):
        return horolog(*words, "--bootstrap", address, "--timeout", "30s")

    return run_there


@pytest.fixture
def topic(run) -> str:
    name = unique("cli")
    assert run("topics", "create", name).code == 0
    return name


@pytest.fixture
def hourly(run, topic, tmp_path) -> str:
    """A topic with a record an hour: record n is TIMES[n]."""
    lines = [{"value": f"v{n}", "key": f"k{n}", "timestamp": time_ms} for n, time_ms in enumerate(TIMES)]
    path = tmp_path / "hourly.json"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run("produce", topic, path, "--format", "json").code == 0
    return topic


def values(ended) -> list[str]:
    return [record["value"] for record in ended.lines]
