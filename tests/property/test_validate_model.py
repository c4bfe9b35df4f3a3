"""Validation against the plainest model: every record as a value, every rule looked at one by one, nothing fast."""

import gzip
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from horolog.broker.log.validation import RefusedSet, check
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records import entries
from horolog.protocol.records.head import heads_in
from tests.support import raw_records as raw
from tests.support.logs import marks_of, topic_config

NOW = 1_700_000_000_000
NEXT = 500
UNBOUNDED = 2**63 - 1
BASE = replace(topic_config(), before_max_ms=UNBOUNDED, after_max_ms=UNBOUNDED)

TIMES = st.one_of(
    st.just(-1),
    st.integers(NOW - 2000, NOW + 2000),
    st.integers(0, 5),
    st.sampled_from([NOW, NOW - 1000, NOW + 1000]),
)
KEYS = st.sampled_from([None, b"k", b"key", b""])
VALUES = st.one_of(st.none(), st.integers(0, 150).map(lambda size: b"v" * size))
ROWS = st.lists(st.tuples(TIMES, KEYS, VALUES), min_size=1, max_size=40)
SAME_ROWS = st.tuples(st.integers(1, 60), st.tuples(TIMES, KEYS, VALUES)).map(lambda made: [made[1]] * made[0])
CONFIGS = st.builds(
    lambda append, compact, before, after, codec, magic, interval: replace(
        BASE,
        log_append_time=append,
        compact=compact,
        before_max_ms=before,
        after_max_ms=after,
        compression=codec,
        stored_magic=magic,
        index_interval_bytes=interval,
    ),
    st.booleans(),
    st.booleans(),
    st.sampled_from([UNBOUNDED, UNBOUNDED, 1000, 0]),
    st.sampled_from([UNBOUNDED, UNBOUNDED, 1000, 0]),
    st.sampled_from(["producer", "producer", "gzip", "uncompressed", "lz4"]),
    st.sampled_from([None, None, 0, 1, 2]),
    st.sampled_from([0, 100, 4096]),
)
SHAPES = st.sampled_from(["plain v0", "plain v1", "wrapper v0", "wrapper v1", "batch", "gzip batch"])


def build(rows, shape):
    """A producer's bytes for these rows."""
    if "batch" in shape:
        base = rows[0][0]
        body = b"".join(
            raw.record(value, key, index, timestamp - base) for index, (timestamp, key, value) in enumerate(rows)
        )
        packed = shape == "gzip batch"
        return raw.batch(
            gzip.compress(body, 1) if packed else body,
            count=len(rows),
            attributes=int(packed),
            base_timestamp=base,
            max_timestamp=7,
        )
    magic = int(shape[-1])
    messages = b"".join(
        raw.message(value, key, offset=index, magic=magic, timestamp=timestamp)
        for index, (timestamp, key, value) in enumerate(rows)
    )
    return raw.wrapper(messages, offset=len(rows) - 1, magic=magic, timestamp=9) if "wrapper" in shape else messages


def expected_refusal(rows, shape, config):
    """The code and the offenders, or None."""
    source = 2 if "batch" in shape else int(shape[-1])
    untimely, keyless = [], []
    for index, (timestamp, key, _) in enumerate(rows):
        timestamp = timestamp if source else -1
        judged = not config.log_append_time
        judged = judged and not (source == 2 and timestamp == -1)
        judged = judged and not (source == 0 and config.stored_magic == 0)
        if config.compact and key is None:
            keyless.append(index)
            if source == 2:
                continue
        if judged and (NOW - timestamp > config.before_max_ms or timestamp - NOW > config.after_max_ms):
            untimely.append(index)
    if untimely:
        return ErrorCode.INVALID_TIMESTAMP, sorted(untimely + keyless) if source == 2 else untimely
    if keyless:
        return (ErrorCode.INVALID_RECORD if source == 2 else ErrorCode.CORRUPT_MESSAGE), keyless
    return None


def expected_times(rows, shape, config):
    """Each stored record's time, and the format in which it is stored."""
    source = 2 if "batch" in shape else int(shape[-1])
    stored = max(source, 1) if config.stored_magic is None else config.stored_magic
    if stored == 0:
        return [-1] * len(rows), stored
    if config.log_append_time:
        return [NOW] * len(rows), stored
    return [timestamp if source else -1 for timestamp, _, _ in rows], stored


def run(data, config, shape):
    version = 9 if "batch" in shape else 2
    return check(data, NEXT, config, NOW, produce_version=version, leader_epoch=3)


@given(st.one_of(ROWS, SAME_ROWS), SHAPES, CONFIGS)
@example([(-1, b"k", b"v")] * 20, "plain v1", replace(BASE, before_max_ms=0))
def test_the_verdict_is_the_models(rows, shape, config):
    data = build(rows, shape)
    refusal = expected_refusal(rows, shape, config)
    if refusal is not None:
        with pytest.raises(RefusedSet) as refused:
            run(data, config, shape)
        assert (refused.value.code, [index for index, _ in refused.value.record_errors]) == refusal
        return
    checked = run(data, config, shape)
    times, magic = expected_times(rows, shape, config)
    kept = bytes(checked.data)
    found = list(heads_in(kept))
    assert all(entries.check_crc(kept, one.position, one.size_bytes, one.magic) for one in found)
    assert {one.magic for one in found} == {magic} == {checked.stored_magic}
    assert [(one.offset, one.timestamp, one.key, one.value) for one in entries.iter_records(kept)] == [
        (NEXT + index, time, key, value) for index, (time, (_, key, value)) in enumerate(zip(times, rows, strict=True))
    ]
    assert sum(one.size_bytes for one in found) == checked.size_bytes == len(kept)
    assert (checked.first_offset, checked.last_offset, checked.count) == (NEXT, NEXT + len(rows) - 1, len(rows))
    assert checked.append_time == (NOW if config.log_append_time else -1)
    check_marks(checked, found, config)


def check_marks(checked, found, config):
    """Marks lie on entries, cover them all in order, and say the largest time of each group."""
    assert checked.max_timestamp == max(one.max_timestamp for one in found)
    assert checked.first_timestamp == found[0].max_timestamp
    assert marks_of(checked)[0].position == 0
    assert marks_of(checked)[0].first_offset == NEXT
    behind = [*marks_of(checked)[1:], None]
    for mark, after in zip(marks_of(checked), behind, strict=True):
        group = [
            one for one in found if one.position >= mark.position and (after is None or one.position < after.position)
        ]
        assert group[0].position == mark.position
        assert group[-1].last_offset == mark.last_offset
        assert mark.max_timestamp == max(one.max_timestamp for one in group)
        assert group[-1].position - mark.position <= config.index_interval_bytes
        assert mark.first_offset <= mark.max_timestamp_offset <= mark.last_offset
        if after is not None:
            assert after.first_offset == mark.last_offset + 1
            assert after.position - mark.position > config.index_interval_bytes
    assert checked.max_timestamp_offset in {mark.max_timestamp_offset for mark in marks_of(checked)}


@given(st.one_of(ROWS, SAME_ROWS), SHAPES, CONFIGS, st.data())
def test_damaged_sets_are_refused_or_stored_readably(rows, shape, config, data):
    """No bytes make anything but a verdict, and stored bytes can be read by those who come after."""
    damaged = bytearray(build(rows, shape))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    del damaged[data.draw(st.one_of(st.just(len(damaged)), st.integers(0, len(damaged)))) :]
    repair(damaged, data.draw(st.booleans()))
    version = data.draw(st.sampled_from([0, 2, 3, 9]))
    try:
        checked = check(bytes(damaged), NEXT, config, NOW, produce_version=version, leader_epoch=3)
    except RefusedSet:
        return
    kept = bytes(checked.data)
    records = list(entries.iter_records(kept))
    assert len(records) == checked.count
    assert all(checked.first_offset <= record.offset <= checked.last_offset for record in records)
    if records:
        assert checked.max_timestamp == max(-1, *(record.timestamp for record in records))


def repair(data, wanted):
    """Make the first entry's checksum right again, so that damage behind it is not all found by that."""
    if not wanted or len(data) < 61:
        return
    size = 12 + int.from_bytes(data[8:12], "big", signed=True)
    if data[16] == 2 and size >= 61:
        data[17:21] = raw.crc32c(bytes(data[21:size])).to_bytes(4, "big")
    elif data[16] < 2 and size >= 26:
        data[12:16] = raw.zlib.crc32(bytes(data[16:size])).to_bytes(4, "big")
