"""Which blocks are kept: within a limit, least used first."""

import random

from horolog.broker.bucket import block_ledger
from horolog.broker.bucket.block_ledger import Block, BlockLedger


def block(number, key="data/1"):
    return Block(key, number)


def test_the_least_used_one_goes_first():
    ledger = BlockLedger(lambda: 30)
    assert [ledger.add(block(number), 10) for number in range(3)] == [[], [], []]
    ledger.use(block(0))
    assert ledger.add(block(3), 10) == [block(1)]
    assert block(0) in ledger
    assert block(1) not in ledger
    assert (len(ledger), ledger.kept_bytes) == (3, 30)
    assert repr(ledger) == "<BlockLedger of 3 blocks, 30 bytes>"


def test_as_many_go_as_the_new_one_needs():
    ledger = BlockLedger(lambda: 30)
    for number in range(3):
        ledger.add(block(number), 10)
    assert ledger.add(block(3), 15) == [block(0), block(1)]


def test_the_newest_stays_however_large_it_is():
    ledger = BlockLedger(lambda: 30)
    ledger.add(block(0), 10)
    assert ledger.add(block(1), 99) == [block(0)]
    assert (block(1) in ledger, ledger.kept_bytes) == (True, 99)
    assert (ledger.size_of(block(1)), ledger.size_of(block(0))) == (99, 0)


def test_a_block_that_comes_again_counts_once():
    ledger = BlockLedger(lambda: 30)
    ledger.add(block(0), 10)
    ledger.add(block(0), 12)
    assert (len(ledger), ledger.kept_bytes) == (1, 12)


def test_what_is_dropped_does_not_count_and_may_be_dropped_again():
    ledger = BlockLedger(lambda: 30)
    ledger.add(block(0), 10)
    ledger.drop(block(0))
    ledger.drop(block(0))
    assert (len(ledger), ledger.kept_bytes) == (0, 0)


def test_a_block_that_a_reader_waits_for_stays_until_it_is_read():
    ledger = BlockLedger(lambda: 20)
    assert ledger.add(block(0), 20, is_awaited=True) == []
    assert ledger.add(block(1), 20) == []
    assert ledger.add(block(2), 20, is_awaited=True) == [block(1)]
    ledger.use(block(0))
    assert ledger.add(block(3), 20) == [block(0)]
    assert block(2) in ledger
    ledger.drop(block(2))
    assert ledger.add(block(2), 20) == [block(3)], "nothing waits for it any more"


def test_blocks_that_were_waited_for_have_a_limit_too(monkeypatch):
    monkeypatch.setattr(block_ledger, "MOST_AWAITED_BYTES", 40)
    ledger = BlockLedger(lambda: 20)
    going = [ledger.add(block(number), 20, is_awaited=True) for number in range(5)]
    assert going == [[], [], [], [block(0)], [block(1)]]


def test_a_smaller_limit_counts_from_the_next_block_on():
    limits = [100]
    ledger = BlockLedger(lambda: limits[0])
    for number in range(10):
        ledger.add(block(number), 10)
    limits[0] = 20
    assert len(ledger.add(block(10), 10)) == 9


def test_the_sum_of_sizes_is_right_whatever_happens():
    chance = random.Random(1)
    ledger, sizes = BlockLedger(lambda: 200), {}
    for _ in range(2_000):
        one = block(chance.randrange(40), chance.choice("ab"))
        if chance.random() < 0.7:
            size = chance.randrange(1, 40)
            going = ledger.add(one, size)
            sizes[one] = size
            for each in going:
                del sizes[each]
        elif one in ledger and chance.random() < 0.5:
            ledger.use(one)
        else:
            ledger.drop(one)
            sizes.pop(one, None)
        assert ledger.kept_bytes == sum(sizes.values()) <= 200
        assert all(each in ledger for each in sizes)


def test_it_knows_how_much_has_not_been_read():
    ledger = BlockLedger(lambda: 30)
    for number in range(3):
        ledger.add(block(number), 10)
    ledger.use(block(0))
    ledger.use(block(0))
    assert ledger.unread_bytes == 20
    ledger.add(block(0), 8)
    assert ledger.unread_bytes == 28, "it has come again"
    ledger.add(block(3), 10)
    ledger.drop(block(2))
    assert (len(ledger), ledger.unread_bytes) == (2, 18), "those that have gone do not count"
