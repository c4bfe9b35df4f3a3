"""C: Fetch - offsets, long polls, size limits, order, sessions, epochs."""

import threading
import time

from tests.vendor.wire_prober import wire
from tests.vendor.wire_prober.cases_b3 import Txn
from tests.vendor.wire_prober.core import case
from tests.vendor.wire_prober.wire import batch, msg, wrap


def put(c, t, n=1, size=0, part=0, ts=None, start=0):
    """N separate produce calls of one record each, with the newest simple format the broker takes"""
    for i in range(n):
        v = (b"m%d" % (start + i)).ljust(size, b".")
        tt = c.B(start + i) if ts is None else ts
        r = (
            c.produce(3, t, batch([v], ts=tt), part=part)
            if c.t.has("Produce", 3)
            else c.produce(2, t, msg(v, ts=tt), part=part)
        )
        assert r["error_code"] == 0, r


def put_group(c, t, n=5, codec="gzip"):
    if c.t.has("Produce", 3):
        c.produce(3, t, batch([{"value": b"z%d" % i, "ts": c.B(100 + i)} for i in range(n)], codec=codec))
    else:
        c.produce(
            2,
            t,
            wrap(
                codec,
                b"".join(msg(b"z%d" % i, offset=i, ts=c.B(100 + i)) for i in range(n)),
                1,
                c.B(100 + n - 1),
                n - 1,
            ),
        )


def slim(p):
    """What matters about a partition reply: error, watermarks, offsets and tail"""
    out = {k: v for k, v in p.items() if k != "records"}
    out["entries"] = (
        ["partial" if "partial" in r else [r["offset"], r["magic"]] for r in p["records"]]
        if p.get("records") is not None
        else None
    )
    return out


def layout(c):
    t = c.topic()
    put(c, t, 3)
    put_group(c, t)
    put(c, t, 2, start=8)
    return t


# ---------------- layouts
@case("c.v.fetch_v0", "Fetch v0 reply layout", ver=0)
@case("c.v.fetch_v1", "Fetch v1 reply layout (throttle time first)", ver=1)
@case("c.v.fetch_v2", "Fetch v2 reply layout", ver=2)
@case("c.v.fetch_v3", "Fetch v3 reply layout", ver=3)
@case("c.v.fetch_v5", "Fetch v5 adds log start offset", ver=5)
@case("c.v.fetch_v6", "Fetch v6 reply layout", ver=6)
@case("c.v.fetch_v8", "Fetch v8 reply layout", ver=8)
@case("c.v.fetch_v10", "Fetch v10 reply layout", ver=10)
@case("c.v.fetch_v11", "Fetch v11 adds the preferred read replica", ver=11)
@case("c.v.fetch_v12", "Fetch v12 is flexible", ver=12)
def _(c, ver):
    c.need("Fetch", ver)
    t = c.topic()
    put(c, t, 2)
    r = c.conn().call("Fetch", ver, {"topics": [{"topic": t, "partitions": [{"partition": 0, "fetch_offset": 1}]}]})
    p = r["responses"][0]["partitions"][0]
    p["records"] = [x for x in wire.parse_records(p["records"]) if "partial" not in x]
    c.rec("r", r)


@case("c.v.fetch_v15", "Fetch v15 by topic id", ver=15)
def _(c, ver):
    c.need("Fetch", ver), c.need("Metadata", 10)
    t = c.topic()
    put(c, t, 2)
    tid = c.conn().call("Metadata", 10, {"topics": [{"name": t}]})["topics"][0]["topic_id"]
    for lab, i in (("good", tid), ("unknown", "22" * 16), ("zero", "00" * 16)):

        def go():
            r = c.conn().call(
                "Fetch", ver, {"topics": [{"topic_id": i, "partitions": [{"partition": 0, "fetch_offset": 1}]}]}
            )
            for x in r["responses"]:
                for p in x["partitions"]:
                    p["records"] = wire.parse_records(p["records"])
            return r

        c.attempt(lab, go)


# ---------------- offsets
@case("c.off.mid_wrapper_v2", "offset in the middle of a compressed group (v2)", ver=2, off=5)
@case("c.off.mid_wrapper_v4", "offset in the middle of a compressed batch (v4)", ver=4, off=5)
@case("c.off.middle_v2", "a plain offset in the middle (v2)", ver=2, off=1)
@case("c.off.beyond_v2", "one past the log end: error 1, high watermark -1 (v2)", ver=2, off=11)
@case("c.off.beyond_v4", "one past the log end (v4)", ver=4, off=11)
@case("c.off.neg1_v2", "offset -1: error 1 (v2)", ver=2, off=-1)
@case("c.off.neg1_v4", "offset -1 (v4)", ver=4, off=-1)
@case("c.off.max_v4", "offset 2^63-1 (v4)", ver=4, off=2**63 - 1)
def _(c, ver, off):
    c.need("Fetch", ver)
    t = layout(c)
    c.attempt("r", lambda: slim(c.fetch(ver, t, off)))


@case("c.off.empty_topic_v4", "offset 0 of an empty log (v4)", ver=4, off=0)
def _(c, ver, off):
    c.need("Fetch", ver)
    t = c.topic()
    c.attempt("r", c.fetch, ver, t, off)


@case("c.tp.unknown_topic_v0", "unknown topic: error 3 (v0)", ver=0)
def _(c, ver):
    c.need("Fetch", ver)
    n = c.name("T")
    c.attempt("r", c.fetch, ver, n)
    m = (
        c.conn().call("Metadata", 4, {"topics": [{"name": n}], "allow_auto_topic_creation": 0})
        if c.t.has("Metadata", 4)
        else None
    )
    if m:
        c.rec("not_created_by_fetch", m["topics"][0]["error_code"])


def multi(c, ver, spec, conn=None, **kw):
    """spec: [(topic, [(partition, offset[, max])])] -> reply as [(topic, [(partition, error, hw, n entries)])] in reply order"""
    k = conn or c.conn()
    d = {
        "topics": [
            {
                "topic": t,
                "partitions": [
                    {"partition": p[0], "fetch_offset": p[1], "partition_max_bytes": p[2] if len(p) > 2 else 1048576}
                    for p in ps
                ],
            }
            for t, ps in spec
        ]
    }
    d.update(kw)
    r = k.call("Fetch", ver, d)
    out = []
    for x in r["responses"]:
        out.append(
            [
                c.labels.get(x["topic"], x["topic"]),
                [
                    [
                        p["partition_index"],
                        p["error_code"],
                        p["high_watermark"],
                        [e["offset"] for e in wire.parse_records(p["records"]) or [] if "partial" not in e],
                    ]
                    for p in x["partitions"]
                ],
            ]
        )
    return out


@case("c.multi.order_v2", "reply order of topics and partitions follows the request (v2)", ver=2)
def _(c, ver):
    c.need("Fetch", ver)
    a, b = c.topic(3), c.topic(2)
    put(c, a, part=2), put(c, b, 2, part=0)
    r = multi(c, ver, [(b, [(1, 0), (0, 0)]), (a, [(2, 0), (0, 0), (1, 0)])])
    c.rec("sorted", sorted([x[0], sorted(x[1])] for x in r))
    c.rec("same_order", [[x[0], [p[0] for p in x[1]]] for x in r] == [["T1", [1, 0]], ["T0", [2, 0, 1]]])


@case("c.multi.one_bad_v2", "good, unknown partition, out of range, unknown topic in one request (v2)", ver=2)
def _(c, ver):
    c.need("Fetch", ver)
    a, b = c.topic(2), c.name("T")
    put(c, a, 2)
    r = multi(c, ver, [(a, [(0, 0), (7, 0), (1, 55)]), (b, [(0, 0)])])
    c.rec("r", sorted([x[0], sorted(x[1])] for x in r))


@case("c.multi.duplicate_partition_v4", "a partition asked twice with different offsets (v4)", ver=4)
def _(c, ver):
    c.need("Fetch", ver)
    a = c.topic()
    put(c, a, 3)
    c.attempt("r", multi, c, ver, [(a, [(0, 0), (0, 2)])])


@case("c.multi.none_v2", "no topics at all, max_wait 2 s: answered at once (v2)", ver=2)
def _(c, ver):
    c.need("Fetch", ver)
    t0 = time.time()
    c.attempt("r", multi, c, ver, [], max_wait_ms=2000, min_bytes=1)
    c.rec("time", c.elapsed(t0, 2000))


# ---------------- long polls
def poll(c, ver, t, off, wait, min_bytes, later=None, **kw):
    k = c.conn()
    th = None
    if later:
        th = threading.Thread(target=later)
        th.start()
    t0 = time.time()
    try:
        p = c.fetch(ver, t, off, conn=k, wait=wait, min_bytes=min_bytes, timeout=wait / 1000 + 8, **kw)
        r = slim(p)
    finally:
        if th:
            th.join()
    return {"time": c.elapsed(t0, wait), "r": r}


@case("c.poll.wait_v2", "at the end, min_bytes 1: waits max_wait then answers empty (v2)", ver=2, wait=1000, mb=1)
@case("c.poll.wait_v4", "at the end, min_bytes 1: waits max_wait then answers empty (v4)", ver=4, wait=1000, mb=1)
@case("c.poll.min0_v4", "min_bytes 0: immediate (v4)", ver=4, wait=3000, mb=0)
@case("c.poll.minneg_v4", "min_bytes -1 (v4)", ver=4, wait=2000, mb=-1)
@case("c.poll.wait0_v4", "max_wait 0 with min_bytes 1: immediate (v4)", ver=4, wait=0, mb=1)
@case("c.poll.waitneg_v4", "max_wait -1 (v4)", ver=4, wait=-1, mb=1)
def _(c, ver, wait, mb):
    c.need("Fetch", ver)
    t = c.topic()
    put(c, t, 2)
    c.rec("p", poll(c, ver, t, 2, wait, mb))


@case("c.poll.min_bytes_not_met_v4", "less data than min_bytes: waits, then hands over what there is (v4)", ver=4)
def _(c, ver):
    c.need("Fetch", ver)
    t = c.topic()
    put(c, t, 2)
    c.rec("p", poll(c, ver, t, 0, 1000, 100_000))


@case(
    "c.poll.min_bytes_met_by_growth_v4",
    "two appends during the wait reach min_bytes together",
    needs="Fetch:4,Produce:3",
)
def _(c):
    t = c.topic()
    c.rec(
        "p",
        poll(
            c,
            4,
            t,
            0,
            6000,
            1500,
            lambda: (time.sleep(0.3), put(c, t, 1, 900), time.sleep(0.3), put(c, t, 1, 900, start=1)),
        ),
    )


@case("c.poll.two_partitions_v2", "data in the second of two partitions ends the wait (v2)", needs="Fetch:2", ver=2)
def _(c, ver=4):
    t = c.topic(2)
    th = threading.Thread(target=lambda: (time.sleep(0.5), put(c, t, 1, part=1)))
    th.start()
    t0 = time.time()
    r = multi(c, ver, [(t, [(0, 0), (1, 0)])], max_wait_ms=5000, min_bytes=1)
    c.rec("time", c.elapsed(t0, 5000))
    c.rec("r", sorted(r[0][1]))
    th.join()


@case(
    "c.poll.error_is_immediate_v2",
    "an unknown partition beside an idle one: does it end the wait (v2)",
    ver=2,
    off=0,
    part=7,
)
def _(c, ver, off, part):
    c.need("Fetch", ver)
    t = c.topic(2)
    t0 = time.time()
    r = multi(c, ver, [(t, [(0, 0), (part, off)])], max_wait_ms=2500, min_bytes=1)
    c.rec("time", c.elapsed(t0, 2500))
    c.rec("r", sorted(r[0][1]))


@case(
    "c.poll.lso_bound",
    "read_committed at the last stable offset of an open transaction waits",
    needs="Fetch:4,InitProducerId:1,AddPartitionsToTxn:0",
)
def _(c):
    t = c.topic()
    x = Txn(c)
    x.add(t), x.send(t)
    c.rec("committed", poll(c, 4, t, 0, 1000, 1, isolation_level=1))
    c.rec("uncommitted", poll(c, 4, t, 0, 1000, 1, isolation_level=0))
    x.end(True)


# ---------------- sizes
@case(
    "c.size.cut_half_v0",
    "partition max_bytes 60 on 500-byte messages: a partial message of that size (v0)",
    ver=0,
    mx=60,
)
@case("c.size.cut_half_v2", "partition max_bytes 60 on 500-byte messages (v2)", ver=2, mx=60)
@case("c.size.one_and_half_v2", "max_bytes 800: one whole message and a partial one (v2)", ver=2, mx=800)
@case("c.size.zero_v2", "max_bytes 0 (v2)", ver=2, mx=0)
@case("c.size.first_whole_v3", "max_bytes 60: the first message comes whole (v3)", ver=3, mx=60)
@case("c.size.zero_v3", "partition max_bytes 0 (v3)", ver=3, mx=0)
@case("c.size.first_whole_v4", "max_bytes 60: the first batch comes whole (v4)", ver=4, mx=60)
@case("c.size.zero_v4", "partition max_bytes 0 (v4)", ver=4, mx=0)
@case("c.size.neg_v4", "partition max_bytes -1 (v4)", ver=4, mx=-1)
@case("c.size.one_and_half_v4", "max_bytes 800: second batch cut or left out (v4)", ver=4, mx=800)
def _(c, ver, mx):
    c.need("Fetch", ver)
    t = c.topic()
    put(c, t, 3, 500)
    k = c.conn()

    def go():
        r = k.call(
            "Fetch",
            ver,
            {"topics": [{"topic": t, "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": mx}]}]},
        )
        p = r["responses"][0]["partitions"][0]
        raw = p["records"]
        p["records"] = wire.parse_records(raw)
        return {
            "bytes": len(raw),
            "whole": sum(1 for x in p["records"] if "partial" not in x),
            "partial": any("partial" in x for x in p["records"]),
            "error": p["error_code"],
        }

    c.attempt("r", go)


@case(
    "c.size.request_max_two_parts_v4",
    "request max_bytes 60 over two partitions: first whole, second empty (v4)",
    ver=4,
    mx=60,
)
@case(
    "c.size.request_max_700_v4",
    "request max_bytes 700: one batch, then nothing that does not fit whole (v4)",
    ver=4,
    mx=700,
)
@case("c.size.request_max_0_v4", "request max_bytes 0 (v4)", ver=4, mx=0)
@case("c.size.request_max_neg_v4", "request max_bytes -1 (v4)", ver=4, mx=-1)
def _(c, ver, mx):
    c.need("Fetch", ver)
    t = c.topic(2)
    put(c, t, 3, 500), put(c, t, 3, 500, part=1)
    r = multi(c, ver, [(t, [(0, 0), (1, 0)])], max_bytes=mx)
    c.rec("r", r)


@case(
    "c.size.empty_first_partition_v4",
    "an empty first partition does not use up the whole-first-batch allowance",
    needs="Fetch:4",
)
def _(c):
    t = c.topic(2)
    put(c, t, 2, 500, part=1)
    c.rec("r", multi(c, 4, [(t, [(0, 0, 50), (1, 0, 50)])]))


@case("c.hw.values_v2", "high watermark in Fetch follows each acks=1 append (v2)", ver=2)
def _(c, ver):
    c.need("Fetch", ver)
    t = c.topic()
    hw = []
    for i in range(3):
        hw.append(c.fetch(ver, t, 0)["high_watermark"])
        put(c, t, 1, start=i)
    hw.append(c.fetch(ver, t, 0)["high_watermark"])
    c.rec("hw", hw)


@case("c.replica.debug_v2", "replica id -2 (debugging consumer) (v2)", ver=2, rid=-2)
@case("c.replica.debug_v4", "replica id -2 (debugging consumer) (v4)", ver=4, rid=-2)
@case("c.replica.stranger_v4", "replica id 77, not a replica (v4)", ver=4, rid=77)
@case("c.replica.neg3_v4", "replica id -3 (v4)", ver=4, rid=-3)
def _(c, ver, rid):
    c.need("Fetch", ver)
    t = c.topic()
    put(c, t, 1)
    c.attempt("r", lambda: slim(c.fetch(ver, t, 0, replica_id=rid)))


@case("c.isolation.bad_v4", "isolation level 9", needs="Fetch:4")
def _(c):
    t = c.topic()
    put(c, t, 1)
    c.attempt("r", lambda: slim(c.fetch(4, t, 0, isolation_level=9)))


# ---------------- sessions
def sess(c, k, ver, sid, epoch, topics, forget=(), **kw):
    r = k.call(
        "Fetch",
        ver,
        {"session_id": sid, "session_epoch": epoch, "topics": topics, "forgotten_topics_data": list(forget), **kw},
    )
    return r


def brief(c, r):
    return {
        "error": r["error_code"],
        "sid": "<sid>" if r["session_id"] else 0,
        "parts": [
            [
                c.labels.get(x["topic"], x["topic"]),
                p["partition_index"],
                p["error_code"],
                p["high_watermark"],
                len(wire.parse_records(p["records"]) or []),
            ]
            for x in r["responses"]
            for p in x["partitions"]
        ],
    }


def tp(t, *ps):
    return {"topic": t, "partitions": [{"partition": p, "fetch_offset": o} for p, o in ps]}


@case("c.sess.flow", "session: full, incremental with nothing new, incremental after an append", needs="Fetch:7")
def _(c):
    t = c.topic(2)
    put(c, t, 1)
    k = c.conn()
    r = sess(c, k, 7, 0, 0, [tp(t, (0, 0), (1, 0))])
    c.rec("full", brief(c, r))
    s = r["session_id"]
    c.rec("inc1_offset_moved", brief(c, sess(c, k, 7, s, 1, [tp(t, (0, 1))])))
    c.rec("inc2_nothing", brief(c, sess(c, k, 7, s, 2, [])))
    put(c, t, 1, part=1)
    c.rec("inc3_data", brief(c, sess(c, k, 7, s, 3, [])))


@case("c.sess.no_progress", "incremental fetch without moving the offset returns the same data again", needs="Fetch:7")
def _(c):
    t = c.topic()
    put(c, t, 1)
    k = c.conn()
    r = sess(c, k, 7, 0, 0, [tp(t, (0, 0))])
    c.rec("again", brief(c, sess(c, k, 7, r["session_id"], 1, [])))


@case("c.sess.wrong_epoch", "wrong session epoch: error 71", needs="Fetch:7")
def _(c):
    t = c.topic()
    put(c, t, 1)
    k = c.conn()
    s = sess(c, k, 7, 0, 0, [tp(t, (0, 0))])["session_id"]
    c.rec("epoch5", brief(c, sess(c, k, 7, s, 5, [])))
    c.rec("epoch1", brief(c, sess(c, k, 7, s, 1, [])))


@case("c.sess.unknown_id", "unknown session id: error 70", needs="Fetch:7")
def _(c):
    c.rec("r", brief(c, sess(c, c.conn(), 7, 123456, 1, [])))


@case("c.sess.none", "session id 0, epoch -1: no session made", needs="Fetch:7")
def _(c):
    t = c.topic()
    put(c, t, 1)
    c.rec("r", brief(c, sess(c, c.conn(), 7, 0, -1, [tp(t, (0, 0))])))


@case("c.sess.forget", "forgotten partitions no longer appear", needs="Fetch:7")
def _(c):
    t = c.topic(2)
    put(c, t, 1), put(c, t, 1, part=1)
    k = c.conn()
    s = sess(c, k, 7, 0, 0, [tp(t, (0, 0), (1, 0))])["session_id"]
    c.rec("r", brief(c, sess(c, k, 7, s, 1, [], [{"topic": t, "partitions": [1]}])))


@case("c.sess.epoch0_nonzero_id", "session id set with epoch 0: replaced by a new session", needs="Fetch:7")
def _(c):
    t = c.topic()
    put(c, t, 1)
    k = c.conn()
    s = sess(c, k, 7, 0, 0, [tp(t, (0, 0))])["session_id"]
    r = sess(c, k, 7, s, 0, [tp(t, (0, 0))])
    c.rec("r", brief(c, r))
    c.rec("same_id", r["session_id"] == s)


# ---------------- leader epochs
@case("c.epoch.current_ok", "current leader epoch 0 (v9)", needs="Fetch:9", e=0)
@case(
    "c.epoch.current_unknown",
    "current leader epoch 9, newer than the broker knows: error 75 (v9)",
    needs="Fetch:9",
    e=9,
)
@case("c.epoch.current_none", "current leader epoch -1 (v9)", needs="Fetch:9", e=-1)
@case("c.epoch.current_neg2", "current leader epoch -2 (v9)", needs="Fetch:9", e=-2)
def _(c, e):
    t = c.topic()
    put(c, t, 1)
    r = c.conn().call(
        "Fetch",
        9,
        {"topics": [{"topic": t, "partitions": [{"partition": 0, "fetch_offset": 0, "current_leader_epoch": e}]}]},
    )
    c.rec("r", brief(c, r))


@case("c.epoch.last_fetched_9", "last fetched epoch 9 (v12)", needs="Fetch:12", e=9)
def _(c, e):
    t = c.topic()
    put(c, t, 2)
    r = c.conn().call(
        "Fetch",
        12,
        {
            "topics": [
                {
                    "topic": t,
                    "partitions": [
                        {"partition": 0, "fetch_offset": 1, "last_fetched_epoch": e, "current_leader_epoch": 0}
                    ],
                }
            ]
        },
    )
    p = r["responses"][0]["partitions"][0]
    p["records"] = wire.parse_records(p["records"])
    c.rec("r", slim(p))


@case(
    "c.cut.log_start_in_batch",
    "DeleteRecords into the middle of a batch: the whole batch is returned",
    needs="DeleteRecords:0,Fetch:5,Produce:3",
)
def _(c):
    t = c.topic()
    put_group(c, t)
    c.rec(
        "delete",
        c.conn().call(
            "DeleteRecords", 0, {"topics": [{"name": t, "partitions": [{"partition_index": 0, "offset": 3}]}]}
        ),
    )
    c.rec("at", slim(c.fetch(5, t, 3)))
    c.rec("below", slim(c.fetch(5, t, 2)))
    c.rec("earliest", c.list_offsets(1, t, -2))
    c.rec("by_time", c.list_offsets(1, t, c.B(100)))
