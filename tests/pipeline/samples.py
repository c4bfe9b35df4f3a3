"""Records and logs for the tests of the pipeline, and what a row of each has to be."""

from pathlib import Path

from hypothesis import strategies as st

from horolog.protocol.records import batch, message_set
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.record import Record

BASE_MS = 1_700_000_000_000
CODECS = {0: (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4), 1: (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)}
CODECS[2] = (*CODECS[1], Codec.ZSTD)

_BYTES = st.one_of(st.none(), st.binary(max_size=12), st.integers(0, 300).map(lambda size: b"x" * size))
_TIMES = st.one_of(st.integers(BASE_MS, BASE_MS + 100_000), st.sampled_from([-1, 0, 2**53, BASE_MS]))
_NAMES = st.one_of(st.text(max_size=5).map(str.encode), st.just(b"\xff\xfe"))
_HEADERS = st.lists(st.tuples(_NAMES, st.one_of(st.none(), st.binary(max_size=5))), max_size=3)


@st.composite
def similar(draw, offset, *, headers):
    """Records in runs of the same shape, as batches have them."""
    size = draw(st.sampled_from([0, 1, 60, 63, 64, 200, 20_000]))
    spread = draw(st.sampled_from([0, 0, 1, 40]))
    key = draw(st.sampled_from([None, b"", b"key"]))
    said = tuple(draw(_HEADERS)) if headers else ()
    step = draw(st.sampled_from([0, 1, 700, -3]))
    gap = draw(st.sampled_from([1, 1, 2]))
    return [
        Record(offset + gap * n, BASE_MS + step * n, 0, key, b"v" * (size + n * 7 % (spread + 1)), said)
        for n in range(draw(st.integers(1, 90)))
    ]


@st.composite
def mixed(draw, offset, *, headers):
    """Records that have nothing in common."""
    found = []
    for _ in range(draw(st.integers(1, 6))):
        said = tuple(draw(_HEADERS)) if headers else ()
        found.append(Record(offset, draw(_TIMES), 0, draw(_BYTES), draw(_BYTES), said))
        offset += draw(st.integers(1, 3))
    return found


@st.composite
def entry(draw, offset):
    """One batch or set of any format and codec: (bytes, the offset behind it)."""
    magic = draw(st.sampled_from([0, 1, 2, 2, 2]))
    records = draw(st.one_of(similar(offset, headers=magic == 2), mixed(offset, headers=magic == 2)))
    codec = draw(st.sampled_from(CODECS[magic]))
    append_time = draw(st.sampled_from([None, None, BASE_MS + 5])) if magic else None
    return bytes(encoded(records, magic, codec, append_time)), records[-1].offset + 1


def encoded(records, magic, codec=Codec.NONE, append_time=None):
    if magic == 2:
        return batch.encode_batch(records, codec, append_time=append_time)
    if append_time is not None:
        records = [record._replace(timestamp=append_time, timestamp_type=1) for record in records]
    if codec == Codec.NONE:
        return message_set.encode_set(records, magic)
    return message_set.encode_wrapper(records, magic, codec, append_time)


@st.composite
def chunks(draw):
    """What a fetch may bring: some entries, mixed, the last of them perhaps cut off."""
    parts = []
    offset = draw(st.sampled_from([0, 3, 2**40]))
    for _ in range(draw(st.integers(1, 5))):
        data, offset = draw(entry(offset + draw(st.sampled_from([0, 0, 7]))))
        parts.append(data)
    if draw(st.booleans()):
        parts.append(parts[0][: draw(st.integers(0, 40))])
    return b"".join(parts)


def rows_of(records, topic, partition, *, headers=False):
    """What Spark has to show of records, headers last."""
    return [
        (
            record.key,
            record.value,
            topic,
            partition,
            record.offset,
            record.timestamp,
            record.timestamp_type,
            *([_shown(record.headers)] if headers else []),
        )
        for record in records
    ]


def _shown(headers):
    return [(key.decode(errors="replace"), value) for key, value in headers] or None


def rows_in(batches):
    """The same of Arrow batches; times in milliseconds."""
    found = []
    for one in batches:
        columns = [(column.view("int64") if number == 5 else column).to_pylist() for number, column in enumerate(one)]
        columns[5] = [micros // 1000 for micros in columns[5]]
        if len(columns) == 8:
            columns[7] = [None if row is None else [(each["key"], each["value"]) for each in row] for row in columns[7]]
        found += zip(*columns, strict=True)
    return found


def write_log(folder: Path, data: bytes, base_offset: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{base_offset:020d}.log"
    path.write_bytes(data)
    return path
