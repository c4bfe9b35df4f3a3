"""Small files are shown entry by entry, those of Kafka and those of workers, or with the problem that makes them unreadable."""

import asyncio
from dataclasses import replace

import pytest

from horolog.broker.cluster import worker_checkpoints
from horolog.broker.cluster.cluster_state import ClusterState, ProducerIdsReserved, TopicsDeleted
from horolog.broker.cluster.entry_lines import Head, Whole, encode_entry, encode_head
from horolog.broker.cluster.journal_contents import encode_whole
from horolog.broker.cluster.worker_checkpoints import PartitionRow, WorkerCheckpoint
from horolog.broker.on_record.checked_lines import encode_line
from horolog.broker.on_record.cluster_file import StoredTopic
from horolog.broker.on_record.stored_rules import StoredRule
from horolog.client.cli.dumping.kinds import base_offset_of, kind_of
from horolog.client.cli.dumping.small_files import dump_small
from horolog.client.producing.producer import Producer
from horolog.testing import broker_in_thread

ENTRIES = [encode_entry(1, ProducerIdsReserved(0)), encode_entry(2, TopicsDeleted(("t",)))]


def test_a_journal_is_shown_from_its_head_to_its_last_whole_line():
    data = encode_head(Head(3, (1, 2))) + b"".join(ENTRIES) + ENTRIES[0][:10]
    head, one, two, summary = dump_small("journal", data, None)
    assert head == {"type": "entry", "version": 2, "base": 3, "nodes": [1, 2]}
    assert one == {"type": "entry", "number": 1, "kind": "ProducerIdsReserved", "first": 0}
    assert two["names"] == ["t"]
    assert summary == {"type": "summary", "entries": 3}


def test_a_journal_that_was_shortened_is_shown_with_its_state():
    topic = StoredTopic("t", bytes(16), 1, {})
    rule = StoredRule("user", "u", {"password": "secret"})
    whole = encode_whole(replace(ClusterState.of([topic]), number=7, rules={rule.id: rule}))
    data = encode_head(Head(3, (1, 2), Whole(7, 7, len(whole)))) + whole + encode_entry(8, TopicsDeleted(("t",)))
    head, state, shown, entry, summary = dump_small("journal", data, None)
    assert head["whole"] == {"number": 7, "after": 7, "bytes": len(whole)}
    assert (state["topics"], shown["name"], entry["number"]) == (1, "t", 8)
    assert summary == {"type": "summary", "entries": 4}
    *_, problem, _ = dump_small("journal", data.replace(b'"partitions": 1', b'"partitions": 2'), None)
    assert problem["type"] == "problem"


def test_damage_of_a_journal_is_a_problem():
    data = encode_head(Head(3, (1, 2))) + ENTRIES[0].replace(b"first", b"fisrt") + ENTRIES[1]
    items = list(dump_small("journal", data, None))
    assert [item["type"] for item in items] == ["entry", "entry", "problem", "summary"]
    assert items[2]["problem"] == "behind entry 0: wrong checksum"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"nonsense", "its head cannot be read"),
        (encode_line({"version": 4, "base": 0, "nodes": []}).encode(), "version 4"),
    ],
)
def test_a_journal_without_a_head_is_a_problem(data, problem):
    item, _ = dump_small("journal", data, None)
    assert problem in item["problem"]


def test_what_a_worker_knows_is_shown():
    checkpoint = WorkerCheckpoint({("t", 1): PartitionRow(bytes(16), 5, 9, 2)}, has_stopped=True)
    entry, state, _ = dump_small("worker-checkpoint", worker_checkpoints.encode(checkpoint), None)
    assert entry == {
        "type": "entry", "topic": "t", "partition": 1, "topic_id": "A" * 22,
        "recovery_point": 5, "high_watermark": 9, "log_start": 2,
    }  # fmt: skip
    assert state == {"type": "state", "stopped": True}
    (problem,) = dump_small("worker-checkpoint", b"nonsense", None)
    assert "checksum" in problem["problem"]


KINDS = {
    "transaction-index": {"version", "producer_id", "first_offset", "last_offset"},
    "snapshot": {"producer_id", "last_offset"},
    "offset-checkpoint": {"topic", "partition", "offset"},
    "leader-epochs": {"epoch", "start_offset"},
    "partition-metadata": {"topic_id"},
    "clean-shutdown": {"broker_epoch"},
    "meta-properties": {"cluster_id"},
}


def test_small_files_of_a_kafka_are_shown_by_their_kind(golden_root):
    """Of every case, what Kafka wrote; each kind is there, and no file has a problem."""
    seen = {}
    for path in sorted(golden_root.glob("v2-txn*/clean/**/*")):
        kind = kind_of(path.name) if path.is_file() else None
        if kind in KINDS:
            items = list(dump_small(kind, path.read_bytes(), base_offset_of(str(path))))
            assert items[-1] == {"type": "summary", "entries": len(items) - 1}
            seen.setdefault(kind, []).extend(items[:-1])
    assert set(seen) == set(KINDS)
    for kind, items in seen.items():
        assert all(KINDS[kind] <= item.keys() for item in items), kind


@pytest.mark.parametrize(
    "kind",
    [
        "offset-checkpoint",
        "leader-epochs",
        "partition-metadata",
        "meta-properties",
        "seals",
        "snapshot",
    ],
)
def test_a_small_file_that_is_broken_is_a_problem(kind):
    (item,) = dump_small(kind, b"0\n\xffnonsense\n", 0)
    assert item["type"] == "problem"
    assert item["problem"]


def test_files_of_our_own_are_shown(tmp_path):
    """A broker that was stopped has left them."""

    async def fill(bootstrap):
        async with Producer(bootstrap) as producer:
            for number in range(50):
                await producer.send_and_wait("t", b"v" * 1000, timestamp_ms=number)

    with broker_in_thread(storage=tmp_path, log_retention_ms=-1) as broker:
        broker.create_topic("t", 1, segment_bytes=16_000)
        asyncio.run(fill(broker.bootstrap))
    seen = {}
    for path in sorted(tmp_path.rglob("*")):
        kind = kind_of(path.name) if path.is_file() else None
        if kind in {"seals", "cluster", "log-starts", "producers", "offset-checkpoint"}:
            items = list(dump_small(kind, path.read_bytes(), None))
            assert not [item for item in items if item["type"] == "problem"], (path, items)
            seen.setdefault(kind, []).extend(items)
    assert {"seals", "cluster", "producers", "log-starts"} <= set(seen)
    assert next(item["base_offset"] for item in seen["seals"] if item["type"] == "entry") == 0
    assert {"name": "t", "partitions": 1}.items() <= seen["cluster"][1].items()
    assert seen["producers"][0].keys() >= {"producer_id", "producer_epoch"}


def test_a_cluster_file_of_a_newer_version_is_a_problem():
    item, _ = dump_small("cluster", encode_line({"version": 99}).encode(), None)
    assert item["type"] == "problem"
