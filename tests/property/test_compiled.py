"""Both forms of a compiled module give the same answer to anything: a result, or an error of the same kind with the same words."""

import importlib
import importlib.machinery
import importlib.util
import struct
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.protocol.errors import DecodeError
from tests.property.test_records_formats import similar_records
from tests.support import raw_records as raw
from tools import compiled

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),  # the first one waits for the compiler
    pytest.mark.skipif(not compiled.is_possible(), reason="no C compiler, or no headers of this Python"),
]

RECORDS = "horolog.protocol.records."
NAMES = ("walk", "walk_set", "plain_messages", "numbers")
WIDE = st.integers(-(2**63), 2**63 - 1)


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    """Of each module the plain one and the compiled one: that of this tree, if it is there, else it is made."""
    names = [RECORDS + name for name in NAMES]
    if compiled.due():
        folder = tmp_path_factory.mktemp("compiled")
        compiled.build(folder)
        made = _made_in(folder, names)
    else:
        made = [importlib.import_module(name) for name in names]
    paths = [str(compiled.ROOT / (name.replace(".", "/") + ".py")) for name in names]
    plain = [_load(f"plain_{name}", path) for name, path in zip(NAMES, paths, strict=True)]
    return dict(zip(NAMES, zip(plain, made, strict=True), strict=True))


def _made_in(folder: Path, names: list[str]) -> list[ModuleType]:
    """Loaded beside the plain ones, which stay those that others import."""
    shared = compiled.SHARED.replace("/", ".")
    before = {name: sys.modules.get(name) for name in (*names, shared)}
    try:
        _load(shared, str(folder / (compiled.SHARED + compiled.SUFFIX)))
        return [_load(name, str(folder / (name.replace(".", "/") + compiled.SUFFIX))) for name in names]
    finally:
        for name, module in before.items():
            if module is not None:
                sys.modules[name] = module


@pytest.fixture(scope="module")
def walks(forms):
    plain, made = forms["walk"]
    assert (plain.IS_COMPILED, made.IS_COMPILED) == (False, True)
    return plain.walk, made.walk


def _load(name: str, path: str) -> ModuleType:
    source = path.endswith(".py")
    loader = (importlib.machinery.SourceFileLoader if source else importlib.machinery.ExtensionFileLoader)(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    module = importlib.util.module_from_spec(spec)
    if not source:
        sys.modules[name] = module
    loader.exec_module(module)
    return module


def outcome(walk, data, position, index, count):
    try:
        return walk(data, position, index, count)
    except (DecodeError, IndexError) as error:
        return type(error), str(error) if isinstance(error, DecodeError) else None


@given(similar_records(), st.integers(0, 5))
def test_of_whole_records(walks, made, front):
    plain, fast = walks
    records, count = made
    data = b"f" * front + records
    assert plain(data, front, 0, count) == fast(data, front, 0, count)


@given(st.lists(st.tuples(WIDE, st.integers(0, 2**31 - 1)), min_size=1, max_size=5))
def test_of_any_times_and_offsets(walks, numbers):
    plain, fast = walks
    data = b"".join(raw.record(b"v", b"k", offset, delta, []) for delta, offset in numbers)
    found = plain(data, 0, 0, len(numbers))
    assert found == fast(data, 0, 0, len(numbers))
    assert found[1:3] == (min(delta for delta, _ in numbers), max(delta for delta, _ in numbers))


@given(similar_records(), st.data())
def test_of_damaged_records(walks, made, data):
    plain, fast = walks
    records, count = made
    damaged = bytearray(records)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(
            st.one_of(st.integers(0, 255), st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]))
        )
    count += data.draw(st.sampled_from([0, 0, 1, -1]))
    assert outcome(plain, bytes(damaged), 0, 0, count) == outcome(fast, bytes(damaged), 0, 0, count)


@given(st.binary(max_size=200), st.integers(0, 5))
def test_of_any_bytes(walks, data, count):
    plain, fast = walks
    assert outcome(plain, data, 0, 0, count) == outcome(fast, data, 0, 0, count)


@given(similar_records(), st.data())
def test_of_later_records_whole_and_damaged(forms, made, data):
    records, count = made
    damaged = bytearray(records)
    for _ in range(data.draw(st.integers(0, 2))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
    above = data.draw(st.one_of(st.sampled_from([-(2**63), -1, 0, 5]), WIDE))
    outcomes, firsts = [], []
    for form in forms["walk"]:
        found = []
        try:
            end = form.later_records(bytes(damaged), 0, count, above, found)
        except (DecodeError, IndexError) as error:
            end = type(error)
        outcomes.append((end, found))
        try:
            first = form.first_later(bytes(damaged), 0, count, above)
        except (DecodeError, IndexError) as error:
            first = type(error)
        firsts.append(first)
        assert first == (found[0] if found else end if isinstance(end, type) else (above, 0))
    assert outcomes[0] == outcomes[1]
    assert firsts[0] == firsts[1]


@given(WIDE, st.integers(0, 9))
def test_of_numbers_in_bytes(forms, number, front):
    data = b"f" * front + struct.pack(">q", number) + b"f"
    for form in forms["numbers"]:
        assert form.int64_at(data, front) == number
        assert (form.int32_at(data, front), form.int32_at(data, front + 4)) == struct.unpack_from(">ii", data, front)


@pytest.mark.parametrize("last", [0x01, 0x02, 0x7F, 0x80])
def test_of_a_time_at_the_edge_of_64_bits(walks, last):
    plain, fast = walks
    delta = b"\xff" * 9 + bytes([last])
    body = b"\x00" + delta + b"\x00\x01\x01\x00"
    record = raw.varint(len(body)) + body
    found = outcome(plain, record, 0, 0, 1)
    assert found == outcome(fast, record, 0, 0, 1)
    assert (found[0] is DecodeError) == (last > 1)


@st.composite
def messages(draw):
    """Messages of v0 and v1, most of them alike, some damaged, of which some have a crc that hides it."""
    magic = draw(st.sampled_from([0, 1, 1, 1]))
    found, offset = [], draw(st.sampled_from([0, 7, 2**31 - 2, 2**63 - 40]))
    for _ in range(draw(st.integers(1, 12))):
        timestamp = draw(st.one_of(st.integers(1000, 1010), st.sampled_from([-1, -(2**63), 2**63 - 1])))
        key, value = (
            draw(st.sampled_from([None, b"", b"key"])),
            draw(st.sampled_from([None, b"", b"v" * 90, b"v" * 5000])),
        )
        attributes = draw(st.sampled_from([0, 0, 0, 0, 8, 0x10]))
        found.append(raw.message(value, key, offset=offset, magic=magic, timestamp=timestamp, attributes=attributes))
        offset += draw(st.sampled_from([1, 1, 1, 1, 3, 0]))
    data = bytearray(b"".join(found))
    for _ in range(draw(st.integers(0, 2))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.sampled_from([0, 1, 8, 0x7F, 0x80, 0xFF]))
    if draw(st.booleans()) and len(data) > 30:
        data[12:16] = raw.zlib.crc32(data[16 : len(found[0])]).to_bytes(4, "big")
    return magic, bytes(data)


@given(messages(), st.integers(30, 6000), st.booleans())
def test_of_sets(forms, made, largest_bytes, keys_needed):
    plain, fast = forms["walk_set"]
    _, data = made
    found = plain.walk_set(data, largest_bytes, keys_needed=keys_needed)
    assert found == fast.walk_set(data, largest_bytes, keys_needed=keys_needed)


@given(messages(), st.sampled_from([1, 500, 2**62]), st.booleans(), st.one_of(st.none(), WIDE))
def test_of_messages_as_records(forms, made, most_bytes, wrapped, append_time):
    plain, fast = forms["plain_messages"]
    magic, data = made
    options = {"wrapped": wrapped, "append_time": append_time if wrapped else None}
    assert plain.as_records(data, 0, magic, most_bytes, **options) == fast.as_records(
        data, 0, magic, most_bytes, **options
    )


@given(similar_records(), st.data())
def test_of_where_records_begin(forms, made, data):
    records, count = made
    damaged = bytearray(records)
    for _ in range(data.draw(st.integers(0, 2))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
    outcomes = []
    for form in forms["walk"]:
        found = []
        try:
            end = form.record_starts(bytes(damaged), 0, count, found)
        except (DecodeError, IndexError) as error:
            end = type(error)
        outcomes.append((end, found))
    assert outcomes[0] == outcomes[1]
