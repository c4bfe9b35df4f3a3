"""The memory of conversions is bounded, and goes with its log."""

from horolog.broker.log.segments import ConvertedChunks
from horolog.broker.log.segments.converted_chunks import Chunk


def chunk(size):
    return Chunk([], size)


def test_the_longest_unused_gives_way():
    chunks = ConvertedChunks(100)
    for position in (0, 1, 2):
        chunks.put(1, position, chunk(30))
    assert chunks.get(1, 0) is not None
    chunks.put(1, 3, chunk(30))
    assert [chunks.get(1, position) is not None for position in range(4)] == [True, False, True, True]
    assert chunks.used_bytes == 90


def test_what_is_put_again_counts_once_and_what_is_too_large_not_at_all():
    chunks = ConvertedChunks(100)
    chunks.put(1, 0, chunk(30))
    chunks.put(1, 0, chunk(40))
    chunks.put(1, 1, chunk(101))
    assert chunks.used_bytes == 40
    assert chunks.get(1, 1) is None
    nothing = ConvertedChunks(0)
    nothing.put(1, 0, chunk(1))
    assert nothing.get(1, 0) is None


def test_a_log_takes_its_chunks_with_it():
    chunks = ConvertedChunks(100)
    chunks.put(1, 0, chunk(30))
    chunks.put(2, 0, chunk(30))
    chunks.forget(1)
    assert chunks.get(1, 0) is None
    assert chunks.get(2, 0) is not None
    assert chunks.used_bytes == 30
