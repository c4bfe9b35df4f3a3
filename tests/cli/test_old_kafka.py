"""What commands do at a real Kafka that is too old for some of what they would like to know: they do without, or say so."""

import json
import time
from collections.abc import Iterator

import pytest

from benchmarks import kafka
from tests.support.names import unique

pytestmark = [pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.timeout(300)]

RELEASE = "0.10.2.2"
HOUR_MS = 3_600_000
BEGIN_MS = (time.time_ns() // 1_000_000 - 6 * HOUR_MS) // HOUR_MS * HOUR_MS


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    try:
        kafka.libs(RELEASE)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {RELEASE}: {error}")
    with kafka.running(RELEASE, data=tmp_path_factory.mktemp("kafka")) as node:
        yield node.address


@pytest.fixture
def run(horolog, address, monkeypatch):
    monkeypatch.setenv("HOROLOG_TZ", "UTC")
    return lambda *words: horolog(*words, "--bootstrap", address, "--timeout", "30s")


@pytest.fixture
def topic(run, tmp_path) -> str:
    """A record an hour: record n is n hours after the first."""
    name = unique("old")
    assert run("topics", "create", name).code == 0
    lines = [{"value": f"v{n}", "timestamp": BEGIN_MS + n * HOUR_MS} for n in range(5)]
    path = tmp_path / "hourly.json"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run("produce", name, path, "--format", "json", "--codec", "lz4").code == 0
    return name


def test_a_range_of_time(run, topic):
    ended = run(
        "consume", topic, "--since", f"@{BEGIN_MS + HOUR_MS}", "--until", f"@{BEGIN_MS + 3 * HOUR_MS}", "-o", "json"
    )
    assert [record["value"] for record in ended.lines] == ["v1", "v2"]


def test_the_latest_time_is_searched_for_where_it_cannot_be_asked(run, topic):
    drawn = run("timeline", topic, "--bucket", "1h", "-o", "json")
    assert drawn.code == 0, drawn
    assert drawn.json["largest_timestamp"] == BEGIN_MS + 4 * HOUR_MS
    assert [each["records"] for each in drawn.json["buckets"]] == [1] * 5


def test_topics_are_described_without_what_the_broker_does_not_tell(run, topic):
    ended = run("topics", "describe", topic, "-o", "json")
    assert ended.code == 0, ended
    (described,) = ended.json
    assert (described["topic"], described["id"], described["configs"]) == (topic, None, {})
    (partition,) = described["partitions"]
    assert (partition["first_offset"], partition["end_offset"], partition["records"]) == (0, 5, 5)
    assert (partition["bytes"], partition["largest_timestamp"]) == (None, None)
    assert run("topics", "describe", topic).code == 0


def test_a_group_reads_lags_and_is_moved(run, topic):
    group = unique("group")
    assert len(run("consume", topic, "--group", group, "-o", "json").lines) == 5
    assert run("groups", "lag", group, "-o", "json").json[0]["lag_records"] == 0
    (moved,) = run("groups", "reset", group, "--to", f"@{BEGIN_MS + 2 * HOUR_MS}", "-o", "json").json
    assert (moved["from"], moved["to"]) == (5, 2)
    assert len(run("consume", topic, "--group", group, "-o", "json").lines) == 3


def test_what_the_broker_cannot_do_is_said(run, topic):
    shown = run("configs", "list", "topic", topic)
    trimmed = run("topics", "trim", topic, "--before", "now", "--yes")
    assert (shown.code, trimmed.code) == (1, 1)
    assert "the broker does not serve DescribeConfigs" in shown.err
    assert "the broker does not serve DeleteRecords" in trimmed.err
