"""A topic of twenty times the cache, read from its start by four consumers at once through a broker: every byte, within the cache."""

import asyncio
import hashlib
from functools import partial

import pytest

from horolog.broker.base.own_thread import AtOnce
from horolog.broker.bucket.block_fetcher import BlockFetcher
from horolog.broker.bucket.block_files import BlockFiles
from horolog.broker.bucket.remote_front import RemoteFront
from horolog.broker.bucket.remote_segment import MetaReader
from horolog.broker.bucket.store_access import StoreAccess
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from horolog.protocol.records.head import heads_in
from horolog.stores.memory_store import MemoryStore
from horolog.stores.requests import ThreadedRequests
from tests.support.bucket_segments import decode, upload
from tests.support.log_model import NEW, NOW_MS, encode
from tests.support.memory_broker import MemoryBroker

MIB = 1 << 20
CACHE_BYTES = 4 * MIB
BATCH_BYTES = 100_000


class Objects(dict):
    """Where `upload` puts objects."""

    def __init__(self, store):
        super().__init__()
        self.store = store

    def __setitem__(self, key, data):
        self.store.create(key, data)


class CountedStore(MemoryStore):
    """Counts ranged GETs and takes some time for each."""

    gets = 0

    def get_range(self, key, start, end):
        self.gets += 1
        return super().get_range(key, start, end)

    @property
    def objects(self):
        return Objects(self)


async def consumed(broker, end_offset):
    """The sum of all batches, as a consumer gets them."""
    client, offset, found = broker.connect(), 0, hashlib.sha256()
    while offset < end_offset:
        place = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=MIB)
        topics = [FetchTopic(topic="t", partitions=[place])]
        request = FetchRequest(replica_id=-1, max_wait_ms=500, min_bytes=1, max_bytes=50 * MIB, topics=topics)
        answer = (await client.ask(request, 11)).responses[0].partitions[0]
        assert answer.error_code == 0
        records = bytes(answer.records or b"")
        for head in heads_in(records):
            found.update(records[head.position : head.end])
            offset = head.last_offset + 1
    return found.hexdigest()


@pytest.mark.slow
async def test_a_topic_of_twenty_times_the_cache_is_read_from_its_start_by_four_consumers():
    async with MemoryBroker(log_segment_bytes=5 * MIB) as memory:
        partition = memory.topic().find(0)
        for number in range(20 * CACHE_BYTES // BATCH_BYTES + 1):
            value = number.to_bytes(4) * (BATCH_BYTES // 4)
            partition.append(encode(2, 0, [NOW_MS + number], [value]), NOW_MS, produce_version=NEW)
            partition.flush()
        partition.roll(NOW_MS)
        wanted = await consumed(memory, partition.high_watermark)
        size_bytes = partition.size_bytes
        assert size_bytes > 20 * CACHE_BYTES
        loop, store = asyncio.get_running_loop(), CountedStore(memory.clock)
        requests = ThreadedRequests(store, loop.call_soon_threadsafe, at_once=8)
        access = StoreAccess(requests, lambda seconds, done: loop.call_later(seconds, done, None))
        files = BlockFiles(memory.storage, "/data", lambda: CACHE_BYTES)
        front = RemoteFront(MetaReader(BlockFetcher(access, files, loop.call_soon, loop.time, AtOnce().run), decode))
        front.wake = partial(memory.broker.waiting.changed, [partition])
        partition.aborted.elsewhere = front.decided()
        for one in upload(partition, store):
            assert front.take(partition, one, NOW_MS)
        async with asyncio.timeout(120):
            found = await asyncio.gather(*(consumed(memory, partition.high_watermark) for _ in range(4)))
        assert found == [wanted] * 4
        assert files.kept_bytes <= CACHE_BYTES
        assert size_bytes // MIB <= store.gets <= 8 * size_bytes // MIB
        requests.close()
