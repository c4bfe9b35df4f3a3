"""B: Produce v0..v2, the rules of time: CreateTime, bounds, LogAppendTime."""

import time

from tests.vendor.wire_prober.cases_b import N, go, seq
from tests.vendor.wire_prober.core import case
from tests.vendor.wire_prober.wire import batch, msg, wrap


# ---------------- CreateTime
@case("b.ct.response_ts", "CreateTime: the v2 response timestamp is -1", needs=N, r=lambda c: msg(b"x", ts=c.B(5)))
@case("b.ct.ts_minus1", "CreateTime: message timestamp -1", needs=N, r=lambda c: msg(b"x", ts=-1))
@case("b.ct.ts_minus2", "CreateTime: message timestamp -2", needs=N, r=lambda c: msg(b"x", ts=-2))
@case("b.ct.ts_min", "CreateTime: message timestamp -2^63", needs=N, r=lambda c: msg(b"x", ts=-(2**63)))
@case("b.ct.ts_zero", "CreateTime: timestamp 0", needs=N, r=lambda c: msg(b"x", ts=0))
@case("b.ct.ts_max", "CreateTime: timestamp 2^63-1, default limits", needs=N, r=lambda c: msg(b"x", ts=2**63 - 1))
@case(
    "b.ct.gzip_minus1",
    "gzip wrapper and inner messages all -1",
    needs=N,
    r=lambda c: wrap("gzip", seq([b"a", b"b"]), 1, -1, 1),
)
@case(
    "b.ct.gzip_wrapper_low",
    "wrapper timestamp lower than the maximum inner timestamp: who wins",
    needs=N,
    r=lambda c: wrap("gzip", seq([b"a", b"b"], 1, [c.B(50), c.B(10)]), 1, c.B(1), 1),
)
@case(
    "b.ct.gzip_wrapper_high",
    "wrapper timestamp higher than the maximum inner timestamp",
    needs=N,
    r=lambda c: wrap("gzip", seq([b"a", b"b"], 1, [c.B(50), c.B(10)]), 1, c.B(90000), 1),
)
@case(
    "b.ct.plain_lat_bit",
    "producer sets the LogAppendTime bit on a plain message of a CreateTime topic",
    needs=N,
    r=lambda c: msg(b"x", attrs=8, ts=c.B(5)),
)
@case(
    "b.ct.wrapper_lat_bit",
    "producer sets the LogAppendTime bit on the wrapper only",
    needs=N,
    r=lambda c: wrap("gzip", seq([b"a", b"b"], 1, [c.B(5), c.B(6)]), 1, c.B(6), 1, attrs=8),
)
@case(
    "b.ct.inner_one_lat_bit",
    "LogAppendTime bit on the second inner message only",
    needs=N,
    r=lambda c: wrap("gzip", msg(b"a", ts=c.B(5)) + msg(b"b", None, 1, 1, 8, c.B(6)), 1, c.B(6), 1),
)
@case(
    "b.ct.m0_gzip",
    "magic-0 gzip wrapper on a CreateTime topic",
    needs=N,
    r=lambda c: wrap("gzip", seq([b"a", b"b"], 0), 0),
)
def _(c, r):
    b = r(c)
    t = go(c, b, sent=b)
    c.attempt("lookup_50", c.list_offsets, 1, t, c.B(50))


_LIM = {"message__timestamp__difference__max__ms": 7_200_000}


@case("b.diff.in_range", "difference.max.ms=2h: timestamp one hour old", needs=N, r=lambda c: msg(b"x", ts=c.B()))
@case(
    "b.diff.past",
    "difference.max.ms=2h: timestamp four hours old: error 32",
    needs=N,
    r=lambda c: msg(b"x", ts=c.B(-10_800_000)),
)
@case(
    "b.diff.future",
    "difference.max.ms=2h: timestamp three hours ahead: error 32",
    needs=N,
    r=lambda c: msg(b"x", ts=c.B(14_400_000)),
)
@case(
    "b.diff.future_in_range",
    "difference.max.ms=2h: timestamp 30 min ahead",
    needs=N,
    r=lambda c: msg(b"x", ts=c.B(5_400_000)),
)
@case(
    "b.diff.future_90min",
    "difference.max.ms=2h: timestamp 90 min ahead",
    needs=N,
    r=lambda c: msg(b"x", ts=c.B(9_000_000)),
)
@case("b.diff.m0", "difference.max.ms=2h: magic-0 message has no timestamp", needs=N, r=lambda c: msg(b"x", magic=0))
@case(
    "b.diff.one_of_three",
    "difference.max.ms=2h: one bad timestamp of three refuses the whole set",
    needs=N,
    r=lambda c: seq([b"a", b"b", b"c"], 1, [c.B(), c.B(-10_800_000), c.B()]),
)
@case(
    "b.diff.gzip_wrapper_past",
    "difference.max.ms=2h: wrapper timestamp out of range, inner in range",
    needs=N,
    r=lambda c: wrap("gzip", seq([b"a", b"b"], 1, [c.B(), c.B(1)]), 1, c.B(-10_800_000), 1),
)
def _(c, r):
    go(c, r(c), **_LIM)


@case("b.diff.lat_topic", "LogAppendTime topic ignores difference.max.ms", needs=N)
def _(c):
    go(c, msg(b"x", ts=1000), message__timestamp__type="LogAppendTime", message__timestamp__difference__max__ms=1000)


# ---------------- LogAppendTime
_LAT = {"message__timestamp__type": "LogAppendTime"}


@case(
    "b.lat.plain_v2",
    "LogAppendTime: response carries the append time, stored message has bit 3 and the new time",
    needs=N,
    r=lambda c: msg(b"x", ts=c.B(5)),
)
@case(
    "b.lat.multi_v2",
    "LogAppendTime: three messages get the same time",
    needs=N,
    r=lambda c: seq([b"a", b"b", b"c"], 1, [c.B(1), c.B(3), c.B(2)]),
)
@case(
    "b.lat.plain_bit_set",
    "LogAppendTime: producer already set bit 3",
    needs=N,
    r=lambda c: msg(b"x", ts=c.B(5), attrs=8),
)
@case(
    "b.lat.m0", "LogAppendTime: magic-0 message is stored with an append time", needs=N, r=lambda c: msg(b"x", magic=0)
)
@case(
    "b.lat.snappy",
    "LogAppendTime: snappy wrapper",
    needs=N,
    r=lambda c: wrap("snappy", seq([b"a", b"b"], 1, [c.B(5), c.B(6)]), 1, c.B(6), 1),
)
@case(
    "b.lat.gzip_m0", "LogAppendTime: magic-0 gzip wrapper", needs=N, r=lambda c: wrap("gzip", seq([b"a", b"b"], 0), 0)
)
@case(
    "b.lat.gzip_inner_bit",
    "LogAppendTime: inner messages carry bit 3 from the producer",
    needs=N,
    r=lambda c: wrap("gzip", seq([b"a", b"b"], 1, [c.B(5), c.B(6)], attrs=8), 1, c.B(6), 1),
)
@case(
    "b.lat.gzip_wrapper_bit",
    "LogAppendTime: the producer already set bit 3 on the wrapper",
    needs=N,
    r=lambda c: wrap("gzip", seq([b"a", b"b"], 1, [c.B(5), c.B(6)]), 1, c.B(6), 1, attrs=8),
)
def _(c, r):
    b = r(c)
    t = go(c, b, sent=b, **_LAT)
    lo = c.attempt("lookup_past", c.list_offsets, 1, t, c.B(5))
    c.attempt("lookup_future", c.list_offsets, 1, t, c.B(7_200_000))


@case("b.lat.response_v1", "LogAppendTime: Produce v1 response has no timestamp field", ver=1, fver=1)
@case("b.lat.f0_gzip", "LogAppendTime: compressed set read by Fetch v0", ver=2, fver=0, z=True)
@case("b.lat.f3_gzip", "LogAppendTime: compressed set read by Fetch v3", ver=2, fver=3, z=True)
@case("b.lat.f4_gzip", "LogAppendTime: compressed set read by Fetch v4", ver=2, fver=4, z=True)
def _(c, ver, fver, z=False):
    c.need("Produce", ver), c.need("Fetch", fver)
    go(
        c,
        wrap("gzip", seq([b"a", b"b"], 1, [c.B(5), c.B(6)]), 1, c.B(6), 1) if z else msg(b"x", ts=c.B(5)),
        ver,
        fver,
        **_LAT,
    )


@case(
    "b.lat.switch",
    "topic changed from CreateTime to LogAppendTime: old data keeps its time, new data gets the append time",
    needs="AlterConfigs:0,Produce:2,Fetch:2",
    ver=2,
)
@case("b.lat.switch_v3", "the same switch with record batches", needs="AlterConfigs:0,Produce:3,Fetch:4", ver=3)
def _(c, ver):
    t = c.topic()
    mk = lambda v: msg(v, ts=c.B(5)) if ver == 2 else batch([v], ts=c.B(5))
    c.attempt("before", c.produce, ver, t, mk(b"a"))
    k = c.conn()
    r = k.call(
        "AlterConfigs",
        0,
        {
            "resources": [
                {
                    "resource_type": 2,
                    "resource_name": t,
                    "configs": [
                        {"name": "message.timestamp.type", "value": "LogAppendTime"},
                        {"name": "retention.ms", "value": "-1"},
                    ],
                }
            ]
        },
    )
    c.rec("alter", r["responses"][0]["error_code"])
    r = {}
    for i in range(40):
        r = c.produce(ver, t, mk(b"w"))
        if r["log_append_time_ms"] != -1:
            break
        time.sleep(0.1)
    c.rec("after", {"log_append_time_ms": r["log_append_time_ms"], "error_code": r["error_code"]})
    k = c.conn()
    d = c.fetch(2 if ver == 2 else 4, t)["records"]
    c.rec("first", d[0])
    last = d[-1]
    last.pop("offset", None)
    for x in last.get("records", []):
        x.pop("offset", None)
    c.rec("last", last)
