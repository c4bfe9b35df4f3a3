"""Keys go where Kafka's own clients put them; records without keys stay together."""

import pytest

from horolog.client.producing.partitioner import StickyPartitioner, murmur2, partition_of_key


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        # from the tests of Kafka's own murmur2
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_kafkas(key, signed):
    assert murmur2(key) == signed % 2**32
    assert partition_of_key(key, 7) == (signed & 0x7FFFFFFF) % 7


def test_without_keys_the_partition_changes_when_its_batch_is_closed():
    partitioner = StickyPartitioner(lambda: 0.5)
    open_batches: set[int] = set()
    chosen = []
    for closes in (False, False, True, False, True, True):
        partition = partitioner.without_key("t", [0, 1, 2], open_batches.__contains__)
        open_batches.add(partition)
        chosen.append(partition)
        if closes:
            open_batches.discard(partition)
    assert chosen == [1, 1, 1, 2, 2, 0]


def test_partitions_that_are_gone_are_not_chosen():
    partitioner = StickyPartitioner(lambda: 0.99)
    assert partitioner.without_key("t", [0, 1, 2, 3], lambda _: True) == 3
    assert partitioner.without_key("t", [0, 1], lambda _: True) in {0, 1}
