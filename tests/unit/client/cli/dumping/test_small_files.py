"""What workers leave in a folder is shown like the other small files."""

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
from horolog.client.cli.dumping.small_files import dump_small

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
