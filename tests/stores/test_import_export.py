"""A data folder becomes a cluster of three over a store, and a prefix a data folder: offsets, times, groups, transactions and settings stay."""

import asyncio
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("obstore")
pytest.importorskip("confluent_kafka")

from confluent_kafka import Producer

from horolog import Admin, Consumer, TopicPartition
from horolog.client.admin.admin_topics import NewTopic
from horolog.client.values.types import EARLIEST, LATEST
from tests.stores.test_three_brokers import QUIET, WITHIN_S, three_brokers
from tests.support.command import Ended
from tests.support.style import PROJECT

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
TIMES = range(START_MS - 1_000, START_MS + COUNT * 1_000, 17_000)


def horolog(*words):
    """The command in a process of its own, with its JSON."""
    command = [sys.executable, "-m", "horolog", *map(str, words)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=2 * WITHIN_S, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


async def create(address):
    async with Admin(address) as admin:
        await admin.create_topics([NewTopic(name, PARTITIONS, configs=own) for name, own in SETTINGS.items()])


def fill(address):
    """Records with times that go back and forth, a transaction that is aborted, and the position of a group."""
    asyncio.run(create(address))
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
    asyncio.run(commit(address))


async def commit(address):
    async with Consumer(address, group="readers") as consumer:
        await consumer.commit({TopicPartition("orders", 1): GROUP_AT})


def everything(servers):
    """All that clients see of it."""
    return asyncio.run(seen_by_clients(servers.split(",")))


async def seen_by_clients(servers):
    places = [TopicPartition(topic, index) for topic in SETTINGS for index in range(PARTITIONS)]
    async with Consumer(servers, group="readers", isolation="read_committed") as consumer, Admin(servers) as admin:
        topics = await admin.describe_topics()
        return {
            "records": {place: await records(consumer, admin, place) for place in places},
            "times": {at: await looked_up(consumer, at) for at in TIMES},
            "group": (await consumer.committed([TopicPartition("orders", 1)]))[TopicPartition("orders", 1)].offset,
            "ids": {name: one.id for name, one in topics.items() if name in SETTINGS},
            "settings": {topic: await settings(admin, topic) for topic in SETTINGS},
        }


async def records(consumer, admin, place):
    """Where a log begins and ends, and its committed records."""
    first, end = [(await admin.list_offsets({place: at}))[place].offset for at in (EARLIEST, LATEST)]
    consumer.assign([place])
    consumer.seek(place, first)
    found = []
    while first < end and await consumer.position(place) < end:
        found += [(one.offset, one.timestamp_ms, one.key, one.value) for one in await consumer.poll(200)]
    return first, end, found


async def looked_up(consumer, at_ms):
    found = await consumer.offsets_for_times({TopicPartition("orders", index): at_ms for index in range(PARTITIONS)})
    return {place: None if one is None else (one.offset, one.timestamp_ms) for place, one in found.items()}


async def settings(admin, topic):
    found = await admin.describe_configs("topic", topic)
    return {key: one.value for key, one in found.items() if one.source == 1}


@pytest.fixture
def source(start_broker):
    """The folder of a broker that has stopped, and what clients have seen of it."""
    broker = start_broker(offsets__topic__num__partitions=6, transaction__state__log__num__partitions=6)
    fill(broker.address)
    seen = everything(broker.address)
    assert broker.stop() == 0
    assert seen["group"] == GROUP_AT
    return broker.data, seen


def test_a_folder_becomes_a_cluster_of_three_and_a_folder_again(source, tmp_path, start_broker):
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
    with three_brokers(tmp_path, {}) as (cluster, _):
        assert everything(cluster.servers) == seen
        producer = Producer({"bootstrap.servers": cluster.servers, "enable.idempotence": True, **QUIET})
        for index in range(PARTITIONS):
            producer.produce("orders", b"more", partition=index)
        assert producer.flush(WITHIN_S) == 0
        whole = everything(cluster.servers)
        for index in range(PARTITIONS):
            before, after = (one["records"][TopicPartition("orders", index)] for one in (seen, whole))
            assert (after[1], after[2][:-1]) == (before[1] + 1, before[2])
        exported = horolog("store", "export", url, tmp_path / "exported", "-o", "json")
        assert (exported.code, exported.json["findings"]) == (0, [])
        cluster.kill(1)
        del cluster.processes[1]
        shutil.rmtree(tmp_path / "1")
        assert everything(cluster.servers) == whole
    again = horolog("store", "import", data, url)
    assert (again.code, "brokers have started since" in again.err) == (1, True)
    alone = start_broker(tmp_path / "exported")
    assert everything(alone.address) == whole
    assert alone.stop() == 0
    assert horolog("doctor", tmp_path / "exported").code == 0
