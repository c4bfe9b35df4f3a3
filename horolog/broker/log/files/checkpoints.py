"""Reads and writes the small text files in which a broker keeps offsets, topic ids and the mark of a clean stop.

Offset checkpoints (`recovery-point-offset-checkpoint`, `replication-offset-checkpoint`, `log-start-offset-checkpoint`,
`cleaner-offset-checkpoint`, one each per data folder): lines ended by a newline,

    0                          the version
    2                          how many entries follow
    topic-name 0 42            topic, partition, offset
    other 3 7

`leader-epoch-checkpoint` (one per partition) has the same frame and two numbers per line, see `leader_epochs`.

`partition.metadata` (one per partition, no newline at the end; the id is URL-safe base64 without padding):

    version: 0
    topic_id: 3QwsrJSIRfKzvCSObwhb_Q

`.kafka_cleanshutdown` exists only between a clean stop and the next start. Brokers before 3.8 leave it empty, later ones
write `{"version":0,"brokerEpoch":365}`. That it is there is what counts, whatever it holds.

No data depends on these files: a missing, empty or damaged one costs work (a longer recovery, a second compaction), but does
not prevent a start. Hence `Loaded`: the readable part, and the fault to report if there is one. An empty file is not a fault:
Kafka creates offset checkpoints empty.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from horolog.broker.log.storage import FileMissing, Storage
from horolog.protocol.topic_partition import TopicPartition
from horolog.protocol.uuids import parse_uuid, show_uuid

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

LARGEST_OFFSET = 2**63 - 1
LARGEST_INDEX = 2**31 - 1
TOPIC_ID_BYTES = 16


class CheckpointError(ValueError):
    """The file is malformed; the message says where."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The contents of an offset checkpoint. With a fault there are none: half a checkpoint is not trusted."""

    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    fault: str | None = None


def load_offsets(storage: Storage, path: str) -> Loaded:
    """Read an offset checkpoint; a missing one counts as empty."""
    try:
        return Loaded(decode_offsets(storage.read_all(path)))
    except FileMissing:
        return Loaded()
    except CheckpointError as damage:
        return Loaded(fault=f"{path}: {damage}")


def save_offsets(storage: Storage, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    storage.write_atomically(path, encode_offsets(offsets))


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    for (topic, index), offset in offsets.items():
        assert is_possible(topic, index, offset), f"{topic}-{index} at {offset}"
    return frame_lines(f"{topic} {index} {offset}" for (topic, index), offset in offsets.items())


def is_possible(topic: str, index: int, offset: int) -> bool:
    """Whether the partition and the offset are valid. Asserted on writing, damage on reading."""
    return bool(topic) and 0 <= index <= LARGEST_INDEX and 0 <= offset <= LARGEST_OFFSET


def decode_offsets(data: bytes) -> dict[TopicPartition, int]:
    offsets: dict[TopicPartition, int] = {}
    for number, line in unframe_lines(data):
        topic, _, numbers = line.partition(" ")
        index, offset = whole_numbers(numbers, 2, number)
        if not is_possible(topic, index, offset) or (topic, index) in offsets:
            raise CheckpointError(f"line {number}: {line!r} names no partition, or one that was named before")
        offsets[topic, index] = offset
    return offsets


def frame_lines(lines: Iterable[str]) -> bytes:
    """Version, count and lines: the layout of every checkpoint of this family."""
    rows = list(lines)
    text = "".join(f"{row}\n" for row in ("0", str(len(rows)), *rows))
    assert text.count("\n") == 2 + len(rows), f"a line of {rows} is several"
    return text.encode()


def unframe_lines(data: bytes) -> list[tuple[int, str]]:
    """The lines with their numbers in the file; raises CheckpointError unless version and count are right."""
    if not data:
        return []
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        raise CheckpointError(f"byte {error.start} is not text") from error
    if lines[0] != "0":
        raise CheckpointError(f"line 1: version {lines[0][:20]!r} is not 0")
    if lines[-1] != "":
        raise CheckpointError("the last line is not ended: the file was cut")
    (count,) = whole_numbers(lines[1], 1, 2)
    rows = lines[2:-1]
    if count != len(rows):
        raise CheckpointError(f"line 2 promises {count} entries, there are {len(rows)}")
    return list(enumerate(rows, start=3))


def whole_numbers(text: str, count: int, line_number: int) -> list[int]:
    """`count` numbers from 0 to the largest offset, with one space between."""
    parts = text.split(" ")
    if len(parts) == count and all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts):
        numbers = [int(part) for part in parts]
        if max(numbers) <= LARGEST_OFFSET:
            return numbers
    raise CheckpointError(f"line {line_number}: {text[:80]!r} where {count} whole numbers are expected")


def encode_partition_metadata(topic_id: bytes) -> bytes:
    assert len(topic_id) == TOPIC_ID_BYTES, f"{topic_id.hex()} is not a topic id"
    return f"version: 0\ntopic_id: {show_uuid(topic_id)}".encode()


def decode_partition_metadata(data: bytes) -> bytes:
    """The topic id, 16 bytes; raises CheckpointError."""
    lines = data.split(b"\n")
    if len(lines) < 2 or lines[0] != b"version: 0" or not lines[1].startswith(b"topic_id: "):
        raise CheckpointError(f"{data[:60]!r} is not partition metadata")
    try:
        return parse_uuid(lines[1].removeprefix(b"topic_id: ").decode("latin-1").strip())
    except ValueError as error:
        raise CheckpointError(str(error)) from error


def load_topic_id(storage: Storage, directory: str) -> bytes | None:
    """The topic id in a partition's folder; None if there is none, as before Kafka 2.8. Raises CheckpointError."""
    try:
        return decode_partition_metadata(storage.read_all(f"{directory}/{PARTITION_METADATA}"))
    except FileMissing:
        return None


def save_topic_id(storage: Storage, directory: str, topic_id: bytes) -> None:
    storage.write_atomically(f"{directory}/{PARTITION_METADATA}", encode_partition_metadata(topic_id))


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()


def decode_clean_shutdown(data: bytes) -> int | None:
    """The broker epoch, if the file has one; nothing depends on it."""
    try:
        content = json.loads(data)
    except ValueError:
        return None
    epoch = content.get("brokerEpoch") if isinstance(content, dict) else None
    return epoch if isinstance(epoch, int) else None


def mark_clean_shutdown(storage: Storage, data_dir: str, broker_epoch: int = -1) -> None:
    storage.write_atomically(f"{data_dir}/{CLEAN_SHUTDOWN}", encode_clean_shutdown(broker_epoch))


def take_clean_shutdown(storage: Storage, data_dir: str) -> bool:
    """Whether the last stop was clean. The mark is removed durably: should this run crash, the next one must know."""
    path = f"{data_dir}/{CLEAN_SHUTDOWN}"
    if not storage.exists(path):
        return False
    storage.remove(path)
    storage.sync_dir(data_dir)
    return True
