"""Where horolog's answers differ from those of all recorded brokers, and why: the only cases of the prober that may fail."""

ISSUE_5 = "groups and transactions are another issue's work"
SECURITY = "SASL has its place at the dispatch point and is not built yet"
AS_IT_CAME = "a v1 set is stored as it came; the brokers that serve this version of Fetch had made a v2 batch of it"
INNER_BIT = "an inner message that claims LogAppendTime is refused, as the design of KIP-32 asks and no shipped broker does"
UNION = "the served versions are the union of those of Kafka 3.9 and 4.x, which no one release has"
NOT_SERVED = "not among the APIs that are served yet"

PREFIXES: dict[str, str] = {
    "f.": ISSUE_5,
    "b.t.": ISSUE_5,
    "b.i.init_": ISSUE_5,
    "b.tp.internal_topic": ISSUE_5,
}
"""Whole families; a case of them that holds already is welcome."""

CASES: dict[str, str] = {
    "a.sasl.handshake_v1": SECURITY,
    "a.version.findcoordinator_v0": ISSUE_5,
    "a.version.joingroup_v0": ISSUE_5,
    "b.ct.inner_one_lat_bit": INNER_BIT,
    "b.i.describe_producers": NOT_SERVED,
    "b.lat.f4_gzip": AS_IT_CAME,
    "b.lat.gzip_inner_bit": INNER_BIT,
    "b.z.lz4_m1_f4": AS_IT_CAME,
    "c.poll.lso_bound": ISSUE_5,
    "c.size.one_and_half_v2": "whole messages only: the cut one at the end would be read and sent for nothing",
    "c.size.one_and_half_v4": "whole batches only: the cut one at the end would be read and sent for nothing",
    "e.ct.timestamp_config_names": "max.message.time.difference.ms, the name of KIP-32's draft, is accepted",
    "e.dtp.basic": NOT_SERVED,
    "e.dtp.cursor": NOT_SERVED,
    "v.range.DescribeLogDirs": UNION,
    "v.range.Fetch": UNION,
    "v.range.FindCoordinator": ISSUE_5,
    "v.range.DescribeGroups": ISSUE_5,
    "v.range.Heartbeat": ISSUE_5,
    "v.range.ListOffsets": UNION,
    "v.range.OffsetCommit": ISSUE_5,
    "v.range.OffsetFetch": ISSUE_5,
    "v.range.SaslHandshake": SECURITY,
    "v.range.SyncGroup": ISSUE_5,
}
"""Single cases; one that holds must leave the table."""


def reason(name: str) -> str | None:
    """Why a case may fail, or None."""
    if name in CASES:
        return CASES[name]
    return next((why for prefix, why in PREFIXES.items() if name.startswith(prefix)), None)
