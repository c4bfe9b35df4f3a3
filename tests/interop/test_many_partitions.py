"""Requests over many partitions of several topics, good ones and bad ones mixed: answered part by part as a real Kafka does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks import kafka
from tests.support.broker_process import BrokerProcess
from tests.vendor.wire_prober.core import Case, Ctx, Target
from tests.vendor.wire_prober.wire import batch

pytestmark = [pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.timeout(300)]

RELEASE = "4.3.1"
BASE_MS = 1_700_000_000_000
VOLATILE = {"throttle_time_ms", "error_message", "log_append_time_ms", "current_leader", "node_endpoints", "session_id"}


def values(count: int, after_ms: int = 0, size: int = 10) -> bytes:
    made: bytes = batch([{"value": bytes(size), "ts": BASE_MS + after_ms + number} for number in range(count)])
    return made


def comparable(answer: Any, names: Mapping[str, str]) -> Any:
    """Without what differs by broker and run; parts come in any order."""
    if isinstance(answer, dict):
        kept = {key: comparable(one, names) for key, one in answer.items() if key not in VOLATILE}
        if "records" in kept:
            kept["records"] = len(kept["records"] or b"")
        return kept
    if isinstance(answer, list):
        return sorted((comparable(one, names) for one in answer), key=lambda one: json.dumps(one, default=str))
    return names.get(answer, answer) if isinstance(answer, str) else answer


def requests(a: str, b: str, unknown: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """To a topic of five partitions, one of three that takes small batches only, and one that is not there."""
    damaged = bytearray(values(2))
    damaged[-1] ^= 1
    for version in (3, 7, 8, 9):
        to_a = [(0, values(2)), (1, values(3, 1000)), (4, bytes(damaged)), (9, values(1)), (2, values(1, 500))]
        produced = {a: to_a, b: [(0, values(1, 0, 3000)), (1, values(1))], unknown: [(0, values(1))]}
        topics = [
            {"name": name, "partitions": [{"index": index, "records": records} for index, records in sets]}
            for name, sets in produced.items()
        ]
        yield "Produce", version, {"acks": -1, "transactional_id": None, "timeout_ms": 3000, "topics": topics}
    for version in (1, 4, 5, 7):
        for timestamp in (-1, -2, BASE_MS, BASE_MS + 1001, BASE_MS + 10**6):
            places = {
                a: [(0, -1), (3, -1), (1, 0), (7, -1), (4, 5), (2, -1)],
                unknown: [(0, -1)],
                b: [(0, -1), (1, -1)],
            }
            topics = [
                {
                    "name": name,
                    "partitions": [
                        {"partition_index": index, "current_leader_epoch": epoch, "timestamp": timestamp}
                        for index, epoch in asked
                    ],
                }
                for name, asked in places.items()
            ]
            yield "ListOffsets", version, {"replica_id": -1, "isolation_level": 0, "topics": topics}
    for version in (2, 3, 4):
        epochs = {a: [(0, -1, 0), (1, -1, 5), (2, 7, 0), (8, -1, 0), (3, 0, 0)], unknown: [(0, -1, 0)], b: [(1, -1, 0)]}
        topics = [
            {
                "topic": name,
                "partitions": [
                    {"partition": index, "current_leader_epoch": known, "leader_epoch": epoch}
                    for index, known, epoch in asked
                ],
            }
            for name, asked in epochs.items()
        ]
        yield "OffsetForLeaderEpoch", version, {"replica_id": -1, "topics": topics}
    for version in (1, 2):
        starts = {a: [(0, version), (1, -1), (2, 100), (9, 0), (4, -2), (3, 0)], unknown: [(0, 0)], b: [(1, version)]}
        yield "DeleteRecords", version, _deleting(starts)
    yield "DeleteRecords", 1, _deleting({a: [(0, 3), (0, 1)], b: [(1, 2)]})
    for version in (4, 7, 11, 12):
        yield "Fetch", version, _fetching(a, unknown)


def _deleting(starts: Mapping[str, list[tuple[int, int]]]) -> dict[str, Any]:
    topics = [
        {"name": name, "partitions": [{"partition_index": index, "offset": offset} for index, offset in asked]}
        for name, asked in starts.items()
    ]
    return {"timeout_ms": 3000, "topics": topics}


def _fetching(a: str, unknown: str) -> dict[str, Any]:
    common = {"last_fetched_epoch": -1, "log_start_offset": -1}
    places = [(0, -1, 2, 1000), (1, -1, 0, 10**6), (2, 3, 0, 10**6), (3, -1, 5, 10), (7, -1, 0, 10), (4, 0, 0, 0)]
    parts = [
        {"partition": n, "current_leader_epoch": epoch, "fetch_offset": at, "partition_max_bytes": most, **common}
        for n, epoch, at, most in places
    ]
    none = [{"partition": 0, "current_leader_epoch": -1, "fetch_offset": 0, "partition_max_bytes": 10, **common}]
    sizes = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 10**6}
    session = {"session_id": 0, "session_epoch": -1, "forgotten_topics_data": [], "rack_id": ""}
    topics = [{"topic": a, "partitions": parts}, {"topic": unknown, "partitions": none}]
    return {"replica_id": -1, "isolation_level": 0, **sizes, **session, "topics": topics}


def answers(address: str) -> dict[str, Any]:
    host, _, port = address.rpartition(":")
    context = Ctx(Target(host, int(port)), Case("many", "", None, {}, "", False))
    try:
        a, b, unknown = context.topic(5), context.topic(3, max__message__bytes=2000), context.name("T")
        names = {a: "a", b: "b", unknown: "unknown"}
        found = {}
        for number, (api, version, body) in enumerate(requests(a, b, unknown)):
            found[f"{number} {api} {version}"] = comparable(context.conn().call(api, version, body), names)
        return found
    finally:
        context.close()


@contextmanager
def ours(data: Path) -> Iterator[str]:
    broker = BrokerProcess(data).start()
    try:
        yield broker.address
    finally:
        assert broker.stop() == 0


@pytest.mark.long
def test_every_part_is_answered_as_a_real_broker_answers_it(tmp_path: Path) -> None:
    try:
        kafka.libs(RELEASE)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {RELEASE}: {error}")
    with kafka.running(RELEASE) as node:
        theirs = answers(node.address)
    with ours(tmp_path) as address:
        found = answers(address)
    assert len(theirs) > 30
    for asked, answer in theirs.items():
        assert found[asked] == answer, asked
