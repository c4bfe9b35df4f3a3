"""D: ListOffsets - by time, earliest, latest, segments, epochs."""

import time

from tests.vendor.wire_prober.cases_c import put, put_group
from tests.vendor.wire_prober.core import case
from tests.vendor.wire_prober.wire import batch, msg, wrap

DAY = 86_400_000


def add(c, t, ts, size=0, part=0, key=None):
    v = b"d".ljust(size, b".")
    r = (
        c.produce(3, t, batch([{"value": v, "key": key}], ts=ts), part=part)
        if c.t.has("Produce", 3)
        else c.produce(2, t, msg(v, key, ts=ts), part=part)
    )
    assert r["error_code"] == 0, r


def q(c, t, ver, *times):
    return [[c.ts(x), {k: v for k, v in c.list_offsets(ver, t, x).items() if k != "partition_index"}] for x in times]


# ---------------- basic, every version
@case("d.v.v2", "ListOffsets v2", ver=2)
@case("d.v.v4", "ListOffsets v4 adds leader epochs", ver=4)
@case("d.v.v5", "ListOffsets v5", ver=5)
@case("d.v.v7", "ListOffsets v7", ver=7)
@case("d.v.v8", "ListOffsets v8", ver=8)
@case("d.v.v9", "ListOffsets v9", ver=9)
@case("d.v.v10", "ListOffsets v10", ver=10)
def _(c, ver):
    c.need("ListOffsets", ver)
    t = c.topic()
    for x in (10, 20, 30):
        add(c, t, c.B(x))
    c.attempt("r", q, c, t, ver, -1, -2, c.B(20), c.B(31))


@case("d.v.empty_log_v4", "empty log (v4)", ver=4)
@case("d.v.empty_log_v7", "empty log including max timestamp (v7)", ver=7, extra=(-3,))
def _(c, ver, extra=()):
    c.need("ListOffsets", ver)
    t = c.topic()
    c.attempt("r", q, c, t, ver, -1, -2, 0, c.B(), *extra)


# ---------------- by time
@case(
    "d.time.ordered",
    "by time on ordered messages 10,20,30: exact, between, before, after",
    ts=(10, 20, 30),
    ask=(0, 10, 11, 15, 20, 25, 30, 31),
)
@case(
    "d.time.disordered",
    "messages 30,10,20,40: first offset whose timestamp is at or after the target",
    ts=(30, 10, 20, 40),
    ask=(5, 10, 15, 25, 30, 35, 40, 41),
)
@case("d.time.descending", "messages 50,40,30", ts=(50, 40, 30), ask=(10, 35, 45, 50, 51))
@case(
    "d.time.spike",
    "messages 10,1000,20,30: targets above 30 land on the spike",
    ts=(10, 1000, 20, 30),
    ask=(10, 11, 25, 500, 1001),
)
def _(c, ts, ask):
    t = c.topic()
    for x in ts:
        add(c, t, c.B(x))
    c.rec("r", q(c, t, 1, *[c.B(x) for x in ask]))


@case("d.time.negatives_v1", "targets 0, -3, -4, -5, -6, -7 through v1", ver=1, ask=(0, -3, -4, -5, -6, -7))
@case("d.time.local_v8", "target -4 (earliest local) and -3 through v8", ver=8, ask=(-3, -4))
@case("d.time.tiered_v9", "target -5 (latest tiered) through v9", ver=9, ask=(-5, -4))
@case("d.time.upload_v11", "target -6 (earliest pending upload) through v11", ver=11, ask=(-6,))
@case("d.time.extremes_v1", "targets 2^63-1 and -2^63 through v1", ver=1, ask=(2**63 - 1, -(2**63)))
def _(c, ver, ask):
    c.need("ListOffsets", ver)
    t = c.topic()
    for x in (30, 10, 20):
        add(c, t, c.B(x))
    for x in ask:
        c.attempt(str(x), c.list_offsets, ver, t, x)


@case("d.time.max_ties_v7", "max timestamp shared by two messages: which offset", needs="ListOffsets:7")
def _(c):
    t = c.topic()
    for x in (10, 30, 20, 30, 5):
        add(c, t, c.B(x))
    c.rec("r", c.list_offsets(7, t, -3))


@case("d.time.max_lat_v7", "max timestamp on a LogAppendTime topic", needs="ListOffsets:7,Produce:3")
def _(c):
    t = c.topic(message__timestamp__type="LogAppendTime")
    c.produce(3, t, batch([b"a", b"b", b"c"], ts=1))
    c.rec("r", c.list_offsets(7, t, -3))


@case(
    "d.time.in_gzip_v1", "targets inside a compressed group give the inner offset", codec="gzip", needs="ListOffsets:1"
)
@case("d.time.in_snappy_v1", "targets inside a snappy group", codec="snappy", needs="ListOffsets:1")
@case("d.time.in_lz4_v1", "targets inside an lz4 group", codec="lz4", needs="ListOffsets:1")
def _(c, codec):
    t = c.topic()
    add(c, t, c.B(5))
    put_group(c, t, 5, codec)
    add(c, t, c.B(200))
    c.rec("r", q(c, t, 1, *[c.B(x) for x in (5, 6, 100, 102, 104, 105, 200, 201)]))


@case("d.time.in_gzip_disordered_v2produce", "disordered timestamps inside a magic-1 gzip wrapper", needs="Produce:2")
def _(c):
    t = c.topic()
    c.produce(
        2,
        t,
        wrap("gzip", b"".join(msg(b"x", offset=i, ts=c.B(x)) for i, x in enumerate((50, 10, 70, 20))), 1, c.B(70), 3),
    )
    c.rec("r", q(c, t, 1, *[c.B(x) for x in (1, 15, 50, 51, 70, 71)]))


@case("d.time.no_timestamps", "log of magic-0 messages (timestamp -1)", needs="Produce:2")
def _(c):
    t = c.topic()
    c.produce(2, t, msg(b"a", magic=0) + msg(b"b", magic=0, offset=1))
    c.rec("r", q(c, t, 1, -1, -2, 0, 1, c.B()))


@case("d.time.minus1_mixed", "messages with timestamps -1, 10, -1, 20", needs="ListOffsets:1")
def _(c):
    t = c.topic()
    for x in (None, 10, None, 20):
        add(c, t, -1 if x is None else c.B(x))
    c.rec("r", q(c, t, 1, 0, c.B(5), c.B(10), c.B(11), c.B(20), c.B(21)))


@case(
    "d.time.index_many",
    "120 messages of 1 kB, timestamps every 10 ms: every probe is exact across index entries",
    needs="ListOffsets:1",
)
def _(c):
    t = c.topic(index__interval__bytes=4096)
    for i in range(120):
        add(c, t, c.B(10 * i), 1000)
    c.rec("r", [c.list_offsets(1, t, c.B(x))["offset"] for x in range(-5, 1205, 55)])


@case(
    "d.time.index_disordered",
    "60 messages of 1 kB with timestamps going up and down: first at-or-after",
    needs="ListOffsets:1",
)
def _(c):
    t = c.topic(index__interval__bytes=1024)
    for i in range(60):
        add(c, t, c.B(1000 + (i * 37) % 100), 1000)
    c.rec("r", [[x, c.list_offsets(1, t, c.B(1000 + x))["offset"]] for x in range(0, 101, 9)])


@case(
    "d.time.segments", "several segments (segment.bytes 1 MB, 400 kB messages): targets in each", needs="ListOffsets:1"
)
def _(c):
    t = c.topic(segment__bytes=1048576)
    for i in range(9):
        add(c, t, c.B(100 * i), 400_000)
    c.rec("r", [c.list_offsets(1, t, c.B(x)) for x in (-1, 0, 50, 250, 300, 450, 799, 800, 801)])
    c.rec("ends", q(c, t, 1, -1, -2))


@case("d.time.segments_disordered", "a later segment holds older timestamps than an earlier one", needs="ListOffsets:1")
def _(c):
    t = c.topic(segment__bytes=1048576)
    for x in (500, 510, 520, 100, 110, 120, 530, 540):
        add(c, t, c.B(x), 400_000)
    c.rec("r", [[x, c.list_offsets(1, t, c.B(x))["offset"]] for x in (50, 105, 115, 500, 505, 521, 535, 541)])


@case(
    "d.time.after_delete_records",
    "by-time search starts at the log start offset",
    needs="DeleteRecords:0,ListOffsets:1",
)
def _(c):
    t = c.topic()
    for x in (10, 20, 30):
        add(c, t, c.B(x))
    c.conn().call("DeleteRecords", 0, {"topics": [{"name": t, "partitions": [{"partition_index": 0, "offset": 2}]}]})
    c.rec("r", q(c, t, 1, -1, -2, c.B(10), c.B(20), c.B(30)))


@case("d.time.after_delete_all", "all records deleted: earliest equals latest", needs="DeleteRecords:0,ListOffsets:1")
def _(c):
    t = c.topic()
    for x in (10, 20, 30):
        add(c, t, c.B(x))
    c.conn().call("DeleteRecords", 0, {"topics": [{"name": t, "partitions": [{"partition_index": 0, "offset": -1}]}]})
    c.rec("r", q(c, t, 1, -1, -2, c.B(10), c.B(30)))


# ---------------- targets and topics
@case("d.tp.unknown_topic_v1", "unknown topic: error 3 (v1)", ver=1)
@case("d.tp.unknown_topic_v4", "unknown topic (v4)", ver=4)
@case("d.tp.unknown_topic_v6", "unknown topic (v6)", ver=6)
def _(c, ver):
    c.need("ListOffsets", ver)
    c.attempt("r", c.list_offsets, ver, c.name("T"), -1)


@case("d.tp.negative_partition_v1", "partition -1 (v1)", part=-1)
def _(c, part):
    t = c.topic()
    c.attempt("r", c.list_offsets, 1, t, -1, part)


@case("d.tp.multi_v1", "several partitions and topics in one request, one unknown", needs="ListOffsets:1")
def _(c):
    a, b = c.topic(2), c.topic()
    put(c, a, 2), put(c, b, 1)
    r = c.conn().call(
        "ListOffsets",
        1,
        {
            "topics": [
                {
                    "name": a,
                    "partitions": [
                        {"partition_index": 0, "timestamp": -1},
                        {"partition_index": 1, "timestamp": -1},
                        {"partition_index": 5, "timestamp": -1},
                    ],
                },
                {"name": b, "partitions": [{"partition_index": 0, "timestamp": -2}]},
            ]
        },
    )
    r["topics"].sort(key=lambda x: c.labels[x["name"]])
    for x in r["topics"]:
        x["partitions"].sort(key=lambda p: p["partition_index"])
    c.rec("r", r)


@case("d.tp.duplicate_partition_v1", "a partition asked twice in one request: error 42", needs="ListOffsets:1")
def _(c):
    t = c.topic()
    put(c, t, 2)
    c.attempt(
        "r",
        lambda: c.conn().call(
            "ListOffsets",
            1,
            {
                "topics": [
                    {
                        "name": t,
                        "partitions": [
                            {"partition_index": 0, "timestamp": -1},
                            {"partition_index": 0, "timestamp": -2},
                        ],
                    }
                ]
            },
        ),
    )


@case("d.tp.empty_request_v1", "no topics", needs="ListOffsets:1")
def _(c):
    c.attempt("r", lambda: c.conn().call("ListOffsets", 1, {"topics": []}))


@case("d.replica.debug_v1", "replica id -2", needs="ListOffsets:1", rid=-2)
@case("d.replica.stranger_v1", "replica id 77", needs="ListOffsets:1", rid=77)
def _(c, rid):
    t = c.topic()
    put(c, t, 2)
    c.attempt("r", lambda: c.list_offsets(1, t, -1, replica_id=rid))


@case("d.epoch.ok_v4", "current leader epoch 0 (v4)", e=0)
def _(c, e):
    c.need("ListOffsets", 4)
    t = c.topic()
    put(c, t, 2)
    c.attempt(
        "r",
        lambda: c.conn().call(
            "ListOffsets",
            4,
            {
                "topics": [
                    {"name": t, "partitions": [{"partition_index": 0, "current_leader_epoch": e, "timestamp": -1}]}
                ]
            },
        ),
    )


# ---------------- v0
def v0(c, t, ts, n):
    r = c.list_offsets(0, t, ts, n=n)
    return [r["error_code"], r["old_style_offsets"]]


@case("d.v0.basic", "v0: latest and earliest with 1 and 10 offsets", needs="ListOffsets:0")
def _(c):
    t = c.topic()
    put(c, t, 3)
    for ts in (-1, -2):
        for n in (1, 10):
            c.rec("t%d_n%d" % (ts, n), v0(c, t, ts, n))


@case("d.v0.by_time_future", "v0 by time goes by segment modification time: a future target", needs="ListOffsets:0")
def _(c):
    t = c.topic(segment__bytes=1000)
    for i in range(4):
        add(c, t, c.B(i), 700)
    c.rec("future", v0(c, t, c.now() + 3600_000, 10))
    c.rec("one_hour_ago", v0(c, t, c.B(2), 10))
    c.rec("long_ago", v0(c, t, 1000, 10))


@case("d.v0.negative_n", "v0: max_num_offsets -1", needs="ListOffsets:0")
def _(c):
    t = c.topic()
    put(c, t, 2)
    c.attempt("r", v0, c, t, -1, -1)


@case("d.v0.unknown", "v0: unknown topic and partition", needs="ListOffsets:0")
def _(c):
    t = c.topic()
    c.rec("topic", v0(c, c.name("T"), -1, 1))
    r = c.list_offsets(0, t, -1, 8)
    c.rec("partition", [r["error_code"], r["old_style_offsets"]])


# ---------------- rolling by time, seen through v0


@case(
    "d.roll.message_time_back",
    "older messages do not roll; the comparison is with the first message of the segment",
    needs="ListOffsets:0",
)
def _(c):
    t = c.topic(segment__ms=60000)
    for x in (100_000, 0, -500_000, 159_000, 161_000, 100_000):
        add(c, t, c.B(x))
    c.rec("bases", v0(c, t, -1, 20))


@case("d.roll.lat_clock", "segment.ms=500 ms on a LogAppendTime topic: append time rolls", needs="ListOffsets:0")
def _(c):
    t = c.topic(segment__ms=500, message__timestamp__type="LogAppendTime")
    for i in range(3):
        add(c, t, c.B())
        time.sleep(0.8)
    c.rec("bases", v0(c, t, -1, 20))


@case("d.roll.by_size", "segment.bytes=1000: where 300-byte messages roll", needs="ListOffsets:0")
def _(c):
    t = c.topic(segment__bytes=1000)
    for i in range(8):
        add(c, t, c.B(i), 300)
    c.rec("segments", len(v0(c, t, -1, 20)[1]))
    c.rec("bases", v0(c, t, -1, 20))
