"""Our forms of Kafka's scripts print what Kafka's own tools print, typed with the same words against the same broker."""

import re
import subprocess
import sys

import pytest

from benchmarks import kafka
from tests.support.broker_process import PROJECT, BrokerProcess
from tests.support.names import unique
from tests.support.raw_wire import RawWire
from tests.support.share_dialogue import Dialogue, altered

pytestmark = [pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.timeout(300)]

RELEASE = "4.3.1"
TOOLS = "org.apache.kafka.tools"
MAIN_CLASSES = {
    "kafka-topics": f"{TOOLS}.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-producer": f"{TOOLS}.ConsoleProducer",
    "kafka-console-consumer": f"{TOOLS}.consumer.ConsoleConsumer",
    "kafka-consumer-groups": f"{TOOLS}.consumer.group.ConsumerGroupCommand",
    "kafka-broker-api-versions": f"{TOOLS}.BrokerApiVersionsCommand",
}


def ours(broker: BrokerProcess, script: str, *words: str, stdin: str = "") -> tuple[int, str]:
    command = [sys.executable, "-m", "horolog.client.cli.kafka_scripts", f"{script}.sh"]
    return run([*command, "--bootstrap-server", broker.address, *words], stdin)


def theirs(broker: BrokerProcess, script: str, *words: str, stdin: str = "") -> tuple[int, str]:
    try:
        jars = kafka.libs(RELEASE)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {RELEASE}: {error}")
    java = ["java", "-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{jars}/*"]
    return run([*java, MAIN_CLASSES[script], "--bootstrap-server", broker.address, *words], stdin)


def run(command: list[str], stdin: str) -> tuple[int, str]:
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=90, check=False, cwd=PROJECT)
    return done.returncode, done.stdout


def columns(output: str) -> list[list[str]]:
    """Tables by their cells: how wide a column is, is no promise."""
    return [line.split() for line in output.splitlines() if line.strip()]


@pytest.fixture
def topic(session_broker: BrokerProcess) -> str:
    name = unique("scripts")
    assert ours(session_broker, "kafka-topics", "--create", "--topic", name, "--partitions", "2")[0] == 0
    return name


def both(broker: BrokerProcess, script: str, *words: str) -> list[tuple[int, str]]:
    return [tool(broker, script, *words) for tool in (ours, theirs)]


@pytest.mark.long
def test_topics_are_created_and_described_alike(session_broker: BrokerProcess) -> None:
    name, other = unique("made"), unique("made")
    words = ("--partitions", "2", "--config", "retention.ms=123456")
    for tool, topic in ((ours, name), (theirs, other)):
        created = tool(session_broker, "kafka-topics", "--create", "--topic", topic, *words)
        assert created == (0, f"Created topic {topic}.\n")
    again = ("--create", "--topic", name, *words)
    assert [code for code, _ in both(session_broker, "kafka-topics", *again)] == [1, 1]
    assert both(session_broker, "kafka-topics", *again, "--if-not-exists") == [(0, "")] * 2
    mine, kafkas = both(session_broker, "kafka-topics", "--describe", "--topic", name)
    assert mine[1].splitlines() == re.sub(r"\tElr: .*", "", kafkas[1]).splitlines()
    assert both(session_broker, "kafka-topics", "--list", "--topic", f"{name}.*") == [(0, f"{name}\n")] * 2
    assert ours(session_broker, "kafka-topics", "--alter", "--topic", name, "--partitions", "3") == (0, "")
    assert "PartitionCount: 3" in ours(session_broker, "kafka-topics", "--describe", "--topic", name)[1]
    assert ours(session_broker, "kafka-topics", "--delete", "--topic", name) == (0, "")
    assert [code for code, _ in both(session_broker, "kafka-topics", "--delete", "--topic", name)] == [1, 1]
    assert both(session_broker, "kafka-topics", "--delete", "--topic", name, "--if-exists") == [(0, "")] * 2


@pytest.mark.long
def test_settings_are_changed_and_shown_alike(session_broker: BrokerProcess, topic: str) -> None:
    entity = ("--entity-type", "topics", "--entity-name", topic)
    added = "cleanup.policy=[compact,delete],retention.ms=99"
    done = both(session_broker, "kafka-configs", *entity, "--alter", "--add-config", added)
    assert done == [(0, f"Completed updating config for topic {topic}.\n")] * 2
    mine, kafkas = both(session_broker, "kafka-configs", *entity, "--describe")
    assert sorted(mine[1].splitlines()) == sorted(kafkas[1].splitlines())
    assert "  retention.ms=99 sensitive=false" in mine[1]
    removed = ("--alter", "--delete-config", "retention.ms,cleanup.policy")
    assert ours(session_broker, "kafka-configs", *entity, *removed)[0] == 0
    assert "retention.ms" not in ours(session_broker, "kafka-configs", *entity, "--describe")[1]
    for words in (("--broker-defaults",), ("--broker", "1"), ("--topic", topic, "--all")):
        mine, kafkas = both(session_broker, "kafka-configs", "--describe", *words)
        assert mine[0] == kafkas[0] == 0
        assert sorted(mine[1].splitlines()) == sorted(kafkas[1].splitlines())


@pytest.mark.long
@pytest.mark.parametrize("producing", [ours, theirs])
def test_records_are_written_and_read_alike(session_broker: BrokerProcess, topic: str, producing) -> None:
    lines = "h1:a,h2:b\tk1\tone\nh:\tk2\tNULL\n"
    properties = ("parse.key=true", "parse.headers=true", "null.marker=NULL")
    words = [word for each in properties for word in ("--reader-property", each)]
    assert producing(session_broker, "kafka-console-producer", "--topic", topic, *words, stdin=lines)[0] == 0
    shown = ("print.timestamp", "print.key", "print.offset", "print.partition", "print.headers")
    words = [word for each in shown for word in ("--formatter-property", f"{each}=true")]
    reads = ("--topic", topic, "--from-beginning", "--max-messages", "2")
    read = [each(session_broker, "kafka-console-consumer", *reads, *words) for each in (ours, theirs)]
    assert read[0][0] == read[1][0] == 0
    assert sorted(read[0][1].splitlines()) == sorted(read[1][1].splitlines())
    values = ours(session_broker, "kafka-console-consumer", *reads)[1]
    assert sorted(values.splitlines()) == ["null", "one"]


@pytest.mark.long
@pytest.mark.one_worker("a frame goes to one worker, and another may coordinate the share group")
def test_groups_are_shown_and_reset_alike(session_broker: BrokerProcess, topic: str) -> None:
    group, share = unique("group"), unique("share")
    with RawWire(session_broker.address) as wire:
        Dialogue(wire).wait(altered(share, topic, {0: 0}), 0, lambda response: not response.error_code)
    assert ours(session_broker, "kafka-consumer-groups", "--describe", "--group", share)[0] == 1
    ours(session_broker, "kafka-console-producer", "--topic", topic, stdin="a\nb\nc\n")
    reads = ("--topic", topic, "--group", group, "--from-beginning", "--max-messages", "3", "--timeout-ms", "20000")
    code, read = ours(session_broker, "kafka-console-consumer", *reads)
    assert (code, sorted(read.split())) == (0, ["a", "b", "c"])
    for words in (("--list",), ("--describe", "--group", group), ("--describe", "--group", group, "--state")):
        shown = [each(session_broker, "kafka-consumer-groups", *words)[1] for each in (ours, theirs)]
        if "--state" in words:
            assert "Empty" in shown[0]
            continue
        cells = [sorted(row for row in columns(text) if group in row) for text in shown]
        assert cells[0] == cells[1]
        assert cells[0]
    reset = ("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest")
    tables = [columns(text) for _, text in both(session_broker, "kafka-consumer-groups", *reset, "--dry-run")]
    assert sorted(tables[0]) == sorted(tables[1])
    assert [group, topic, "0", "0"] in tables[0]
    assert ours(session_broker, "kafka-consumer-groups", *reset, "--execute")[0] == 0
    by_kafka = theirs(session_broker, "kafka-consumer-groups", "--describe", "--group", group)[1]
    assert {row[3] for row in columns(by_kafka) if group in row} == {"0"}
    assert ours(session_broker, "kafka-consumer-groups", "--describe", "--group", unique("none"))[0] == 1
    done = ours(session_broker, "kafka-consumer-groups", "--delete", "--group", group)
    assert done == (0, f"Deletion of requested consumer groups ('{group}') was successful.\n")


def test_api_versions_are_listed_alike(session_broker: BrokerProcess) -> None:
    listed = [each(session_broker, "kafka-broker-api-versions") for each in (ours, theirs)]
    assert listed[0][0] == listed[1][0] == 0
    served = [dict(re.findall(r"\t(\w+\(\d+\)): ([^\[\n]*?) ?\[", text)) for _, text in listed]
    assert served[0]
    assert served[0] == {name: span for name, span in served[1].items() if name in served[0]}
