"""What producers of every era wrote, current and older clients read: each record, with its offset, time and timestamp type.

Topics are filled as the producers of an era fill them, frame by frame. Each release of a reader runs in an environment of its own.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from horolog.protocol.apis import API, ApiKey
from horolog.protocol.compile import decode, encode
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.records import message_set
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.record import Record
from tests.interop.clients import execute
from tests.interop.samples import SAMPLES
from tests.interop.toolchains import BuildFailedError, java_program, node_program, python_packages
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.one_broker("its frames go to one broker")]

HERE = Path(__file__).parent
RELEASES = ("0.9.0", "0.10.2", "3.0")
"""By the format in which they keep records."""
SET_RECORDS = 50
LIBRDKAFKA = ("2.0.2", "2.3.0", "2.4.0", "2.5.0", "2.5.3", "2.6.1", "2.8.2", "2.11.1", "2.14.0")
JAVA = ("4.3.1", "3.9.2", "2.8.2", "0.10.2.2", "0.9.0.1")


class Writer(NamedTuple):
    """How a topic is filled: the formats and codecs of its sets, one after the other, and what the topic keeps."""

    magics: tuple[int, ...]
    codec: Codec = Codec.NONE
    config: tuple[tuple[str, str], ...] = ()


def kept(magic: int) -> tuple[tuple[str, str], ...]:
    return (("message.format.version", RELEASES[magic]),)


APPENDED = (("message.timestamp.type", "LogAppendTime"),)
OLD_CODECS = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)
WRITERS = {
    **{
        f"v{magic}-{codec.name.lower()}": Writer((magic,), codec, kept(magic))
        for magic in (0, 1)
        for codec in OLD_CODECS
    },
    "appended-none": Writer((1,), Codec.NONE, APPENDED),
    "appended-gzip": Writer((1,), Codec.GZIP, APPENDED),
    "v0_as_v1-none": Writer((0,)),
    "v0_as_v1-snappy": Writer((0,), Codec.SNAPPY),
    "mixed-none": Writer((0, 1, 2)),
    "mixed-lz4": Writer((1, 2, 0), Codec.LZ4),
}


def set_of(magic: int, codec: Codec, first: int) -> bytes:
    records = [
        Record(n, one.timestamp if magic else -1, 0, one.key, one.value)
        for n, one in enumerate(SAMPLES[first : first + SET_RECORDS])
    ]
    if magic == 2:
        return bytes(encode_batch(records, codec))
    if codec == Codec.NONE:
        return message_set.encode_set(records, magic)
    return message_set.encode_wrapper(records, magic, codec)


def produce(address: str, topic: str, data: bytes, version: int) -> None:
    """One Produce request on a connection of its own."""
    part = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=data)])
    body = encode(ProduceRequest(acks=1, timeout_ms=5000, topic_data=[part]), version)
    frame = struct.pack(">hhih4s", ApiKey.PRODUCE, version, 1, 4, b"test") + body
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), 10) as link, link.makefile("rb") as answers:
        link.sendall(struct.pack(">i", len(frame)) + frame)
        (size,) = struct.unpack(">i", answers.read(4))
        answer = decode(API[ApiKey.PRODUCE].response, version, answers.read(size), 4)
    assert answer.responses[0].partition_responses[0].error_code == 0


def fill(broker: BrokerProcess, prefix: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    topics = [NewTopic(f"{prefix}-{name}", 1, 1, config=dict(writer.config)) for name, writer in WRITERS.items()]
    for future in admin.create_topics(topics).values():
        future.result(20.0)
    for name, writer in WRITERS.items():
        for number, first in enumerate(range(0, len(SAMPLES), SET_RECORDS)):
            magic = writer.magics[number % len(writer.magics)]
            if len(writer.magics) > 1:
                keep(admin, f"{prefix}-{name}", magic)
            version = 3 if magic == 2 else 2
            produce(broker.address, f"{prefix}-{name}", set_of(magic, writer.codec, first), version)


def keep(admin: AdminClient, topic: str, magic: int) -> None:
    entries = [ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in kept(magic)]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(20.0)


Row = tuple[int, int, int, str, str]
"""Offset, timestamp type, timestamp, key, value; the time of an append is told as 0."""


def expected_rows(writer: Writer) -> list[Row]:
    rows = []
    for n, one in enumerate(SAMPLES):
        magic = writer.magics[n // SET_RECORDS % len(writer.magics)]
        appended = writer.config == APPENDED
        time = 0 if appended else one.timestamp if magic else -1
        rows.append((n, int(appended), time, _hex(one.key), _hex(one.value)))
    return rows


def _hex(data: bytes | None) -> str:
    return "-" if data is None else data.hex()


def rows_of(said: str) -> Iterator[tuple[str, Row]]:
    for line in said.splitlines():
        if len(told := line.split("\t")) == 6:
            offset, kind, time = map(int, told[1:4])
            yield told[0], (offset, kind, 0 if kind == 1 else time, told[4], told[5])


@dataclass(frozen=True)
class Reader:
    """One release of a client: the command of its program, and what it cannot tell."""

    name: str
    build: Callable[[Path], Sequence[str]] = field(repr=False)
    tells_times: bool = True
    tells_types: bool = True
    adds_deltas: bool = False
    """Whether it takes the first time of a batch and adds each record's delta, also where the batch has one time for all."""
    cannot: frozenset[Codec] = frozenset()
    marks: tuple[pytest.MarkDecorator, ...] = ()


def python_reader(name: str, *packages: str) -> Callable[[Path], list[str]]:
    def command(_: Path) -> list[str]:
        program = [str(HERE / "python" / "read_topics.py"), name]
        if not packages:
            return [sys.executable, *program]
        return ["env", f"PYTHONPATH={python_packages(*packages)}", sys.executable, *program]

    return command


READERS = [
    *(Reader(f"confluent-kafka {one}", python_reader("confluent", f"confluent-kafka=={one}")) for one in LIBRDKAFKA),
    Reader("confluent-kafka", python_reader("confluent")),
    Reader("kafka-python", python_reader("kafka-python"), cannot=frozenset({Codec.SNAPPY})),
    Reader("aiokafka", python_reader("aiokafka")),
    *(
        Reader(
            f"java-kafka-clients {one}",
            java_program(one, "ReadTopics", needs=()),
            tells_times=one != "0.9.0.1",
            marks=(pytest.mark.java,),
        )
        for one in JAVA
    ),
    Reader("kafkajs 2.2.4", node_program("read_topics.js", "kafkajs"), tells_types=False, marks=(pytest.mark.node,)),
    Reader(
        "@platformatic/kafka 1.35.0",
        node_program("read_topics.js", "platformatic"),
        tells_types=False,
        adds_deltas=True,
        cannot=frozenset(
            {Codec.SNAPPY}
        ),  # nor as v2: it does not know the frame that Java's clients write around blocks
        marks=(pytest.mark.node,),
    ),
    Reader(
        "@platformatic/kafka 2.12.1",
        node_program("read_topics.js", "platformatic", packages="newest"),
        tells_types=False,
        adds_deltas=True,
        cannot=frozenset(),
        marks=(pytest.mark.node,),
    ),
]


class Readings:
    """Fills the topics once and runs each reader once over all of them."""

    def __init__(self, broker: BrokerProcess, scratch: Callable[[str], Path]) -> None:
        self._broker = broker
        self._scratch = scratch
        self._read: dict[str, dict[str, list[Row]]] = {}
        self.complaints: dict[str, str] = {}
        self.prefix = unique("old-formats")
        fill(broker, self.prefix)

    def of(self, reader: Reader) -> dict[str, list[Row]]:
        if reader.name not in self._read:
            self._read[reader.name] = self._run(reader)
        return self._read[reader.name]

    def _run(self, reader: Reader) -> dict[str, list[Row]]:
        scratch = self._scratch(reader.name.replace("/", "-").replace(" ", "-"))
        try:
            command = reader.build(scratch)
        except (BuildFailedError, subprocess.SubprocessError, FileNotFoundError) as error:
            pytest.skip(f"{reader.name} cannot be had here: {error}")
        names = [name for name, writer in WRITERS.items() if writer.codec not in reader.cannot]
        topics = [f"{self.prefix}-{name}" for name in names]
        said, complaints = execute([*command, self._broker.address, str(len(SAMPLES)), *topics], scratch)
        self.complaints[reader.name] = complaints[-2000:]
        found: dict[str, list[Row]] = {name: [] for name in names}
        for topic, row in rows_of(said):
            found[topic.removeprefix(f"{self.prefix}-")].append(row)
        return found


@pytest.fixture(scope="module")
def readings(session_broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Readings:
    return Readings(session_broker, tmp_path_factory.mktemp)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("reader", [pytest.param(one, id=one.name, marks=one.marks) for one in READERS])
def test_what_was_written_is_read(readings: Readings, reader: Reader, writer: str) -> None:
    if WRITERS[writer].codec in reader.cannot:
        pytest.skip(f"{reader.name} has no {WRITERS[writer].codec.name}")
    expected = expected_rows(WRITERS[writer])
    found = readings.of(reader)[writer]
    if not reader.tells_times:
        expected = [(offset, 0, -1, key, value) for offset, _, _, key, value in expected]
    elif reader.adds_deltas and WRITERS[writer].config == APPENDED and WRITERS[writer].codec != Codec.NONE:
        # Inner messages keep their producer's times, and a converted batch keeps these as deltas, as Kafka's does.
        expected = [(one[0], 0, sample.timestamp, *one[3:]) for one, sample in zip(expected, SAMPLES, strict=True)]
    elif not reader.tells_types and WRITERS[writer].config == APPENDED:
        expected = [(offset, 0, 0, key, value) for offset, _, _, key, value in expected]
        assert all(time > SAMPLES[-1].timestamp for _, _, time, _, _ in found), "the broker's times, not the producer's"
        found = [(offset, kind, 0, key, value) for offset, kind, _, key, value in found]
    assert found == expected, readings.complaints[reader.name]
