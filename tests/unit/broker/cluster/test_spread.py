"""Partitions nobody has moved are spread over the workers, the same wherever it is asked."""

import random

from horolog.broker.cluster.spread import leader


def test_partitions_of_a_topic_go_round_robin():
    nodes = (4, 5, 9)
    led = [leader(nodes, b"t" * 16, index) for index in range(7)]
    assert sorted(led[:3]) == [4, 5, 9]
    assert led[3:6] == led[:3]
    assert led[6] == led[0]


def test_topics_of_one_partition_spread_as_well():
    chance = random.Random(7)
    counts = {1: 0, 2: 0}
    for _ in range(1000):
        counts[leader((1, 2), chance.randbytes(16), 0)] += 1
    assert min(counts.values()) > 400


def test_one_node_leads_everything():
    assert {leader((3,), bytes([n]) * 16, n) for n in range(20)} == {3}
