"""Where horolog's answers differ from those of all recorded brokers, and why: the only cases of the prober that may fail."""

AS_IT_CAME = "a v1 set is stored as it came; the brokers that serve this version of Fetch had made a v2 batch of it"
INNER_BIT = (
    "an inner message that claims LogAppendTime is refused, as the design of KIP-32 asks and no shipped broker does"
)
UNION = "the served versions are the union of those of Kafka 3.9 and 4.x, which no one release has"

CASES: dict[str, str] = {
    "b.ct.inner_one_lat_bit": INNER_BIT,
    "b.lat.f4_gzip": AS_IT_CAME,
    "b.lat.gzip_inner_bit": INNER_BIT,
    "b.z.lz4_m1_f4": AS_IT_CAME,
    "c.size.one_and_half_v2": "whole messages only: the cut one at the end would be read and sent for nothing",
    "e.ct.timestamp_config_names": "max.message.time.difference.ms, the name of KIP-32's draft, is accepted",
    "v.range.DescribeLogDirs": UNION,
    "v.range.Fetch": UNION,
    "v.range.ListOffsets": UNION,
    "v.range.OffsetCommit": UNION,
    "v.range.OffsetFetch": UNION,
}
"""Cases by name; one that holds must leave the table."""
