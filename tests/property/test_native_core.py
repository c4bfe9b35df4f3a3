"""The prototype of a native core agrees with Python: the same verdict on any batch, and the same answers and files as a broker without it."""

import base64
import contextlib
import random
import struct
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import frames
from benchmarks.native_core import building
from benchmarks.peer import Peer
from horolog.broker.log.validation import RefusedSet, check
from horolog.protocol.compile import decode, encode
from horolog.protocol.errors import DecodeError
from horolog.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from horolog.protocol.records.head import heads_in
from horolog.protocol.records.scan import scan_records
from tests.property.test_records_formats import similar_records
from tests.support import golden
from tests.support import raw_records as raw
from tests.support.broker_process import BrokerProcess
from tests.support.logs import topic_config
from tools import compiled

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),  # the first one waits for the compiler
    pytest.mark.skipif(
        not compiled.is_possible() or sys.implementation.cache_tag != "cpython-311",
        reason="no C compiler, or another Python than the one that it was measured with",
    ),
]

NOW, NEXT, EPOCH = 1_700_000_000_000, 500, 3
UNBOUNDED = 2**63 - 1
BASE = replace(topic_config(), before_max_ms=UNBOUNDED, after_max_ms=UNBOUNDED)
CRC_AT, COVERED_FROM = 17, 21
BATCH_MAGIC = 2
VERSIONS = range(3, 14)
SEED = 2


@pytest.fixture(scope="module")
def native():
    return building.built()


def said_by_core(native, data, config):
    return native.verdict(
        data, config.max_message_bytes, NOW, config.before_max_ms, config.after_max_ms, config.compact
    )


def said_by_python(data, config):
    """The result where the bytes are stored as they came, but for their place; else None."""
    try:
        checked = check(data, NEXT, config, NOW, produce_version=9, leader_epoch=EPOCH)
    except RefusedSet:
        return None
    placed = struct.pack(">q", NEXT) + data[8:12] + struct.pack(">i", EPOCH) + data[16:]
    return checked if bytes(checked.data) == placed else None


def compare(native, data, config=BASE):
    """Whatever the core accepts, Python accepts, with the same facts; returns whether it did."""
    found, checked = said_by_core(native, data, config), said_by_python(data, config)
    if found is None:
        return False
    assert checked is not None, "the core accepts what Python refuses or changes"
    count, max_timestamp, producer_id = found
    assert (checked.count, checked.max_timestamp, bool(checked.batches)) == (count, max_timestamp, producer_id >= 0)
    return True


def summed(data):
    """The same batch with the checksum that fits it."""
    return data[:CRC_AT] + struct.pack(">I", frames.crc32c.crc32c(data[COVERED_FROM:])) + data[COVERED_FROM:]


def stored_batches(log):
    with contextlib.suppress(DecodeError):  # zeros follow where a log was allocated ahead
        for head in heads_in(log):
            if head.magic == BATCH_MAGIC:
                yield log[head.position : head.end]


def test_of_the_batches_that_kafka_wrote(native, tmp_path_factory):
    accepted, plain = 0, 0
    for log in sorted(golden.unpacked(tmp_path_factory).rglob("*.log")):
        for stored in stored_batches(log.read_bytes()):
            batch = bytes(8) + stored[8:]
            accepted += compare(native, batch)
            plain += stored[21:23] == b"\0\0" and said_by_python(batch, BASE) is not None
    assert accepted == plain > 0, "each plain batch is the core's to decide"


@given(similar_records(), st.integers(-1, NOW), st.booleans())
def test_of_whole_batches(native, made, base, is_compact):
    records, count = made
    config = replace(BASE, compact=is_compact)
    untimed = raw.batch(records, count=count, base_timestamp=base)
    stored = bytes(checked.data) if (checked := checked_or_none(untimed, config)) else untimed
    timed = summed(untimed[:35] + stored[35:43] + untimed[43:])
    is_plain = scan_records(records, 0, count).in_order and said_by_python(timed, config) is not None
    assert compare(native, timed, config) == is_plain


def checked_or_none(data, config):
    try:
        return check(data, NEXT, config, NOW, produce_version=9, leader_epoch=EPOCH)
    except RefusedSet:
        return None


@given(similar_records(), st.data())
def test_of_damaged_batches(native, made, data):
    """Damage behind a checksum that fits, so that the walk has to find it."""
    records, count = made
    damaged = bytearray(raw.batch(records, count=count))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at] = data.draw(st.one_of(st.integers(0, 255), st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF])))
    cut = data.draw(st.sampled_from([len(damaged)] * 3 + [len(damaged) - 1, 61, 60, 12]))
    compare(native, bytes(damaged[:cut]))
    compare(native, summed(bytes(damaged[:cut])) if cut > 61 else bytes(damaged[:cut]))


@pytest.mark.parametrize("count", [1, 1000])
def test_of_every_flipped_byte_in_the_head(native, count):
    batch = frames.batch([b"value"] * count, NOW)
    assert compare(native, batch)
    for at in range(61):
        for bits in (0x01, 0x80, 0xFF):
            flipped = bytearray(batch)
            flipped[at] ^= bits
            compare(native, bytes(flipped))
            compare(native, summed(bytes(flipped)))


@pytest.mark.parametrize("size_bytes", [1, 7, 4095, 4096, 3 * 4096, 12 * 4096 + 5, 700_000])
def test_of_checksums_over_any_number_of_lanes(native, size_bytes):
    batch = frames.batch([random.Random(size_bytes).randbytes(size_bytes)], NOW)
    assert compare(native, batch)
    broken = bytearray(batch)
    broken[-2] ^= 1
    assert said_by_core(native, bytes(broken), BASE) is None


@pytest.mark.parametrize(("before", "after"), [(0, 0), (1000, 5), (UNBOUNDED, 0), (0, UNBOUNDED)])
@pytest.mark.parametrize("distance", [-1001, -1000, -1, 0, 1, 5, 6])
def test_of_times_at_the_bounds(native, before, after, distance):
    config = replace(BASE, before_max_ms=before, after_max_ms=after)
    batch = frames.batch([b"value"], NOW + distance)
    assert compare(native, batch, config) == (said_by_python(batch, config) is not None)


class CoreProcess(BrokerProcess):
    def command(self):
        command = super().command()
        command[command.index("horolog.client.cli.main")] = "benchmarks.native_core"
        return command


def topic_id_of(data, topic):
    """As the partition's folder has it."""
    text = next(data.rglob(f"{topic}-0/partition.metadata")).read_text().split("topic_id: ")[1].split()[0]
    return base64.urlsafe_b64decode(text + "==")


def requests(chance, topic, topic_id):
    """Produce requests of every version that has batches, valid and not, for partitions that exist and do not."""
    sequence = 0
    for number in range(300):
        version = chance.choice(VERSIONS)
        sets = []
        for partition in chance.sample(range(4), chance.randint(1, 3)):
            made = chance.choice(
                [
                    frames.batch([chance.randbytes(chance.randint(0, 300))], NOW + number),
                    frames.mixed_batch(chance.randint(1, 200), NOW + number, number),
                    frames.compressed(frames.mixed_batch(20, NOW, number), "lz4"),
                ]
            )
            if chance.random() < 0.1:
                broken = bytearray(made)
                broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
                made = bytes(broken)
            sets.append(PartitionProduceData(index=partition, records=made))
        if number % 3 == 0:
            producing = bytearray(frames.batch([b"of a producer"], NOW))
            frames.number(memoryview(producing), 7, 0, sequence)
            sequence += chance.choice([1, 1, 1, 0, 2])
            sets = [PartitionProduceData(index=0, records=bytes(producing))]
        topics = [TopicProduceData(name=topic, topic_id=topic_id, partition_data=sets)]
        request = ProduceRequest(
            transactional_id=None, acks=chance.choice([1, 1, 1, -1]), timeout_ms=1000, topic_data=topics
        )
        body = encode(request, version)
        yield version, (frames.flexible_request if version >= 9 else frames.request)(frames.Api.PRODUCE, version, body)


def outcome(broker, seed):
    """What a broker answers to the requests of a seed, and the logs and indexes that it leaves."""
    topic = "compared"
    with Peer(broker.address) as peer:
        peer.create_topics(
            [topic], 3, {"segment.bytes": "300000", "index.interval.bytes": "2000", "retention.ms": "-1"}
        )
        topic_id = topic_id_of(broker.data, topic)
        answers = [
            decode(ProduceResponse, version, peer.call(frame)[1 if version >= 9 else 0 :])
            for version, frame in requests(random.Random(seed), topic, topic_id)
        ]
    broker.stop()
    kept = {
        f"{path.parent.name}/{path.name}": path.read_bytes()
        for path in sorted(broker.data.rglob(f"{topic}-*/*"))
        if path.suffix in {".log", ".index", ".timeindex"}
    }
    for answer in answers:
        for one in answer.responses:
            one.topic_id = bytes(16)
    return answers, kept


def test_a_broker_with_the_core_answers_and_stores_as_one_without(tmp_path):
    plain = BrokerProcess(tmp_path / "plain").start()
    try:
        expected = outcome(plain, SEED)
    finally:
        plain.kill()
    with_core = CoreProcess(tmp_path / "core").start()
    try:
        answers, kept = outcome(with_core, SEED)
        assert answers == expected[0]
        assert kept == expected[1]
        assert "Traceback" not in with_core.log()
    finally:
        with_core.kill()
