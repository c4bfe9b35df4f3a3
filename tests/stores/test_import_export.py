"""A data folder becomes a cluster of three over a store, and a prefix a data folder: offsets, times, groups, transactions and settings stay."""

import shutil
from contextlib import ExitStack
from functools import partial

import pytest

pytest.importorskip("obstore")
pytest.importorskip("confluent_kafka")

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from tests.stores.test_three_brokers import NODES, QUIET, WITHIN_S, Cluster
from tests.support.command import run_typed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PARTITIONS = 2
COUNT = 300
START_MS = 1_700_000_000_000
SETTINGS = {
    "orders": {"segment.bytes": "20000", "retention.ms": "-1"},
    "table": {"cleanup.policy": "compact"},
    "empty": {},
}
GROUP_AT = 77


def created(admin):
    topics = [NewTopic(name, PARTITIONS, 1, config=own) for name, own in SETTINGS.items()]
    for one in admin.create_topics(topics).values():
        one.result(WITHIN_S)


def fill(address):
    """Records with times that go back and forth, a transaction that is aborted, and the position of a group."""
    created(AdminClient({"bootstrap.servers": address, **QUIET}))
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, **QUIET})
    for number in range(COUNT):
        at = START_MS + number * 1_000 + (number * 7919 % 5_000)
        for topic in ("orders", "table"):
            producer.produce(topic, b"v%d" % number * 40, b"k%d" % (number % 50), number % PARTITIONS, timestamp=at)
        if number % 10 == 0:
            producer.flush(WITHIN_S)
    assert producer.flush(WITHIN_S) == 0
    commits = Producer({"bootstrap.servers": address, "transactional.id": "t", **QUIET})
    commits.init_transactions(WITHIN_S)
    for ends in (commits.abort_transaction, commits.commit_transaction):
        commits.begin_transaction()
        commits.produce("orders", b"of a transaction", partition=0, timestamp=START_MS)
        assert commits.flush(WITHIN_S) == 0
        ends(WITHIN_S)
    consumer = Consumer({"bootstrap.servers": address, "group.id": "readers", **QUIET})
    consumer.commit(offsets=[TopicPartition("orders", 1, GROUP_AT)], asynchronous=False)
    consumer.close()


def everything(servers):
    """All that clients see of it."""
    return {
        "records": {
            (topic, index): records(servers, topic, index) for topic in SETTINGS for index in range(PARTITIONS)
        },
        "times": {at: looked_up(servers, at) for at in range(START_MS - 1_000, START_MS + COUNT * 1_000, 17_000)},
        "group": committed(servers),
        "ids": ids(servers),
        "settings": {topic: settings(servers, topic) for topic in SETTINGS},
    }


def records(servers, topic, index):
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "none", "isolation.level": "read_committed", **QUIET}
    )
    place = TopicPartition(topic, index)
    first, end = within(lambda: consumer.get_watermark_offsets(place, timeout=10))
    consumer.assign([TopicPartition(topic, index, first)])
    found = []
    while first < end and within(lambda: consumer.position([place]))[0].offset < end:
        found += [(one.offset(), one.timestamp(), one.key(), one.value()) for one in consumer.consume(500, 0.2)]
    consumer.close()
    return first, end, found


def within(ask):
    """The answer, once there is one: partitions have just moved."""
    for _ in range(30):
        try:
            return ask()
        except KafkaException as error:
            fault = error
    raise fault


def looked_up(servers, at_ms):
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "none", **QUIET})
    places = [TopicPartition("orders", index, at_ms) for index in range(PARTITIONS)]
    found = within(lambda: consumer.offsets_for_times(places, timeout=10))
    consumer.close()
    return [one.offset for one in found]


def committed(servers):
    admin = AdminClient({"bootstrap.servers": servers, **QUIET})
    asked = ConsumerGroupTopicPartitions("readers", [TopicPartition("orders", 1)])
    answer = within(lambda: admin.list_consumer_group_offsets([asked])["readers"].result(WITHIN_S))
    return answer.topic_partitions[0].offset


def ids(servers):
    found = AdminClient({"bootstrap.servers": servers, **QUIET}).list_topics(timeout=WITHIN_S).topics
    return set(found) - {"__share_group_state"}


def settings(servers, topic):
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": servers, **QUIET})
    found = admin.describe_configs([resource])[resource].result(WITHIN_S)
    return {key: entry.value for key, entry in found.items() if entry.source == 1}


@pytest.fixture
def source(start_broker):
    """The folder of a broker that has stopped, and what clients have seen of it."""
    broker = start_broker(offsets__topic__num__partitions=6, transaction__state__log__num__partitions=6)
    fill(broker.address)
    seen = everything(broker.address)
    assert broker.stop() == 0
    assert seen["group"] == GROUP_AT
    return broker.data, seen


def test_a_folder_becomes_a_cluster_of_three_and_a_folder_again(source, tmp_path, capsys, start_broker):
    horolog = partial(run_typed, capsys)
    data, seen = source
    (tmp_path / "store").mkdir()
    url = f"file://{tmp_path}/store"
    looked = horolog("store", "import", data, url, "--dry-run", "-o", "json")
    assert (looked.code, list((tmp_path / "store").iterdir())) == (0, [])
    done = horolog("store", "import", data, url, "-o", "json")
    assert (done.code, done.json["is_whole"], done.json["findings"]) == (0, True, [])
    assert {**looked.json, "dry_run": False, "is_whole": True} | {"wal_objects": done.json["wal_objects"]} == done.json
    assert done.json["segments"] > PARTITIONS
    assert horolog("store", "import", data, url, "-o", "json").json == done.json
    cluster = Cluster(tmp_path)
    with ExitStack() as stack:
        stack.callback(cluster.end)
        for node in NODES:
            cluster.start(node)
        assert everything(cluster.servers) == seen
        producer = Producer({"bootstrap.servers": cluster.servers, "enable.idempotence": True, **QUIET})
        for index in range(PARTITIONS):
            producer.produce("orders", b"more", partition=index)
        assert producer.flush(WITHIN_S) == 0
        for index in range(PARTITIONS):
            before, after = seen["records"]["orders", index], records(cluster.servers, "orders", index)
            assert (after[1], after[2][:-1]) == (before[1] + 1, before[2])
        whole = everything(cluster.servers)
        exported = horolog("store", "export", url, tmp_path / "exported", "-o", "json")
        assert (exported.code, exported.json["findings"]) == (0, [])
        cluster.kill(1)
        del cluster.processes[1]
        shutil.rmtree(tmp_path / "1")
        assert committed(cluster.servers) == GROUP_AT
        assert len(records(cluster.servers, "orders", 0)[2]) == len(seen["records"]["orders", 0][2]) + 1
    again = horolog("store", "import", data, url)
    assert (again.code, "brokers have started since" in again.err) == (1, True)
    alone = start_broker(tmp_path / "exported")
    assert everything(alone.address) == whole
    assert alone.stop() == 0
    assert horolog("doctor", tmp_path / "exported").code == 0
