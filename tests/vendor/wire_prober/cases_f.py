"""F: consumer groups - coordinator, membership, offsets, describe/list/delete, static members, KIP-848."""

import time

from tests.vendor.wire_prober import wire
from tests.vendor.wire_prober.core import case
from tests.vendor.wire_prober.wire import NoReply

META = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"


class M:
    """one raw group member on its own connection"""

    def __init__(
        self,
        c,
        g,
        ver=None,
        instance=None,
        protos=(("range", META),),
        ptype="consumer",
        session=30000,
        rebalance=None,
        client_id="probe",
    ):
        self.c, self.g = c, g
        self.v = c.t.best("JoinGroup", 3 if ver is None else ver)
        self.k = c.conn(15)
        self.id, self.gen, self.instance = "", -1, instance
        self.protos, self.ptype, self.session, self.client_id = protos, ptype, session, client_id
        self.rebalance = session if rebalance is None else rebalance

    def req(self):
        d = {
            "group_id": self.g,
            "session_timeout_ms": self.session,
            "rebalance_timeout_ms": self.rebalance,
            "member_id": self.id,
            "protocol_type": self.ptype,
            "protocols": [{"name": n, "metadata": m} for n, m in self.protos],
        }
        if self.instance and self.v >= 5:
            d["group_instance_id"] = self.instance
        return d

    def send_join(self):
        self.corr = self.k.send("JoinGroup", self.v, self.req(), client_id=self.client_id)

    def got_join(self, timeout=None):
        r = self.k.reply("JoinGroup", self.v, self.corr, timeout)
        if r["error_code"] == 79:
            self.id = r["member_id"]
            self.send_join()
            r = self.k.reply("JoinGroup", self.v, self.corr, timeout)
        if r["error_code"] == 0:
            self.id, self.gen = r["member_id"], r["generation_id"]
        r["members"].sort(key=lambda m: m["member_id"] != self.id)
        self.last = r
        return r

    def join(self, timeout=None):
        self.send_join()
        return self.got_join(timeout)

    def send_sync(self, assign=(), gen=None, mid=None):
        v = self.c.t.best("SyncGroup", 0 if self.v < 2 else 2 if self.v < 5 else 3)
        self.sv = v
        d = {
            "group_id": self.g,
            "generation_id": self.gen if gen is None else gen,
            "member_id": self.id if mid is None else mid,
            "assignments": [{"member_id": m, "assignment": a} for m, a in assign],
        }
        if v >= 3:
            d["group_instance_id"] = self.instance
        self.corr = self.k.send("SyncGroup", v, d)

    def got_sync(self, timeout=None):
        r = self.k.reply("SyncGroup", self.sv, self.corr, timeout)
        return [r["error_code"], wire._short(r["assignment"])]

    def sync(self, assign=(), **kw):
        self.send_sync(assign, **kw)
        return self.got_sync()

    def beat(self, gen=None, mid=None, conn=None):
        k = conn or self.c.conn()
        v = self.c.t.best("Heartbeat", 3 if self.instance else 2)
        d = {
            "group_id": self.g,
            "generation_id": self.gen if gen is None else gen,
            "member_id": self.id if mid is None else mid,
        }
        if v >= 3:
            d["group_instance_id"] = self.instance
        e = k.call("Heartbeat", v, d)["error_code"]
        if conn is None:
            k.close()
        return e

    def leave(self):
        return self.c.conn().call(
            "LeaveGroup", self.c.t.best("LeaveGroup", 2), {"group_id": self.g, "member_id": self.id}
        )["error_code"]


def group(c, n=1, **kw):
    """N members in a stable generation, assignments a0, a1.."""
    g = c.name("G")
    c.coordinator(g)
    ms = [M(c, g, **kw)]
    ms[0].join()
    ms[0].sync([(ms[0].id, b"a0")])
    for i in range(1, n):
        m = M(c, g, **kw)
        m.send_join()
        time.sleep(0.15)
        rejoin(c, ms, m)
        ms.append(m)
        stabilise(ms)
    return g, ms


def rejoin(c, old, new):
    """Old members notice the rebalance and join again; all replies are collected"""
    if new.v >= 4 and new.id == "":
        r = new.k.reply("JoinGroup", new.v, new.corr)
        if r["error_code"] == 79:
            new.id = r["member_id"]
        new.send_join()
        time.sleep(0.15)
    for m in old:
        m.send_join()
    for m in old:
        m.got_join()
    new.got_join()


def stabilise(ms):
    lead = [m for m in ms if m.id == m.last["leader"]][0]
    for m in ms:
        m.send_sync([(x.id, b"a%d" % i) for i, x in enumerate(ms)] if m is lead else [])
    return [m.got_sync() for m in ms]


def commit(c, g, t, off, ver=2, gen=-1, mid="", part=0, meta="", k=None, **kw):
    p = {"partition_index": part, "committed_offset": off, "committed_metadata": meta}
    d = {"group_id": g, "generation_id": gen, "member_id": mid, "topics": [{"name": t, "partitions": [p]}]}
    p.update(kw)
    return (k or c.conn()).call("OffsetCommit", ver, d)["topics"][0]["partitions"][0]["error_code"]


def fetched(c, g, t, ver=1, parts=(0,), **kw):
    r = c.conn().call(
        "OffsetFetch", ver, dict({"group_id": g, "topics": [{"name": t, "partition_indexes": list(parts)}]}, **kw)
    )
    return r


# ---------------- coordinator
@case("f.find.v1", "FindCoordinator v1 (key type)", ver=1)
@case("f.find.v2", "FindCoordinator v2", ver=2)
@case("f.find.v3", "FindCoordinator v3 (flexible)", ver=3)
@case("f.find.v4", "FindCoordinator v4 (several keys)", ver=4)
@case("f.find.v5", "FindCoordinator v5", ver=5)
@case("f.find.v6", "FindCoordinator v6", ver=6)
def _(c, ver):
    c.need("FindCoordinator", ver)
    g, h = c.name("G"), c.name("G")
    c.coordinator(g)
    c.attempt(
        "r", lambda: c.conn().call("FindCoordinator", ver, {"coordinator_keys": [g, h]} if ver >= 4 else {"key": g})
    )


@case("f.find.bad_type", "FindCoordinator with key type 9", needs="FindCoordinator:1")
def _(c):
    c.attempt("r", lambda: c.conn().call("FindCoordinator", 1, {"key": "x", "key_type": 9}))


@case("f.find.empty_key", "FindCoordinator with an empty key", needs="FindCoordinator:0")
def _(c):
    c.coordinator("x")
    c.attempt("r", lambda: c.conn().call("FindCoordinator", 0, {"key": ""}))


# ---------------- join
@case("f.join.v3", "first JoinGroup, v3", ver=3)
@case("f.join.v4", "first JoinGroup, v4: member id required (error 79), then accepted", ver=4)
@case("f.join.v7", "first JoinGroup, v7: protocol type in the reply", ver=7)
@case("f.join.v9", "first JoinGroup, v9: skip_assignment in the reply", ver=9)
def _(c, ver):
    c.need("JoinGroup", ver)
    g = c.name("G")
    c.coordinator(g)
    m = M(c, g, ver)
    m.send_join()
    r = m.k.reply("JoinGroup", ver, m.corr)
    c.rec("first", r)
    c.rec("id_starts_with_client_id", r["member_id"].startswith("probe-"))
    if r["error_code"] == 79:
        m.id = r["member_id"]
        c.rec("second", m.join())
    else:
        m.id = r["member_id"]
        m.gen = r["generation_id"]
    c.rec("sync", m.sync([(m.id, b"mine")]))
    c.rec("beat", m.beat())
    c.rec("leave", m.leave())
    c.rec("beat_after_leave", m.beat())


@case("f.join.protocol_type_mismatch", "second member with another protocol type: error 23", needs="JoinGroup:1")
def _(c, kw=None):
    g, (a,) = group(c)
    b = M(c, g, 1, **(kw or {"ptype": "connect"}))
    c.rec("r", b.join()["error_code"])
    c.rec("first_unharmed", a.beat())


@case("f.join.rejoin_same_metadata", "the leader of a stable group joins again: a new generation", needs="JoinGroup:2")
def _(c):
    g, (a,) = group(c, ver=2)
    c.rec("before", a.gen)
    c.rec("again", a.join())
    c.rec("old_gen_beat", a.beat(gen=1))


# ---------------- two members
@case("f.two.flow_v0", "two members: join, rebalance, sync, assignments (v0)", ver=0)
@case("f.two.flow_v1", "two members: join, rebalance, sync, assignments (v1)", ver=1)
@case("f.two.flow_v5", "two members: join, rebalance, sync, assignments (v5)", ver=5)
def _(c, ver):
    c.need("JoinGroup", ver)
    g = c.name("G")
    c.coordinator(g)
    a = M(c, g, ver)
    r = a.join()
    c.rec("a_gen", r["generation_id"])
    c.rec("a_sync", a.sync([(a.id, b"all")]))
    b = M(c, g, ver)
    b.send_join()
    if ver >= 4:
        r = b.k.reply("JoinGroup", ver, b.corr)
        b.id = r["member_id"]
        b.send_join()
    time.sleep(0.3)
    c.rec("a_beat_during_rebalance", a.beat())
    c.rec("a_sync_during_rebalance", a.sync([(a.id, b"all")]))
    a.send_join()
    ra, rb = a.got_join(), b.got_join()
    c.rec("gens", [ra["generation_id"], rb["generation_id"]])
    c.rec("leader_is_a", [ra["leader"] == a.id, rb["leader"] == a.id])
    c.rec("member_lists", [len(ra["members"]), len(rb["members"])])
    b.send_sync()
    t0 = time.time()
    time.sleep(0.3)
    c.rec("a_sync2", a.sync([(a.id, b"pa"), (b.id, b"pb")]))
    c.rec("b_sync", b.got_sync())
    c.rec("beats", [a.beat(), b.beat()])
    c.rec("sync_again_stable", b.sync())
    c.rec("b_leaves", b.leave())
    time.sleep(0.2)
    c.rec("a_beat_after_leave", a.beat())
    c.rec("a_rejoin", {k: v for k, v in a.join().items() if k in ("error_code", "generation_id")})
    c.rec("b_beat", b.beat())


@case("f.two.follower_sync_waits", "a follower's SyncGroup is answered only after the leader's", needs="JoinGroup:1")
def _(c):
    g = c.name("G")
    c.coordinator(g)
    a = M(c, g, 1)
    a.join()
    a.sync([(a.id, b"x")])
    b = M(c, g, 1)
    b.send_join()
    time.sleep(0.2)
    rejoin(c, [a], b)
    b.send_sync()
    try:
        b.got_sync(0.6)
        c.rec("early", "answered")
    except NoReply:
        c.rec("early", "waiting")
    a.sync([(a.id, b"pa"), (b.id, b"pb")])
    c.rec("b", b.got_sync())


@case(
    "f.two.missing_assignment",
    "leader's SyncGroup leaves out a member: it gets an empty assignment",
    needs="JoinGroup:1",
)
def _(c):
    g, ms = group(c, 2, ver=1)
    lead = [m for m in ms if m.id == m.last["leader"]][0]
    other = [m for m in ms if m is not lead][0]
    lead.send_join()
    time.sleep(0.3)
    other.send_join()
    lead.got_join(), other.got_join()
    other.send_sync()
    c.rec("leader", lead.sync([(lead.id, b"only")]))
    c.rec("other", other.got_sync())


@case(
    "f.two.session_timeout",
    "a member that stops heartbeating is removed after its session timeout (6 s)",
    needs="JoinGroup:1",
    slow=True,
)
def _(c):
    g, ms = group(c, 2, ver=1, session=6000)
    lead = [m for m in ms if m.id == m.last["leader"]][0]
    other = [m for m in ms if m is not lead][0]
    t0 = time.time()
    e = 0
    k = c.conn()
    while e == 0 and time.time() - t0 < 12:
        time.sleep(0.25)
        e = lead.beat(conn=k)
    dt = time.time() - t0
    c.rec("leader_told", e)
    c.rec("when", "about the session timeout" if 4.5 < dt < 9.5 else "%d s" % dt)
    c.rec("removed_member_beat", other.beat())
    r = lead.join()
    c.rec("rejoin", [r["error_code"], len(r["members"])])


@case(
    "f.two.commit_in_rebalance",
    "OffsetCommit with the old generation while a rebalance is on",
    needs="JoinGroup:1,OffsetCommit:2",
)
def _(c):
    t = c.topic()
    g, (a,) = group(c, ver=1)
    b = M(c, g, 1)
    b.send_join()
    time.sleep(0.3)
    c.rec("preparing", commit(c, g, t, 5, gen=a.gen, mid=a.id))
    a.send_join()
    a.got_join(), b.got_join()
    c.rec("completing_new_gen", commit(c, g, t, 6, gen=a.gen, mid=a.id))
    c.rec("completing_old_gen", commit(c, g, t, 6, gen=a.gen - 1, mid=a.id))


# ---------------- errors of the member requests


@case("f.err.leave", "LeaveGroup: unknown member 25, unknown group, twice", needs="LeaveGroup:0")
def _(c):
    g, (a,) = group(c)
    k = c.conn()
    lv = lambda gg, mid: k.call("LeaveGroup", 0, {"group_id": gg, "member_id": mid})["error_code"]
    c.rec("member", lv(g, "nobody"))
    c.rec("group", lv(c.name("G"), "x"))
    c.rec("ok", lv(g, a.id))
    c.rec("twice", lv(g, a.id))
    c.rec("beat", a.beat())


@case("f.err.leave_v3_batch", "LeaveGroup v3 of a member and a stranger in one request", needs="LeaveGroup:3")
def _(c):
    g, (a,) = group(c)
    r = c.conn().call("LeaveGroup", 3, {"group_id": g, "members": [{"member_id": a.id}, {"member_id": "nobody"}]})
    c.rec("r", {"error": r["error_code"], "members": [[m["member_id"] == a.id, m["error_code"]] for m in r["members"]]})


# ---------------- offsets
@case("f.oc.v3", "OffsetCommit v3, OffsetFetch v3", ver=3, fv=3)
@case("f.oc.v7", "OffsetCommit v7, OffsetFetch v6 (flexible)", ver=7, fv=6)
@case("f.oc.v9", "OffsetCommit v9, OffsetFetch v9", ver=9, fv=9)
def _(c, ver, fv, epoch=None):
    c.need("OffsetCommit", ver), c.need("OffsetFetch", fv)
    t = c.topic(2)
    g = c.name("G")
    c.coordinator(g)
    kw = {} if epoch is None else {"committed_leader_epoch": epoch}
    c.attempt("commit", commit, c, g, t, 17, ver, meta="note", **kw)
    if fv >= 8:
        c.attempt(
            "fetch",
            lambda: c.conn().call(
                "OffsetFetch", fv, {"groups": [{"group_id": g, "topics": [{"name": t, "partition_indexes": [0, 1]}]}]}
            ),
        )
    else:
        c.attempt("fetch", fetched, c, g, t, fv, (0, 1))


@case("f.oc.v8_fetch_groups", "OffsetFetch v8 of two groups at once, one unknown", needs="OffsetFetch:8,OffsetCommit:2")
def _(c):
    t = c.topic()
    g, h = c.name("G"), c.name("G")
    c.coordinator(g)
    commit(c, g, t, 5)
    c.attempt(
        "r",
        lambda: c.conn().call(
            "OffsetFetch",
            8,
            {
                "groups": [
                    {"group_id": g, "topics": None},
                    {"group_id": h, "topics": [{"name": t, "partition_indexes": [0]}]},
                ]
            },
        ),
    )


@case(
    "f.oc.fetch_all_v2",
    "OffsetFetch v2 with null topics: everything the group has",
    needs="OffsetFetch:2,OffsetCommit:2",
)
def _(c):
    a, b = c.topic(), c.topic(2)
    g = c.name("G")
    c.coordinator(g)
    commit(c, g, a, 1), commit(c, g, b, 2, part=1)
    r = c.conn().call("OffsetFetch", 2, {"group_id": g, "topics": None})
    r["topics"].sort(key=lambda x: c.labels[x["name"]])
    c.rec("r", r)


@case(
    "f.oc.fetch_unknown", "OffsetFetch of an unknown group, topic and partition", needs="OffsetFetch:1,OffsetCommit:2"
)
def _(c):
    t = c.topic()
    g = c.name("G")
    c.coordinator(g)
    c.rec("group", fetched(c, c.name("G"), t))
    commit(c, g, t, 1)
    c.rec("topic", fetched(c, g, c.name("T")))
    c.rec("partition", fetched(c, g, t, 1, (9,)))
    c.attempt("empty_group", fetched, c, "", t)


@case("f.oc.fetch_v0_unknown", "OffsetFetch v0 of a topic without offsets", needs="OffsetFetch:0")
def _(c):
    t = c.topic()
    g = c.name("G")
    c.coordinator(g)
    c.attempt("none", fetched, c, g, t, 0)
    c.attempt("unknown_topic", fetched, c, g, c.name("T"), 0)


@case(
    "f.oc.multi", "one commit of three partitions, one of them unknown: the others are stored", needs="OffsetCommit:2"
)
def _(c):
    t = c.topic(2)
    g = c.name("G")
    c.coordinator(g)
    r = c.conn().call(
        "OffsetCommit",
        2,
        {
            "group_id": g,
            "topics": [
                {"name": t, "partitions": [{"partition_index": i, "committed_offset": 10 + i} for i in (0, 1, 7)]}
            ],
        },
    )
    c.rec("commit", sorted([p["partition_index"], p["error_code"]] for p in r["topics"][0]["partitions"]))
    c.rec(
        "fetch",
        sorted(
            [p["partition_index"], p["committed_offset"]]
            for p in fetched(c, g, t, 1, (0, 1, 7))["topics"][0]["partitions"]
        ),
    )


@case("f.oc.survives_leave", "offsets stay after the last member left", needs="OffsetCommit:2")
def _(c):
    t = c.topic()
    g, (a,) = group(c)
    commit(c, g, t, 33, gen=a.gen, mid=a.id)
    a.leave()
    c.rec("r", fetched(c, g, t))
