"""Reading old formats as v2: each piece converted once, shared between readers, and never in the way of v2 batches."""

import pytest

from horolog.broker.log.partition import closing, log_start
from horolog.broker.log.segments import Allowance, upconversion
from horolog.broker.log.segments.upconversion import AT_ONCE_BYTES, CHUNK_BYTES
from horolog.protocol.errors import DecodeError
from horolog.protocol.records.batch import read_header
from horolog.protocol.records.convert_up import iter_up
from horolog.protocol.records.entries import iter_records
from horolog.protocol.records.head import heads_in
from tests.support import raw_records as raw
from tests.support.log_model import DIRECTORY, NOW_MS, OLD, Model, small_config


class Counted:
    """`iter_up`, and how many bytes it was given."""

    def __init__(self):
        self.bytes = 0

    def __call__(self, data, **options):
        for one in iter_up(data, **options):
            self.bytes += one.work_bytes
            yield one


@pytest.fixture
def counted(monkeypatch):
    counted = Counted()
    monkeypatch.setattr(upconversion, "iter_up", counted)
    return counted


def large(**config):
    return Model(small_config(**{"segment_bytes": 1 << 24, "segment_index_bytes": 1 << 16, **config}))


def fill(model, count, magic=1, codec=0, size=100):
    for first in range(0, count, 50):
        n = min(50, count - first)
        model.append(magic, codec, [NOW_MS + first + i for i in range(n)], [bytes(size)] * n)
    model.flush()


def read_all(model, max_bytes, start=0):
    """Offsets and the sizes of what came, as a reader of v2 goes on."""
    partition, offset, rows, sizes = model.partition, start, [], []
    while offset < partition.high_watermark:
        data = partition.read(offset, max_bytes, upconvert=Allowance())
        entries = list(heads_in(data))
        assert entries, offset
        assert all(entry.magic == 2 for entry in entries)
        rows += [one.offset for one in iter_records(data) if one.offset >= offset]
        sizes.append(len(data))
        offset = entries[-1].last_offset + 1
    return rows, sizes


def test_batches_have_the_leader_epoch_in_which_they_were_written():
    model = large()
    fill(model, 50)
    model.partition.lead(4)
    fill(model, 50, codec=1)
    found = [read_header(model.partition.read(at, 1 << 20, upconvert=Allowance())).leader_epoch for at in (0, 50)]
    assert found == [0, 4]


@pytest.mark.parametrize("codec", [0, 1])
def test_each_piece_is_converted_once_for_all_readers(counted, codec):
    model = large()
    fill(model, 3000, codec=codec)
    assert read_all(model, 1 << 18)[0] == list(range(3000))
    stored = model.partition.size_bytes if not codec else 3000 * 135
    assert counted.bytes == stored
    assert read_all(model, 1 << 18)[0] == list(range(3000))
    assert counted.bytes == stored


def test_readers_that_begin_elsewhere_soon_share(counted):
    model = large()
    fill(model, 3000)
    read_all(model, 1 << 18)
    before = counted.bytes
    assert read_all(model, 1 << 18, start=100)[0] == list(range(100, 3000))
    assert counted.bytes - before < CHUNK_BYTES


def test_a_reader_at_the_end_converts_what_is_new(counted):
    model = large()
    offset = 0
    for _ in range(30):
        fill(model, 50)
        data = model.partition.read(offset, 1 << 20, upconvert=Allowance())
        assert [one.offset for one in iter_records(data)] == list(range(offset, offset + 50))
        offset += 50
    assert counted.bytes == model.partition.size_bytes


@pytest.mark.parametrize("max_bytes", [1, 300, 5000, 70_000])
def test_answers_are_no_larger_than_asked_for(max_bytes):
    model = large()
    fill(model, 1000)
    rows, sizes = read_all(model, max_bytes)
    assert rows == list(range(1000))
    assert max(sizes) <= max(max_bytes, 61 + 128)


def test_where_nothing_has_to_come_nothing_too_large_does():
    model = large()
    fill(model, 10)
    assert model.partition.read(0, 50, at_least_one=False, upconvert=Allowance()) == b""
    assert model.partition.read(0, 0, at_least_one=False, upconvert=Allowance()) == b""


def test_what_is_hidden_behind_an_open_transaction_is_not_shown():
    model = large()
    fill(model, 500)
    assert len(list(iter_records(model.partition.read(0, 1 << 20, upconvert=Allowance())))) == 500
    data = model.partition.read(0, 1 << 20, upto=20, upconvert=Allowance())
    assert [one.offset for one in iter_records(data)] == list(range(20))


def test_one_request_has_so_much_converted(counted):
    model = large()
    fill(model, 30_000)
    allowance = Allowance()
    data = model.partition.read(0, 1 << 24, upconvert=allowance)
    assert AT_ONCE_BYTES <= counted.bytes < AT_ONCE_BYTES + CHUNK_BYTES
    assert allowance.left_bytes <= 0
    end = list(heads_in(data))[-1].last_offset + 1
    assert model.partition.read(end, 1 << 20, at_least_one=False, upconvert=allowance) == b""
    assert next(iter_records(model.partition.read(end, 1 << 20, upconvert=allowance))).offset == end


def test_a_topic_of_batches_alone_is_read_as_ever(monkeypatch):
    monkeypatch.setattr(upconversion, "read_converted", None)
    model = large()
    fill(model, 200, magic=2)
    assert model.partition.read(3, 5000, upconvert=Allowance()) == model.partition.read(3, 5000)


def test_batches_between_old_messages_stay_as_they_are():
    model = large()
    for magic in (1, 2, 1, 2, 2, 1):
        fill(model, 50, magic=magic)
    stored = model.partition.read(0, 1 << 20)
    batches = [stored[e.position : e.position + e.size_bytes] for e in heads_in(stored) if e.magic == 2]
    data = model.partition.read(0, 1 << 20, upconvert=Allowance())
    found = {data[e.position : e.position + e.size_bytes] for e in heads_in(data)}
    assert len(batches) == 3
    assert found.issuperset(batches)
    assert [one.offset for one in iter_records(data)] == list(range(300))


def test_chunks_go_with_their_segment():
    model = large(segment_bytes=30_000, retention_bytes=40_000)
    fill(model, 1000)
    read_all(model, 1 << 18)
    chunks = model.partition.segments[0].folder.converted
    used, gone = chunks.used_bytes, model.partition.segments[0].number
    assert chunks.get(gone, 0) is not None
    log_start.apply_retention(model.partition, NOW_MS)
    assert chunks.get(gone, 0) is None
    assert chunks.used_bytes < used
    closing.close_files(model.partition)
    assert chunks.used_bytes == 0


def test_what_cannot_be_read_is_told_and_what_is_before_it_given():
    model = large()
    fill(model, 5)
    (segment,) = model.partition.segments
    unreadable = raw.message(b"no gzip", attributes=1, offset=5)
    model.partition.append(raw.message(b"v" * 7), NOW_MS, produce_version=OLD)
    model.flush()
    segment.log.pwritev([unreadable], segment.size_bytes - len(unreadable))
    data = model.partition.read(0, 1 << 20, upconvert=Allowance())
    assert [one.offset for one in iter_records(data)] == list(range(5))
    with pytest.raises(DecodeError):
        model.partition.read(5, 1 << 20, upconvert=Allowance())
    assert not model.partition.folder.rescan_queue


def test_a_stopped_partition_converts_what_is_sound():
    model = large()
    fill(model, 100)
    model.partition.condition.stop("for the test")
    data = model.partition.read(40, 1 << 20, upconvert=Allowance())
    assert [one.offset for one in iter_records(data)] == list(range(40, 100))
    assert {entry.magic for entry in heads_in(data)} == {2}


@pytest.mark.parametrize("magic", [0, 1])
def test_a_reader_goes_on_behind_a_hole_not_in_it(magic):
    """The place where it goes on is that of the damage: nobody is to be sent there."""
    model = Model(small_config(segment_bytes=1 << 20))
    for number in range(3):
        model.append(magic, 0, [NOW_MS + number], [b"%d" % number * 50])
    model.flush()
    model.partition.sync()
    path = f"{DIRECTORY}/{0:020d}.log"
    size_bytes = len(model.storage.read_all(path)) // 3
    model.storage.corrupt(path, size_bytes + 40, 1)
    model.reopen(was_clean=False)
    for _ in range(2):
        first = model.partition.read(0, 1 << 20, upconvert=Allowance())
        assert [one.offset for one in iter_records(first)] == [0]
        behind = model.partition.read(1, 1 << 20, upconvert=Allowance())
        assert [one.offset for one in iter_records(behind)] == [2]
