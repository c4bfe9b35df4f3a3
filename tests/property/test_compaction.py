"""Compaction against a dictionary: whatever was written and however often it is cleaned, every key says the same."""

from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from horolog.broker.config.settings import load
from horolog.broker.config.topic_settings import resolve
from horolog.broker.log.compaction.offset_map import BYTES_PER_KEY
from horolog.broker.log.indexes import AbortedTransaction
from horolog.broker.log.storage import MemoryStorage
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.compression import Codec
from horolog.protocol.records.control import Marker, encode_marker
from horolog.protocol.records.message_set import encode_set, encode_wrapper
from horolog.protocol.records.record import Record
from tests.support.compaction import Folder, records_in

T0 = 1_600_000_000_000
RETENTION_MS = 50
CONFIG = replace(
    resolve({"cleanup.policy": "compact"}, load(None, {}, {})[0]),
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=RETENTION_MS,
    segment_bytes=600,
    index_interval_bytes=100,
)

rows = st.lists(
    st.tuples(st.sampled_from("abcdefg"), st.none() | st.binary(max_size=30), st.integers(0, 40)),
    min_size=1,
    max_size=5,
)
units = st.tuples(
    rows,
    st.sampled_from(
        [(0, Codec.NONE), (0, Codec.GZIP), (1, Codec.NONE), (1, Codec.LZ4), (2, Codec.NONE), (2, Codec.ZSTD)]
    ),
    st.sampled_from(["plain", "plain", "commit", "abort"]),
    st.integers(1, 2),  # producer
    st.booleans(),  # roll behind it
)


class Log:
    """Segments as a broker would have written them, and what a reader of committed data makes of them."""

    def __init__(self):
        storage = MemoryStorage()
        storage.make_dir("/p")
        self.folder = Folder(storage, "/p", CONFIG)
        self.offset = self.base = 0
        self.data = b""
        self.table = {}

    def add(self, unit):
        some, (magic, codec), ending, pid, rolls = unit
        transactional = ending != "plain" and magic == 2
        records = [
            Record(self.offset + n, T0 + time if magic else -1, 0 if magic else -1, key.encode(), value)
            for n, (key, value, time) in enumerate(some)
        ]
        first, self.offset = self.offset, self.offset + len(records)
        self.data += self.encoded(records, magic, codec, pid, transactional=transactional)
        if transactional:
            committed = ending == "commit"
            self.data += encode_marker(
                Marker(committed, 0), self.offset, T0, producer_id=pid, producer_epoch=0, leader_epoch=0
            )
            if not committed:
                self.folder.aborted.append(AbortedTransaction(pid, first, self.offset, self.offset + 1))
            self.offset += 1
        if not transactional or ending == "commit":
            self.table.update({one.key: one.value for one in records})
        if rolls:
            self.roll()

    @staticmethod
    def encoded(records, magic, codec, pid, *, transactional):
        if magic == 2:
            attributes = {"attributes": 0x10, "producer_id": pid, "producer_epoch": 0} if transactional else {}
            return bytes(encode_batch(records, codec, **attributes))
        return encode_wrapper(records, magic, codec) if codec else encode_set(records, magic)

    def roll(self):
        if self.data:
            self.folder.write(self.base, self.data, T0)
            self.base, self.data = self.offset, b""

    def close(self):
        self.roll()
        self.folder.write(self.base, b"")

    def read(self):
        """Key to value, tombstones left out, as a reader of committed data sees it."""
        folder, seen = self.folder, {}
        for base in folder.bases():
            for batch in folder.batches(base):
                seen.update(self.read_batch(batch))
        return {key: value for key, value in seen.items() if value is not None}

    def read_batch(self, batch):
        producer_id = int.from_bytes(bytes(batch.data[43:51]), "big", signed=True) if batch.magic == 2 else -1
        for one in records_in(batch):
            hidden = any(
                gone.producer_id == producer_id and gone.first_offset <= one.offset <= gone.last_offset
                for gone in self.folder.aborted
            )
            if not hidden:
                yield one.key, one.value


@settings(max_examples=150, deadline=None)
@given(
    st.lists(units, min_size=1, max_size=10),
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3 * RETENTION_MS), st.booleans()), min_size=1, max_size=4),
)
@example(  # the first pass ends inside the batch, before the tombstone that its delete horizon is for
    [
        ([("a", None, 0), ("c", None, 0), ("d", None, 0), ("f", None, 0)], (0, Codec.NONE), "plain", 1, False),
        ([("b", b"", 0), ("e", None, 0), ("b", None, 0)], (2, Codec.NONE), "plain", 1, False),
    ],
    [(5, 0, False), (1, 50, False)],
)
def test_every_key_says_the_same_after_any_number_of_passes(some, passes):
    log = Log()
    for unit in some:
        log.add(unit)
    log.close()
    folder = log.folder
    expected = {key: value for key, value in log.table.items() if value is not None}
    assert log.read() == expected
    written = {one.offset: one for one in folder.records()}
    now_ms = T0 + 100
    for keys, later_ms, from_the_start in passes:
        now_ms += later_ms
        if from_the_start:
            folder.checkpoint = None
        if folder.checkpoint is not None and folder.checkpoint >= log.base:
            folder.checkpoint = None
        if not any(folder.storage.stat(folder.path(base))[0] for base in folder.bases()):
            break
        cleaned = folder.compact(now_ms, memory_bytes=keys * BYTES_PER_KEY)
        assert log.read() == expected
        left = folder.records()
        assert [one.offset for one in left] == sorted({one.offset for one in left})
        assert all(written[one.offset] == one for one in left), "what stays is what was written"
        check_seals(folder, cleaned)
    clean_up_to = folder.checkpoint or 0
    if not folder.aborted and clean_up_to >= log.base:
        keys_left = [one.key for one in folder.records()]
        assert len(keys_left) == len(set(keys_left)), "the clean part has each key once"


def check_seals(folder, cleaned):
    for part in cleaned.segments:
        batches = folder.batches(part.base_offset)
        contents = part.seal.contents
        assert contents.size_bytes == sum(one.size_bytes for one in batches)
        assert contents.next_offset == (batches[-1].last_offset + 1 if batches else part.base_offset)
        assert contents.first_timestamp == (batches[0].max_timestamp if batches else -1)
        assert contents.max_timestamp == max((one.max_timestamp for one in batches), default=-1)
