"""Metadata of a foreign broker, read without the product's codec."""

import struct

from benchmarks import frames, peer, process


def metadata_reply(topics):
    """Metadata v1 with one broker; topics: name -> the (error, leader, replicas) of each partition."""
    data = (
        struct.pack(">ii", 1, 7)
        + frames.text("host")
        + struct.pack(">i", 9092)
        + frames.text(None)
        + struct.pack(">ii", 7, len(topics))
    )
    for name, partitions in topics.items():
        data += struct.pack(">h", 0) + frames.text(name) + b"\0" + struct.pack(">i", len(partitions))
        for index, (error, leader, replicas) in enumerate(partitions):
            nodes = struct.pack(f">i{replicas}i", replicas, *range(replicas))
            data += struct.pack(">hii", error, index, leader) + nodes + nodes
    return data


def test_only_partitions_with_a_leader_count():
    reply = metadata_reply({"a": [(0, 7, 1), (5, -1, 2), (0, 7, 3)], "b": []})
    assert peer.parse_metadata(reply) == (1, {"a": 2, "b": 0})


def test_partitions_are_placed_with_the_brokers_that_lead_them():
    placed = peer.parse_placement(metadata_reply({"a": [(0, 7, 1), (5, -1, 2), (0, 7, 3)]}))
    assert placed == peer.Placed({7: "host:9092"}, {"a": {0: 7, 2: 7}})


def test_nobody_is_ready_on_a_port_where_nobody_listens():
    assert not peer.is_ready(f"127.0.0.1:{process.free_ports(1)[0]}")


def test_fresh_names_differ():
    assert len({peer.fresh_name("x") for _ in range(100)}) == 100
