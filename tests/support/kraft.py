"""Writes the files that a KRaft controller leaves in a folder: its log, its snapshots, and the ids in the partitions' folders."""

import struct

from horolog.protocol.compile import encode
from horolog.protocol.messages import metadata_records as records
from horolog.protocol.messages.metadata_records import RECORDS
from horolog.protocol.primitives import encode_unsigned_varint
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.head import CONTROL_BIT
from horolog.protocol.records.record import Record
from horolog.protocol.wire import Message

FOLDER = "__cluster_metadata-0"
TIME_MS = 1_700_000_000_000
TYPES = {cls: kind for kind, cls in RECORDS.items()}
NODE = 1


def frame(message: Message, version: int = 0) -> bytes:
    return framed(TYPES[type(message)], version, encode(message, version))


def framed(kind: int, version: int, body: bytes) -> bytes:
    return b"".join(encode_unsigned_varint(number) for number in (1, kind, version)) + body


def log(*batches: list[Message | bytes], first: int = 0, epoch: int = 1) -> bytes:
    """A segment; a message given as bytes is used as a record's raw value."""
    data = bytearray()
    offset = first
    for messages in batches:
        values = [one if isinstance(one, bytes) else frame(one) for one in messages]
        content = [Record(offset + n, TIME_MS, 0, None, value) for n, value in enumerate(values)]
        data += encode_batch(content, leader_epoch=epoch)
        offset += len(values)
    return bytes(data)


def snapshot(*messages: Message, finished: bool = True) -> bytes:
    def control(kind: int, offset: int) -> bytes:
        return bytes(
            encode_batch([Record(offset, TIME_MS, 0, struct.pack(">hh", 0, kind), b"\0\0")], attributes=CONTROL_BIT)
        )

    end = control(4, 1 + len(messages)) if finished else b""
    return control(3, 0) + log(list(messages), first=1) + end


def topic(name: str, topic_id: bytes, partitions: int = 1, configs: dict[str, str] | None = None) -> list[Message]:
    made: list[Message] = [records.TopicRecord(name=name, topic_id=topic_id)]
    made += [config(name, key, value) for key, value in (configs or {}).items()]
    made += [
        records.PartitionRecord(partition_id=index, topic_id=topic_id, replicas=[NODE], isr=[NODE], leader=NODE)
        for index in range(partitions)
    ]
    return made


def config(name: str, key: str, value: str | None, kind: int = 2) -> Message:
    return records.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)
