"""B (continued): Produce v3+ with record batches, idempotent producers, transactions."""

import time

from tests.vendor.wire_prober.core import case
from tests.vendor.wire_prober.wire import batch

P3 = "Produce:3,Fetch:4"
DAY = 86_400_000


def go(c, records, ver=3, fver=4, topic=None, **cfg):
    t = topic or c.topic(**cfg)
    c.attempt("produce", c.produce, ver, t, records)
    c.attempt("fetch", c.fetch, fver, t)
    return t


# ---------------- versions
@case("b.v.produce_v8", "Produce v8 adds record errors", ver=8)
@case("b.v.produce_v10", "Produce v10", ver=10)
@case("b.v.produce_v11", "Produce v11", ver=11)
@case("b.v.produce_v12", "Produce v12", ver=12)
def _(c, ver):
    c.need("Produce", ver)
    t = c.topic()
    c.attempt(
        "full",
        lambda: c.conn().call(
            "Produce",
            ver,
            {"topics": [{"name": t, "partitions": [{"index": 0, "records": batch([b"x", b"y"], ts=c.B(1))}]}]},
        ),
    )
    c.rec("leo", c.leo(t))


# ---------------- batches
@case(
    "b.r.multi_ts",
    "three records with timestamps out of order",
    needs=P3,
    r=lambda c: batch([{"value": b"a", "ts": c.B(30)}, {"value": b"b", "ts": c.B(10)}, {"value": b"c", "ts": c.B(20)}]),
)
@case(
    "b.r.headers",
    "headers: normal, empty key, null value, duplicate keys",
    needs=P3,
    r=lambda c: batch([{"value": b"v", "headers": [(b"h", b"1"), (b"", b""), (b"n", None), (b"h", b"2")]}], ts=c.B()),
)
@case("b.r.snappy", "snappy (xerial) batch", needs=P3, r=lambda c: batch([b"a", b"b"], ts=c.B(), codec="snappy"))
@case("b.r.lz4", "lz4 batch", needs=P3, r=lambda c: batch([b"a", b"b"], ts=c.B(), codec="lz4"))
@case(
    "b.r.zstd_v3",
    "zstd batch through Produce v3: error 76",
    needs=P3,
    r=lambda c: batch([b"a", b"b"], ts=c.B(), codec="zstd"),
)
@case(
    "b.r.zstd_v7_f2",
    "zstd batch read by Fetch v2",
    needs="Produce:7,Fetch:2",
    r=lambda c: batch([b"a", b"b"], ts=c.B(), codec="zstd"),
    ver=7,
    fver=2,
)
@case("b.r.codec5", "compression bits 5", needs=P3, r=lambda c: batch([b"a"], ts=c.B(), attrs=5))
@case(
    "b.r.two_batches",
    "two batches in one partition entry",
    needs=P3,
    r=lambda c: batch([b"a"], ts=c.B()) + batch([b"b"], ts=c.B()),
)
@case(
    "b.r.ple_7", "producer partition leader epoch 7 is replaced", needs=P3, r=lambda c: batch([b"a"], ts=c.B(), ple=7)
)
@case(
    "b.r.count_more",
    "record count 3 with two records",
    needs=P3,
    r=lambda c: batch([b"a", b"b"], ts=c.B(), count=3, last_delta=2),
)
@case("b.r.count_zero", "record count 0", needs=P3, r=lambda c: batch([], ts=c.B(), count=0, last_delta=-1))
@case("b.r.count_negative", "record count -1", needs=P3, r=lambda c: batch([b"a"], ts=c.B(), count=-1))
@case(
    "b.r.last_delta_wrong",
    "last offset delta 5 with two records",
    needs=P3,
    r=lambda c: batch([b"a", b"b"], ts=c.B(), last_delta=5),
)
@case(
    "b.r.deltas_equal", "offset deltas 0 and 0", needs=P3, r=lambda c: batch([b"a", {"value": b"b", "od": 0}], ts=c.B())
)
@case(
    "b.r.max_ts_low",
    "header max timestamp lower than the records'",
    needs=P3,
    r=lambda c: batch([{"value": b"a", "ts": c.B(10)}, {"value": b"b", "ts": c.B(50)}], max_ts=c.B(10)),
)
@case(
    "b.r.max_ts_high",
    "header max timestamp higher than the records'",
    needs=P3,
    r=lambda c: batch([{"value": b"a", "ts": c.B(10)}, {"value": b"b", "ts": c.B(50)}], max_ts=c.B(900)),
)
@case(
    "b.r.max_ts_low_gzip",
    "header max timestamp lower than the records' (gzip)",
    needs=P3,
    r=lambda c: batch([{"value": b"a", "ts": c.B(10)}, {"value": b"b", "ts": c.B(50)}], max_ts=c.B(10), codec="gzip"),
)
@case(
    "b.r.first_ts_high",
    "base timestamp later than the records (negative deltas)",
    needs=P3,
    r=lambda c: batch([{"value": b"a", "ts": c.B(10)}, {"value": b"b", "ts": c.B(50)}], first_ts=c.B(100)),
)
@case("b.r.ts_minus1", "all timestamps -1", needs=P3, r=lambda c: batch([b"a"], ts=-1))
@case("b.r.ts_minus5", "timestamps -5", needs=P3, r=lambda c: batch([b"a"], ts=-5))
@case(
    "b.r.ts_future_2h",
    "timestamps two hours ahead, default limits",
    needs=P3,
    r=lambda c: batch([b"a"], ts=c.B(3 * 3600_000)),
)
@case(
    "b.r.lat_bit",
    "LogAppendTime bit set by the producer on a CreateTime topic",
    needs=P3,
    r=lambda c: batch([b"a"], ts=c.B(), attrs=8),
)
@case(
    "b.r.lat_bit_gzip",
    "LogAppendTime bit set by the producer on a gzip batch of a CreateTime topic",
    needs=P3,
    r=lambda c: batch([b"a"], ts=c.B(), attrs=8, codec="gzip"),
)
@case(
    "b.r.control_bit",
    "control bit set by the producer",
    needs=P3,
    r=lambda c: batch([{"key": b"\0\0\0\1", "value": b"\0\0\0\0\0\0"}], ts=c.B(), attrs=0x20),
)
@case(
    "b.r.txn_bit_no_pid",
    "transactional bit without a producer id",
    needs=P3,
    r=lambda c: batch([b"a"], ts=c.B(), attrs=0x10),
)
@case(
    "b.r.delete_horizon_bit",
    "delete-horizon bit set by the producer",
    needs=P3,
    r=lambda c: batch([b"a"], ts=c.B(), attrs=0x40),
)
@case("b.r.unused_bits", "unused attribute bits 8..14 set", needs=P3, r=lambda c: batch([b"a"], ts=c.B(), attrs=0x7F00))
@case(
    "b.r.record_attrs",
    "record-level attributes 0x7f",
    needs=P3,
    r=lambda c: batch([{"value": b"a", "attrs": 0x7F}], ts=c.B()),
)
@case(
    "b.r.length_short",
    "batch length field too small",
    needs=P3,
    r=lambda c: batch([b"aaaaaaaaaa"], ts=c.B(), length=40),
)
@case(
    "b.r.length_long",
    "batch length field runs past the data",
    needs=P3,
    r=lambda c: batch([b"a"], ts=c.B(), length=500),
)
@case("b.r.trailing_junk", "ten junk bytes after the batch", needs=P3, r=lambda c: batch([b"a"], ts=c.B()) + b"\0" * 10)
@case("b.r.magic3", "magic 3", needs=P3, r=lambda c: batch([b"a"], ts=c.B(), magic=3))
@case(
    "b.r.read_f0",
    "batch read by Fetch v0: magic 0",
    needs="Produce:3,Fetch:0",
    r=lambda c: batch([{"value": b"a", "ts": c.B(5)}, {"value": b"b", "ts": c.B(3)}]),
    fver=0,
)
@case(
    "b.r.gzip_read_f2",
    "gzip batch read by Fetch v2: magic-1 wrapper with relative offsets",
    needs="Produce:3,Fetch:2",
    r=lambda c: batch([{"value": b"a", "ts": c.B(5)}, {"value": b"b", "ts": c.B(3)}], codec="gzip"),
    fver=2,
)
@case(
    "b.r.lz4_read_f0",
    "lz4 batch read by Fetch v0: legacy checksum expected by old clients",
    needs="Produce:3,Fetch:0",
    r=lambda c: batch([{"value": b"a", "ts": c.B(5)}, {"value": b"b", "ts": c.B(3)}], codec="lz4"),
    fver=0,
)
def _(c, r, ver=3, fver=4):
    t = go(c, r(c), ver, fver)
    c.rec("leo", c.leo(t))


_LAT = {"message__timestamp__type": "LogAppendTime"}


@case(
    "b.rl.plain",
    "LogAppendTime batch: response time, attributes bit 3, header timestamps",
    needs=P3,
    r=lambda c: batch([{"value": b"a", "ts": c.B(5)}, {"value": b"b", "ts": c.B(9)}]),
)
@case(
    "b.rl.bit_set",
    "LogAppendTime topic, producer already set bit 3",
    needs=P3,
    r=lambda c: batch([b"a"], ts=c.B(), attrs=8),
)
@case(
    "b.rl.bit_set_gzip",
    "LogAppendTime topic, producer already set bit 3 on a gzip batch",
    needs=P3,
    r=lambda c: batch([b"a"], ts=c.B(), attrs=8, codec="gzip"),
)
@case(
    "b.rl.future",
    "LogAppendTime topic, producer timestamp ten days ahead",
    needs=P3,
    r=lambda c: batch([b"a"], ts=c.B(10 * DAY)),
)
@case(
    "b.rl.read_f2",
    "LogAppendTime batch read by Fetch v2",
    needs="Produce:3,Fetch:2",
    r=lambda c: batch([{"value": b"a", "ts": c.B(5)}, {"value": b"b", "ts": c.B(9)}]),
    fver=2,
)
@case(
    "b.rl.gzip_read_f2",
    "LogAppendTime gzip batch read by Fetch v2",
    needs="Produce:3,Fetch:2",
    r=lambda c: batch([{"value": b"a", "ts": c.B(5)}, {"value": b"b", "ts": c.B(9)}], codec="gzip"),
    fver=2,
)
def _(c, r, fver=4):
    t = go(c, r(c), 3, fver, **_LAT)
    c.attempt("lookup_past", c.list_offsets, 1, t, c.B(5))
    c.attempt("lookup_future", c.list_offsets, 1, t, c.B(7_200_000))


@case("b.rl.v5_log_start", "LogAppendTime through Produce v8: response fields together", needs="Produce:8")
def _(c):
    t = c.topic(**_LAT)
    c.attempt("produce", c.produce, 8, t, batch([b"x"], ts=1))


_PAST = {"message__timestamp__before__max__ms": 7_200_000}
_FUT = {"message__timestamp__after__max__ms": 7_200_000}
_BOTH = {"message__timestamp__before__max__ms": 7_200_000, "message__timestamp__after__max__ms": 60_000}
_DIFF = {"message__timestamp__difference__max__ms": 7_200_000}


@case("b.rd.after_ok", "after.max.ms=2h: 90 min ahead", needs=P3, cfg=_FUT, at=9_000_000)
@case("b.rd.after_bad", "after.max.ms=2h: three hours ahead", needs=P3, cfg=_FUT, at=14_400_000)
@case("b.rd.after_past", "after.max.ms=2h: ten days old", needs=P3, cfg=_FUT, at=-10 * DAY)
@case("b.rd.before_minus1", "before.max.ms=2h: timestamp -1", needs=P3, cfg=_PAST, at=None)
def _(c, cfg, at):
    t = c.name("T")
    e = c.create(t, 1, dict({"retention.ms": -1}, **{k.replace("__", "."): v for k, v in cfg.items()}))
    c.rec("create", e)
    if e:
        return
    c.wait_topic(t)
    c.attempt("produce", c.produce, 3, t, batch([b"x"], ts=-1 if at is None else c.B(at)))


@case("b.rd.record_errors_v8", "v8 names the records whose timestamps are out of range", needs="Produce:8")
def _(c):
    t = c.topic(message__timestamp__before__max__ms=7_200_000)
    c.attempt(
        "produce",
        c.produce,
        8,
        t,
        batch(
            [
                {"value": b"a", "ts": c.B()},
                {"value": b"b", "ts": c.B(-10_800_000)},
                {"value": b"c", "ts": c.B(-10_900_000)},
            ]
        ),
    )


@case("b.rd.header_only_range", "records in range, header max timestamp out of range (after.max.ms)", needs=P3)
def _(c):
    t = c.topic(message__timestamp__after__max__ms=60000)
    c.attempt("produce", c.produce, 3, t, batch([{"value": b"a", "ts": c.B()}], max_ts=c.B(20_000_000)))


# ---------------- idempotent producers
I = "InitProducerId:0,Produce:3"


def pid(c, txn=None, ver=0, **kw):
    if txn:
        c.coordinator(c.name("X"), 1)
    k = c.conn()
    end = time.time() + 8
    while True:
        r = k.call("InitProducerId", ver, dict({"transactional_id": txn}, **kw))
        if r["error_code"] not in (14, 15, 51) or time.time() > end:
            k.close()
            return r
        time.sleep(0.1)


def send(c, t, p, epoch, seq, n=1, ver=3, txn=None, attrs=0, v=b"x"):
    r = c.produce(ver, t, batch([v] * n, ts=c.B(), pid=p, epoch=epoch, seq=seq, attrs=attrs), -1, txn=txn)
    return [r["error_code"], r["base_offset"]]


@case("b.i.init_v0", "InitProducerId v0 without a transactional id", ver=0)
@case("b.i.init_v1", "InitProducerId v1", ver=1)
@case("b.i.init_v3", "InitProducerId v3", ver=3)
@case("b.i.init_v4", "InitProducerId v4", ver=4)
def _(c, ver):
    c.need("InitProducerId", ver)
    a, b = pid(c, ver=ver), pid(c, ver=ver)
    c.rec("first", a)
    c.rec("second", b)


@case(
    "b.i.init_empty_txn",
    "InitProducerId with an empty transactional id: error 42",
    needs="InitProducerId:0",
    kw={"transactional_id": ""},
)
@case(
    "b.i.init_txn_timeout_0",
    "transaction timeout 0",
    needs="InitProducerId:0",
    kw={"transactional_id": "x", "transaction_timeout_ms": 0},
)
@case(
    "b.i.init_txn_timeout_neg",
    "transaction timeout -1",
    needs="InitProducerId:0",
    kw={"transactional_id": "x", "transaction_timeout_ms": -1},
)
@case(
    "b.i.init_txn_timeout_huge",
    "transaction timeout above transaction.max.timeout.ms: error 50",
    needs="InitProducerId:0",
    kw={"transactional_id": "x", "transaction_timeout_ms": 2**31 - 1},
)
@case(
    "b.i.init_v3_wrong_pid",
    "InitProducerId v3 with someone else's producer id and epoch",
    needs="InitProducerId:3",
    ver=3,
    kw={"transactional_id": "x", "producer_id": 999999, "producer_epoch": 3},
)
def _(c, kw, ver=0):
    c.coordinator("x", 1)
    if kw.get("transactional_id") == "x":
        kw = dict(kw, transactional_id=c.name("X"))
    c.attempt("reply", lambda: c.conn().call("InitProducerId", ver, kw))


@case("b.i.sequence_ok", "sequences 0, 1 (two records), 3: offsets 0, 1, 3", needs=I)
def _(c):
    t, p = c.topic(), pid(c)["producer_id"]
    c.rec("r", [send(c, t, p, 0, 0), send(c, t, p, 0, 1, 2), send(c, t, p, 0, 3)])
    c.attempt("fetch", c.fetch, 4, t)


@case("b.i.duplicate_last", "the last batch again: error 0 with the old offset, not appended", needs=I)
def _(c):
    t, p = c.topic(), pid(c)["producer_id"]
    c.rec("r", [send(c, t, p, 0, 0, 2), send(c, t, p, 0, 0, 2)])
    c.rec("leo", c.leo(t))


@case("b.i.gap", "sequence 0 then 5: error 45", needs=I)
def _(c):
    t, p = c.topic(), pid(c)["producer_id"]
    c.rec("r", [send(c, t, p, 0, 0), send(c, t, p, 0, 5), send(c, t, p, 0, 1)])
    c.rec("leo", c.leo(t))


@case("b.i.first_nonzero", "first sequence of an unknown producer is 7", needs=I)
def _(c):
    t, p = c.topic(), pid(c)["producer_id"]
    c.rec("r", send(c, t, p, 0, 7))
    c.rec("next", send(c, t, p, 0, 8))


@case("b.i.overlap", "batch 0..2 then batch 1..3 (partly seen)", needs=I)
def _(c):
    t, p = c.topic(), pid(c)["producer_id"]
    c.rec("r", [send(c, t, p, 0, 0, 3), send(c, t, p, 0, 1, 3)])


@case("b.i.stale_epoch", "epoch 1 then epoch 0: error 47", needs=I)
def _(c):
    t, p = c.topic(), pid(c)["producer_id"]
    c.rec("r", [send(c, t, p, 1, 0), send(c, t, p, 0, 0), send(c, t, p, 1, 1)])


@case("b.i.epoch_bump_seq0", "epoch 0 then epoch 1 starting at sequence 0", needs=I)
def _(c):
    t, p = c.topic(), pid(c)["producer_id"]
    c.rec("r", [send(c, t, p, 0, 0), send(c, t, p, 0, 1), send(c, t, p, 1, 0)])


@case("b.i.epoch_bump_seq5", "epoch 0 then epoch 1 starting at sequence 5: error 45", needs=I)
def _(c):
    t, p = c.topic(), pid(c)["producer_id"]
    c.rec("r", [send(c, t, p, 0, 0), send(c, t, p, 1, 5)])


@case("b.i.two_partitions", "sequences are per partition", needs=I)
def _(c):
    t, p = c.topic(2), pid(c)["producer_id"]
    f = lambda part, s: c.produce(3, t, batch([b"x"], ts=c.B(), pid=p, epoch=0, seq=s), -1, part)["error_code"]
    c.rec("r", [f(0, 0), f(1, 0), f(0, 1), f(1, 1), f(1, 3)])


@case("b.i.unregistered_pid", "a producer id never handed out, sequence 0", needs=I)
def _(c):
    t = c.topic()
    c.rec("r", send(c, t, 987654321, 0, 0))


@case("b.i.seq_wrap", "sequence wraps from 2^31-1 to 0", needs=I)
def _(c):
    t, p = c.topic(), pid(c)["producer_id"]
    c.rec("r", [send(c, t, p, 0, 2**31 - 2), send(c, t, p, 0, 2**31 - 1), send(c, t, p, 0, 0)])


@case("b.i.bad_crc_no_state", "a refused batch does not advance the sequence", needs=I)
def _(c):
    t, p = c.topic(), pid(c)["producer_id"]
    c.rec("bad", c.produce(3, t, batch([b"x"], ts=c.B(), pid=p, epoch=0, seq=0, crc=1), -1)["error_code"])
    c.rec("ok", send(c, t, p, 0, 0))


@case("b.i.describe_producers", "DescribeProducers after two idempotent batches", needs="DescribeProducers:0," + I)
def _(c):
    t, p = c.topic(), pid(c)["producer_id"]
    send(c, t, p, 0, 0), send(c, t, p, 0, 1)
    c.attempt("r", lambda: c.conn().call("DescribeProducers", 0, {"topics": [{"name": t, "partition_indexes": [0]}]}))
    c.attempt(
        "unknown",
        lambda: c.conn().call("DescribeProducers", 0, {"topics": [{"name": c.name("T"), "partition_indexes": [0]}]}),
    )
