"""The log of a segment in the bucket: blocks that are missing come with one GET, each is verified, and the next one comes ahead."""

import pytest
from crc32c import crc32c

from horolog.broker.base.own_thread import AtOnce
from horolog.broker.bucket import remote_log
from horolog.broker.bucket.block_fetcher import BlockFetcher
from horolog.broker.bucket.block_files import BlockFiles
from horolog.broker.bucket.block_ledger import Block
from horolog.broker.bucket.remote_log import RemoteLog
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.log.integrity import BLOCK_BYTES, BlockSums
from horolog.broker.log.storage import NotHere, RealStorage, StorageFault
from tests.support.bucket_segments import CountingStore
from tests.support.log_model import new_storage
from tests.support.shipping import StillLoop

KEY = "data/1.log"
DATA = b"".join(bytes([number]) * BLOCK_BYTES for number in range(4)) + b"end"


@pytest.fixture
def loop():
    return StillLoop()


@pytest.fixture
def store():
    store = CountingStore()
    store.objects[KEY] = DATA
    return store


@pytest.fixture
def log(store, loop):
    return log_over(new_storage(), "/data", store, loop)


def log_over(storage, folder, store, loop):
    access = StoreAccess(store, lambda seconds, done: done(None))
    files = BlockFiles(storage, folder, lambda: 3 * BLOCK_BYTES)
    fetcher = BlockFetcher(access, files, loop.call_soon, lambda: loop.now, AtOnce().run)
    sums = BlockSums()
    sums.extend(DATA)
    return RemoteLog("/data/t-0/0.log", KEY, len(DATA), fetcher, lambda: None, lambda: sums)


def read(log, loop, size, position):
    for _ in range(10):
        try:
            return log.pread(size, position)
        except NotHere:
            loop.advance()
    raise AssertionError("it never comes")


def blocks(store):
    return [(start // BLOCK_BYTES, -(-end // BLOCK_BYTES) - 1) for _, start, end in store.ranges]


def test_a_read_inside_of_a_block_asks_for_that_block(log, loop, store):
    at = 2 * BLOCK_BYTES + 7
    assert read(log, loop, 10, at) == DATA[at : at + 10]
    loop.advance()
    assert blocks(store) == [(2, 2)]
    assert (log.size(), log.unread(10, 0), repr(log)) == (len(DATA), None, f"<RemoteLog {KEY} of {len(DATA)} bytes>")


def test_a_read_over_a_border_asks_once_for_both(log, loop, store):
    at = 2 * BLOCK_BYTES - 5
    assert read(log, loop, 10, at) == DATA[at : at + 10]
    assert blocks(store) == [(1, 2)]


def test_what_a_walk_takes_comes_with_it(log, loop, store):
    log.around = lambda position: (position - 20, position + 20)
    read(log, loop, 1, 3 * BLOCK_BYTES - 10)
    read(log, loop, 1, 2 * BLOCK_BYTES + 9)
    assert blocks(store) == [(2, 3)]
    log.around = lambda position: (0, len(DATA))
    read(log, loop, 1, BLOCK_BYTES)
    assert blocks(store)[1:] == [(0, 1)], "no more than a block on each side, and no block that is here"


def test_a_reader_in_order_finds_the_next_block_here(log, loop, store):
    missed = 0
    for position in range(0, len(DATA), 1000):
        size = min(1000, len(DATA) - position)
        try:
            data = log.pread(size, position)
        except NotHere:
            missed += 1
            data = read(log, loop, size, position)
        assert data == DATA[position : position + size]
        loop.advance()
    assert (missed, len(store.ranges)) == (1, 5)


def test_where_much_is_kept_several_blocks_come_ahead(log, loop, store):
    log._fetcher.files._on_disk._limit_bytes = log._fetcher.files.limit_bytes = lambda: 32 * BLOCK_BYTES
    read(log, loop, 1, 0)
    loop.advance()
    assert blocks(store) == [(0, 0), (1, 3), (4, 4)], (
        "with one GET up to a multiple of a run, and with another what follows"
    )
    read(log, loop, 1, BLOCK_BYTES)
    loop.advance()
    assert blocks(store)[3:] == []


def test_readers_in_two_places_do_not_ask_ahead_for_one_another(log, loop, monkeypatch):
    log._fetcher.files._on_disk._limit_bytes = log._fetcher.files.limit_bytes = lambda: 32 * BLOCK_BYTES
    for position in (0, 2 * BLOCK_BYTES):
        read(log, loop, 1, position)
        loop.advance()
    asked, want_next = [], log._fetcher.want_next
    monkeypatch.setattr(log._fetcher, "want_next", lambda wanted: asked.append(wanted) or want_next(wanted))
    for position in (1, 2 * BLOCK_BYTES + 1, 2, 2 * BLOCK_BYTES + 2):
        read(log, loop, 1, position)
    assert asked == []


def test_blocks_that_are_here_are_sent_from_their_files(store, loop, tmp_path):
    log = log_over(RealStorage(), str(tmp_path), store, loop)
    at, size = BLOCK_BYTES - 7, 10
    assert log.unread(size, at) is None, "no block is here"
    read(log, loop, size, at)
    loop.advance()
    assert log.unread(size, at).read() == DATA[at : at + size]
    loop.advance()
    assert blocks(store) == [(0, 1), (2, 2)], "the next one comes ahead"
    assert log.unread(size, len(DATA) - 9) is None, "it ends before"
    for file in log._fetcher.files._files.values():
        file.cannot_be_sent()
    assert log.unread(size, at) is None, "it has to be read"


def test_a_reader_elsewhere_brings_nothing_ahead(log, loop, store):
    read(log, loop, 1, 2 * BLOCK_BYTES)
    loop.advance()
    assert Block(KEY, 3) not in log._fetcher.files


def test_what_is_longer_than_all_that_is_kept_comes_nevertheless(log, loop):
    log._fetcher.files._on_disk._limit_bytes = log._fetcher.files.limit_bytes = lambda: BLOCK_BYTES
    assert read(log, loop, 3 * BLOCK_BYTES, 10) == DATA[10 : 3 * BLOCK_BYTES + 10]
    loop.advance()
    assert read(log, loop, 3 * BLOCK_BYTES, BLOCK_BYTES + 2) == DATA[BLOCK_BYTES + 2 : 4 * BLOCK_BYTES + 2]


def test_what_is_longer_than_all_that_readers_may_wait_for_is_a_fault(log, loop, monkeypatch):
    monkeypatch.setattr(remote_log, "READ_AT_ONCE_BYTES", 0)
    with pytest.raises(StorageFault, match=r"horolog.store.cache.bytes"):
        log.pread(3 * BLOCK_BYTES + 1, 10)
    with pytest.raises(StorageFault, match="ends before"):
        log.pread(10, len(DATA) - 9)


def test_nothing_is_read_of_an_empty_range(log, store):
    assert log.pread(0, 5) == b""
    assert store.gets == 0


def test_an_altered_block_is_never_returned(log, loop, store):
    store.objects[KEY] = DATA[:-1] + b"x"
    with pytest.raises(StorageFault, match="other bytes"):
        read(log, loop, 3, len(DATA) - 3)
    store.objects[KEY] = DATA[:-1]
    loop.advance(60)
    with pytest.raises(StorageFault, match="other bytes"):
        read(log, loop, 2, len(DATA) - 3)
    assert crc32c(read(log, loop, BLOCK_BYTES, 0)) == crc32c(bytes(BLOCK_BYTES))


def test_it_is_only_read(log):
    log.close()
    log.withdraw()
    log.check_in_place()
    log.datasync()
    for change in (lambda: log.pwritev([b"x"], 0), lambda: log.truncate(0), lambda: log.allocate(9)):
        with pytest.raises(StorageFault, match="only read"):
            change()
