"""What horolog writes to `__consumer_offsets` and `__transaction_state` is read by real Kafkas: by their dump tool, and by a broker over the folder.

Needs Java and the jars of real releases (`python -m benchmarks.kafka fetch VERSION`).
"""

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks import kafka
from tests.support.broker_process import BrokerProcess

pytestmark = [
    pytest.mark.kafka_jars,
    pytest.mark.java,
    pytest.mark.timeout(300),
    pytest.mark.one_worker("the folder of one broker is read"),
]

MAIN = {"3.9.2": "kafka.tools.DumpLogSegments", "4.3.1": "org.apache.kafka.tools.DumpLogSegments"}
ONE_OF_EACH = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
ONE_COPY = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
RELEASE = "3.9.2"
WAIT_SECONDS = 60.0
TOPIC = "t"
CLASSIC, NEWER, ONLY_OFFSETS = "a classic group", "a group of the newer protocol", "a group of offsets"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder after a clean stop: groups of each kind with offsets, a committed and an aborted transaction, offsets in one."""
    data = tmp_path_factory.mktemp("written") / "data"
    broker = BrokerProcess(data, ONE_OF_EACH).start()
    try:
        plain = Producer({"bootstrap.servers": broker.address})
        for number in range(10):
            plain.produce(TOPIC, b"%d" % number, partition=0)
        assert plain.flush(WAIT_SECONDS) == 0
        for group, protocol in ((CLASSIC, "classic"), (NEWER, "consumer")):
            consume(broker.address, group, protocol, 4)
        writer = Consumer({"bootstrap.servers": broker.address, "group.id": ONLY_OFFSETS})
        writer.commit(offsets=[TopicPartition(TOPIC, 0, 7)], asynchronous=False)
        writer.close()
        transact(broker.address, 3)
    finally:
        status = broker.stop()
    assert status == 0
    return data


def consume(address: str, group: str, protocol: str, count: int) -> None:
    """A member reads so many records, commits where it is, and leaves."""
    member = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    member.subscribe([TOPIC])
    read = member.consume(count, WAIT_SECONDS)
    assert [one.error() for one in read] == [None] * count
    member.commit(asynchronous=False)
    member.close()


def transact(address: str, offset: int) -> None:
    """One transaction that commits this offset, and one that aborts a later one."""
    producer = Producer({"bootstrap.servers": address, "transactional.id": "x"})
    producer.init_transactions(WAIT_SECONDS)
    reader = Consumer({"bootstrap.servers": address, "group.id": "in transaction"})
    for end, moved_to in ((producer.commit_transaction, offset), (producer.abort_transaction, offset + 6)):
        producer.begin_transaction()
        producer.produce(TOPIC, b"transactional", partition=0)
        place = [TopicPartition(TOPIC, 0, moved_to)]
        producer.send_offsets_to_transaction(place, reader.consumer_group_metadata(), WAIT_SECONDS)
        end(WAIT_SECONDS)
    reader.close()


@pytest.fixture(params=sorted(MAIN))
def dump(request: pytest.FixtureRequest) -> Callable[..., str]:
    try:
        libs = kafka.libs(request.param)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {request.param}: {error}")

    def run(decoder: str, partition: Path) -> str:
        files = ",".join(str(path) for path in sorted(partition.glob("*.log")))
        java = ["java", "-Xmx192m", "-XX:TieredStopAtLevel=1", "-cp", f"{libs}/*", MAIN[request.param]]
        done = subprocess.run(
            [*java, decoder, "--files", files], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "rror" not in done.stderr, done.stderr
        return done.stdout

    return run


def test_the_dump_tool_reads_groups_and_offsets(folder: Path, dump: Callable[..., str]) -> None:
    said = dump("--offsets-decoder", folder / "__consumer_offsets-0")
    for group, offset in ((CLASSIC, 4), (NEWER, 4), (ONLY_OFFSETS, 7), ("in transaction", 3), ("in transaction", 9)):
        found = re.search(rf'"group":"{group}","topic":"{TOPIC}","partition":0.*?"offset":{offset}\b', said)
        assert found, (group, offset, said[-3000:])
    assert re.search(rf'"group":"{CLASSIC}".*"protocolType":"consumer"', said), "a classic group's own state"
    assert "unknown" not in said.lower(), said


def test_the_dump_tool_reads_transactions(folder: Path, dump: Callable[..., str]) -> None:
    said = dump("--transaction-log-decoder", folder / "__transaction_state-0")
    states = [int(number) for number in re.findall(r'"transactionStatus":(\d+)', said)] or re.findall(
        r"state=(\w+)", said
    )
    names = {0: "Empty", 1: "Ongoing", 2: "PrepareCommit", 3: "PrepareAbort", 4: "CompleteCommit", 5: "CompleteAbort"}
    told = [names[one] if isinstance(one, int) else one for one in states]
    ends = [one for one in told if one.startswith(("Prepare", "Complete"))]
    assert ends == ["PrepareCommit", "CompleteCommit", "PrepareAbort", "CompleteAbort"], said


@pytest.mark.long
def test_a_real_broker_goes_on_with_groups_and_transactional_ids(tmp_path: Path) -> None:
    """Kafka, horolog and Kafka again over one folder: each finds the offsets of the one before, and ends a transaction of the same id."""
    node, logs = tmp_path / "node", tmp_path / "node" / "logs"
    try:
        kafka.libs(RELEASE)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {RELEASE}: {error}")
    with kafka.running(RELEASE, data=node, **ONE_OF_EACH, **ONE_COPY) as real:
        begin_topic(real.address)
        advance(real.address, -1001, 2)
    broker = BrokerProcess(logs, ONE_OF_EACH | {"node.id": "1"}).start()
    try:
        advance(broker.address, 2, 5)
    finally:
        assert broker.stop() == 0
    with kafka.running(RELEASE, data=node, **ONE_OF_EACH, **ONE_COPY) as real:
        advance(real.address, 5, 8)


def begin_topic(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    (made,) = admin.create_topics([NewTopic(TOPIC, 1, 1)]).values()
    made.result(WAIT_SECONDS)


def advance(address: str, known: int, offset: int) -> None:
    """Both groups are at the offset that is known; one goes on by a commit, the other in a transaction."""
    for group in (ONLY_OFFSETS, "in transaction"):
        assert committed(address, group) == known, group
    reader = Consumer({"bootstrap.servers": address, "group.id": ONLY_OFFSETS})
    reader.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
    reader.close()
    transact(address, offset)
    assert [committed(address, group) for group in (ONLY_OFFSETS, "in transaction")] == [offset, offset]


def committed(address: str, group: str) -> int:
    """A Kafka that has just started loads its groups for a while."""
    reader = Consumer({"bootstrap.servers": address, "group.id": group})
    deadline = time.monotonic() + 60
    while True:
        try:
            (found,) = reader.committed([TopicPartition(TOPIC, 0)], WAIT_SECONDS)
        except KafkaException:
            assert time.monotonic() < deadline
            time.sleep(0.1)
            continue
        reader.close()
        return int(found.offset)
