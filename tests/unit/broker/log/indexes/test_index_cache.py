"""Indexes of complete segments stay in memory up to a bound, longest unused go first."""

from horolog.broker.log.indexes import IndexCache


class Held:
    def __init__(self, size):
        self.index_bytes = size
        self.dropped = False

    def drop_indexes(self):
        self.dropped = True


def test_the_longest_unused_are_dropped():
    cache = IndexCache(100)
    a, b, c = Held(40), Held(40), Held(40)
    cache.touch(a)
    cache.touch(b)
    cache.touch(a)
    cache.touch(c)
    assert (a.dropped, b.dropped, c.dropped) == (False, True, False)
    assert cache.used_bytes == 80


def test_the_one_in_use_stays_however_large():
    cache = IndexCache(100)
    small, large = Held(10), Held(1000)
    cache.touch(small)
    cache.touch(large)
    assert small.dropped
    assert not large.dropped


def test_sizes_are_followed_and_forgotten():
    cache = IndexCache(100)
    one = Held(10)
    cache.touch(one)
    one.index_bytes = 30
    cache.touch(one)
    assert cache.used_bytes == 30
    cache.forget(one)
    cache.forget(one)
    assert cache.used_bytes == 0
