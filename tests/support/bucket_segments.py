"""Segments of a local partition as objects of a bucket, and the same partition opened with them in front of an empty folder."""

import pickle
from typing import NamedTuple

from horolog.broker.bucket.block_fetcher import BlockFetcher
from horolog.broker.bucket.block_files import BlockFiles
from horolog.broker.bucket.covered import NOTHING
from horolog.broker.bucket.remote_front import RemoteFront
from horolog.broker.bucket.remote_segment import BucketSegment, MetaReader
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.log.indexes import transaction_index
from horolog.broker.log.integrity import Seal
from horolog.broker.log.partition import Resources
from horolog.broker.log.producers import snapshot_file
from horolog.broker.log.recovery import Circumstances, PartitionFolder, open_readable
from horolog.broker.log.segments import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX
from horolog.broker.log.storage import NotHere
from tests.support.log_model import NEW, NOW_MS, encode, new_storage, small_config
from tests.support.shipping import ReadyStore, StillLoop, new_partition

CONFIG = small_config(segment_bytes=6_000)


class Parts(NamedTuple):
    seal: Seal
    offset_index: bytes
    time_index: bytes
    transaction_index: bytes
    producers: bytes


def decode(data):
    try:
        return Parts(*pickle.loads(data))
    except Exception as error:
        raise FormatError(str(error)) from error


def encode_parts(parts):
    return pickle.dumps(tuple(parts))


class CountingStore(ReadyStore):
    """Counts GETs: `ranges` has those of parts of objects."""

    def __init__(self):
        super().__init__()
        self.ranges, self.fault = [], None

    @property
    def gets(self):
        return len(self.asked)

    def get_range(self, key, start, end, done):
        self.ranges.append((key, start, end))
        super().get_range(key, start, end, done)


def filled(chance, count=60, config=CONFIG):
    """A partition of several segments with times in no order."""
    partition = new_partition()
    partition.configure(config)
    for number in range(count):
        amount = chance.randrange(1, 5)
        times = [NOW_MS + 1_000 * number + chance.randrange(-20_000, 20_000) for _ in range(amount)]
        values = [bytes([number]) * chance.randrange(1, 200) for _ in range(amount)]
        partition.append(encode(2, chance.choice([0, 0, 1]), times, values), NOW_MS, produce_version=NEW)
        partition.flush()
    partition.roll(NOW_MS)
    partition.shipped(partition.written_end)
    return partition


def upload(partition, store, producers=None):
    """Put the complete segments of a partition into the store; returns what a manifest says of them."""
    described = []
    storage = partition.folder.storage
    for segment in partition.segments[:-1]:
        files = segment.files

        def content(kind, files=files):
            path = files.path(kind)
            return storage.read_all(path) if storage.exists(path) else b""

        snapshot = f"{partition.directory}/{snapshot_file.file_name(segment.next_offset)}"
        state = storage.read_all(snapshot) if storage.exists(snapshot) else snapshot_file.encode([])
        parts = Parts(
            segment.seal,
            content(OFFSET_INDEX_SUFFIX),
            content(TIME_INDEX_SUFFIX),
            content(transaction_index.SUFFIX),
            state,
        )
        key = f"data/{partition.index}/{segment.base_offset:020d}"
        store.objects[f"{key}.log"] = content(LOG_SUFFIX)
        store.objects[f"{key}.meta"] = encode_parts(parts)
        contents = segment.contents
        described.append(BucketSegment(segment.base_offset, contents, segment.created_ms, f"{key}.log", f"{key}.meta"))
    return described


class Reader:
    """A broker's means to read a bucket, without an event loop: `served` goes on where a reader has to wait."""

    def __init__(self, store, limit_bytes=1 << 30):
        self.store, self.loop, self.storage = store, StillLoop(), new_storage()
        self.access = StoreAccess(store, lambda seconds, done: self.loop.call_later(seconds, done, None))
        self.files = BlockFiles(self.storage, "/data", lambda: limit_bytes)
        self.fetcher = BlockFetcher(self.access, self.files, self.loop.call_soon, lambda: self.loop.now)
        self.metas = MetaReader(self.fetcher, decode)
        self.resources = Resources(self.storage, kind=ShippedPartition)

    def open(self, described, config, log_start_offset=None, index=0):
        """A partition that has nothing but these segments."""
        end = described[-1].contents.next_offset
        front = RemoteFront(self.metas, described)
        directory = f"/data/t-{index}"
        self.storage.make_dir(directory)
        known = Circumstances(was_clean=True, log_start_offset=end, now_ms=NOW_MS, recovery_point=end)
        opened = open_readable(PartitionFolder("t", index, directory), config, self.resources, known)
        start = described[0].base_offset if log_start_offset is None else log_start_offset
        partition = ShippedPartition(front.put_before(opened, start))
        partition.have_front(front)
        return partition

    def served(self, attempt, turns=50):
        """The result of what may have to wait for the store, several times."""
        for _ in range(turns):
            try:
                return attempt()
            except NotHere:
                self.loop.advance()
        raise AssertionError(f"it waits after {turns} turns")


class Manifests:
    """What the bucket has of partitions, by their numbers; `then` replaces it once it has been asked for."""

    def __init__(self):
        self.covered, self.then, self.asked = {}, {}, 0

    async def newest(self, opening):
        self.asked += 1
        found = self.covered.get(opening.partition, NOTHING)
        self.covered.update(self.then)
        return found

    decode_meta = staticmethod(decode)
