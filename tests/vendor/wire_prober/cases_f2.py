"""F: groups described, listed, deleted; static members; the newer consumer protocol."""

import time

from tests.vendor.wire_prober.cases_f import M, commit, fetched, group, stabilise
from tests.vendor.wire_prober.core import case


# ---------------- describe, list, delete
def describe(c, g, ver=None):
    r = c.conn().call("DescribeGroups", c.t.best("DescribeGroups", 0) if ver is None else ver, {"groups": [g]})[
        "groups"
    ][0]
    r["members"].sort(key=lambda m: m["member_assignment"] or b"")
    return r


@case("f.dg.states", "DescribeGroups: unknown, stable, preparing, completing, empty", needs="DescribeGroups:0")
def _(c):
    c.rec("unknown", describe(c, c.name("G")))
    g, (a,) = group(c, ver=1)
    c.rec("stable", describe(c, g))
    b = M(c, g, 1)
    b.send_join()
    time.sleep(0.3)
    c.rec("preparing", describe(c, g)["group_state"])
    a.send_join()
    a.got_join(), b.got_join()
    c.rec("completing", describe(c, g)["group_state"])
    stabilise([a, b])
    a.leave(), b.leave()
    time.sleep(0.2)
    c.rec("empty", describe(c, g))


@case("f.dg.versions_v4", "DescribeGroups v4 with group instance ids", needs="DescribeGroups:4", ver=4)
@case("f.dg.versions_v5", "DescribeGroups v5 (flexible)", needs="DescribeGroups:5", ver=5)
@case("f.dg.versions_v6", "DescribeGroups v6: unknown group is error 69", needs="DescribeGroups:6", ver=6)
def _(c, ver):
    g, (a,) = group(c, ver=5)
    c.rec("r", describe(c, g, ver))
    c.rec("unknown", describe(c, c.name("G"), ver))


@case(
    "f.dg.offsets_only", "a group that only has committed offsets: state Empty", needs="DescribeGroups:0,OffsetCommit:2"
)
def _(c):
    t = c.topic()
    g = c.name("G")
    c.coordinator(g)
    commit(c, g, t, 1)
    c.rec("r", describe(c, g))


@case("f.lg.v0", "ListGroups v0 shows a live group, not an unknown one", ver=0)
@case("f.lg.v2", "ListGroups v2", ver=2)
@case("f.lg.v3", "ListGroups v3 (flexible)", ver=3)
@case("f.lg.v4", "ListGroups v4 with states", ver=4)
@case("f.lg.v5", "ListGroups v5 with types", ver=5)
def _(c, ver):
    c.need("ListGroups", ver)
    g, (a,) = group(c)
    r = c.conn().call("ListGroups", ver, {})
    c.rec("error", r["error_code"])
    c.rec("mine", [x for x in r["groups"] if x["group_id"] == g])


@case(
    "f.del.flow",
    "DeleteGroups: live 68, empty 0, unknown 69; offsets go with it",
    needs="DeleteGroups:0,OffsetCommit:2",
)
def _(c):
    t = c.topic()
    g, (a,) = group(c)
    commit(c, g, t, 9, gen=a.gen, mid=a.id)
    d = lambda x: c.conn().call("DeleteGroups", 0, {"groups_names": [x]})["results"][0]["error_code"]
    c.rec("live", d(g))
    a.leave()
    time.sleep(0.1)
    c.rec("empty", d(g))
    c.rec("again", d(g))
    c.rec("unknown", d(c.name("G")))
    c.rec("offsets", fetched(c, g, t)["topics"][0]["partitions"][0]["committed_offset"])
    c.rec("state", describe(c, g)["group_state"])


@case("f.od.flow", "OffsetDelete: existing, none, unknown topic, unknown group", needs="OffsetDelete:0,OffsetCommit:2")
def _(c):
    t = c.topic(2)
    g = c.name("G")
    c.coordinator(g)
    commit(c, g, t, 9)
    d = lambda gg, n, p: c.conn().call(
        "OffsetDelete", 0, {"group_id": gg, "topics": [{"name": n, "partitions": [{"partition_index": p}]}]}
    )
    c.rec("existing", d(g, t, 0))
    c.rec("none", d(g, t, 1))
    c.rec("unknown_topic", d(g, c.name("T"), 0))
    c.rec("unknown_group", d(c.name("G"), t, 0))
    c.rec("left", fetched(c, g, t)["topics"][0]["partitions"][0]["committed_offset"])


# ---------------- static membership


@case(
    "f.st.commit",
    "OffsetCommit v7 with instance id: right, wrong member, unknown instance",
    needs="JoinGroup:5,OffsetCommit:7",
)
def _(c):
    t = c.topic()
    g, (a,) = group(c, ver=5, instance="i1")
    f = lambda mid, inst: c.conn().call(
        "OffsetCommit",
        7,
        {
            "group_id": g,
            "generation_id": a.gen,
            "member_id": mid,
            "group_instance_id": inst,
            "topics": [{"name": t, "partitions": [{"partition_index": 0, "committed_offset": 1}]}],
        },
    )["topics"][0]["partitions"][0]["error_code"]
    c.rec("right", f(a.id, "i1"))
    c.rec("wrong_member", f("other", "i1"))
    c.rec("unknown_instance", f(a.id, "i2"))


@case("f.mem.big_metadata", "200 kB of member metadata and assignment come back whole", needs="JoinGroup:1")
def _(c):
    g = c.name("G")
    c.coordinator(g)
    a = M(c, g, 1, ptype="connect", protos=(("range", b"m" * 200_000),))
    r = a.join()
    c.rec("metadata", [len(m["metadata"]) for m in r["members"]])
    c.rec("sync", a.sync([(a.id, b"s" * 200_000)]))


# ---------------- KIP-848
def hb(c, g, mid, epoch, k=None, ver=None, **kw):
    ver = c.t.best("ConsumerGroupHeartbeat", 0) if ver is None else ver
    return (k or c.conn()).call(
        "ConsumerGroupHeartbeat", ver, dict({"group_id": g, "member_id": mid, "member_epoch": epoch}, **kw)
    )


@case(
    "f.k848.join", "ConsumerGroupHeartbeat join, assignment of two partitions, leave", needs="ConsumerGroupHeartbeat:0"
)
def _(c):
    t = c.topic(2)
    g = c.name("G")
    c.coordinator(g)
    mid = "AAAAAAAAAAAAAAAAAAAAAA"
    r = hb(c, g, mid, 0, rebalance_timeout_ms=30000, subscribed_topic_names=[t], topic_partitions=[])
    c.rec("join_error", r["error_code"])
    if r["error_code"]:
        return
    parts, e = r["assignment"], r["member_epoch"]
    end = time.time() + 8
    while not (parts and parts["topic_partitions"]) and time.time() < end:
        time.sleep(0.2)
        r = hb(c, g, mid, e)
        e = r["member_epoch"]
        parts = r["assignment"] or parts
    c.rec("assigned", sorted(parts["topic_partitions"][0]["partitions"]))
    c.rec("epoch_positive", e > 0)
    tid = parts["topic_partitions"][0]["topic_id"]
    r = hb(c, g, mid, e, topic_partitions=[{"topic_id": tid, "partitions": [0, 1]}])
    c.rec("steady", [r["error_code"], r["assignment"]])
    c.rec("wrong_epoch", hb(c, g, mid, e + 5)["error_code"])
    c.rec("stranger", hb(c, g, "BBBBBBBBBBBBBBBBBBBBBB", e)["error_code"])
    r = hb(c, g, mid, -1)
    c.rec("leave", [r["error_code"], r["member_epoch"]])
    c.rec("after", hb(c, g, mid, e)["error_code"])


@case("f.k848.invalid", "ConsumerGroupHeartbeat invalid requests", needs="ConsumerGroupHeartbeat:0")
def _(c):
    g = c.name("G")
    c.coordinator(g)
    mid = "AAAAAAAAAAAAAAAAAAAAAA"
    c.rec(
        "empty_group",
        hb(c, "", mid, 0, rebalance_timeout_ms=1000, subscribed_topic_names=["x"], topic_partitions=[])["error_code"],
    )
    c.rec("no_topics", hb(c, g, mid, 0, rebalance_timeout_ms=1000, topic_partitions=[])["error_code"])
    c.rec("no_timeout", hb(c, g, mid, 0, subscribed_topic_names=["x"], topic_partitions=[])["error_code"])
    c.rec("unknown_group_epoch3", hb(c, g, mid, 3)["error_code"])
    c.rec(
        "bad_assignor",
        hb(
            c,
            g,
            mid,
            0,
            rebalance_timeout_ms=1000,
            subscribed_topic_names=["x"],
            topic_partitions=[],
            server_assignor="nonsense",
        )["error_code"],
    )


@case("f.k848.two", "two KIP-848 members share four partitions evenly", needs="ConsumerGroupHeartbeat:0")
def _(c):
    t = c.topic(4)
    g = c.name("G")
    c.coordinator(g)
    st = {}
    for m in ("AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBB"):
        r = hb(c, g, m, 0, rebalance_timeout_ms=30000, subscribed_topic_names=[t], topic_partitions=[])
        if r["error_code"]:
            c.rec("error", r["error_code"])
            return
        st[m] = [r["member_epoch"], r["assignment"]]
    end = time.time() + 10
    while time.time() < end:
        for m, s in st.items():
            own = s[1]["topic_partitions"] if s[1] else []
            r = hb(c, g, m, s[0], topic_partitions=own)
            if r["error_code"] == 0:
                s[0] = r["member_epoch"]
                s[1] = r["assignment"] or s[1]
        n = sorted(sum(len(x["partitions"]) for x in s[1]["topic_partitions"]) if s[1] else 0 for s in st.values())
        if n == [2, 2] and len({s[0] for s in st.values()}) == 1:
            break
        time.sleep(0.2)
    c.rec("shares", n)
    d = (
        c.conn().call("ConsumerGroupDescribe", 0, {"group_ids": [g]})["groups"][0]
        if c.t.has("ConsumerGroupDescribe", 0)
        else None
    )
    if d:
        c.rec("state", [d["error_code"], d["group_state"], d["assignor_name"], len(d["members"])])


@case(
    "f.k848.classic_on_consumer_group",
    "classic JoinGroup on a live KIP-848 group",
    needs="ConsumerGroupHeartbeat:0,JoinGroup:4",
)
def _(c):
    t = c.topic()
    g = c.name("G")
    c.coordinator(g)
    r = hb(
        c, g, "AAAAAAAAAAAAAAAAAAAAAA", 0, rebalance_timeout_ms=30000, subscribed_topic_names=[t], topic_partitions=[]
    )
    c.rec("join", r["error_code"])
    m = M(c, g, 4, protos=(("weird", b"x"),), ptype="connect")
    m.send_join()
    c.rec("classic", m.k.reply("JoinGroup", 4, m.corr)["error_code"])


@case(
    "f.k848.describe_classic",
    "ConsumerGroupDescribe of a classic and of an unknown group",
    needs="ConsumerGroupDescribe:0",
)
def _(c):
    g, (a,) = group(c)
    c.rec("classic", c.conn().call("ConsumerGroupDescribe", 0, {"group_ids": [g]})["groups"][0]["error_code"])
    c.rec("unknown", c.conn().call("ConsumerGroupDescribe", 0, {"group_ids": [c.name("G")]})["groups"][0]["error_code"])
