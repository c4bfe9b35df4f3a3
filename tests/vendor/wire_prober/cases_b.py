"""B: Produce v0..v2 with message sets of magic 0 and 1: compression, offsets, damage, timestamps, LogAppendTime."""

import os
import struct
import time

from tests.vendor.wire_prober import wire
from tests.vendor.wire_prober.core import case
from tests.vendor.wire_prober.wire import batch, msg, wrap

N = "Produce:2,Fetch:2"
DAY = 86_400_000


def seq(values, magic=1, ts=None, start=0, **kw):
    return b"".join(
        msg(v, offset=start + i, magic=magic, ts=-1 if ts is None else ts[i], **kw) for i, v in enumerate(values)
    )


def go(c, records, ver=2, fver=2, sent=None, topic=None, label="", acks=1, **cfg):
    """Produce to a fresh topic, then read everything back"""
    t = topic or c.topic(**cfg)
    c.attempt("produce" + label, c.produce, ver, t, records, acks)
    c.attempt("fetch" + label, c.fetch, fver, t, sent=sent)
    return t


# ---------------- acks
@case("b.acks.v0_1", "Produce v0 acks=1", ver=0, acks=1)
@case("b.acks.v2_1", "Produce v2 acks=1 (adds the response timestamp)", ver=2, acks=1)
@case("b.acks.v2_all", "Produce v2 acks=-1", ver=2, acks=-1)
@case("b.acks.v2_2", "Produce v2 acks=2 is invalid (error 21)", ver=2, acks=2)
@case("b.acks.v3_1", "Produce v3 acks=1", ver=3, acks=1)
@case("b.acks.v3_all", "Produce v3 acks=-1", ver=3, acks=-1)
def _(c, ver, acks):
    c.need("Produce", ver)
    t = c.topic()
    c.attempt(
        "produce",
        c.produce,
        ver,
        t,
        msg(b"x", b"k", magic=int(ver > 1), ts=c.B()) if ver < 3 else batch([b"x"], ts=c.B()),
        acks,
    )
    c.rec("leo", c.leo(t))


@case("b.acks0.v2", "Produce v2 acks=0 gets no reply", ver=2)
@case("b.acks0.v3", "Produce v3 acks=0 gets no reply", ver=3)
def _(c, ver):
    c.need("Produce", ver)
    t = c.topic()
    k = c.conn()
    for i in range(3):
        k.send(
            "Produce",
            ver,
            {
                "acks": 0,
                "topics": [
                    {
                        "name": t,
                        "partitions": [{"index": 0, "records": msg(b"x") if ver < 3 else batch([b"x"], ts=c.B())}],
                    }
                ],
            },
        )
    corr = k.send("ApiVersions", 0, {})
    c.rec("next_reply_is_for_next_request", struct.unpack(">i", k.recv()[:4])[0] == corr)
    time.sleep(0.2)
    c.rec("leo", c.leo(t))


@case("b.acks0.error_v2", "Produce v2 acks=0 to an unknown topic: broker closes the connection", ver=2)
@case("b.acks0.error_v3", "Produce v3 acks=0 to an unknown topic: broker closes the connection", ver=3)
def _(c, ver):
    c.need("Produce", ver)
    k = c.conn()
    k.send(
        "Produce",
        ver,
        {
            "acks": 0,
            "topics": [
                {
                    "name": c.name("T"),
                    "partitions": [{"index": 0, "records": msg(b"x") if ver < 3 else batch([b"x"], ts=c.B())}],
                }
            ],
        },
    )
    time.sleep(0.3)
    c.attempt("next", lambda: k.call("ApiVersions", 0, {}, timeout=4)["error_code"])


# ---------------- plain messages
@case("b.m.single_m0_v2", "one magic-0 message through Produce v2, read by Fetch v2", magic=0, pv=2, fv=2)
@case(
    "b.m.single_m1_v0",
    "one magic-1 message through Produce v0 (version does not decide the magic)",
    magic=1,
    pv=0,
    fv=2,
)
@case("b.m.single_m1_f0", "one magic-1 message read by Fetch v0 (down-converted, timestamp lost)", magic=1, pv=2, fv=0)
@case("b.m.single_m1_f3", "one magic-1 message read by Fetch v3", magic=1, pv=2, fv=3)
def _(c, magic, pv, fv):
    c.need("Produce", pv), c.need("Fetch", fv)
    go(c, msg(b"val", b"key", magic=magic, ts=c.B(5)), pv, fv)


@case("b.m.multi_m0", "three magic-0 messages in one set", needs=N, magic=0)
@case("b.m.multi_m1", "three magic-1 messages in one set, timestamps out of order", needs=N, magic=1)
def _(c, magic):
    go(c, seq([b"a", b"b", b"c"], magic, [c.B(30), c.B(10), c.B(20)]))


@case("b.m.nulls_m0", "magic 0: null key, null value, both null, empty key and value", needs=N, magic=0)
@case("b.m.nulls_m1", "magic 1: null key, null value, both null, empty key and value", needs=N, magic=1)
def _(c, magic):
    go(
        c,
        b"".join(
            msg(v, k, i, magic, ts=c.B(i))
            for i, (k, v) in enumerate([(None, b"v"), (b"k", None), (None, None), (b"", b"")])
        ),
    )


@case("b.m.mixed_magic", "magic 0 and magic 1 messages in one set", needs=N)
def _(c):
    go(c, msg(b"a", magic=0) + msg(b"b", magic=1, offset=1, ts=c.B()))


@case("b.m.sequential_sets", "three Produce calls: base offsets 0, 1, 3", needs=N)
def _(c):
    t = c.topic()
    c.rec("offsets", [c.produce(2, t, seq([b"x"] * n, ts=[c.B()] * n))["base_offset"] for n in (1, 2, 1)])
    c.rec("leo", c.leo(t))


@case("b.m.big_value", "one 200 kB magic-1 message", needs=N)
def _(c):
    go(c, msg(b"z" * 200_000, ts=c.B()))


@case("b.m.m0_ts_bit", "attribute bit 3 set on a magic-0 message (no timestamp there)", needs=N, attrs=8, magic=0)
def _(c, attrs, magic=1):
    go(c, msg(b"x", attrs=attrs, magic=magic, ts=c.B()))


# ---------------- compressed
@case("b.z.gzip_m0", "gzip wrapper of three magic-0 messages", needs=N, codec="gzip", magic=0)
@case("b.z.gzip_m1", "gzip wrapper of three magic-1 messages", needs=N, codec="gzip", magic=1)
@case("b.z.snappy_m1", "snappy (xerial framing) wrapper of three magic-1 messages", needs=N, codec="snappy", magic=1)
@case("b.z.snappy_raw_m0", "snappy without xerial framing, magic 0", needs=N, codec="snappy_raw", magic=0)
@case("b.z.snappy_raw_m1", "snappy without xerial framing, magic 1", needs=N, codec="snappy_raw", magic=1)
@case("b.z.lz4_frame_m0", "magic 0 with the correct lz4 frame checksum", needs=N, codec="lz4_frame", magic=0)
@case("b.z.lz4_legacy_m1", "magic 1 with the legacy (wrong) lz4 header checksum", needs=N, codec="lz4_legacy", magic=1)
@case("b.z.lz4_badhc_m0", "magic 0 with a random lz4 header checksum", needs=N, codec="lz4_badhc", magic=0)
@case("b.z.lz4_badhc_m1", "magic 1 with a random lz4 header checksum", needs=N, codec="lz4_badhc", magic=1)
@case("b.z.zstd_m1", "codec 4 (zstd) in a magic-1 wrapper", needs=N, codec="zstd", magic=1)
def _(c, codec, magic):
    inner = seq([b"a", b"b", b"c"], magic, [c.B(30), c.B(10), c.B(20)])
    w = wrap(codec, inner, magic, ts=c.B(30), offset=2 if magic else 0)
    go(c, w, sent=w)


@case("b.z.gzip_m1_f3", "gzip magic-1 wrapper read by Fetch v3", needs="Produce:2,Fetch:3", codec="gzip", fv=3)
@case("b.z.snappy_m1_f0", "snappy magic-1 wrapper read by Fetch v0", needs="Produce:2,Fetch:0", codec="snappy", fv=0)
@case(
    "b.z.lz4_m1_f0",
    "lz4 magic-1 wrapper read by Fetch v0 (header checksum in the reply)",
    needs="Produce:2,Fetch:0",
    codec="lz4",
    fv=0,
)
@case("b.z.lz4_m1_f4", "lz4 magic-1 wrapper read by Fetch v4", needs="Produce:2,Fetch:4", codec="lz4", fv=4)
def _(c, codec, fv):
    t = c.topic()
    c.produce(2, t, msg(b"first", ts=c.B()))
    w = wrap(codec, seq([b"a", b"b", b"c"], 1, [c.B(30), c.B(10), c.B(20)]), 1, c.B(30), 2)
    go(c, w, fver=fv, sent=w, topic=t)


@case(
    "b.z.offs_absolute_m1",
    "magic-1 wrapper whose inner offsets are absolute (100..102)",
    needs=N,
    start=100,
    magic=1,
    woff=102,
)
@case(
    "b.z.offs_woff0_m1", "magic-1 wrapper offset 0 with relative inner offsets 0..2", needs=N, start=0, magic=1, woff=0
)
def _(c, start, magic, woff):
    w = wrap("gzip", seq([b"a", b"b", b"c"], magic, [c.B(1), c.B(2), c.B(3)], start), magic, c.B(3), woff)
    t = c.topic()
    c.produce(2, t, msg(b"first", ts=c.B()))
    go(c, w, sent=w, topic=t)


@case("b.z.offs_gaps_m1", "magic-1 inner offsets 0, 2, 5 (gaps)", needs=N, offs=(0, 2, 5))
@case("b.z.offs_down_m1", "magic-1 inner offsets 2, 1, 0", needs=N, offs=(2, 1, 0))
def _(c, offs):
    w = wrap("gzip", b"".join(msg(b"x%d" % i, offset=o, ts=c.B(i)) for i, o in enumerate(offs)), 1, c.B(2), offs[-1])
    go(c, w, sent=w)


@case("b.z.nested_m0", "gzip wrapper inside a gzip wrapper, magic 0", needs=N, magic=0)
def _(c, magic):
    w1 = wrap("gzip", seq([b"a", b"b"], magic, [c.B(), c.B()]), magic, c.B(), 1)
    go(c, wrap("gzip", w1, magic, c.B()))


@case("b.z.inner_m0_in_m1", "magic-1 wrapper holding magic-0 messages", needs=N, wm=1, im=0)
@case("b.z.inner_m1_in_m0", "magic-0 wrapper holding magic-1 messages", needs=N, wm=0, im=1)
def _(c, wm, im):
    go(c, wrap("gzip", seq([b"a", b"b"], im, [c.B(), c.B()]), wm, c.B(), 1))


@case("b.z.two_codecs", "a gzip wrapper and a snappy wrapper in one set", needs=N)
def _(c):
    go(
        c,
        wrap("gzip", seq([b"a", b"b"], 1, [c.B(1), c.B(2)]), 1, c.B(2), 1)
        + wrap("snappy", seq([b"c"], 1, [c.B(5)]), 1, c.B(5), 0),
    )


@case("b.z.null_value_wrapper", "gzip attribute with a null value", needs=N, value=None)
@case("b.z.empty_value_wrapper", "gzip attribute with an empty value", needs=N, value=b"")
def _(c, value):
    if value == "cut":
        value = wire.gz(seq([os.urandom(50).hex().encode() for _ in range(4)], 1, [c.B()] * 4))[:60]
    go(c, msg(value, attrs=1, ts=c.B()))


@case("b.z.inner_bad_crc_m1", "wrapper is intact, one inner message has a wrong CRC", needs=N, magic=1)
def _(c, magic):
    go(
        c,
        wrap(
            "gzip",
            msg(b"a", magic=magic, ts=c.B()) + msg(b"b", offset=1, magic=magic, ts=c.B(), crc=12345),
            magic,
            c.B(),
            1,
        ),
    )


@case("b.z.inner_codec_differs", "inner message itself carries a snappy wrapper inside gzip", needs=N)
def _(c):
    go(c, wrap("gzip", wrap("snappy", seq([b"a"], 1, [c.B()]), 1, c.B()), 1, c.B(), 0))


# ---------------- damage
@case("b.bad.empty_set", "zero bytes of records (v2)", needs=N, data=b"", ver=2)
@case("b.bad.null_records", "null records (v2)", needs=N, data=None, ver=2)
@case("b.bad.crc", "wrong CRC on a plain message: error 2", needs=N, data=msg(b"x", ts=1, crc=1), ver=2)
@case("b.bad.crc_m0", "wrong CRC on a plain magic-0 message", needs=N, data=msg(b"x", magic=0, crc=1), ver=0)
@case(
    "b.bad.crc_second",
    "good message then one with a wrong CRC: whole set refused",
    needs=N,
    data=msg(b"x", ts=1) + msg(b"y", ts=1, crc=1, offset=1),
    ver=2,
)
@case("b.bad.truncated_only", "only message cut short", needs=N, data=msg(b"xxxxxxxx", ts=1)[:-4], ver=2)
@case("b.bad.header_only", "eleven bytes, not even an entry header", needs=N, data=b"\0" * 11, ver=2)
@case("b.bad.size_small", "message size 5, below the minimum", needs=N, data=msg(b"x", ts=1, size=5), ver=2)
@case("b.bad.size_negative", "message size -1", needs=N, data=msg(b"x", ts=1, size=-1), ver=2)
@case("b.bad.key_len_overrun", "key length points past the message", needs=N, data=None, ver=2, special="key")
@case("b.bad.value_len_neg5", "value length -5", needs=N, data=None, ver=2, special="value")
@case("b.bad.codec7", "attributes name codec 7", needs=N, data=msg(b"x", ts=1, attrs=7), ver=2)
@case("b.bad.magic5", "magic 5", needs=N, data=msg(b"x", magic=5, ts=1), ver=2)
@case("b.bad.batch_v2_in_v2", "a record batch (magic 2) inside Produce v2", needs=N, data=batch([b"x"], ts=1), ver=2)
@case(
    "b.bad.random_bytes",
    "200 random bytes as records",
    needs=N,
    data=bytes((i * 131 + 7) & 255 for i in range(200)),
    ver=2,
)
@case("b.bad.m1_in_v3", "magic-1 message inside Produce v3", needs="Produce:3", data=msg(b"x", ts=1), ver=3)
@case("b.bad.empty_set_v3", "zero bytes of records (v3)", needs="Produce:3", data=b"", ver=3)
@case("b.bad.crc_v3", "record batch with a wrong CRC", needs="Produce:3", data=batch([b"x"], ts=1, crc=1), ver=3)
def _(c, data, ver, special=None):
    if special:
        import zlib

        b = (
            bytes([1, 0])
            + struct.pack(">q", 1)
            + (
                struct.pack(">i", 9999) + b"kk"
                if special == "key"
                else struct.pack(">i", -1) + struct.pack(">i", -5) + b"vv"
            )
        )
        m = struct.pack(">I", zlib.crc32(b)) + b
        data = struct.pack(">qi", 0, len(m)) + m
    t = c.topic()
    c.attempt("produce", c.produce, ver, t, data)
    c.rec("leo", c.leo(t))


# ---------------- sizes
def of_recorded_size(made, t, size):
    """A set of the size that was recorded: gzip makes a byte or two less of one time in twenty."""
    return next(r for r in (made(t + i) for i in range(1000)) if len(r) == size)


@case(
    "b.size.exact_v1",
    "entry of exactly 1000 bytes (with the 12-byte entry header)",
    needs=N,
    recs=lambda c: msg(b"z" * (1000 - 34), ts=c.B()),
    ver=2,
)
@case("b.size.exact_plus1_v1", "entry of 1001 bytes", needs=N, recs=lambda c: msg(b"z" * (1001 - 34), ts=c.B()), ver=2)
@case(
    "b.size.set_over_max",
    "five messages of 400 bytes each in one set (sum over the limit)",
    needs=N,
    recs=lambda c: seq([b"z" * 400] * 5, 1, [c.B()] * 5),
    ver=2,
)
@case(
    "b.size.compressed_fits",
    "2000 inner bytes that compress below the limit",
    needs=N,
    recs=lambda c: of_recorded_size(lambda t: wrap("gzip", seq([b"z" * 2000], 1, [t]), 1, t), c.B(), 93),
    ver=2,
)
@case(
    "b.size.one_big_of_three",
    "one of three messages over the limit",
    needs=N,
    recs=lambda c: seq([b"a", b"z" * 2000, b"b"], 1, [c.B()] * 3),
    ver=2,
)
@case(
    "b.size.over_max_v3",
    "record batch over max.message.bytes=1000",
    needs="Produce:3",
    recs=lambda c: batch([b"z" * 2000], ts=c.B()),
    ver=3,
)
@case(
    "b.size.compressed_fits_v3",
    "record batch whose compressed form fits",
    needs="Produce:3",
    recs=lambda c: batch([b"z" * 2000], ts=c.B(), codec="gzip"),
    ver=3,
)
@case(
    "b.size.exact_v3",
    "record batch of exactly 1000 bytes",
    needs="Produce:3",
    recs=lambda c: batch([b"z" * (1000 - 61 - 9)], ts=c.B()),
    ver=3,
)
def _(c, recs, ver):
    t = c.topic(max__message__bytes=1000)
    r = recs(c)
    c.rec("bytes", len(r))
    c.attempt("produce", c.produce, ver, t, r)
    c.rec("leo", c.leo(t))


@case("b.size.over_segment", "set larger than segment.bytes: error 18 or accepted", needs=N, ver=2)
def _(c, ver):
    t = c.topic(segment__bytes=1048576, max__message__bytes=3000000)
    v = [b"z" * 400_000] * 3
    c.attempt("produce", c.produce, ver, t, seq(v, 1, [c.B()] * 3) if ver < 3 else batch(v, ts=c.B()))
    c.rec("leo", c.leo(t))


# ---------------- topics and partitions
def _multi(c, ver, spec, acks=1):
    """spec: list of (topic, [(partition, records)])"""
    k = c.conn()
    r = k.call(
        "Produce",
        ver,
        {
            "acks": acks,
            "topics": [{"name": t, "partitions": [{"index": i, "records": b} for i, b in ps]} for t, ps in spec],
        },
    )
    r["responses"].sort(key=lambda x: c.labels.get(x["name"], x["name"]))
    for x in r["responses"]:
        x["partitions"].sort(key=lambda p: p["index"])
    return r


@case("b.tp.unknown_topic_v2", "unknown topic through Produce v2", ver=2)
@case("b.tp.unknown_topic_v3", "unknown topic through Produce v3", ver=3)
@case("b.tp.unknown_topic_v9", "unknown topic through Produce v9", ver=9)
def _(c, ver):
    c.need("Produce", ver)
    c.attempt("produce", c.produce, ver, c.name("T"), msg(b"x") if ver < 3 else batch([b"x"], ts=c.B()))


@case("b.tp.unknown_partition_v3", "partition 7 of a one-partition topic (v3)", ver=3, part=7)
@case("b.tp.negative_partition_v3", "partition -1 (v3)", ver=3, part=-1)
def _(c, ver, part):
    c.need("Produce", ver)
    t = c.topic()
    c.attempt("produce", c.produce, ver, t, msg(b"x", ts=c.B()) if ver < 3 else batch([b"x"], ts=c.B()), 1, part)


@case(
    "b.tp.multi_one_bad_v2",
    "two topics, three partitions, one unknown partition, one bad CRC: the others succeed",
    ver=2,
    needs=N,
)
@case("b.tp.multi_one_bad_v3", "the same through Produce v3", ver=3, needs="Produce:3")
def _(c, ver):
    a, b = c.topic(2), c.topic(1)
    good = msg(b"x", ts=c.B()) if ver < 3 else batch([b"x"], ts=c.B())
    bad = msg(b"x", ts=c.B(), crc=3) if ver < 3 else batch([b"x"], ts=c.B(), crc=3)
    c.attempt("produce", _multi, c, ver, [(a, [(0, good), (1, bad), (9, good)]), (b, [(0, good)])])
    c.rec("leo", [c.leo(a, 0), c.leo(a, 1), c.leo(b)])


@case("b.tp.same_partition_twice_v2", "one partition listed twice in one request", ver=2, needs=N)
@case("b.tp.same_partition_twice_v3", "one partition listed twice in one request (v3)", ver=3, needs="Produce:3")
def _(c, ver):
    a = c.topic(1)
    mk = lambda v: msg(v, ts=c.B()) if ver < 3 else batch([v], ts=c.B())
    c.attempt("produce", _multi, c, ver, [(a, [(0, mk(b"1")), (0, mk(b"2"))])])
    c.rec("leo", c.leo(a))
    c.attempt("fetch", c.fetch, 2 if ver < 3 else 4, a)


@case("b.tp.empty_request_v2", "Produce v2 without topics", ver=2)
@case("b.tp.empty_request_v3", "Produce v3 without topics", ver=3)
def _(c, ver):
    c.need("Produce", ver)
    c.attempt("reply", lambda: c.conn().call("Produce", ver, {"topics": []}))


@case("b.tp.internal_topic", "producing to __consumer_offsets", ver=2, needs=N)
@case("b.tp.internal_topic_v3", "producing to __consumer_offsets (v3)", ver=3, needs="Produce:3")
def _(c, ver):
    c.coordinator(c.name("G"))
    c.attempt(
        "produce",
        lambda: c.produce(ver, "__consumer_offsets", msg(b"x", ts=c.B()) if ver < 3 else batch([b"x"], ts=c.B()))[
            "error_code"
        ],
    )


@case(
    "b.tp.compacted_key_gzip_v2",
    "compacted topic, keyed message inside a gzip wrapper",
    needs=N,
    r=lambda c: wrap("gzip", msg(b"x", b"k", ts=c.B()), 1, c.B()),
    ver=2,
)
@case(
    "b.tp.compacted_one_null_v2",
    "compacted topic, second of two messages has no key",
    needs=N,
    r=lambda c: msg(b"x", b"k", ts=c.B()) + msg(b"y", None, 1, ts=c.B()),
    ver=2,
)
@case(
    "b.tp.compacted_null_key_v3",
    "compacted topic, null key (v3)",
    needs="Produce:3",
    r=lambda c: batch([b"x"], ts=c.B()),
    ver=3,
)
@case(
    "b.tp.compacted_one_null_v8",
    "compacted topic, second record has no key: record errors in v8",
    needs="Produce:8",
    r=lambda c: batch([{"key": b"k"}, b"y", {"key": b"z"}, b"w"], ts=c.B()),
    ver=8,
)
def _(c, r, ver):
    t = c.topic(cleanup__policy="compact")
    c.attempt("produce", c.produce, ver, t, r(c))
    c.rec("leo", c.leo(t))
