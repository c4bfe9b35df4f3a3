"""Whoever wrote it and whoever reads it: the records are the same, and what batches say of themselves is true."""

from __future__ import annotations

import asyncio
import zlib
from itertools import accumulate

from hypothesis import example, given, settings
from hypothesis import strategies as st

from horolog.protocol.apis import API, ApiKey
from horolog.protocol.errors import DecodeError
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from horolog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.records import message_set
from horolog.protocol.records.batch import encode_batch, read_header
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.convert_up import iter_up
from horolog.protocol.records.entries import check_crc, iter_records, records_of_entry
from horolog.protocol.records.head import (
    HEADER_BYTES,
    heads_in,
)
from horolog.protocol.records.record import Record
from horolog.protocol.records.timestamps import TimestampType
from tests.property.test_records_formats import record_lists
from tests.support.at_once import at_once
from tests.support.memory_broker import NOW_MS, MemoryBroker

CREATE_TIME, APPEND_TIME = int(TimestampType.CREATE_TIME), int(TimestampType.LOG_APPEND_TIME)
NEWEST_FETCH = API[ApiKey.FETCH].max_version
RELEASES = ("0.9.0", "0.10.2", "3.0")
"""By the format in which they keep records."""


@st.composite
def logs(draw, magics=(0, 1, 1, 2)):
    """The bytes of a log of any mixture, as a compacted one may be, with gaps."""
    parts, next_offset = [], 0
    for _ in range(draw(st.integers(1, 5))):
        magic = draw(st.sampled_from(magics))
        codec = Codec(draw(st.integers(0, 3)))
        kind = draw(st.sampled_from([CREATE_TIME, APPEND_TIME])) if magic else int(TimestampType.NONE)
        records = draw(record_lists(headers=st.just([])))
        distance = next_offset - records[0].offset + draw(st.integers(0, 3))
        append_time = draw(st.integers(0, 2**41))
        records = [
            Record(
                one.offset + distance,
                -1 if not magic else append_time if kind == APPEND_TIME else one.timestamp,
                kind,
                one.key,
                one.value,
            )
            for one in records
        ]
        next_offset = records[-1].offset + 1
        if magic == 2:
            parts.append(bytes(encode_batch(records, codec, append_time=append_time if kind == APPEND_TIME else None)))
        elif codec:
            parts.append(message_set.encode_wrapper(records, magic, codec))
        else:
            parts.append(message_set.encode_set(records, magic))
    return b"".join(parts)


def as_v2(record):
    """What v2 can say: no time is a CreateTime of -1."""
    return record._replace(timestamp_type=max(CREATE_TIME, record.timestamp_type))


@settings(max_examples=40)
@given(logs(), st.sampled_from([1, 100, 300, 16384]))
def test_batches_say_what_the_log_says(data, batch_bytes):
    batches = list(iter_up(data, batch_bytes=batch_bytes))
    converted = b"".join(one.data for one in batches)
    assert list(iter_records(converted)) == [as_v2(one) for one in iter_records(data)]
    assert batches[-1].end == len(data)
    stored = {entry.position: entry for entry in heads_in(data)}
    begin = 0
    for one in batches:
        entry = stored[begin]
        header = read_header(one.data)
        records = list(iter_records(one.data))
        assert check_crc(one.data, 0, header.size_bytes, 2)
        assert header.max_timestamp == max(-1, *(record.timestamp for record in records))
        assert (header.base_offset, header.last_offset) == (records[0].offset, records[-1].offset)
        assert one.next_offset == header.last_offset + 1
        assert header.codec == Codec(entry.attributes & 7)
        if entry.magic == 2:
            assert one.data == data[begin : one.end]
        elif not entry.is_compressed:
            assert len(one.data) <= max(batch_bytes, HEADER_BYTES + 40 + len(records[0].key or b"") + 320)
        begin = one.end


@settings(max_examples=40)
@given(logs(), st.data())
def test_a_slice_that_is_cut_gives_what_is_whole(data, chosen):
    cut = data[: chosen.draw(st.integers(0, len(data)))]
    converted = b"".join(one.data for one in iter_up(cut))
    assert list(iter_records(converted)) == [as_v2(one) for one in iter_records(cut)]


def read_until_fault(data):
    """The records up to the first message that cannot be read, one value for each; and whether there is such a one."""
    found = []
    try:
        for entry in heads_in(data):
            if not check_crc(data, entry.position, entry.size_bytes, entry.magic):
                return found, True
            found += [as_v2(one) for one in list(records_of_entry(data, entry))]
    except DecodeError:
        return found, True
    return found, False


def convert_until_fault(data, batch_bytes):
    found = []
    try:
        for one in iter_up(data, batch_bytes=batch_bytes):
            found += iter_records(one.data)
    except DecodeError:
        return found, True
    return found, False


@settings(max_examples=100)
@given(logs(magics=(0, 1, 1)), st.sampled_from([1, 300, 16384]), st.data())
def test_damaged_logs_give_what_is_whole_in_front(data, batch_bytes, chosen):
    """Any bytes are changed, of which half have a crc that hides it."""
    damaged = bytearray(data)
    for _ in range(chosen.draw(st.integers(1, 3))):
        entry = chosen.draw(st.sampled_from(list(heads_in(data))))
        # A batch of v2 is not looked into.
        behind_magic = chosen.draw(st.one_of(st.integers(8, 15), st.integers(17, 60)))
        damaged[entry.position + min(entry.size_bytes - 1, behind_magic)] = chosen.draw(
            st.one_of(st.integers(0, 255), st.sampled_from([0, 1, 8, 0x80, 0xFF]))
        )
        if chosen.draw(st.booleans()):
            crc = zlib.crc32(damaged[entry.position + 16 : entry.end])
            damaged[entry.position + 12 : entry.position + 16] = crc.to_bytes(4, "big")
    assert convert_until_fault(bytes(damaged), batch_bytes) == read_until_fault(bytes(damaged))


@st.composite
def produced_sets(draw):
    """(magic stored, LogAppendTime, the set) of several producers, of any release."""
    found = []
    for _ in range(draw(st.integers(1, 6))):
        magic = draw(st.sampled_from([0, 1, 2]))
        codec = Codec(draw(st.integers(0, 3)))
        count = draw(st.integers(1, 6))
        times = draw(st.lists(st.integers(NOW_MS - 50, NOW_MS + 50), min_size=count, max_size=count))
        values = draw(st.lists(st.one_of(st.none(), st.binary(max_size=60)), min_size=count, max_size=count))
        records = [
            Record(n, time if magic else -1, CREATE_TIME, b"key-%d" % n, value)
            for n, (time, value) in enumerate(zip(times, values, strict=True))
        ]
        found.append((magic, draw(st.booleans()), codec, records))
    return found


def encode(magic, codec, records):
    if magic == 2:
        return bytes(encode_batch(records, codec))
    if codec:
        return message_set.encode_wrapper(records, magic, codec)
    return message_set.encode_set(records, magic)


async def produce(memory, client, sets):
    """Append the sets, each in its own format; the records as the newest readers must get them."""
    expected = []
    for magic, appended, codec, records in sets:
        overrides = {"message.format.version": RELEASES[magic]}
        if appended:
            overrides["message.timestamp.type"] = "LogAppendTime"
        at_once(memory.broker.cluster.alter_topic_configs, {"t": overrides})
        part = PartitionProduceData(index=0, records=encode(magic, codec, records))
        request = ProduceRequest(
            acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[part])]
        )
        answer = (await client.ask(request, 3 if magic == 2 else 2)).responses[0].partition_responses[0]
        assert answer.error_code == 0
        by_broker = appended and magic > 0
        for n, one in enumerate(records):
            time = memory.clock.wall_ms() if by_broker else one.timestamp
            expected.append(Record(answer.base_offset + n, time, int(by_broker), one.key, one.value))
        memory.clock.advance(10)
    return expected


async def fetch_all(memory, client, version, start, max_bytes, ends):
    """What a reader gets from an offset on, and every batch and message as it came.

    A batch of v2 that is too large for `max_bytes` comes whole, and readers of old formats get all its messages, as from Kafka. `ends`
    says where each set that was produced ends, and its format.
    """
    topic = memory.broker.cluster.topics["t"]
    offset, records, entries = start, [], []
    end = topic.find(0).high_watermark
    while offset < end:
        part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
        place = {"topic_id": topic.id} if version >= 13 else {"topic": "t"}
        request = FetchRequest(max_wait_ms=0, min_bytes=1, topics=[FetchTopic(partitions=[part], **place)])
        answer = (await client.ask(request, version)).responses[0].partitions[0]
        data = bytes(answer.records)
        whole = list(heads_in(data))
        assert answer.error_code == 0
        assert whole, "a reader must get on"
        end_of_set, magic = next(one for one in ends if one[0] > offset)
        was_one_batch = version < 4 and magic == 2 and whole[-1].last_offset < end_of_set
        assert len(data) <= max_bytes or whole[0].size_bytes == len(data) or was_one_batch
        records += [one for one in iter_records(data) if one.offset >= offset]
        entries += [data[one.position : one.position + one.size_bytes] for one in whole]
        offset = whole[-1].last_offset + 1
    return records, entries


def as_read(record, version):
    """What a version of Fetch can say of a record."""
    if version < 2:
        return record._replace(timestamp=-1, timestamp_type=-1)
    return record


def without_type(records):
    """Whether a time that is not there has a type is a matter of the format."""
    return [one._replace(timestamp_type=0) if one.timestamp == -1 else one for one in records]


async def check_readers(sets, version, start, max_bytes):
    async with MemoryBroker() as memory:
        memory.topic()
        client = memory.connect()
        expected = await produce(memory, client, sets)
        start = min(start, len(expected) - 1)
        set_ends = accumulate(len(records) for *_, records in sets)
        ends = [(end, magic) for end, (magic, *_) in zip(set_ends, sets, strict=True)]
        if version < 3:
            max_bytes = 1 << 20  # these cut the first message, and their readers ask for more
        for _ in range(2):  # converted, and remembered
            records, entries = await fetch_all(memory, client, version, start, max_bytes, ends)
            assert without_type(records) == without_type([as_read(one, version) for one in expected[start:]])
            for one in entries if version >= 4 else ():
                held = list(iter_records(one))
                assert read_header(one).max_timestamp == max(record.timestamp for record in held)
        at_once(memory.broker.cluster.alter_topic_configs, {"t": {}})  # a topic that keeps v0 refuses to look up times
        await check_look_ups(client, expected)


async def check_look_ups(client, expected):
    for target in {one.timestamp + step for one in expected for step in (-1, 0, 1) if one.timestamp > 0}:
        part = ListOffsetsPartition(partition_index=0, timestamp=target)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[part])])
        answer = (await client.ask(request, 5)).topics[0].partitions[0]
        first = next(((one.offset, one.timestamp) for one in expected if one.timestamp >= target), (-1, -1))
        assert (answer.offset, answer.timestamp) == first


SMALL = [Record(n, NOW_MS - 50, CREATE_TIME, b"key-%d" % n, None) for n in range(3)]


@settings(max_examples=25)
@example([(2, False, Codec.NONE, SMALL[:2])], 3, 0, 1)
@example([(2, False, Codec.NONE, SMALL)] * 2, 3, 0, 200)  # 194 bytes as batches, 234 as messages
@given(produced_sets(), st.integers(0, NEWEST_FETCH), st.integers(0, 20), st.sampled_from([1, 200, 2**20]))
def test_every_reader_gets_the_same_records(sets, version, start, max_bytes):
    asyncio.run(check_readers(sets, version, start, max_bytes))
