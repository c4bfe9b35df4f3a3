"""Items of all other files than logs and their two indexes: snapshots, checkpoints, seals, the cluster's file."""

from collections.abc import Callable, Iterator
from dataclasses import asdict

from horolog.broker.log.files import checkpoints, leader_epochs, log_starts, meta_properties
from horolog.broker.log.indexes import transaction_index
from horolog.broker.log.integrity import seals
from horolog.broker.log.producers import producers_file, snapshot_file
from horolog.broker.on_record import cluster_file
from horolog.broker.on_record.stored_rules import USER
from horolog.client.cli.dumping.items import Item
from horolog.protocol.uuids import show_uuid


def dump_small(kind: str, data: bytes, base_offset: int | None) -> Iterator[Item]:
    """The entries of a small file, and a summary; or the problem that makes it unreadable."""
    try:
        entries = list(_READERS[kind](data, base_offset or 0))
    except (ValueError, UnicodeDecodeError) as error:
        yield {"type": "problem", "problem": str(error)}
        return
    yield from entries
    count = sum(item["type"] == "entry" for item in entries)
    yield {"type": "summary", "entries": count}


def _transactions(data: bytes, base_offset: int) -> Iterator[Item]:
    for one in transaction_index.decode(data, base_offset):
        yield {"type": "entry", "version": 0, **asdict(one)}


def _snapshot(data: bytes, _: int) -> Iterator[Item]:
    for one in snapshot_file.decode(data):
        yield {"type": "entry", **asdict(one)}


def _producers(data: bytes, _: int) -> Iterator[Item]:
    for one in producers_file.decode(data):
        for batch in one.batches:
            yield {
                "type": "entry",
                "producer_id": one.producer_id,
                "producer_epoch": one.epoch,
                **batch._asdict(),
            }


def _offsets(data: bytes, _: int) -> Iterator[Item]:
    yield from _entries(checkpoints.decode_offsets(data))


def _log_starts(data: bytes, _: int) -> Iterator[Item]:
    yield from _entries(log_starts.decode(data))


def _entries(offsets: dict[tuple[str, int], int]) -> Iterator[Item]:
    for (topic, partition), offset in offsets.items():
        yield {"type": "entry", "topic": topic, "partition": partition, "offset": offset}


def _epochs(data: bytes, _: int) -> Iterator[Item]:
    for epoch, start_offset in leader_epochs.decode(data):
        yield {"type": "entry", "epoch": epoch, "start_offset": start_offset}


def _partition_metadata(data: bytes, _: int) -> Iterator[Item]:
    yield {"type": "entry", "topic_id": show_uuid(checkpoints.decode_partition_metadata(data))}


def _clean_shutdown(data: bytes, _: int) -> Iterator[Item]:
    yield {"type": "entry", "broker_epoch": checkpoints.decode_clean_shutdown(data)}


def _meta(data: bytes, _: int) -> Iterator[Item]:
    yield {"type": "entry", **asdict(meta_properties.decode(data))}


def _seals(data: bytes, _: int) -> Iterator[Item]:
    for seal in seals.decode(data).values():
        holds = seal.contents
        yield {
            "type": "entry",
            "base_offset": seal.base_offset,
            "next_offset": holds.next_offset,
            "size_bytes": holds.size_bytes,
            "first_timestamp": holds.first_timestamp,
            "max_timestamp": holds.max_timestamp,
            "max_timestamp_offset": holds.max_timestamp_offset,
            "created_timestamp": seal.created_ms,
            "modified_ns": seal.modified_ns,
            "fingerprint": f"{seal.fingerprint:08x}",
            "magics": [magic for magic in range(3) if holds.magics >> magic & 1],
            "offset_index_bytes": seal.offset_index.size_bytes,
            "offset_index_crc": f"{seal.offset_index.crc:08x}",
            "time_index_bytes": seal.time_index.size_bytes,
            "time_index_crc": f"{seal.time_index.crc:08x}",
            "holes": [list(hole) for hole in holds.holes],
        }


def _worker_checkpoint(data: bytes, _: int) -> Iterator[Item]:
    from horolog.broker.cluster import worker_checkpoints

    found = worker_checkpoints.decode(data)
    for (topic, partition), row in found.rows.items():
        known = {**row._asdict(), "topic_id": show_uuid(row.topic_id)}
        yield {"type": "entry", "topic": topic, "partition": partition, **known}
    yield {"type": "state", "stopped": found.has_stopped}


def _journal(data: bytes, _: int) -> Iterator[Item]:
    from horolog.broker.cluster import journal_contents
    from horolog.broker.cluster.entry_lines import NewerJournal
    from horolog.broker.on_record.checked_lines import decode_line

    try:
        found = journal_contents.parse("", data)
    except NewerJournal as newer:
        yield {"type": "problem", "problem": str(newer)}
        return
    if found.is_lost:
        yield {"type": "problem", "problem": found.damages[0]}
        return
    has_two_heads = len(found.head_lines) > found.head_lines.find(b"\n") + 1
    for line in data[: found.read.end].split(b"\n")[has_two_heads:-1]:
        try:
            content = decode_line(line)
        except ValueError:
            continue  # shown below
        if "rule" not in content:  # it may be a secret
            yield {"type": "entry", **content}
    for damage in found.damages:
        yield {"type": "problem", "problem": damage}


def _cluster(data: bytes, _: int) -> Iterator[Item]:
    """The cluster's file; of users only the names: their credentials are secret."""
    try:
        stored = cluster_file.parse(data)
    except cluster_file.NewerClusterFile as newer:
        yield {"type": "problem", "problem": str(newer)}
        return
    yield {
        "type": "entry",
        "next_producer_id": stored.next_producer_id,
        "broker_configs": {str(node): dict(values) for node, values in stored.broker_configs.items()},
    }
    for topic in stored.topics.values():
        topic_id = show_uuid(topic.id)
        configs = dict(topic.overrides)
        yield {
            "type": "entry",
            "name": topic.name,
            "id": topic_id,
            "partitions": topic.partition_count,
            "configs": configs,
        }
    for rule in stored.rules.values():
        yield {"type": "entry", "rule": rule.kind, "key": rule.key, **({} if rule.kind == USER else rule.content)}
    for damage in stored.damages:
        yield {"type": "problem", "problem": damage}


_READERS: dict[str, Callable[[bytes, int], Iterator[Item]]] = {
    "transaction-index": _transactions,
    "snapshot": _snapshot,
    "offset-checkpoint": _offsets,
    "log-starts": _log_starts,
    "leader-epochs": _epochs,
    "partition-metadata": _partition_metadata,
    "clean-shutdown": _clean_shutdown,
    "meta-properties": _meta,
    "seals": _seals,
    "producers": _producers,
    "cluster": _cluster,
    "journal": _journal,
    "worker-checkpoint": _worker_checkpoint,
}
