"""A prefix is restored to a moment before topics were deleted, records written, and brokers killed and stopped: clients see what they saw then."""

import asyncio
import shutil
from datetime import UTC, datetime

import pytest

pytest.importorskip("obstore")
pytest.importorskip("confluent_kafka")

from confluent_kafka import Producer

from horolog import Admin, Consumer, TopicPartition
from horolog.broker.bucket.names import MERGED, WALS
from horolog.stores.opening import open_store
from tests.stores.test_import_export import GROUP_AT, PARTITIONS, everything, fill, horolog
from tests.stores.test_three_brokers import QUIET, WITHIN_S, three_brokers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


async def change(servers):
    """A topic is deleted, another one cut off, and a group goes on."""
    async with Admin(servers) as admin, Consumer(servers, group="readers") as consumer:
        await consumer.commit({TopicPartition("orders", 1): GROUP_AT + 9})
        await admin.delete_topics(["orders"])
        await admin.delete_records({TopicPartition("empty", 0): 5})


def write(servers, topics):
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, **QUIET})
    for topic in topics:
        for number in range(40):
            producer.produce(topic, b"later %d" % number, b"k%d" % number, number % PARTITIONS)
            producer.flush(WITHIN_S)
    assert producer.flush(WITHIN_S) == 0


def test_a_deleted_topic_and_all_else_comes_back(tmp_path):
    url, then = f"file://{tmp_path}/store", f"file://{tmp_path}/then/store"
    with three_brokers(tmp_path, {}) as (cluster, _):
        fill(cluster.servers)
        seen = everything(cluster.servers)
        assert seen["group"] == GROUP_AT
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        write(cluster.servers, ["orders", "empty", "table"])
        asyncio.run(change(cluster.servers.split(",")))
        cluster.kill(1)
        del cluster.processes[1]
        shutil.rmtree(tmp_path / "1")
        write(cluster.servers, ["table"])
    place = open_store(url)
    assert list(place.list(MERGED)), "brokers that stop merge"
    (tmp_path / "then").mkdir()
    words = ("store", "restore", url, "--at", at, "--to", then, "-o", "json")
    looked = horolog(*words, "--dry-run")
    assert (looked.code, list(open_store(then).list())) == (0, []), looked.err
    assert len(list(place.list(WALS))) > 16
    done = horolog(*words)
    assert (done.code, done.json["findings"]) == (0, []), done.err
    with three_brokers(tmp_path / "then", {}) as (cluster, _):
        assert everything(cluster.servers) == seen
    refused = horolog("store", "restore", url, "--at", "2020-01-01", "--to", then)
    assert (refused.code, "name a time from" in refused.err) == (4, True)
