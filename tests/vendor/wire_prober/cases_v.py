"""V: advertised version ranges, one case per api (read from ApiVersions v0)."""

from tests.vendor.wire_prober.core import case
from tests.vendor.wire_prober.wire import SPEC


def _ranges(c, key, **_):
    r = c.t.advertised_ranges.get(key)
    c.rec("range", None if r is None else "%d..%d" % r)


for _n in [
    "Produce",
    "Fetch",
    "ListOffsets",
    "OffsetCommit",
    "OffsetFetch",
    "FindCoordinator",
    "Heartbeat",
    "SyncGroup",
    "DescribeGroups",
    "SaslHandshake",
    "ApiVersions",
    "InitProducerId",
    "AddOffsetsToTxn",
    "EndTxn",
    "TxnOffsetCommit",
    "DescribeLogDirs",
    "SaslAuthenticate",
    "DeleteGroups",
    "IncrementalAlterConfigs",
    "OffsetDelete",
    "ListTransactions",
    "ConsumerGroupHeartbeat",
    "ConsumerGroupDescribe",
    "DescribeTopicPartitions",
]:
    _k = SPEC[_n][0]
    case("v.range.%s" % _n, "ApiVersions v0 advertises this min..max for %s (key %d)" % (_n, _k), key=_k)(_ranges)
