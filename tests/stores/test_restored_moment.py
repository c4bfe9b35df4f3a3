"""A prefix is restored to a moment before topics were deleted, records written, and brokers killed and stopped: clients see what they saw then."""

import asyncio
import shutil
import time
from datetime import UTC, datetime

import pytest

pytest.importorskip("obstore")
pytest.importorskip("confluent_kafka")

from confluent_kafka import Producer

from horolog import Admin, Consumer, TopicPartition
from horolog.broker.bucket.names import MERGED, WALS
from horolog.stores.opening import open_store
from tests.stores.test_backup import GUARDED, access_of, set_access
from tests.stores.test_import_export import GROUP_AT, PARTITIONS, everything, fill, horolog
from tests.stores.test_three_brokers import QUIET, WITHIN_S, three_brokers
from tests.support import s3_server
from tests.support.command import run_typed
from tests.support.waiting import wait_until

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
    assert (refused.code, "choose a time from" in refused.err) == (4, True)


COMPACTS_SOON = {"min.cleanable.dirty.ratio": "0", "segment.ms": "1000", "segment.bytes": "4000"}
FIRST_LATER = 100
"""`fill` has written more records than this to each partition of the table."""


def compact(servers):
    """Have a table compacted that keeps none of the records it had."""

    async def alter():
        async with Admin(servers.split(",")) as admin:
            await admin.alter_configs("topic", "table", COMPACTS_SOON)

    def is_compacted():
        write(servers, ["table"])
        table = [found for place, found in everything(servers)["records"].items() if place.topic == "table"]
        return all(records[0][0] > FIRST_LATER for _, _, records in table)

    asyncio.run(alter())
    wait_until(is_compacted, WITHIN_S)


def test_users_and_a_table_before_its_compaction_come_back_over_a_real_server(s3_folder, capsys, monkeypatch):
    settings = [f"{key}={value}" for key, value in GUARDED.items()]
    with s3_server.running(s3_folder) as server:
        server.enter(monkeypatch)
        url, then, part = (server.url(folder) for folder in ("cluster", "then", "part"))
        with three_brokers(s3_folder, {}, *settings, "log.cleaner.backoff.ms=200", url=url) as (cluster, _):
            fill(cluster.servers)
            set_access(capsys, cluster.servers, s3_folder)
            seen, access = everything(cluster.servers), access_of(capsys, cluster.servers)
            at_s = int(time.time()) + 1  # this server tells times in whole seconds
            wait_until(lambda: time.time() > at_s + 2)
            assert run_typed(capsys, "users", "remove", "alice", "-b", cluster.servers).code == 0
            write(cluster.servers, ["orders", "empty"])
            compact(cluster.servers)
            asyncio.run(change(cluster.servers.split(",")))
        at = datetime.fromtimestamp(at_s, UTC).isoformat()
        for to, more in ((then, ()), (part, ("--topics", "table"))):
            words = ("store", "restore", url, "--at", at, "--to", to, "--endpoint", server.endpoint, *more)
            done = horolog(*words, "-o", "json")
            assert (done.code, done.json["findings"]) == (0, []), done.err
        (s3_folder / "then").mkdir()
        with three_brokers(s3_folder / "then", {}, *settings, url=then) as (cluster, _):
            assert everything(cluster.servers) == seen
            assert access_of(capsys, cluster.servers) == access
        (s3_folder / "part").mkdir()
        with three_brokers(s3_folder / "part", {}, *settings, url=part) as (cluster, admin):
            assert {"table"} == {one for one in admin.list_topics(timeout=WITHIN_S).topics if not one.startswith("__")}
