"""E: metadata and administration."""

import time

from tests.vendor.wire_prober.cases_c import put
from tests.vendor.wire_prober.core import case
from tests.vendor.wire_prober.wire import batch


def one(c, ver, name, **kw):
    r = c.conn().call("Metadata", ver, dict({"topics": [{"name": name}]}, **kw))
    return r


# ---------------- Metadata
@case("e.md.v4", "Metadata v4: auto-creation flag", ver=4)
@case("e.md.v5", "Metadata v5: offline replicas", ver=5)
@case("e.md.v6", "Metadata v6", ver=6)
@case("e.md.v7", "Metadata v7: leader epoch", ver=7)
@case("e.md.v8", "Metadata v8: authorized operations (not asked)", ver=8)
@case("e.md.v9", "Metadata v9: flexible", ver=9)
@case("e.md.v10", "Metadata v10: topic id", ver=10)
@case("e.md.v11", "Metadata v11", ver=11)
@case("e.md.v13", "Metadata v13", ver=13)
def _(c, ver):
    c.need("Metadata", ver)
    t = c.topic(2)
    r = one(c, ver, t)
    for x in r["topics"]:
        x["partitions"].sort(key=lambda p: p["partition_index"])
    c.rec("r", r)


@case("e.md.none_v1", "Metadata v1 with an empty list means no topics", ver=1, arg=[])
@case("e.md.all_v1", "Metadata v1 with a null list means all topics", ver=1, arg=None)
@case("e.md.all_v9", "Metadata v9 with a null list means all topics", ver=9, arg=None)
@case("e.md.none_v9", "Metadata v9 with an empty list means no topics", ver=9, arg=[])
def _(c, ver, arg):
    c.need("Metadata", ver)
    t = c.topic()

    def go():
        r = c.conn().call("Metadata", ver, {"topics": arg})
        return {
            "mine": any(x["name"] == t for x in r["topics"]),
            "any": bool(r["topics"]),
            "brokers": len(r["brokers"]),
        }

    c.attempt("r", go)


@case(
    "e.md.auto_create_v1",
    "unknown topic with auto-creation (v1): first answer, then usable with num.partitions partitions",
    ver=1,
)
def _(c, ver):
    c.need("Metadata", ver)
    n = c.name("T")
    r = one(c, ver, n)["topics"][0]
    c.rec("first_error", r["error_code"])
    c.rec("first_partitions", len(r["partitions"]))
    c.wait_topic(n, 1)
    r = one(c, ver, n)["topics"][0]
    c.rec("later", [r["error_code"], len(r["partitions"])])


@case(
    "e.md.no_auto_create_v4",
    "unknown topic without auto-creation (v4): error 3 and it stays unknown",
    needs="Metadata:4",
    ver=4,
)
def _(c, ver):
    n = c.name("T")
    c.rec("first", one(c, ver, n, allow_auto_topic_creation=0)["topics"])
    time.sleep(0.3)
    c.rec("second", one(c, ver, n, allow_auto_topic_creation=0)["topics"][0]["error_code"])


@case("e.md.bad_names_v1", "illegal names: error 17", ver=1)
@case("e.md.bad_names_v9", "illegal names (v9)", ver=9)
def _(c, ver):
    c.need("Metadata", ver)
    for lab, n in (
        ("empty", ""),
        ("slash", "a/b"),
        ("dot", "."),
        ("dotdot", ".."),
        ("space", "a b"),
        ("long250", "x" * 250),
        ("unicode", "tä"),
        ("colon", "a:b"),
    ):
        c.attempt(lab, lambda: one(c, ver, n)["topics"][0]["error_code"])


@case("e.md.duplicates_v9", "the same topic twice in one request (v9)", ver=9)
def _(c, ver):
    c.need("Metadata", ver)
    t = c.topic()
    r = c.conn().call("Metadata", ver, {"topics": [{"name": t}, {"name": t}]})
    c.rec("r", [[x["error_code"], x["name"]] for x in r["topics"]])


@case("e.md.mixed_v4", "known, unknown and illegal topic in one request", needs="Metadata:4")
def _(c):
    t, n = c.topic(), c.name("T")
    r = c.conn().call(
        "Metadata", 4, {"topics": [{"name": n}, {"name": t}, {"name": "bad/name"}], "allow_auto_topic_creation": 0}
    )
    c.rec("r", sorted([c.labels.get(x["name"], x["name"]), x["error_code"]] for x in r["topics"]))


@case("e.md.by_id_v12", "Metadata v12 by topic id: known, unknown, zero", needs="Metadata:12")
def _(c):
    t = c.topic()
    tid = one(c, 12, t)["topics"][0]["topic_id"]
    for lab, i in (("known", tid), ("unknown", "33" * 16)):
        c.attempt(lab, lambda: c.conn().call("Metadata", 12, {"topics": [{"topic_id": i, "name": None}]})["topics"])


@case("e.md.broker_list", "host and port in Metadata lead back to the broker itself", needs="Metadata:1")
def _(c):
    r = c.conn().call("Metadata", 1, {"topics": []})
    c.rec("n", len(r["brokers"]))
    c.rec("controller_listed", r["controller_id"] in [b["node_id"] for b in r["brokers"]])
    c.rec("port_is_ours", [b["port"] == c.t.port for b in r["brokers"]])
    c.rec("rack", [b["rack"] for b in r["brokers"]])


# ---------------- CreateTopics
def create(c, ver, topics, **kw):
    return c.conn(30).call("CreateTopics", ver, dict({"topics": topics}, **kw))


@case("e.ct.v0", "CreateTopics v0", ver=0)
@case("e.ct.v2", "CreateTopics v2: throttle time", ver=2)
@case("e.ct.v4", "CreateTopics v4", ver=4)
@case("e.ct.v7", "CreateTopics v7: topic id in the reply", ver=7)
def _(c, ver):
    c.need("CreateTopics", ver)
    n = c.name("T")
    r = create(c, ver, [{"name": n, "num_partitions": 3, "configs": [{"name": "retention.ms", "value": "12345678"}]}])
    for x in r["topics"]:
        if x.get("configs") is not None:
            x["configs"] = sorted(
                [
                    [y["name"], y["value"], y["read_only"], y["config_source"], y["is_sensitive"]]
                    for y in x["configs"]
                    if y["name"] in ("retention.ms", "cleanup.policy", "message.timestamp.type")
                ]
            )
    c.rec("r", r)
    c.wait_topic(n, 3)
    c.rec("partitions", len(one(c, 1, n)["topics"][0]["partitions"]))


@case(
    "e.ct.bad",
    "CreateTopics errors: existing, illegal names, counts, replication factor, configs",
    needs="CreateTopics:2",
    ver=2,
)
@case("e.ct.bad_v1", "CreateTopics errors through v1", needs="CreateTopics:1", ver=1)
def _(c, ver):
    t = c.topic()
    e = lambda d: (lambda r: [r["error_code"], r["error_message"] is not None])(
        create(c, ver, [dict({"name": c.name("T")}, **d)])["topics"][0]
    )
    c.attempt("exists", e, {"name": t})
    c.attempt("empty_name", e, {"name": ""})
    c.attempt("slash", e, {"name": "a/b"})
    c.attempt("dot", e, {"name": "."})
    c.attempt("long250", e, {"name": "x" * 250})
    c.attempt("partitions0", e, {"num_partitions": 0})
    c.attempt("partitions_neg1", e, {"num_partitions": -1})
    c.attempt("partitions_neg5", e, {"num_partitions": -5})
    c.attempt("rf0", e, {"replication_factor": 0})
    c.attempt("rf3", e, {"replication_factor": 3})
    c.attempt("rf_neg1", e, {"replication_factor": -1})
    cfg = lambda k, v: {"configs": [{"name": k, "value": v}]}
    c.attempt("unknown_config", e, cfg("no.such.config", "1"))
    c.attempt("bad_number", e, cfg("retention.ms", "abc"))
    c.attempt("null_value", e, cfg("retention.ms", None))
    c.attempt("bad_cleanup", e, cfg("cleanup.policy", "shred"))
    c.attempt("bad_ts_type", e, cfg("message.timestamp.type", "EventTime"))
    c.attempt("ts_type_lowercase", e, cfg("message.timestamp.type", "createtime"))
    c.attempt("diff_negative", e, cfg("message.timestamp.difference.max.ms", "-1"))
    c.attempt("segment_bytes_5", e, cfg("segment.bytes", "5"))
    c.attempt("retention_neg1", e, cfg("retention.ms", "-1"))
    c.attempt("retention_neg2", e, cfg("retention.ms", "-2"))


@case(
    "e.ct.timestamp_config_names",
    "which timestamp limit names a topic accepts: the KIP draft name, the 0.10 name, the before/after names",
    needs="CreateTopics:2",
    ver=2,
)
def _(c, ver):
    for k in (
        "max.message.time.difference.ms",
        "message.timestamp.difference.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.after.max.ms",
        "message.format.version",
    ):
        v = "0.10.0" if "format" in k else "60000"
        c.attempt(
            k,
            lambda: create(c, ver, [{"name": c.name("T"), "configs": [{"name": k, "value": v}]}])["topics"][0][
                "error_code"
            ],
        )


@case("e.ct.duplicate_v1", "one name twice in a CreateTopics request (v1)", needs="CreateTopics:1", ver=1)
def _(c, ver):
    n, m = c.name("T"), c.name("T")
    r = create(c, ver, [{"name": n}, {"name": m}, {"name": n}])
    c.rec("r", sorted([c.labels[x["name"]], x["error_code"]] for x in r["topics"]))


@case("e.ct.collision_v1", "names differing only in dot and underscore collide (v1)", needs="CreateTopics:1", ver=1)
def _(c, ver=2):
    a = c.name("T", ".q")
    b = a.replace(".q", "_q")
    c.rec("r", [create(c, ver, [{"name": x}])["topics"][0]["error_code"] for x in (a, b)])


# ---------------- DeleteTopics, CreatePartitions
@case(
    "e.dt.flow",
    "DeleteTopics: deleted, unknown; later gone from Metadata and Produce; name reusable",
    needs="Metadata:4",
)
def _(c):
    t = c.topic()
    put(c, t, 2)
    v = c.t.best("DeleteTopics", 3)
    r = c.conn(20).call("DeleteTopics", v, {"topic_names": [t, c.name("T")]})
    r["responses"].sort(key=lambda x: c.labels[x["name"]])
    c.rec("r", r["responses"])
    end = time.time() + 8
    while time.time() < end and one(c, 4, t, allow_auto_topic_creation=0)["topics"][0]["error_code"] != 3:
        time.sleep(0.05)
    c.rec("md", one(c, 4, t, allow_auto_topic_creation=0)["topics"][0]["error_code"])
    c.rec("produce", c.produce(3, t, batch([b"x"], ts=c.B()))["error_code"])
    c.rec("fetch", c.fetch(4, t)["error_code"])
    c.rec("list", c.list_offsets(1, t, -1)["error_code"])
    c.rec("again", c.create(t, 2))
    c.wait_topic(t, 2)
    c.rec("leo", c.leo(t))


@case("e.dt.v1_reply", "DeleteTopics v1 reply: known and unknown topic", needs="DeleteTopics:1")
def _(c):
    t, n = c.topic(), c.name("T")
    r = c.conn(20).call("DeleteTopics", 1, {"topic_names": [t, n]})
    c.rec("r", sorted([c.labels[x["name"]], x["error_code"]] for x in r["responses"]))


@case("e.dt.duplicate", "one topic twice in DeleteTopics", needs="DeleteTopics:1")
def _(c):
    t = c.topic()
    r = c.conn(20).call("DeleteTopics", 1, {"topic_names": [t, t]})
    c.rec("r", sorted([c.labels[x["name"]], x["error_code"]] for x in r["responses"]))


# ---------------- configs
KEYS = [
    "cleanup.policy",
    "message.timestamp.type",
    "retention.ms",
    "segment.bytes",
    "max.message.bytes",
    "message.timestamp.difference.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms",
    "index.interval.bytes",
    "segment.ms",
    "retention.bytes",
    "compression.type",
    "min.insync.replicas",
]


def dconf(c, ver, name, keys=None, typ=2, **kw):
    r = c.conn().call(
        "DescribeConfigs",
        ver,
        dict({"resources": [{"resource_type": typ, "resource_name": name, "configuration_keys": keys}]}, **kw),
    )["results"][0]
    r["configs"].sort(key=lambda x: x["name"])
    return r


@case("e.dc.topic_v0", "DescribeConfigs v0 of a topic, three keys", ver=0)
@case("e.dc.topic_v1", "DescribeConfigs v1 with synonyms", ver=1)
@case("e.dc.topic_v3", "DescribeConfigs v3 with types", ver=3)
@case("e.dc.topic_v4", "DescribeConfigs v4", ver=4)
def _(c, ver):
    c.need("DescribeConfigs", ver)
    t = c.topic(message__timestamp__type="LogAppendTime")
    c.rec("r", dconf(c, ver, t, ["message.timestamp.type", "retention.ms", "cleanup.policy"]))


@case(
    "e.dc.errors",
    "DescribeConfigs of an unknown topic, illegal name, unknown key, unknown resource type, unknown broker",
    needs="DescribeConfigs:1",
)
def _(c):
    t = c.topic()
    for lab, args in (
        ("unknown_topic", (c.name("T"),)),
        ("bad_name", ("a/b",)),
        ("unknown_key", (t, ["no.such.key"])),
        ("no_keys", (t, [])),
        ("type9", (t, None, 9)),
        ("broker99", ("99", ["log.dirs"], 4)),
        ("broker_x", ("x", None, 4)),
    ):
        c.attempt(
            lab,
            lambda: (lambda r: [r["error_code"], len(r["configs"]) if len(r["configs"]) < 3 else "many"])(
                dconf(c, 1, *args)
            ),
        )


def alter(c, t, kv, typ=2, **kw):
    return c.conn().call(
        "AlterConfigs",
        0,
        dict(
            {
                "resources": [
                    {"resource_type": typ, "resource_name": t, "configs": [{"name": k, "value": v} for k, v in kv]}
                ]
            },
            **kw,
        ),
    )["responses"][0]["error_code"]


def until(fn, limit=6):
    end = time.time() + limit
    while not fn() and time.time() < end:
        time.sleep(0.05)


@case(
    "e.ac.flow",
    "AlterConfigs replaces the whole set: what was not named returns to the default",
    needs="AlterConfigs:0,DescribeConfigs:1",
)
def _(c):
    t = c.topic(retention__ms=111111, segment__ms=222222)
    val = lambda k: dconf(c, 1, t, [k])["configs"][0]["value"]
    c.rec("alter", alter(c, t, [("retention.ms", "333333")]))
    until(lambda: val("retention.ms") == "333333")
    c.rec("after", {k: val(k) for k in ("retention.ms", "segment.ms")})
    c.rec("bad_value", alter(c, t, [("retention.ms", "abc")]))
    c.rec("unknown_key", alter(c, t, [("no.such", "1")]))
    c.rec("unknown_topic", alter(c, c.name("T"), [("retention.ms", "1")]))
    c.rec("bad_ts_type", alter(c, t, [("message.timestamp.type", "Sometime")]))
    c.rec("validate_only", alter(c, t, [("retention.ms", "444444")], validate_only=1))
    c.rec("unchanged", val("retention.ms"))


def inc(c, t, ops, typ=2, **kw):
    return c.conn().call(
        "IncrementalAlterConfigs",
        0,
        dict(
            {
                "resources": [
                    {
                        "resource_type": typ,
                        "resource_name": t,
                        "configs": [{"name": k, "config_operation": o, "value": v} for k, o, v in ops],
                    }
                ]
            },
            **kw,
        ),
    )["responses"][0]["error_code"]


@case(
    "e.iac.flow",
    "IncrementalAlterConfigs: set, delete, append, subtract and errors",
    needs="IncrementalAlterConfigs:0,DescribeConfigs:1",
)
def _(c):
    t = c.topic(retention__ms=111111, segment__ms=222222)
    val = lambda k: dconf(c, 1, t, [k])["configs"][0]["value"]
    c.rec("set", inc(c, t, [("retention.ms", 0, "333333")]))
    until(lambda: val("retention.ms") == "333333")
    c.rec("others_kept", {k: val(k) for k in ("retention.ms", "segment.ms")})
    c.rec("delete", inc(c, t, [("segment.ms", 1, None)]))
    until(lambda: val("segment.ms") != "222222")
    c.rec("deleted", val("segment.ms"))
    c.rec("append", inc(c, t, [("cleanup.policy", 2, "compact")]))
    until(lambda: "compact" in val("cleanup.policy"))
    c.rec("appended", val("cleanup.policy"))
    c.rec("subtract", inc(c, t, [("cleanup.policy", 3, "delete")]))
    until(lambda: "delete" not in val("cleanup.policy"))
    c.rec("subtracted", val("cleanup.policy"))
    c.rec("append_scalar", inc(c, t, [("retention.ms", 2, "5")]))
    c.rec("duplicate_key", inc(c, t, [("retention.ms", 0, "5"), ("retention.ms", 0, "6")]))
    c.rec("bad_value", inc(c, t, [("retention.ms", 0, "abc")]))
    c.rec("null_value", inc(c, t, [("retention.ms", 0, None)]))
    c.rec("unknown_key", inc(c, t, [("no.such", 0, "1")]))
    c.rec("unknown_topic", inc(c, c.name("T"), [("retention.ms", 0, "1")]))
    c.rec("validate_only", inc(c, t, [("retention.ms", 0, "777777")], validate_only=1))
    c.rec("v_unchanged", val("retention.ms"))


@case(
    "e.iac.difference_takes_effect",
    "lowering a timestamp limit refuses old timestamps from then on",
    needs="IncrementalAlterConfigs:0,Produce:3",
)
def _(c):
    t = c.topic()
    old = lambda: c.produce(3, t, batch([b"z"], ts=c.B(-7_200_000)))["error_code"]
    c.rec("before", old())
    k = "message.timestamp.before.max.ms"
    c.rec("set", inc(c, t, [(k, 0, "3600000")]))
    until(lambda: old() == 32)
    c.rec("after", old())


# ---------------- DeleteRecords and others
@case(
    "e.dr.flow",
    "DeleteRecords: to 2, to the high watermark (-1), beyond it, below the log start, unknown topic",
    needs="DeleteRecords:0",
)
def _(c):
    t = c.topic()
    put(c, t, 5)
    d = lambda off, n=t, p=0: {
        k: v
        for k, v in c.conn()
        .call("DeleteRecords", 0, {"topics": [{"name": n, "partitions": [{"partition_index": p, "offset": off}]}]})[
            "topics"
        ][0]["partitions"][0]
        .items()
    }
    c.rec("to2", d(2))
    c.rec("to1_again", d(1))
    c.rec("beyond", d(6))
    c.rec("neg2", d(-2))
    c.rec("all", d(-1))
    c.rec("earliest", c.list_offsets(1, t, -2)["offset"])
    c.rec("unknown_topic", d(0, c.name("T")))
    c.rec("unknown_partition", d(0, t, 5))
    put(c, t, 1, start=5)
    c.rec("next_offset", c.leo(t))


@case("e.le.v0", "OffsetForLeaderEpoch v0", ver=0)
@case("e.le.v2", "OffsetForLeaderEpoch v2 with the current epoch", ver=2)
@case("e.le.v3", "OffsetForLeaderEpoch v3", ver=3)
def _(c, ver):
    c.need("OffsetForLeaderEpoch", ver)
    t = c.topic()
    put(c, t, 3)
    f = lambda n, p, e, cur=-1: c.conn().call(
        "OffsetForLeaderEpoch",
        ver,
        {"topics": [{"topic": n, "partitions": [{"partition": p, "leader_epoch": e, "current_leader_epoch": cur}]}]},
    )["topics"]
    c.attempt("epoch0", f, t, 0, 0)
    c.attempt("epoch5", f, t, 0, 5)
    c.attempt("epoch_neg1", f, t, 0, -1)
    c.attempt("unknown_topic", f, c.name("T"), 0, 0)
    c.attempt("unknown_partition", f, t, 7, 0)
    if ver >= 2:
        c.attempt("current_ok", f, t, 0, 0, 0)
        c.attempt("current_unknown", f, t, 0, 0, 9)


@case("e.ld.describe_v1", "DescribeLogDirs v1 of one topic", needs="DescribeLogDirs:1", ver=1)
@case("e.ld.describe_v4", "DescribeLogDirs v4 adds total and usable bytes", needs="DescribeLogDirs:4", ver=4)
def _(c, ver):
    t = c.topic(2)
    put(c, t, 2)
    r = c.conn().call("DescribeLogDirs", ver, {"topics": [{"topic": t, "partitions": [0, 1]}]})
    c.rec("n_dirs", len(r["results"]))
    x = [z for z in r["results"] if z["topics"]][0]
    c.rec("error", [r.get("error_code"), x["error_code"]])
    c.rec(
        "parts",
        sorted(
            [p["partition_index"], p["partition_size"] > 0, p["offset_lag"], p["is_future_key"]]
            for p in x["topics"][0]["partitions"]
        ),
    )
    if ver >= 4:
        c.rec("bytes_positive", [x["total_bytes"] > 0, x["usable_bytes"] > 0])


@case("e.dtp.basic", "DescribeTopicPartitions: two topics, one unknown", needs="DescribeTopicPartitions:0")
def _(c):
    t = c.topic(2)
    c.attempt(
        "r", lambda: c.conn().call("DescribeTopicPartitions", 0, {"topics": [{"name": t}, {"name": c.name("T")}]})
    )


@case(
    "e.dtp.cursor",
    "DescribeTopicPartitions with a limit gives a cursor that continues",
    needs="DescribeTopicPartitions:0",
)
def _(c):
    t = c.topic(5)
    r = c.conn().call("DescribeTopicPartitions", 0, {"topics": [{"name": t}], "response_partition_limit": 2})
    c.rec(
        "first",
        {
            "parts": [p["partition_index"] for x in r["topics"] for p in x["partitions"]],
            "cursor": r["next_cursor"] and r["next_cursor"]["partition_index"],
        },
    )
    r = c.conn().call("DescribeTopicPartitions", 0, {"topics": [{"name": t}], "cursor": r["next_cursor"]})
    c.rec(
        "rest",
        {"parts": [p["partition_index"] for x in r["topics"] for p in x["partitions"]], "cursor": r["next_cursor"]},
    )
