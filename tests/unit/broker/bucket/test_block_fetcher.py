"""Blocks come with one GET however many wait, are believed only if they are right, and one that is lost is asked for again later."""

import pytest
from crc32c import crc32c

from horolog.broker.base.own_thread import AtOnce
from horolog.broker.bucket import block_fetcher
from horolog.broker.bucket.block_fetcher import AT_ONCE, FAILS_AFTER_S, LOST_FOR_S, SAID_AGAIN_S, BlockFetcher, Wanted
from horolog.broker.bucket.block_files import BlockFiles
from horolog.broker.bucket.block_ledger import WHOLE, Block
from horolog.broker.bucket.lost_objects import ASKED_AGAIN_S
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.log.integrity import BLOCK_BYTES
from horolog.broker.log.storage import NotHere
from horolog.stores.faults import StoreRefusal
from tests.support.log_model import new_storage
from tests.support.shipping import StillLoop

KEY, SIZE = "data/1.log", 3 * BLOCK_BYTES + 100
DATA = b"".join(bytes([number]) * BLOCK_BYTES for number in range(3)) + b"e" * 100


class Ranges:
    """A store whose answers wait until the test gives them."""

    def __init__(self):
        self.data, self.asked, self.waiting, self.refused = DATA, [], [], set()

    def get(self, key, done):
        self._wait((key, None, None), done)

    def get_range(self, key, start, end, done):
        self._wait((key, start, end), done)

    def _wait(self, asked, done):
        self.asked.append(asked)
        self.waiting.append((asked, done))

    def answer(self, count=1):
        for _ in range(count):
            (key, start, end), done = self.waiting.pop(0)
            if key in self.refused:
                done(StoreRefusal("access denied (InvalidObjectState)"))
            else:
                done(None if self.data is None else self.data[start:end])


@pytest.fixture
def store():
    return Ranges()


@pytest.fixture
def loop():
    return StillLoop()


@pytest.fixture
def fetcher(store, loop):
    access = StoreAccess(store, lambda seconds, done: loop.call_later(seconds, done, None))
    return BlockFetcher(
        access, BlockFiles(new_storage(), "/data", lambda: 1 << 30), loop.call_soon, lambda: loop.now, AtOnce().run
    )


def is_right(number, data):
    return crc32c(data) == crc32c(DATA[number * BLOCK_BYTES : (number + 1) * BLOCK_BYTES])


def wanted(first, last=None, key=KEY):
    return Wanted(key, first, first if last is None else last, SIZE, is_right, lambda: "t-0: offsets 0 up to 9")


def span(first, last):
    return KEY, first * BLOCK_BYTES, min((last + 1) * BLOCK_BYTES, SIZE)


def test_several_readers_of_a_block_make_one_get_and_are_all_woken(fetcher, store, loop):
    woken = []
    for name in "abc":
        assert isinstance(fetcher.want(wanted(1), lambda name=name: woken.append(name)), NotHere)
        loop.advance()
    assert (store.asked, woken) == ([span(1, 1)], [])
    assert "1 blocks are on their way" in repr(fetcher)
    store.answer()
    assert sorted(woken) == ["a", "b", "c"]
    assert fetcher.files.read(Block(KEY, 1), 2, 0) == b"\1\1"
    assert fetcher.is_idle


def test_a_reader_that_asks_again_is_woken_once(fetcher, store, loop):
    woken = []

    def wake():
        woken.append(1)

    fetcher.want(wanted(0), wake)
    fetcher.want(wanted(0), wake)
    loop.advance()
    store.answer()
    assert woken == [1]


def test_neighbours_come_with_one_get_up_to_the_end(fetcher, store, loop):
    fetcher.want(wanted(2, 3), list)
    loop.advance()
    store.answer()
    assert store.asked == [span(2, 3)]
    assert fetcher.files.read(Block(KEY, 3), 100, 0) == b"e" * 100


def test_only_what_is_missing_is_asked_for(fetcher, store, loop):
    fetcher.want(wanted(0), list)
    loop.advance()
    store.answer()
    fetcher.want(wanted(1), list)
    loop.advance()
    woken = []
    fetcher.want(wanted(0, 2), lambda: woken.append(1))
    loop.advance()
    assert store.asked == [span(0, 0), span(1, 1), span(2, 2)]
    store.answer(2)
    assert woken == [1, 1]


def test_a_get_that_covers_a_block_on_its_way_wakes_both_sides_once_it_is_there(fetcher, store, loop):
    woken = []
    fetcher.want(wanted(1), lambda: woken.append("one"))
    loop.advance()
    fetcher.want(wanted(0, 2), lambda: woken.append("all"))
    loop.advance()
    assert store.asked == [span(1, 1), span(0, 2)]
    store.answer(2)
    assert woken.count("one") == 1
    assert "all" in woken
    assert fetcher.is_idle


def test_an_object_is_brought_whole(fetcher, store, loop):
    fetcher.want(Wanted("x.meta", WHOLE, WHOLE, 0, lambda _, data: data == DATA, lambda: "t-0"), list)
    loop.advance()
    assert store.asked == [("x.meta", None, None)]
    store.answer()
    assert fetcher.files.read(Block("x.meta", WHOLE), 3, len(DATA) - 3) == b"eee"


def test_no_more_gets_are_under_way_than_the_broker_has_for_them(fetcher, store, loop, monkeypatch):
    monkeypatch.setattr(block_fetcher, "AT_ONCE", 2)
    for number in range(4):
        fetcher.want(wanted(number), list)
    loop.advance()
    assert len(store.waiting) == 2
    fetcher.want_next(wanted(0, key="other"))
    store.answer()
    assert [one[1] for one in store.asked] == [0, BLOCK_BYTES, 2 * BLOCK_BYTES]
    store.answer(3)
    assert (len(store.asked), fetcher.is_idle) == (4, True), (
        "what a reader may want does not wait beside what they want"
    )


def test_a_block_that_a_reader_may_want_next_is_brought_while_all_is_quiet(fetcher, store, loop):
    fetcher.want_next(wanted(1))
    loop.advance()
    store.answer()
    assert Block(KEY, 1) in fetcher.files


def test_blocks_that_a_reader_may_want_next_come_with_one_get(fetcher, store, loop):
    fetcher.want_next(wanted(0, 2))
    fetcher.want_next(wanted(0, 3))
    loop.advance()
    assert store.asked == [span(0, 2), span(3, 3)]


def test_little_comes_ahead_while_much_is_unread(store, loop):
    """A cache of four blocks, of which two may be unread."""
    access = StoreAccess(store, lambda seconds, done: loop.call_later(seconds, done, None))
    files = BlockFiles(new_storage(), "/data", lambda: 4 * BLOCK_BYTES)
    fetcher = BlockFetcher(access, files, loop.call_soon, lambda: loop.now, AtOnce().run)
    for number in range(3):
        fetcher.want_next(wanted(number))
    loop.advance()
    assert store.asked == [span(0, 0), span(1, 1)]
    store.answer(2)
    fetcher.want_next(wanted(2))
    fetcher.want_next(wanted(3))
    loop.advance()
    assert store.asked[2:] == [span(2, 2)], "if nothing else is on its way: the readers of the others may have gone"
    store.answer()
    files.read(Block(KEY, 0), 1, 0)
    files.read(Block(KEY, 1), 1, 0)
    fetcher.want(wanted(0, key="other"), list)
    fetcher.want_next(wanted(3))
    loop.advance()
    assert len(store.asked) == 4


def test_readers_in_different_places_do_not_take_the_blocks_of_one_another(store, loop):
    """A cache of one block, and a reader that needs two at the same time."""
    access = StoreAccess(store, lambda seconds, done: loop.call_later(seconds, done, None))
    files = BlockFiles(new_storage(), "/data", lambda: BLOCK_BYTES)
    fetcher = BlockFetcher(access, files, loop.call_soon, lambda: loop.now, AtOnce().run)
    fetcher.want(wanted(0, 1), list)
    fetcher.want(wanted(2), list)
    loop.advance()
    store.answer(2)
    assert [files.read(Block(KEY, number), 1, 0) for number in range(3)] == [b"\0", b"\1", b"\2"]
    fetcher.want(wanted(3), list)
    loop.advance()
    store.answer()
    assert files.kept_bytes <= BLOCK_BYTES


def test_other_bytes_are_read_twice_then_lost_for_a_while(fetcher, store, loop):
    store.data = bytes(SIZE)
    woken = []
    fetcher.want(wanted(0, 1), lambda: woken.append(1))
    loop.advance()
    store.answer()
    assert woken == []
    store.answer()
    assert (woken, len(store.asked)) == ([1], 2)
    assert Block(KEY, 0) in fetcher.files, "that one is all zeros"
    fault = fetcher.want(wanted(1), list)
    assert not isinstance(fault, NotHere)
    assert "other bytes" in str(fault)
    fetcher.want_next(wanted(1))
    loop.advance(LOST_FOR_S)
    store.data = DATA
    assert isinstance(fetcher.want(wanted(1), list), NotHere)
    loop.advance()
    store.answer()
    assert Block(KEY, 1) in fetcher.files


def test_an_object_that_is_not_there_is_a_fault(fetcher, store, loop):
    store.data = None
    fetcher.want(wanted(0), list)
    loop.advance()
    store.answer(2)
    assert "does not have it" in str(fetcher.want(wanted(0), list))


@pytest.mark.parametrize("is_whole", [True, False])
def test_objects_that_the_store_refuses_do_not_keep_others_waiting(fetcher, store, loop, caplog, is_whole):
    """As it does where a rule of the bucket has moved old objects to an archive."""
    store.refused = {f"old/{number}" for number in range(AT_ONCE)}
    first = WHOLE if is_whole else 0
    woken = []
    for key in sorted(store.refused):
        fetcher.want(wanted(first, key=key), lambda: woken.append(1))
    fetcher.want(wanted(0), lambda: woken.append(1))
    loop.advance()
    store.answer(AT_ONCE)
    assert not fetcher.is_idle
    store.answer()
    assert (len(woken), fetcher.is_idle, Block(KEY, 0) in fetcher.files) == (AT_ONCE + 1, True, True)
    fault = fetcher.want(wanted(first, key="old/0"), list)
    assert not isinstance(fault, NotHere)
    assert str(fault) == "old/0: access denied (InvalidObjectState)"


def test_a_block_that_stays_lost_is_logged_once(fetcher, store, loop, caplog):
    def lines_after(readings):
        for _ in range(readings):
            fetcher.want(wanted(0), list)
            loop.advance()
            store.answer(len(store.waiting))
            store.answer(len(store.waiting))
            loop.advance(LOST_FOR_S)
        return len([one for one in caplog.records if KEY in one.getMessage()])

    store.data = None
    assert lines_after(3) == 1
    line = f"t-0: offsets 0 up to 9 cannot be read: {KEY}, block 0: the store does not have it"
    assert [one.getMessage() for one in caplog.records] == [line]
    store.refused = {KEY}
    assert lines_after(3) == 2, "there is another reason now"
    store.refused, store.data = set(), DATA
    assert lines_after(1) == 2
    assert Block(KEY, 0) in fetcher.files
    store.data = None
    for _ in range(2):
        fetcher.want(wanted(1), list)
        loop.advance()
        store.answer(2)
        loop.advance(LOST_FOR_S + SAID_AGAIN_S)
    assert lines_after(0) == 4, "no reader has asked for it for long"


def test_a_block_that_does_not_come_is_a_failure_after_a_while(fetcher, loop):
    assert not fetcher.want(wanted(0), list).has_failed
    loop.advance(FAILS_AFTER_S + 1)
    assert fetcher.want(wanted(0), list).has_failed
    assert not fetcher.want(wanted(2), list).has_failed


def test_blocks_are_checked_and_written_off_the_loop(store, loop):
    access, jobs = StoreAccess(store, lambda seconds, done: loop.call_later(seconds, done, None)), []
    files = BlockFiles(new_storage(), "/data", lambda: 1 << 30)
    fetcher = BlockFetcher(access, files, loop.call_soon, lambda: loop.now, lambda *job: jobs.append(job))
    woken = []
    fetcher.want(wanted(0, 1), lambda: woken.append(1))
    loop.advance()
    store.answer()
    assert (woken, Block(KEY, 0) in files, len(jobs)) == ([], False, 1)
    job, done = jobs[0]
    done(job())
    assert (woken, files.read(Block(KEY, 1), 2, 0)) == ([1], b"\1\1")


def test_a_whole_object_is_checked_in_the_loop_since_its_reader_takes_notes(store, loop):
    access, jobs = StoreAccess(store, lambda seconds, done: loop.call_later(seconds, done, None)), []
    files = BlockFiles(new_storage(), "/data", lambda: 1 << 30)
    fetcher = BlockFetcher(access, files, loop.call_soon, lambda: loop.now, lambda *job: jobs.append(job))
    fetcher.want(Wanted("x.meta", WHOLE, WHOLE, 0, lambda *_: True, lambda: "t-0"), list)
    loop.advance()
    store.answer()
    assert (Block("x.meta", WHOLE) in files, jobs) == (True, [])


def test_a_lost_object_is_asked_for_until_it_is_back_though_no_reader_asks(fetcher, store, loop):
    store.data = None
    fetcher.want(wanted(0, 1), list)
    loop.advance()
    store.answer(2)
    fetcher.ask_again()
    loop.advance()
    assert (len(fetcher.lost), store.waiting) == (1, []), "it has just been asked for"
    loop.advance(ASKED_AGAIN_S)
    fetcher.ask_again()
    loop.advance()
    store.data = DATA
    store.answer(1)
    assert (len(fetcher.lost), fetcher.is_idle, store.asked[-1]) == (0, True, span(0, 0))
