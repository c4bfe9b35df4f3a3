"""B: transactions (classic protocol)."""

import time

from tests.vendor.wire_prober.cases_b2 import pid
from tests.vendor.wire_prober.core import case
from tests.vendor.wire_prober.wire import batch

# ---------------- transactions (classic protocol: AddPartitionsToTxn v0..3, EndTxn v0..4)
T = "InitProducerId:1,AddPartitionsToTxn:0,EndTxn:0,Produce:3,Fetch:4"


class Txn:
    def __init__(self, c, name=None, timeout=30000):
        self.c, self.id = c, name or c.name("X")
        r = pid(c, self.id, 1, transaction_timeout_ms=timeout)
        self.err, self.pid, self.epoch = r["error_code"], r["producer_id"], r["producer_epoch"]
        self.seq = {}

    def retry(self, fn, codes=(51, 14, 15)):
        end = time.time() + 8
        while True:
            e = fn()
            if e not in codes or time.time() > end:
                return e
            time.sleep(0.05)

    def add(self, t, parts=(0,), epoch=None, p=None):
        k = self.c.conn()
        e = self.retry(
            lambda: k.call(
                "AddPartitionsToTxn",
                0,
                {
                    "transactional_id": self.id,
                    "producer_id": self.pid if p is None else p,
                    "producer_epoch": self.epoch if epoch is None else epoch,
                    "topics": [{"name": t, "partitions": list(parts)}],
                },
            )["results"][0]["partitions"][0]["error_code"]
        )
        k.close()
        return e

    def send(self, t, n=1, part=0, epoch=None, v=b"t"):
        s = self.seq.get((t, part), 0)
        r = self.c.produce(
            3,
            t,
            batch(
                [v] * n, ts=self.c.B(), pid=self.pid, epoch=self.epoch if epoch is None else epoch, seq=s, attrs=0x10
            ),
            -1,
            part,
            txn=self.id,
        )
        if r["error_code"] == 0:
            self.seq[(t, part)] = s + n
        return [r["error_code"], r["base_offset"]]

    def end(self, commit, epoch=None, ver=0):
        k = self.c.conn()
        e = self.retry(
            lambda: k.call(
                "EndTxn",
                ver,
                {
                    "transactional_id": self.id,
                    "producer_id": self.pid,
                    "producer_epoch": self.epoch if epoch is None else epoch,
                    "committed": int(commit),
                },
            )["error_code"]
        )
        k.close()
        return e


def settle(c, t, want, part=0, limit=8):
    """Wait until the last stable offset reaches want"""
    end = time.time() + limit
    while time.time() < end:
        r = c.list_offsets(2, t, -1, part, isolation_level=1)
        if r["offset"] >= want:
            return
        time.sleep(0.05)


def view(c, t):
    out = {}
    for lab, iso in (("uncommitted", 0), ("committed", 1)):
        r = c.fetch(4, t, isolation_level=iso)
        r["records"] = [
            {
                "offset": b["offset"],
                "attrs": b["attrs"],
                "n": b["count"],
                "values": [x["value"] for x in b["records"]] if not b["attrs"] & 0x20 else "control",
                "ctl_key": [x["key"] for x in b["records"]] if b["attrs"] & 0x20 else None,
                "epoch": b["epoch"],
                "seq": b["seq"],
            }
            for b in r["records"]
        ]
        out[lab] = r
    return out


@case("b.t.abort", "aborted transaction: listed under aborted_transactions for read_committed", needs=T)
def _(c):
    t = c.topic()
    x = Txn(c)
    x.add(t)
    c.rec("send", x.send(t, 2))
    c.rec("end", x.end(False))
    settle(c, t, 3)
    c.rec("view", view(c, t))


@case("b.t.open", "open transaction: last stable offset stays below the high watermark", needs=T)
def _(c):
    t = c.topic()
    c.produce(3, t, batch([b"plain"], ts=c.B()))
    x = Txn(c)
    x.add(t)
    c.rec("send", x.send(t, 2))
    c.produce(3, t, batch([b"after"], ts=c.B()))
    c.rec("view", view(c, t))
    for iso in (0, 1):
        c.rec("latest_iso%d" % iso, c.list_offsets(2, t, -1, isolation_level=iso))
        c.rec("ts_iso%d" % iso, c.list_offsets(2, t, c.B(), isolation_level=iso))
        c.rec("earliest_iso%d" % iso, c.list_offsets(2, t, -2, isolation_level=iso))
    x.end(True)


@case("b.t.interleaved", "two producers interleaved, one aborts and one commits", needs=T)
def _(c):
    t = c.topic()
    x, y = Txn(c), Txn(c)
    x.add(t), y.add(t)
    x.send(t, v=b"x1"), y.send(t, v=b"y1"), x.send(t, v=b"x2"), y.send(t, v=b"y2")
    c.rec("x", x.end(False))
    time.sleep(0.3)
    c.rec("lso_after_x", c.list_offsets(2, t, -1, isolation_level=1)["offset"])
    c.rec("y", y.end(True))
    settle(c, t, 6)
    c.rec("view", view(c, t))


@case("b.t.two_partitions", "one transaction over two partitions of two topics", needs=T)
def _(c):
    a, b = c.topic(2), c.topic(1)
    x = Txn(c)
    c.rec("add", [x.add(a, (0, 1)), x.add(b)])
    x.send(a, part=1), x.send(b)
    c.rec("end", x.end(True))
    settle(c, a, 2, 1), settle(c, b, 2)
    c.rec("leo", [c.leo(a, 0), c.leo(a, 1), c.leo(b)])


@case("b.t.no_add", "transactional produce without AddPartitionsToTxn first", needs=T)
def _(c):
    t = c.topic()
    x = Txn(c)
    c.rec("send", x.send(t))
    c.rec("leo", c.leo(t))


@case("b.t.no_txn_id_in_request", "transactional batch but null transactional id in the request", needs=T)
def _(c):
    t = c.topic()
    x = Txn(c)
    x.add(t)
    c.attempt(
        "send",
        lambda: c.produce(3, t, batch([b"t"], ts=c.B(), pid=x.pid, epoch=x.epoch, seq=0, attrs=0x10), -1)["error_code"],
    )
    x.end(False)


@case("b.t.end_empty_abort", "EndTxn abort with nothing added", needs=T, commit=False)
def _(c, commit):
    x = Txn(c)
    c.rec("end", x.end(commit))


@case("b.t.abort_after_commit", "EndTxn abort after commit: error 48", needs=T, second=False)
def _(c, second):
    t = c.topic()
    x = Txn(c)
    x.add(t), x.send(t)
    c.rec("first", x.end(True))
    settle(c, t, 2)
    c.rec("second", x.end(second))


@case("b.t.end_wrong_epoch", "EndTxn with epoch+1 and with a foreign producer id", needs=T)
def _(c):
    t = c.topic()
    x = Txn(c)
    x.add(t)
    c.rec("epoch_plus1", x.end(True, x.epoch + 1))
    k = c.conn()
    c.rec(
        "foreign_pid",
        k.call("EndTxn", 0, {"transactional_id": x.id, "producer_id": 424242, "producer_epoch": 0, "committed": 1})[
            "error_code"
        ],
    )
    c.rec(
        "unknown_id",
        k.call(
            "EndTxn", 0, {"transactional_id": c.name("X"), "producer_id": 424242, "producer_epoch": 0, "committed": 1}
        )["error_code"],
    )
    c.rec("right", x.end(False))


@case("b.t.timeout_abort", "transaction timeout 1 s: the coordinator aborts it by itself", needs=T, slow=True)
def _(c):
    t = c.topic()
    x = Txn(c, timeout=1000)
    x.add(t)
    c.rec("send", x.send(t))
    settle(c, t, 2, limit=25)
    c.rec("committed", view(c, t)["committed"]["aborted_transactions"])
    c.rec("late_end", x.end(True))


@case("b.t.add_bad", "AddPartitionsToTxn with a wrong epoch, wrong producer id, unknown transactional id", needs=T)
def _(c):
    x = Txn(c)
    t = c.topic()
    c.rec("epoch", x.add(t, epoch=x.epoch + 5))
    c.rec("pid", x.add(t, p=777777))
    x.id = c.name("X")
    c.rec("id", x.add(t))


@case("b.t.v3_requests", "AddPartitionsToTxn v3 and EndTxn v3 (flexible)", needs=T + ",AddPartitionsToTxn:3,EndTxn:3")
def _(c):
    t = c.topic()
    x = Txn(c)
    c.attempt(
        "add",
        lambda: c.conn().call(
            "AddPartitionsToTxn",
            3,
            {
                "transactional_id": x.id,
                "producer_id": x.pid,
                "producer_epoch": x.epoch,
                "topics": [{"name": t, "partitions": [0]}],
            },
        ),
    )
    c.rec("send", x.send(t))
    c.attempt(
        "end",
        lambda: c.conn().call(
            "EndTxn", 3, {"transactional_id": x.id, "producer_id": x.pid, "producer_epoch": x.epoch, "committed": 1}
        ),
    )


@case("b.t.endtxn_v5", "EndTxn v5 (transaction protocol 2) returns a bumped epoch", needs=T + ",EndTxn:5")
def _(c):
    t = c.topic()
    x = Txn(c)
    x.add(t)
    c.rec("send", x.send(t))
    c.attempt(
        "end",
        lambda: c.conn().call(
            "EndTxn", 5, {"transactional_id": x.id, "producer_id": x.pid, "producer_epoch": x.epoch, "committed": 1}
        ),
    )


@case(
    "b.t.offsets",
    "offsets committed in a transaction appear after the commit, not before",
    needs=T + ",AddOffsetsToTxn:0,TxnOffsetCommit:0",
)
def _(c):
    t = c.topic()
    g = c.name("G")
    c.coordinator(g)
    x = Txn(c)
    k = c.conn()
    get = lambda ver=1, **kw: k.call(
        "OffsetFetch", ver, dict({"group_id": g, "topics": [{"name": t, "partition_indexes": [0]}]}, **kw)
    )["topics"][0]["partitions"][0]
    c.rec(
        "add_offsets",
        x.retry(
            lambda: k.call(
                "AddOffsetsToTxn",
                0,
                {"transactional_id": x.id, "producer_id": x.pid, "producer_epoch": x.epoch, "group_id": g},
            )["error_code"]
        ),
    )
    c.attempt(
        "commit",
        lambda: k.call(
            "TxnOffsetCommit",
            0,
            {
                "transactional_id": x.id,
                "group_id": g,
                "producer_id": x.pid,
                "producer_epoch": x.epoch,
                "topics": [
                    {
                        "name": t,
                        "partitions": [{"partition_index": 0, "committed_offset": 42, "committed_metadata": "m"}],
                    }
                ],
            },
        ),
    )
    c.rec("before", get())
    if c.t.has("OffsetFetch", 7):
        c.rec("before_stable", get(7, require_stable=1))
    c.rec("end", x.end(True))
    end = time.time() + 8
    while get()["committed_offset"] != 42 and time.time() < end:
        time.sleep(0.05)
    c.rec("after", get())


@case(
    "b.t.offsets_abort",
    "offsets of an aborted transaction never appear",
    needs=T + ",AddOffsetsToTxn:0,TxnOffsetCommit:0",
)
def _(c):
    t = c.topic()
    g = c.name("G")
    c.coordinator(g)
    x = Txn(c)
    k = c.conn()
    x.retry(
        lambda: k.call(
            "AddOffsetsToTxn",
            0,
            {"transactional_id": x.id, "producer_id": x.pid, "producer_epoch": x.epoch, "group_id": g},
        )["error_code"]
    )
    k.call(
        "TxnOffsetCommit",
        0,
        {
            "transactional_id": x.id,
            "group_id": g,
            "producer_id": x.pid,
            "producer_epoch": x.epoch,
            "topics": [{"name": t, "partitions": [{"partition_index": 0, "committed_offset": 42}]}],
        },
    )
    c.rec("end", x.end(False))
    time.sleep(0.5)
    c.rec("after", k.call("OffsetFetch", 1, {"group_id": g, "topics": [{"name": t, "partition_indexes": [0]}]}))


@case(
    "b.t.describe",
    "DescribeTransactions and ListTransactions: Empty, Ongoing, CompleteCommit",
    needs=T + ",DescribeTransactions:0,ListTransactions:0",
)
def _(c):
    t = c.topic()
    x = Txn(c)
    k = c.conn()
    d = lambda: k.call("DescribeTransactions", 0, {"transactional_ids": [x.id]})["transaction_states"][0]
    c.rec("empty", d())
    x.add(t), x.send(t)
    c.rec("ongoing", d())
    r = k.call("ListTransactions", 0, {"state_filters": ["Ongoing"]})
    c.rec("listed", [z for z in r["transaction_states"] if z["transactional_id"] == x.id])
    x.end(True)
    end = time.time() + 8
    while d()["transaction_state"] != "CompleteCommit" and time.time() < end:
        time.sleep(0.05)
    c.rec("done", d())
    c.rec("unknown", k.call("DescribeTransactions", 0, {"transactional_ids": [c.name("X")]}))
    c.rec("bad_filter", k.call("ListTransactions", 0, {"state_filters": ["Nonsense"]}))


@case(
    "b.t.find_coordinator",
    "FindCoordinator for a transactional id (key type 1)",
    needs="FindCoordinator:1,InitProducerId:0",
)
def _(c):
    x = c.name("X")
    c.coordinator(x, 1)
    c.attempt("r", lambda: c.conn().call("FindCoordinator", 1, {"key": x, "key_type": 1}))
    c.attempt("empty", lambda: c.conn().call("FindCoordinator", 1, {"key": "", "key_type": 1}))
