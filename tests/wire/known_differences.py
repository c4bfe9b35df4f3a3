"""Where horolog's answers differ from those of real brokers, and why.

`CASES` differ from all recorded brokers: the only cases of the prober that may fail. `GROUPS_IN_3_9` are cases of groups and transactions that
are as in Kafka 4.3 or 0.10.2, but not as in 3.9.
"""

INNER_BIT = (
    "an inner message that claims LogAppendTime is refused, as the design of KIP-32 asks and no shipped broker does"
)
UNION = "the served versions are the union of those of Kafka 3.9 and 4.x, which no one release has"

CASES: dict[str, str] = {
    "b.ct.inner_one_lat_bit": INNER_BIT,
    "b.lat.gzip_inner_bit": INNER_BIT,
    "c.size.one_and_half_v2": "whole messages only: the cut one at the end would be read and sent for nothing",
    "e.ct.timestamp_config_names": "max.message.time.difference.ms, the name of KIP-32's draft, is accepted",
    "v.range.DescribeLogDirs": UNION,
    "v.range.Fetch": UNION,
    "v.range.ListOffsets": UNION,
    "v.range.OffsetCommit": UNION,
    "v.range.OffsetFetch": UNION,
}
"""Cases by name; one that holds must leave the table."""

KIP_848 = "the consumer group protocol is served, as in 4.x; 3.9 as it is set up by default refuses it"

GROUPS_IN_3_9: dict[str, str] = {
    "f.k848.classic_on_consumer_group": KIP_848,
    "f.k848.describe_classic": KIP_848,
    "f.k848.invalid": KIP_848,
    "f.k848.join": KIP_848,
    "f.k848.two": KIP_848,
    "f.oc.fetch_v0_unknown": "OffsetFetch v0 has a store, as brokers with ZooKeeper had; 3.9 without it refuses v0",
    "f.od.flow": "a group that has lost its last offset is still known to OffsetDelete, as in 4.3; to 3.9 it is not",
}
"""Cases by name; one that holds must leave the table."""

NO_NAME = "the coordinator of an empty name is any of the workers, and not always the one that is asked"

TWO_BROKERS = "there are two brokers, and no recorded one had a second"

OF_SEVERAL_WORKERS: dict[str, str] = {
    **dict.fromkeys(("e.md.all_v1", "e.md.all_v9", "e.md.none_v1", "e.md.none_v9", "e.md.broker_list"), TWO_BROKERS),
    "b.t.find_coordinator": NO_NAME,
    "f.find.empty_key": NO_NAME,
    "f.oc.fetch_unknown": NO_NAME,
}
"""Cases that may differ where several workers serve."""

NEW_LEAD = (
    "in the first seconds of a lead a gap may be where another broker has refused a batch: NOT_LEADER_OR_FOLLOWER"
)

OVER_A_STORE: dict[str, str] = dict.fromkeys(
    (
        "b.i.epoch_bump_seq5",
        "b.i.first_nonzero",
        "b.i.gap",
        "b.i.overlap",
        "b.i.seq_wrap",
        "b.i.two_partitions",
    ),
    NEW_LEAD,
)
"""Cases that differ where brokers share a store."""
