"""A: framing, headers, ApiVersions, connection behaviour."""

import hashlib
import socket
import struct
import time

from tests.vendor.wire_prober import wire
from tests.vendor.wire_prober.core import case
from tests.vendor.wire_prober.wire import Closed, NoReply, Short, frame, header


def ending(c, conn, timeout=3.0):
    """What the broker does with the connection: a reply frame, a close, or silence"""
    try:
        p = conn.recv(timeout)
        return "reply"
    except Closed:
        return "closed"
    except NoReply:
        return "open, no reply"
    except Short:
        return "garbage reply"


def usable(c, conn=None):
    try:
        k = conn or c.conn(5)
        r = k.call("ApiVersions", 0, {})
        return "usable" if r["error_code"] == 0 and r["api_keys"] else "odd answer"
    except (Closed, NoReply, OSError, Short):
        return "not usable"


@case("a.apiversions.v0", "ApiVersions v0: error 0, sorted key list, no trailing bytes", ver=0, needs="ApiVersions:0")
@case("a.apiversions.v4", "ApiVersions v4", ver=4, needs="ApiVersions:4")
def _(c, ver):
    k = c.conn()
    d = {"client_software_name": "probe", "client_software_version": "1.0"} if ver >= 3 else {}
    r = k.call("ApiVersions", ver, d)
    keys = [x["api_key"] for x in r["api_keys"]]
    c.rec("error_code", r["error_code"])
    c.rec("keys_unique", len(keys) == len(set(keys)))
    c.rec("has", [x in keys for x in (0, 1, 2, 3, 18)])
    c.rec("min_le_max", all(x["min_version"] <= x["max_version"] for x in r["api_keys"]))
    c.rec("trailing", r.get("_trailing", 0))
    c.rec("corr", r.get("_corr", "ok"))


@case("a.apiversions.v0_body_ignored", "ApiVersions v0 followed by unexpected extra body bytes", extra=b"\0\0\0\5hello")
def _(c, extra):
    k = c.conn(4)
    c.attempt("reply", lambda: {"error": k.call("ApiVersions", 0, {}, raw_body=extra)["error_code"]})


@case("a.apiversions.unsupported_127_old_header", "ApiVersions v127 with the old header and no body", ver=127, tail=b"")
def _(c, ver, tail):
    k = c.conn(4)
    k.raw(frame(header(18, ver, 7, "probe") + tail))
    try:
        p = k.recv(3)
    except Closed:
        c.rec("reply", "closed")
        return
    except NoReply:
        c.rec("reply", "none")
        return
    c.rec("corr", struct.unpack(">i", p[:4])[0])
    c.rec("first_error", struct.unpack(">h", p[4:6])[0])
    try:
        r = wire.decode("ApiVersions", 0, p[4:])
        c.rec("decodes_as_v0", True)
        c.rec("trailing", r.get("_trailing", 0))
        c.rec(
            "keys_listed",
            "none"
            if not r["api_keys"]
            else ("only ApiVersions" if [x["api_key"] for x in r["api_keys"]] == [18] else "many"),
        )
    except Short:
        c.rec("decodes_as_v0", False)
    c.rec("after", usable(c, k))


@case(
    "a.apiversions.after_unsupported_same_conn",
    "after error 35 the same connection serves ApiVersions v0 and Metadata v1",
)
def _(c):
    k = c.conn(4)
    k.raw(frame(header(18, 99, 1, "probe", True) + b"\x06probe\x041.0\x00"))
    c.attempt("first", lambda: struct.unpack(">ih", k.recv(3)[:6]))
    c.attempt("v0", lambda: k.call("ApiVersions", 0, {})["error_code"])
    c.attempt("metadata", lambda: sorted(k.call("Metadata", 1, {"topics": []}).keys()))


@case(
    "a.apiversions.v3_empty_software_name",
    "ApiVersions v3 with empty software name and version",
    needs="ApiVersions:3",
    n="",
    v="",
)
def _(c, n, v):
    k = c.conn(4)
    c.attempt(
        "reply",
        lambda: {
            "error": k.call("ApiVersions", 3, {"client_software_name": n, "client_software_version": v})["error_code"]
        },
    )
    c.rec("after", usable(c, k))


@case(
    "a.apiversions.v3_unknown_tags",
    "unknown tagged fields in request header and body are skipped",
    needs="ApiVersions:3",
)
def _(c):
    k = c.conn(4)
    tag = b"\x01\x63\x03abc"
    k.raw(frame(struct.pack(">hhi", 18, 3, 55) + struct.pack(">h", 5) + b"probe" + tag + b"\x06probe\x021" + tag))
    c.attempt("reply", lambda: struct.unpack(">ih", k.recv(3)[:6]))


@case("a.api.unknown_9999", "unknown api key 9999", key=9999)
@case("a.api.unknown_neg32768", "api key -32768", key=-32768)
def _(c, key):
    k = c.conn(4)
    k.raw(frame(header(key, 0, 9, "probe")))
    c.rec("end", ending(c, k))
    c.rec("broker", usable(c))


@case("a.version.fetch_99", "Fetch v99", name="Fetch", ver=99)
@case("a.version.listoffsets_99", "ListOffsets v99", name="ListOffsets", ver=99)
@case("a.version.metadata_neg1", "Metadata v-1", name="Metadata", ver=-1)
@case(
    "a.version.produce_v0", "Produce v0 with a tiny magic-0 set, exactly as old clients send it", name="Produce", ver=0
)
@case("a.version.fetch_v0", "Fetch v0 of an unknown topic", name="Fetch", ver=0)
@case("a.version.joingroup_v0", "JoinGroup v0 with no protocols", name="JoinGroup", ver=0)
@case("a.version.createtopics_v0", "CreateTopics v0 with an empty list", name="CreateTopics", ver=0)
@case("a.version.findcoordinator_v0", "FindCoordinator v0", name="FindCoordinator", ver=0)
def _(c, name, ver):
    if name == "FindCoordinator":
        c.coordinator("x")
    k = c.conn(6)
    n = c.name("T")
    b = {
        "Produce": {"topics": [{"name": n, "partitions": [{"index": 0, "records": wire.msg(magic=0)}]}]},
        "Fetch": {"topics": [{"topic": n, "partitions": [{"partition": 0, "fetch_offset": 0}]}]},
        "ListOffsets": {"topics": [{"name": n, "partitions": [{"partition_index": 0, "timestamp": -1}]}]},
        "Metadata": {"topics": [{"name": "bad/name"}]},
        "OffsetCommit": {"group_id": c.name("G"), "topics": []},
        "JoinGroup": {"group_id": "", "member_id": "", "protocol_type": "consumer"},
        "CreateTopics": {"topics": []},
        "FindCoordinator": {"key": ""},
    }[name]
    raw = wire.body(name, max(0, min(ver, 2)), b)
    k.send(name, ver, {}, raw_body=raw)
    try:
        p = k.recv(4)
        try:
            r = wire.decode(name, ver, p[4:])
            r.pop("brokers", None)
            for z in ("node_id", "host", "port"):
                r.pop(z, None)
            c.rec("reply", r)
        except Short:
            c.rec("reply", "undecodable")
    except Closed:
        c.rec("reply", "closed")
    except NoReply:
        c.rec("reply", "none")
    c.rec("broker", usable(c))


@case("a.frame.negative_min", "frame length -2^31", data=struct.pack(">i", -(2**31)) + b"x" * 20)
@case("a.frame.zero_len", "frame length 0", data=struct.pack(">i", 0))
@case("a.frame.two_bytes", "frame of two bytes (only an api key)", data=frame(b"\x00\x12"))
@case(
    "a.frame.oversized_200mb",
    "frame length 200 MB (over socket.request.max.bytes)",
    data=struct.pack(">i", 200_000_000) + b"x" * 100,
)
@case("a.frame.oversized_max", "frame length 2^31-1", data=struct.pack(">i", 2**31 - 1) + b"x" * 100)
@case("a.frame.http_get", "plain HTTP GET", data=b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
@case("a.frame.http_post", "plain HTTP POST", data=b"POST /topics HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
@case("a.frame.garbage_body", "valid length, garbage body", data=frame(hashlib.sha512(b"garbage").digest() * 3))
@case("a.frame.ff_body", "valid length, body of 0xff", data=frame(b"\xff" * 64))
def _(c, data):
    k = c.conn(4)
    k.raw(data)
    c.rec("end", ending(c, k))
    c.rec("broker", usable(c))


@case("a.frame.partial_then_close", "half a frame, then the client goes away; the broker keeps serving others")
def _(c):
    k = c.conn()
    f = frame(header(3, 1, 5, "probe") + wire.body("Metadata", 1, {"topics": []}))
    k.raw(f[: len(f) // 2])
    k.close()
    c.rec("broker", usable(c))


@case("a.frame.partial_waits", "half a frame: broker waits silently, then answers when the rest comes")
def _(c):
    k = c.conn()
    f = frame(header(3, 1, 5, "probe") + wire.body("Metadata", 1, {"topics": []}))
    k.raw(f[:9])
    c.rec("before", ending(c, k, 0.7))
    k.raw(f[9:])
    c.rec("after", ending(c, k))


@case("a.frame.two_and_a_half", "two whole requests and half a third in one write, the rest later")
def _(c):
    k = c.conn()
    fs = [frame(header(18, 0, i, "probe")) for i in (1, 2, 3)]
    k.raw(fs[0] + fs[1] + fs[2][:7])
    c.rec("first", [struct.unpack(">i", k.recv()[:4])[0] for _ in range(2)])
    c.rec("pending", ending(c, k, 0.4))
    k.raw(fs[2][7:])
    c.rec("third", struct.unpack(">i", k.recv()[:4])[0])


@case(
    "a.pipeline.behind_long_poll", "a request behind a waiting Fetch is answered after it, not before", needs="Fetch:4"
)
@case("a.pipeline.behind_long_poll_v2", "the same with Fetch v2", needs="Fetch:2", ver=2)
def _(c, ver=4):
    t = c.topic()
    k = c.conn()
    t0 = time.time()
    a = k.send(
        "Fetch",
        ver,
        {
            "max_wait_ms": 1200,
            "min_bytes": 1,
            "topics": [{"topic": t, "partitions": [{"partition": 0, "fetch_offset": 0}]}],
        },
    )
    b = k.send("ApiVersions", 0, {})
    got = [struct.unpack(">i", k.recv()[:4])[0] for _ in range(2)]
    c.rec("order", ["fetch" if x == a else "apiversions" if x == b else "?" for x in got])
    c.rec("time", c.elapsed(t0, 1200))


@case("a.pipeline.100", "100 pipelined ApiVersions")
def _(c):
    k = c.conn()
    k.raw(b"".join(frame(header(18, 0, i, "probe")) for i in range(100)))
    c.rec("in_order", [struct.unpack(">i", k.recv()[:4])[0] for _ in range(100)] == list(range(100)))


@case("a.clientid.null", "null client id", cid=None)
@case("a.clientid.invalid_utf8", "client id that is not UTF-8", cid=b"\xff\xfe\x80abc")
def _(c, cid):
    k = c.conn(4)
    c.attempt(
        "reply",
        lambda: {
            x: y
            for x, y in k.call("Metadata", 1, {"topics": []}, client_id=cid).items()
            if x == "topics" or x.startswith("_")
        },
    )


@case("a.corr.min", "correlation id -2^31 is echoed", n=-(2**31))
@case("a.corr.max", "correlation id 2^31-1 is echoed", n=2**31 - 1)
def _(c, n):
    k = c.conn(4)
    k.send("Metadata", 1, {"topics": []}, corr=n)
    c.attempt("corr", lambda: struct.unpack(">i", k.recv()[:4])[0])


@case("a.corr.duplicate", "two outstanding requests with the same correlation id both get answers")
def _(c):
    k = c.conn(4)
    for _ in range(2):
        k.send("ApiVersions", 0, {}, corr=42)
    c.attempt("corr", lambda: [struct.unpack(">i", k.recv()[:4])[0] for _ in range(2)])


@case("a.conn.many_100", "100 connections at once are all served")
def _(c):
    ks = [c.conn() for _ in range(100)]
    for k in ks:
        k.send("ApiVersions", 0, {}, corr=1)
    c.rec("answered", sum(1 for k in ks if k.recv()[:4] == b"\0\0\0\1"))


@case("a.conn.half_close_idle", "client shuts down its sending side with nothing outstanding: broker closes")
def _(c):
    k = c.conn()
    c.rec("first", usable(c, k))
    k.s.shutdown(socket.SHUT_WR)
    c.rec("end", ending(c, k))


@case(
    "a.body.metadata_array_huge",
    "Metadata with an array length of 2^31-1",
    raw=struct.pack(">i", 2**31 - 1),
    name="Metadata",
    ver=1,
)
@case(
    "a.body.metadata_null_name",
    "Metadata v1 asking for a null topic name",
    raw=struct.pack(">ih", 1, -1),
    name="Metadata",
    ver=1,
)
@case(
    "a.body.metadata_truncated",
    "Metadata body cut in the topic name",
    raw=struct.pack(">ih", 1, 10) + b"abc",
    name="Metadata",
    ver=1,
)
@case("a.body.metadata_empty", "Metadata v1 with no body at all", raw=b"", name="Metadata", ver=1)
@case("a.body.fetch_truncated", "Fetch v4 body cut in half", raw=struct.pack(">iii", -1, 100, 1), name="Fetch", ver=4)
@case(
    "a.body.produce_records_overrun",
    "Produce v3 whose record bytes length exceeds the frame",
    raw=struct.pack(">hhii", -1, 1, 1000, 1) + b"\0\1t" + struct.pack(">iii", 1, 0, 5000) + b"abc",
    name="Produce",
    ver=3,
)
@case("a.body.listoffsets_truncated", "ListOffsets v1 body cut", raw=struct.pack(">i", -1), name="ListOffsets", ver=1)
@case(
    "a.body.flex_varint_endless",
    "flexible Metadata v9 whose array length varint never ends",
    raw=b"\xff" * 12,
    name="Metadata",
    ver=9,
)
@case(
    "a.body.bool_2",
    "Metadata v4 with the boolean byte set to 2",
    raw=struct.pack(">i", 0) + b"\x02",
    name="Metadata",
    ver=4,
)
def _(c, raw, name, ver):
    c.need(name, ver)
    k = c.conn(4)

    def go():
        r = k.call(name, ver, {}, raw_body=raw)
        if name == "Metadata" and len(r["topics"]) > 1:
            r["topics"] = "all topics"
        return {x: y for x, y in r.items() if x in ("topics", "_trailing", "error_code")}

    if name == "Metadata":
        c.topic(), c.topic()
    c.attempt("reply", go)
    c.rec("broker", usable(c))


@case("a.sasl.handshake_v1", "SaslHandshake v1 on a plaintext listener", ver=1, needs="SaslHandshake:1")
def _(c, ver):
    k = c.conn(4)
    c.attempt("reply", k.call, "SaslHandshake", ver, {"mechanism": "PLAIN"})
    c.rec("after", usable(c, k))


@case("a.header.flex_missing_tags", "Metadata v9 sent with a v1 header (no tag section)", needs="Metadata:9")
def _(c):
    k = c.conn(3)
    k.raw(frame(header(3, 9, 5, "probe", False) + wire.body("Metadata", 9, {"topics": []})))
    c.rec("end", ending(c, k, 2))
