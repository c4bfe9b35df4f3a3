"""Segments of a local partition as objects of a bucket, and the same partition opened with them in front of an empty folder."""

from horolog.broker.base.own_thread import AtOnce
from horolog.broker.bucket import closed_segment, names
from horolog.broker.bucket.block_fetcher import BlockFetcher
from horolog.broker.bucket.block_files import BlockFiles
from horolog.broker.bucket.bucket_segment import described
from horolog.broker.bucket.covered import NOTHING
from horolog.broker.bucket.names import SegmentName
from horolog.broker.bucket.producers_behind import ProducersAt
from horolog.broker.bucket.remote_front import RemoteFront
from horolog.broker.bucket.remote_segment import MetaReader
from horolog.broker.bucket.segment_meta import decode
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.upload_plan import Due
from horolog.broker.log.partition import Resources
from horolog.broker.log.recovery import Circumstances, PartitionFolder, open_readable
from horolog.broker.log.storage import NotHere
from tests.support.log_model import NEW, NOW_MS, encode, new_storage, small_config
from tests.support.shipping import TOPIC_ID, ReadyStore, StillLoop, new_partition

CONFIG = small_config(segment_bytes=6_000)


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


def upload(partition, store):
    """Put the complete segments of a partition into the store; returns what a manifest says of them."""
    segments, before = [], ProducersAt(0)
    partition.topic_id = partition.topic_id or TOPIC_ID  # old folders have none
    folder = names.segments(partition.topic_id, partition.index)
    for number, segment in enumerate(partition.segments[:-1]):
        nonce = b"%16d" % number
        closed = closed_segment.found(partition, Due(segment, segment.next_offset), None)
        content = closed_segment.read(closed, before, nonce)
        name = SegmentName(partition.leader_epoch, segment.base_offset, nonce)
        store.objects[name.log_key(folder)], store.objects[name.meta_key(folder)] = content[:2]
        segments.append(described(folder, name, segment.contents, segment.created_ms))
        before = content.producers
    return segments


def keep(files, block, data):
    """Keep a block as one that has come from the store."""
    path = files.new_path()
    files.keep(block, data, path if files.write(path, data) else None)


class Reader:
    """A broker's means to read a bucket, without an event loop: `served` goes on where a reader has to wait."""

    def __init__(self, store, limit_bytes=1 << 30):
        self.store, self.loop, self.storage = store, StillLoop(), new_storage()
        self.access = StoreAccess(store, lambda seconds, done: self.loop.call_later(seconds, done, None))
        self.files = BlockFiles(self.storage, "/data", lambda: limit_bytes)
        self.fetcher = BlockFetcher(self.access, self.files, self.loop.call_soon, lambda: self.loop.now, AtOnce().run)
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

    async def newest(self, opening, known=NOTHING):
        self.asked += 1
        found = self.covered.get(opening.partition, NOTHING)
        self.covered.update(self.then)
        return found

    decode_meta = staticmethod(decode)
