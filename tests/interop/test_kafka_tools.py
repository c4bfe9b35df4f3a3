"""Kafka's own command line tools, unmodified, administer a broker process."""

import json
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks import kafka
from tests.interop.samples import SAMPLES, first_at_or_after
from tests.support.broker_process import BrokerProcess
from tests.support.fixtures import BrokerStarter
from tests.support.names import unique

pytestmark = [pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.timeout(200)]

RELEASE = "4.3.1"
TOOLS = "org.apache.kafka.tools"
GROUPS = f"{TOOLS}.consumer.group.ConsumerGroupCommand"
TOPICS = f"{TOOLS}.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
OFFSETS = f"{TOOLS}.GetOffsetShell"
FEATURES = {
    "eligible.leader.replicas.version": ("0", "1"),
    "group.version": ("0", "1"),
    "kraft.version": ("0", "1"),
    "metadata.version": ("3.3-IV3", "4.3-IV0"),
    "share.version": ("0", "1"),
    "streams.version": ("0", "1"),
    "transaction.version": ("0", "2"),
}
"""The lowest and the newest level of each, as Kafka 4.3.1 describes them."""


def tool(broker: BrokerProcess, main: str, *arguments: str, code: int = 0, command: str | None = None) -> str:
    """The output of a tool, also that of its errors if it must end with their code. Some tools want their command before the address."""
    try:
        jars = kafka.libs(RELEASE)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {RELEASE}: {error}")
    java = ["java", "-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{jars}/*"]
    before = [] if command is None else [command]
    line = [*java, main, *before, "--bootstrap-server", broker.address, *arguments]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr if code else done.stdout


@pytest.fixture
def topic(session_broker: BrokerProcess) -> str:
    """A topic that holds the samples."""
    name = unique("tools")
    sender = Producer({"bootstrap.servers": session_broker.address})
    for one in SAMPLES:
        sender.produce(name, one.value, one.key, partition=0, timestamp=one.timestamp)
    assert sender.flush(20.0) == 0
    return name


@pytest.fixture
def group(session_broker: BrokerProcess, topic: str) -> str:
    """A group without members that has read everything."""
    name = unique("group")
    consumer = Consumer({"bootstrap.servers": session_broker.address, "group.id": name})
    consumer.commit(offsets=[TopicPartition(topic, 0, len(SAMPLES))], asynchronous=False)
    consumer.close()
    return name


@pytest.mark.long
def test_topics(session_broker: BrokerProcess) -> None:
    name = unique("tools")
    tool(session_broker, TOPICS, "--create", "--topic", name, "--partitions", "2", "--config", "retention.ms=123456")
    tool(session_broker, TOPICS, "--alter", "--topic", name, "--partitions", "3")
    described = tool(session_broker, TOPICS, "--describe", "--topic", name)
    assert re.search(r"PartitionCount:\s*3\s+ReplicationFactor:\s*1\s+Configs:.*retention.ms=123456", described)
    assert described.count("Leader: ") == 3
    assert name in tool(session_broker, TOPICS, "--list").split()
    tool(session_broker, TOPICS, "--delete", "--topic", name)
    assert name not in tool(session_broker, TOPICS, "--list").split()


@pytest.mark.long
def test_configurations(session_broker: BrokerProcess, topic: str) -> None:
    entity = ("--entity-type", "topics", "--entity-name", topic)
    tool(session_broker, CONFIGS, *entity, "--alter", "--add-config", "message.timestamp.type=LogAppendTime")
    described = tool(session_broker, CONFIGS, *entity, "--describe")
    assert "message.timestamp.type=LogAppendTime" in described
    tool(session_broker, CONFIGS, *entity, "--alter", "--delete-config", "message.timestamp.type")
    assert "message.timestamp.type" not in tool(session_broker, CONFIGS, *entity, "--describe")
    assert "message.timestamp.type=CreateTime" in tool(session_broker, CONFIGS, *entity, "--describe", "--all")


@pytest.mark.long
@pytest.mark.parametrize(
    ("entity", "value"),
    [
        (("users", "--entity-name", unique("tools")), "producer_byte_rate=1048576"),
        (("clients", "--entity-name", unique("tools")), "consumer_byte_rate=1048576"),
        (("ips", "--entity-name", "10.0.0.7"), "connection_creation_rate=10"),
    ],
    ids=["users", "clients", "ips"],
)
def test_quotas(session_broker: BrokerProcess, entity: tuple[str, ...], value: str) -> None:
    whose = ("--entity-type", *entity)
    tool(session_broker, CONFIGS, *whose, "--alter", "--add-config", value)
    assert value in tool(session_broker, CONFIGS, *whose, "--describe")
    tool(session_broker, CONFIGS, *whose, "--alter", "--delete-config", value.partition("=")[0])
    assert value not in tool(session_broker, CONFIGS, *whose, "--describe")


@pytest.mark.long
def test_offsets_by_time_and_deleted_records(session_broker: BrokerProcess, topic: str, tmp_path) -> None:
    target = SAMPLES[100].timestamp - 20_000
    asked = (str(target), "earliest", "latest", "max-timestamp")
    largest = max(one.timestamp for one in SAMPLES)
    expected = (first_at_or_after(target)[0], 0, len(SAMPLES), first_at_or_after(largest)[0])
    for time, offset in zip(asked, expected, strict=True):
        assert tool(session_broker, OFFSETS, "--topic", topic, "--time", time).strip() == f"{topic}:0:{offset}"
    wanted = tmp_path / "records.json"
    wanted.write_text(f'{{"partitions": [{{"topic": "{topic}", "partition": 0, "offset": 150}}], "version": 1}}')
    told = tool(session_broker, f"{TOOLS}.DeleteRecordsCommand", "--offset-json-file", str(wanted))
    assert f"partition: {topic}-0\tlow_watermark: 150" in told
    assert tool(session_broker, OFFSETS, "--topic", topic, "--time", "earliest").strip() == f"{topic}:0:150"


@pytest.mark.long
def test_features(session_broker: BrokerProcess) -> None:
    features = f"{TOOLS}.FeatureCommand"
    described = tool(session_broker, features, "describe")
    levels = re.findall(
        r"Feature: (\S+)\s+SupportedMinVersion: (\S+)\s+SupportedMaxVersion: (\S+)\s+FinalizedVersionLevel: (\S+)",
        described,
    )
    assert {name: (lowest, newest) for name, lowest, newest, _ in levels}.items() >= FEATURES.items()
    assert all(newest == used for _, _, newest, used in levels)
    upgraded = tool(session_broker, features, "upgrade", "--feature", "group.version=1")
    assert upgraded.strip() == "group.version was upgraded to 1."
    refused = tool(session_broker, features, "downgrade", "--metadata", "4.0", code=1)
    assert "Unsupported metadata.version downgrade from 30 to 25." in refused
    unknown = tool(session_broker, f"{TOOLS}.ClusterTool", "--id", "77", code=1, command="unregister")
    assert "Broker ID 77 is not currently registered" in unknown


def reset_to(told: str, topic: str) -> int:
    """The NEW-OFFSET column of the one partition."""
    found = re.search(rf"{topic}\s+0\s+(\d+)", told)
    assert found, told
    return int(found[1])


@pytest.mark.long
def test_groups_go_back_in_time(session_broker: BrokerProcess, topic: str, group: str) -> None:
    described = tool(session_broker, GROUPS, "--describe", "--group", group)
    assert re.search(rf"{group}\s+{topic}\s+0\s+(\S+\s+)?{len(SAMPLES)}\s+{len(SAMPLES)}\s+0\s", described), described
    assert group in tool(session_broker, GROUPS, "--list").split()
    target = SAMPLES[100].timestamp - 20_000
    iso = datetime.fromtimestamp(target / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    reset = ("--reset-offsets", "--group", group, "--topic", topic, "--execute")
    told = tool(session_broker, GROUPS, *reset, "--to-datetime", iso)
    assert reset_to(told, topic) == first_at_or_after(target)[0]
    assert reset_to(tool(session_broker, GROUPS, *reset, "--by-duration", "P1D"), topic) == 0
    assert reset_to(tool(session_broker, GROUPS, *reset, "--shift-by", "7"), topic) == 7
    described = tool(session_broker, GROUPS, "--describe", "--group", group)
    assert re.search(rf"\s7\s+{len(SAMPLES)}\s+{len(SAMPLES) - 7}\s", described), described
    assert "Empty" in tool(session_broker, GROUPS, "--describe", "--group", group, "--state")
    tool(session_broker, GROUPS, "--delete-offsets", "--group", group, "--topic", topic)
    tool(session_broker, GROUPS, "--delete", "--group", group)
    assert group not in tool(session_broker, GROUPS, "--list").split()


def test_what_the_broker_says_of_itself(session_broker: BrokerProcess, topic: str) -> None:
    versions = tool(session_broker, f"{TOOLS}.BrokerApiVersionsCommand")
    assert re.search(r"Produce\(0\): 0 to \d+ \[usable: \d+\]", versions)
    assert re.search(r"ConsumerGroupHeartbeat\(68\): 0", versions)
    folders = tool(session_broker, f"{TOOLS}.LogDirsCommand", "--describe", "--topic-list", topic)
    assert re.search(rf'"partition":"{topic}-0","size":[1-9]\d*,"offsetLag":0', folders), folders


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.one_worker("each of two tells of its own partitions")
def test_two_folders_and_a_quorum_of_one(start_broker: BrokerStarter, tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    broker = start_broker(folders[0], log__dirs=",".join(map(str, folders)))
    tool(broker, TOPICS, "--create", "--topic", "t", "--partitions", "4")
    lines = tool(broker, f"{TOOLS}.LogDirsCommand", "--describe").splitlines()
    (told,) = (json.loads(line) for line in lines if line.startswith("{"))
    (node,) = told["brokers"]
    lies_in = {one["logDir"]: {each["partition"] for each in one["partitions"]} for one in node["logDirs"]}
    assert [one["error"] for one in node["logDirs"]] == [None, None]
    assert lies_in == {str(one): {each.name for each in one.glob("t-*")} for one in folders}
    assert {len(each) for each in lies_in.values()} == {2}

    status = tool(broker, f"{TOOLS}.MetadataQuorumCommand", "describe", "--status")
    said = {key: value.strip() for key, value in (line.split(":", 1) for line in status.splitlines() if ":" in line)}
    assert said["ClusterId"] == meta_of(folders[0])["cluster.id"] == meta_of(folders[1])["cluster.id"]
    assert said["LeaderId"] == meta_of(folders[0])["node.id"]
    assert said["MaxFollowerLag"] == "0"
    replication = tool(broker, f"{TOOLS}.MetadataQuorumCommand", "describe", "--replication").splitlines()
    (leader,) = (line.split() for line in replication if line.split()[:1] == [said["LeaderId"]])
    assert leader[-1] == "Leader"


def meta_of(folder: Path) -> dict[str, str]:
    lines = (folder / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


@pytest.mark.long
def test_transactions(session_broker: BrokerProcess, topic: str) -> None:
    name = unique("transactional")
    sender = Producer({"bootstrap.servers": session_broker.address, "transactional.id": name})
    sender.init_transactions(20.0)
    sender.begin_transaction()
    sender.produce(topic, b"open")
    assert sender.flush(20.0) == 0
    main = f"{TOOLS}.TransactionsCommand"
    listed = tool(session_broker, main, "list")
    assert re.search(rf"{name}\s+\d+\s+\d+\s+Ongoing", listed), listed
    described = tool(session_broker, main, "describe", "--transactional-id", name)
    assert f"{topic}-0" in described
    producers = tool(session_broker, main, "describe-producers", "--topic", topic, "--partition", "0")
    assert re.search(r"\n\d+\s+0\s+-?\d+\s+0\s+\d+\s+200", producers), producers
    sender.commit_transaction(20.0)
    assert re.search(rf"{name}\s+\d+\s+\d+\s+CompleteCommit", tool(session_broker, main, "list"))


@pytest.mark.long
def test_the_quorum_of_three_brokers_over_a_store(tmp_path: Path) -> None:
    """Each broker answers for itself: it is the leader, and the others are observers."""
    pytest.importorskip("obstore")
    from tests.stores.test_three_brokers import NODES, three_brokers

    with three_brokers(tmp_path, {}) as (cluster, _):
        for node in NODES[:2]:
            asked = BrokerProcess.at(f"127.0.0.1:{cluster.ports[node]}")
            status = tool(asked, f"{TOOLS}.MetadataQuorumCommand", "describe", "--status")
            said = {key: value.strip() for key, value in (line.split(":", 1) for line in status.splitlines())}
            assert said["LeaderId"] in {str(one) for one in NODES}
            assert int(said["HighWatermark"]) >= len(NODES)
            assert said["MaxFollowerLag"] == "0"
            replication = tool(asked, f"{TOOLS}.MetadataQuorumCommand", "describe", "--replication").splitlines()
            rows = [line.split() for line in replication[1:] if line.strip()]
            assert sorted(int(row[0]) for row in rows) == list(NODES)
            assert sorted(row[-1] for row in rows) == ["Leader", "Observer", "Observer"]
