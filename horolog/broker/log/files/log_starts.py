"""Keeps the start offsets of logs so that damage is detected: `horolog-log-starts`, next to Kafka's `log-start-offset-checkpoint`.

Kafka's file has no checksum: a flipped digit is believed, and hides records or shows deleted ones. So the same is written to
our own file, one per data folder, before Kafka's: Kafka's contents always have a second copy. If Kafka's file is damaged, it is
written first: as long as that fails, our file keeps the old values. Text, lines ended by a newline, fields separated by a
space:

    horolog-log-starts 1
    <topic> <partition> <offset>    one line per partition whose start the name of its first segment does not tell
    checksum <crc32c of everything before this line, 8 hex digits>

A head of version 2, `horolog-log-starts 2 <number>`, has the number of times that `horolog-cluster` had been written by then: a
file of that name with a lower number is an older copy, without the changes since.

**Which file is believed.** Our file, if its checksum holds, unless Kafka's file is readable and differs by more than one byte
or one name of a partition. If it does, Kafka has used the folder since: then the lower of the two starts counts, so that no
record is hidden that one of them shows. Without our file, or if it is damaged, Kafka's file is believed.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from crc32c import crc32c

from horolog.broker.log.files import checkpoints
from horolog.broker.log.files.checkpoints import CheckpointError, Loaded, is_possible
from horolog.broker.log.storage import FileMissing, Storage, StorageFault
from horolog.protocol.topic_partition import TopicPartition

LOG_STARTS = "horolog-log-starts"
_HEAD = "horolog-log-starts 1"
_HEAD_WITH_RECORD = "horolog-log-starts 2 "
_CHECKSUM = "checksum "


@dataclass(frozen=True, slots=True)
class LoadedStarts(Loaded):
    """The contents of the two files."""

    kafkas_is_damaged: bool = False


def encode(starts: Mapping[TopicPartition, int], record: int = 0) -> bytes:
    """`record` is the number of the record of the cluster; 0 if it is unknown."""
    lines = (
        f"{_HEAD_WITH_RECORD}{record}" if record else _HEAD,
        *(f"{topic} {index} {offset}" for (topic, index), offset in starts.items()),
    )
    for (topic, index), offset in starts.items():
        assert is_possible(topic, index, offset), f"{topic}-{index} at {offset}"
    body = "".join(f"{line}\n" for line in lines).encode()
    return body + f"{_CHECKSUM}{crc32c(body):08x}\n".encode()


def decode(data: bytes) -> dict[TopicPartition, int]:
    """Raises CheckpointError."""
    return _decode(data)[0]


def record_in(storage: Storage, data_dir: str) -> int:
    """How often the record of the cluster had been written at least; 0 if it is unknown."""
    try:
        return _decode(storage.read_all(f"{data_dir}/{LOG_STARTS}"))[1]
    except (FileMissing, ValueError, StorageFault):
        return 0


def _decode(data: bytes) -> tuple[dict[TopicPartition, int], int]:
    end = data.rfind(b"\n", 0, -1) + 1
    if data[end:] != f"{_CHECKSUM}{crc32c(data[:end]):08x}\n".encode():
        raise CheckpointError("the checksum does not match")
    head, *lines = data[:end].decode().split("\n")[:-1] or [""]
    record = head.removeprefix(_HEAD_WITH_RECORD) if head.startswith(_HEAD_WITH_RECORD) else "0"
    if not record.isdigit() or (head != _HEAD and record == "0"):
        raise CheckpointError(f"{head!r} is not {_HEAD!r}")
    parts = [line.split(" ") for line in lines]
    starts = {(topic, int(index)): int(offset) for topic, index, offset in parts}
    if not all(is_possible(topic, index, offset) for (topic, index), offset in starts.items()):
        raise CheckpointError("it names a partition or an offset that cannot be")
    return starts, int(record)


def load(storage: Storage, data_dir: str) -> LoadedStarts:
    """The known starts of logs; the fault to report is that of the damaged file."""
    kafkas_path = f"{data_dir}/{checkpoints.LOG_START_OFFSETS}"
    kafkas = _load_kafkas(storage, kafkas_path)
    try:
        ours = decode(storage.read_all(f"{data_dir}/{LOG_STARTS}"))
    except FileMissing:
        return LoadedStarts(kafkas.offsets, kafkas.fault)
    except (ValueError, StorageFault) as damage:
        return LoadedStarts(kafkas.offsets, kafkas.fault or f"{data_dir}/{LOG_STARTS}: {damage}")
    if kafkas.fault is not None:
        return LoadedStarts(ours, kafkas.fault, kafkas_is_damaged=True)
    if kafkas.offsets == ours:
        return LoadedStarts(ours)
    if _is_damaged(storage, kafkas_path, checkpoints.encode_offsets(ours)) or _is_misspelt(
        storage, data_dir, kafkas, ours
    ):
        return LoadedStarts(ours, f"{kafkas_path}: it is not what was written", kafkas_is_damaged=True)
    lower = {one: min(offset, ours[one]) for one, offset in kafkas.offsets.items() if one in ours}
    return LoadedStarts({**{one: offset for one, offset in kafkas.offsets.items() if one not in ours}, **lower})


def _load_kafkas(storage: Storage, path: str) -> Loaded:
    try:
        return checkpoints.load_offsets(storage, path)
    except StorageFault as fault:
        return Loaded(fault=str(fault))


def _is_damaged(storage: Storage, path: str, written: bytes) -> bool:
    """Whether a file is missing or empty, or differs from our bytes in at most one: Kafka would not leave that."""
    try:
        data = storage.read_all(path)
    except FileMissing:
        return True
    return not data or (len(data) == len(written) and sum(map(int.__ne__, data, written)) <= 1)


def _is_misspelt(storage: Storage, data_dir: str, kafkas: Loaded, ours: Mapping[TopicPartition, int]) -> bool:
    """Whether it names a missing partition in place of an existing one: Kafka would not, whatever else it has changed."""
    missing = ours.keys() - kafkas.offsets.keys()
    if not missing:
        return False
    there = set(storage.list_dir(data_dir))
    return any(f"{topic}-{index}" not in there for topic, index in kafkas.offsets.keys() - ours.keys())
