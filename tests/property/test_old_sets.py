"""Sets of old producers against a model that reads one field after the other: verdict, bytes for the disk, times and places.

The model says which bytes stay as they came (all plain and whole, or one wrapper numbered from 0); of sets that are written
anew it says the records.
"""

import gzip
import zlib
from dataclasses import replace
from typing import NamedTuple

from hypothesis import example, given
from hypothesis import strategies as st

from horolog.broker.log.validation import RefusedSet, check
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.entries import iter_records
from tests.support import raw_records as raw
from tests.support.logs import marks_of, topic_config

NOW = 1_700_000_000_000
NEXT = 2**32 - 70
"""So near to where a byte of the offset turns that sets of some length pass it."""
UNBOUNDED = 2**63 - 1
BASE = replace(topic_config(), before_max_ms=UNBOUNDED, after_max_ms=UNBOUNDED)
APPEND_TIME = 0x08
HEAD = {0: 18, 1: 26}  # where the key's length lies


class Found(NamedTuple):
    start: int
    stop: int
    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None


class Fault(Exception):
    pass


def number(data, at, width=4):
    return int.from_bytes(data[at : at + width], "big", signed=True)


def read_field(data, at, stop):
    """A key or a value, and where it ends."""
    if at + 4 > stop:
        raise Fault(ErrorCode.CORRUPT_MESSAGE)
    length = number(data, at)
    if length < 0:
        return None, at + 4
    if at + 4 + length > stop:
        raise Fault(ErrorCode.CORRUPT_MESSAGE)
    return data[at + 4 : at + 4 + length], at + 4 + length


def read_one(data, start, end):
    stop = start + 12 + number(data, start + 8)
    magic = data[start + 16] if start + 16 < end else 9
    if magic not in HEAD or stop - start < HEAD[magic] + 8 or stop > end:
        raise Fault(ErrorCode.CORRUPT_MESSAGE)
    timestamp = number(data, start + 18, 8) if magic else -1
    key, at = read_field(data, start + HEAD[magic], stop)
    value, _ = read_field(data, at, stop)
    return Found(start, stop, number(data, start, 8), magic, data[start + 17], timestamp, key, value)


def crc_is_right(data, one):
    return zlib.crc32(data[one.start + 16 : one.stop]) == number(data, one.start + 12) & 0xFFFFFFFF


def read_outer(data, config):
    """The whole messages, and where they end."""
    found, at = [], 0
    while len(data) - at >= 12 and number(data, at + 8) <= len(data) - at - 12:
        one = read_one(data, at, len(data))
        if one.stop - one.start > config.max_message_bytes:
            raise Fault(ErrorCode.MESSAGE_TOO_LARGE)
        if not crc_is_right(data, one):
            raise Fault(ErrorCode.CORRUPT_MESSAGE)
        found.append(one)
        at = one.stop
    if len(data) - at >= 17 and data[at + 16] not in HEAD:
        raise Fault(ErrorCode.CORRUPT_MESSAGE)
    return found, at


def read_inner(outer):
    """The messages that one is or holds; the tests compress with gzip alone."""
    codec = outer.attributes & 7
    if not codec:
        return [outer]
    if codec > 3:
        raise Fault(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if codec != 1:
        raise Fault(ErrorCode.CORRUPT_MESSAGE)
    try:
        content = gzip.decompress(outer.value or b"")
    except (OSError, EOFError, zlib.error):
        raise Fault(ErrorCode.CORRUPT_MESSAGE) from None
    found, at = [], 0
    while at < len(content):
        one = read_one(content, at, len(content))
        if one.magic != outer.magic or one.attributes & 7:
            raise Fault(ErrorCode.CORRUPT_MESSAGE)
        found.append(one)
        at = one.stop
    if not found or not all(crc_is_right(content, one) for one in found):
        raise Fault(ErrorCode.CORRUPT_MESSAGE)
    return found


def judge(outer, inner, config):
    """Refuse what the rules of time and keys do not allow."""
    if any(one.magic and one.attributes & APPEND_TIME for one in [*outer, *inner]):
        raise Fault(ErrorCode.INVALID_TIMESTAMP)
    if not config.log_append_time:
        for one in inner:
            early, late = NOW - one.timestamp, one.timestamp - NOW
            too_early = early > config.before_max_ms and config.before_max_ms != UNBOUNDED
            if one.timestamp < -1 or too_early or late > config.after_max_ms:
                raise Fault(ErrorCode.INVALID_TIMESTAMP)
    if config.compact and any(one.key is None for one in inner):
        raise Fault(ErrorCode.CORRUPT_MESSAGE)


def kept_bytes(data, outer, inner, end, config):
    """The bytes on the disk of a set that keeps its own; None for one that is written anew."""
    plain = all(one.magic == 1 and not one.attributes & 7 for one in outer)
    if plain and end == len(data):
        parts = []
        for index, one in enumerate(outer):
            attributes, covered = one.attributes, data[one.start + 18 : one.stop]
            if config.log_append_time:
                attributes, covered = attributes | APPEND_TIME, NOW.to_bytes(8, "big") + covered[8:]
            covered = bytes([1, attributes]) + covered
            crc = zlib.crc32(covered).to_bytes(4, "big")
            parts.append((NEXT + index).to_bytes(8, "big") + data[one.start + 8 : one.start + 12] + crc + covered)
        return b"".join(parts)
    alone = len(outer) == 1 and outer[0].magic == 1 and outer[0].attributes & 7
    if alone and [one.offset for one in inner] == list(range(len(inner))):
        (one,) = outer
        time = NOW if config.log_append_time else max(-1, *(each.timestamp for each in inner))
        attributes = one.attributes | (APPEND_TIME if config.log_append_time else 0)
        covered = bytes([1, attributes]) + time.to_bytes(8, "big", signed=True) + data[26 : one.stop]
        last = (NEXT + len(inner) - 1).to_bytes(8, "big")
        return last + data[8:12] + zlib.crc32(covered).to_bytes(4, "big") + covered
    return None


def groups_of(sizes, times, interval_bytes):
    """Position, first and last offset, largest time and its first offset of messages that begin within the interval."""
    marks, position = [], 0
    for index, (size, time) in enumerate(zip(sizes, times, strict=True)):
        offset = NEXT + index
        if not marks or position - marks[-1][0] > interval_bytes:
            marks.append([position, offset, offset, time, offset])
        marks[-1][2] = offset
        if time > marks[-1][3]:
            marks[-1][3:] = [time, offset]
        position += size
    return [tuple(one) for one in marks]


def check_stored(checked, data, outer, inner, end, config):
    kept = kept_bytes(data, outer, inner, end, config)
    times = [NOW if config.log_append_time else one.timestamp for one in inner]
    if kept is not None:
        assert bytes(checked.data) == kept
    assert [(one.offset, one.timestamp, one.key, one.value) for one in iter_records(bytes(checked.data))] == [
        (NEXT + index, time, one.key, one.value) for index, (time, one) in enumerate(zip(times, inner, strict=True))
    ]
    assert (checked.first_offset, checked.last_offset, checked.count) == (NEXT, NEXT + len(inner) - 1, len(inner))
    assert (checked.stored_magic, checked.append_time) == (1, NOW if config.log_append_time else -1)
    wrapped = any(one.attributes & 7 for one in outer)
    largest = max(times)
    if wrapped:
        assert (checked.max_timestamp, checked.max_timestamp_offset) == (largest, checked.last_offset)
        assert (checked.first_timestamp, len(marks_of(checked))) == (largest, 1)
        return
    assert (checked.max_timestamp, checked.max_timestamp_offset) == (largest, NEXT + times.index(largest))
    assert checked.first_timestamp == times[0]
    if kept is not None:
        sizes = [one.stop - one.start for one in outer]
        assert [tuple(one) for one in marks_of(checked)] == groups_of(sizes, times, config.index_interval_bytes)


def verdict(data, config):
    """The verdict, or the code of the refusal."""
    try:
        return check(memoryview(data), NEXT, config, NOW, produce_version=2, leader_epoch=3), None
    except RefusedSet as refused:
        return None, refused.code


def compare(data, config):
    """Hold the verdict against the model's, which knows no batches of v2."""
    if len(data) > 16 and data[16] == 2:
        return
    expected = None
    try:
        outer, end = read_outer(data, config)
        inner = [one for message in outer for one in read_inner(message)]
        judge(outer, inner, config)
    except Fault as fault:
        (expected,) = fault.args
    checked, refused = verdict(data, config)
    if checked is None:
        # A set that is written anew may grow beyond the limit, which only its own bytes can tell.
        assert refused in {expected, ErrorCode.MESSAGE_TOO_LARGE}
        assert expected is not None or kept_bytes(data, outer, inner, end, config) is None
        return
    assert expected is None
    if not outer:
        assert (checked.count, len(checked.data)) == (0, 0)
        return
    check_stored(checked, data, outer, inner, end, config)


TIMES = st.one_of(
    st.just(-1),
    st.integers(NOW - 2000, NOW + 2000),
    st.sampled_from([-2, 0, NOW, NOW, NOW - 1000, NOW + 1000, NOW + 1001, 2**63 - 1]),
)
KEYS = st.sampled_from([None, None, b"k", b"key", b""])
VALUES = st.one_of(st.none(), st.integers(0, 150).map(lambda size: b"v" * size))
ATTRIBUTES = st.sampled_from([0, 0, 0, 0, 0x10, 0xF0])
MESSAGES = st.builds(
    lambda value, key, offset, timestamp, attributes: raw.message(
        value, key, offset=offset, timestamp=timestamp, attributes=attributes
    ),
    VALUES,
    KEYS,
    st.sampled_from([-1, 0, 7, 2**62]),
    TIMES,
    ATTRIBUTES,
)
ALIKE = st.builds(
    lambda count, key, size, times: b"".join(
        raw.message(b"%06d" % index + b"v" * size, key, offset=index, timestamp=times[index % len(times)])
        for index in range(count)
    ),
    st.sampled_from([1, 7, 8, 9, 40, 128, 129]),
    KEYS,
    st.integers(0, 120),
    st.lists(TIMES, min_size=1, max_size=7),
)
VARIOUS = st.lists(MESSAGES, min_size=1, max_size=40).map(b"".join)
PLAIN = st.one_of(ALIKE, VARIOUS)
CONFIGS = st.builds(
    lambda append, compact, before, after, interval, largest: replace(
        BASE,
        log_append_time=append,
        compact=compact,
        before_max_ms=before,
        after_max_ms=after,
        index_interval_bytes=interval,
        max_message_bytes=largest,
    ),
    st.booleans(),
    st.booleans(),
    st.sampled_from([UNBOUNDED, UNBOUNDED, 1000]),
    st.sampled_from([UNBOUNDED, UNBOUNDED, 1000]),
    st.sampled_from([0, 100, 1000, 4096, 2**31 - 1]),
    st.sampled_from([120, 1_000_000, 1_000_000, 1_000_000]),
)


def starts_of(data):
    at = 0
    while at + 34 <= len(data) and number(data, at + 8) > 0:
        yield at
        at += 12 + number(data, at + 8)


@given(PLAIN, CONFIGS)
@example(raw.message(b"v", timestamp=2**63 - 1) * 8, BASE)
def test_of_plain_messages(data, config):
    compare(data, config)


@given(PLAIN, st.booleans(), st.integers(0, 2), CONFIGS)
def test_of_wrappers(inner, numbered, others, config):
    if numbered:
        inner = bytearray(inner)
        for index, at in enumerate(list(starts_of(inner))):
            inner[at : at + 8] = index.to_bytes(8, "big")
    one = raw.wrapper(bytes(inner), offset=5, timestamp=3)
    compare(one + one * (others == 1) + raw.message(timestamp=NOW) * (others == 2), config)


@given(PLAIN, st.booleans(), CONFIGS, st.data())
def test_of_damaged_sets(data, wrapped, config, chosen):
    """Any bytes are changed, of which half have a crc that hides it; then the end may be cut."""
    damaged = bytearray(data)
    for _ in range(chosen.draw(st.integers(1, 3))):
        start = chosen.draw(st.sampled_from([*starts_of(damaged), 0]))
        where = min(len(damaged) - 1, start + chosen.draw(st.integers(0, 60)))
        damaged[where] = chosen.draw(st.one_of(st.integers(0, 255), st.sampled_from([0, 1, 8, 0x7F, 0x80, 0xFE, 0xFF])))
        stop = start + 12 + number(damaged, start + 8)
        if chosen.draw(st.booleans()) and start + 16 < stop <= len(damaged):
            damaged[start + 12 : start + 16] = zlib.crc32(damaged[start + 16 : stop]).to_bytes(4, "big")
    if wrapped:
        damaged = bytearray(raw.wrapper(bytes(damaged), timestamp=3))
    del damaged[chosen.draw(st.one_of(st.just(len(damaged)), st.integers(0, len(damaged)))) :]
    compare(bytes(damaged), config)


@given(st.binary(max_size=200), CONFIGS)
def test_of_any_bytes(data, config):
    compare(data, config)
