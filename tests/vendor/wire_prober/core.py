"""Case registry, per-case context, normalisation of replies."""

import hashlib
import struct
import threading
import time

from tests.vendor.wire_prober import wire
from tests.vendor.wire_prober.wire import SPEC, Closed, Conn, NoReply, Short

CASES = []
_uniq_lock = threading.Lock()
_uniq = [0]


COORDINATED = {"G": 0, "X": 1}  # names of groups and of transactions, and which coordinator they have


class Skip(Exception):
    pass


class Setup(Exception):
    pass


class Case:
    def __init__(self, name, desc, fn, kw, needs, slow):
        self.name, self.desc, self.fn, self.kw, self.needs, self.slow = name, desc, fn, kw, needs, slow
        self.group = name.split(".")[0].upper()
        self.set = set_of(name)


def set_of(name):
    return "open" if int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) % 100 < 60 else "held"


def case(name, desc, /, *, needs="", slow=False, **kw):
    def deco(fn):
        assert all(c.name != name for c in CASES), name
        CASES.append(Case(name, desc, fn, kw, needs, slow))
        return fn

    return deco


class Target:
    """what we learn about the broker once: advertised api ranges and broker ids"""

    def __init__(self, host, port):
        self.host, self.port = host, port
        self.ranges, self.nodes = {}, []
        self.asked = None  # the one of several brokers that is asked
        self.run = "%x" % (int(time.time() * 1000) & 0xFFFFFFFF)
        self.coord_ready = set()
        self.lock = threading.Lock()
        c = Conn(host, port)
        try:
            r = c.call("ApiVersions", 0, {})
            self.ranges = {k["api_key"]: (k["min_version"], k["max_version"]) for k in r["api_keys"]}
        except (Closed, NoReply, Short) as e:
            print("warning: ApiVersions v0 failed:", e)
        c.close()
        self.advertised_ranges = dict(self.ranges)
        # newer brokers advertise Produce 0.. for old client libraries but refuse v0-v2: find what is really served
        lo, hi = self.ranges.get(0, (0, -1))
        while lo <= min(hi, 3):
            c = Conn(host, port)
            try:
                c.call("Produce", lo, {"topics": []}, timeout=4)
                break
            except (Closed, NoReply, Short):
                lo += 1
            finally:
                c.close()
        if 0 in self.ranges:
            self.ranges[0] = (lo, hi)
        try:
            c = Conn(host, port)
            r = c.call("Metadata", 1, {"topics": []})
            self.nodes = [b["node_id"] for b in r["brokers"]]
            if len(self.nodes) > 1:
                self.ask_first(r["brokers"])
            c.close()
        except (Closed, NoReply, Short) as e:
            print("warning: Metadata v1 failed:", e)

    def ask_first(self, brokers):
        """Of several brokers the first is asked; what it has to answer for is led by it"""
        first = min(brokers, key=lambda b: b["node_id"])
        self.nodes = sorted(self.nodes)
        self.asked, self.host, self.port = first["node_id"], first["host"], first["port"]

    def has(self, name, ver):
        k = SPEC[name][0]
        return k in self.ranges and self.ranges[k][0] <= ver <= self.ranges[k][1]

    def best(self, name, cap=99):
        k = SPEC[name][0]
        if k not in self.ranges or self.ranges[k][0] > cap:
            raise Skip("%s not offered" % name)
        return min(self.ranges[k][1], cap)


# field names whose integers are broker ids / times / producer ids
NODE = {"node_id", "leader_id", "controller_id", "broker_id", "preferred_read_replica"}
NODES = {"replica_nodes", "isr_nodes", "offline_replicas", "eligible_leader_replicas", "last_known_elr"}
DROP = {"throttle_time_ms", "session_lifetime_ms"}
TEXT = {"error_message", "message", "documentation"}
VOLATILE_STR = {"cluster_id", "log_dir"}


class Ctx:
    def __init__(self, target, case):
        self.t, self.case = target, case
        self.out = {}
        self.conns = []
        self.labels = {}  # topic / group / txn names -> T0, G0..
        self.counts = {}
        self.members, self.pids, self.uuids = {}, {}, {}
        self.base = int(time.time() * 1000) - 3600_000  # B: one hour ago
        with _uniq_lock:
            _uniq[0] += 1
            self.n = _uniq[0]

    # ---- things a case uses
    def now(self):
        return int(time.time() * 1000)

    def B(self, ms=0):
        return self.base + ms

    def conn(self, timeout=10.0):
        c = Conn(self.t.host, self.t.port, timeout)
        self.conns.append(c)
        return c

    def name(self, kind="T", tail=""):
        i = self.counts.get(kind, 0)
        self.counts[kind] = i + 1
        case = hashlib.sha1(self.case.name.encode()).hexdigest()[:6]
        n = "w%s-%s-%d-%s%d%s" % (self.t.run, case, self.n, kind.lower(), i, tail)
        if self.t.asked is not None and kind in COORDINATED:
            n = self.coordinated_here(n, COORDINATED[kind])
        self.labels[n] = "%s%d%s" % (kind, i, tail)
        return n

    def coordinated_here(self, n, kind):
        """Of several brokers: a name that the asked one is the coordinator of"""
        c = self.conn()
        names = (n if i == 0 else "%s-%d" % (n, i) for i in range(1000))
        asked = ({"key": name, "key_type": kind} for name in names)
        end = time.time() + 30
        for one in asked:
            while time.time() < end:
                r = c.call("FindCoordinator", 2, one)
                if r["error_code"] == 0:
                    break
                time.sleep(0.05)
            if r["node_id"] == self.t.asked:
                c.close()
                return one["key"]
        raise Setup("no name for this coordinator")

    def lead_here(self, c, n, parts):
        """Of several brokers: have the asked one lead a topic"""
        moved = [{"partition_index": i, "replicas": [self.t.asked]} for i in range(parts)]
        c.call("AlterPartitionReassignments", 0, {"topics": [{"name": n, "partitions": moved}]})

    def need(self, name, ver):
        if not self.t.has(name, ver):
            raise Skip("%s v%d not offered" % (name, ver))

    def create(self, name, parts=1, configs=None, rf=1, ver=None, assignments=None):
        if not self.t.has("CreateTopics", 1) and not self.t.has("CreateTopics", 2) and ver is None:
            raise Setup("CreateTopics not offered")
        v = ver if ver is not None else (1 if self.t.has("CreateTopics", 1) else 2)
        cfg = [{"name": k, "value": str(x)} for k, x in (configs or {}).items()]
        if self.t.asked is not None and assignments is None and parts > 0 and rf in (1, -1):
            assignments = [{"partition_index": i, "broker_ids": [self.t.asked]} for i in range(parts)]
            parts = rf = -1
        c = self.conn(30)
        r = c.call(
            "CreateTopics",
            v,
            {
                "topics": [
                    {
                        "name": name,
                        "num_partitions": parts,
                        "replication_factor": rf,
                        "configs": cfg,
                        "assignments": assignments or [],
                    }
                ]
            },
        )
        c.close()
        return r["topics"][0]["error_code"]

    def topic(self, parts=1, **configs):
        """Create a topic (dots in config names written as __) and wait until its leaders serve"""
        n = self.name("T")
        cfg = {"retention.ms": "-1"}
        cfg.update({k.replace("__", "."): v for k, v in configs.items()})
        e = self.create(n, parts, cfg)
        if e:
            raise Setup("create topic error %d" % e)
        self.wait_topic(n, parts)
        return n

    def auto_topic(self):
        n = self.name("T")
        self.wait_topic(n, 1)
        return n

    def wait_topic(self, n, parts=1, limit=15):
        c = self.conn()
        end = time.time() + limit
        while time.time() < end:
            r = c.call("Metadata", 1, {"topics": [{"name": n}]})
            ps = r["topics"][0]["partitions"] if r["topics"] else []
            if (
                r["topics"]
                and r["topics"][0]["error_code"] == 0
                and len(ps) == parts
                and all(p["leader_id"] >= 0 and p["error_code"] == 0 for p in ps)
            ):
                if self.t.asked is not None and any(p["leader_id"] != self.t.asked for p in ps):
                    self.lead_here(c, n, parts)
                    continue
                lr = c.call(
                    "ListOffsets",
                    1,
                    {
                        "topics": [
                            {"name": n, "partitions": [{"partition_index": i, "timestamp": -1} for i in range(parts)]}
                        ]
                    },
                )
                if all(p["error_code"] == 0 for p in lr["topics"][0]["partitions"]):
                    c.close()
                    return
            time.sleep(0.05)
        c.close()
        raise Setup("topic never became available")

    def produce(self, ver, topic, records, acks=1, part=0, conn=None, txn=None, timeout=None, **kw):
        c = conn or self.conn()
        r = c.call(
            "Produce",
            ver,
            {
                "acks": acks,
                "transactional_id": txn,
                "topics": [{"name": topic, "partitions": [{"index": part, "records": records}]}],
            },
            timeout=timeout,
            **kw,
        )
        if conn is None:
            c.close()
        return r["responses"][0]["partitions"][0]

    def fetch(
        self,
        ver,
        topic,
        offset=0,
        part=0,
        conn=None,
        max_bytes=1048576,
        wait=0,
        min_bytes=0,
        sent=None,
        timeout=None,
        tail=False,
        **kw,
    ):
        """one-partition fetch; a trailing partial entry is dropped unless tail=True (clients must ignore it)"""
        c = conn or self.conn()
        d = {
            "max_wait_ms": wait,
            "min_bytes": min_bytes,
            "topics": [
                {
                    "topic": topic,
                    "partitions": [{"partition": part, "fetch_offset": offset, "partition_max_bytes": max_bytes}],
                }
            ],
        }
        d.update(kw)
        r = c.call("Fetch", ver, d, timeout=timeout)
        if conn is None:
            c.close()
        if not r["responses"]:
            return {"empty_response": r.get("error_code", 0)}
        p = r["responses"][0]["partitions"][0]
        p["records"] = wire.parse_records(p["records"], sent=sent)
        if not tail and p["records"] and p["records"][-1] == {"partial": True}:
            p["records"].pop()
        return p

    def list_offsets(self, ver, topic, ts, part=0, conn=None, n=1, **kw):
        c = conn or self.conn()
        r = c.call(
            "ListOffsets",
            ver,
            dict(
                {
                    "topics": [
                        {
                            "name": topic,
                            "partitions": [{"partition_index": part, "timestamp": ts, "max_num_offsets": n}],
                        }
                    ]
                },
                **kw,
            ),
        )
        if conn is None:
            c.close()
        return r["topics"][0]["partitions"][0]

    def leo(self, topic, part=0):
        return self.list_offsets(1, topic, -1, part)["offset"]

    def coordinator(self, key, kind=0):
        """Make sure a coordinator answers for this key (internal topics get created on first use)"""
        with self.t.lock:
            if kind in self.t.coord_ready:
                return
            end = time.time() + 30
            while time.time() < end:
                if self.coordinator_answers(key, kind):
                    self.t.coord_ready.add(kind)
                    return
                time.sleep(0.2)
        raise Setup("no coordinator")

    def coordinator_answers(self, key, kind):
        c = self.conn()
        try:
            if c.call("FindCoordinator", self.t.best("FindCoordinator", 2), {"key": key, "key_type": kind})[
                "error_code"
            ]:
                return False
            if kind == 1:
                warm = key + "-warm" if self.t.asked is None else self.coordinated_here(key + "-warm", 1)
                asked = {"transactional_id": warm, "transaction_timeout_ms": 5000}
                q = c.call("InitProducerId", self.t.best("InitProducerId", 1), asked)
            else:
                c.call("OffsetFetch", 1, {"group_id": key, "topics": []})
                q = c.call("Heartbeat", 0, {"group_id": key, "generation_id": 1, "member_id": "x"})
            return q.get("error_code", 0) not in (14, 15, 16)
        finally:
            c.close()

    # ---- recording
    def rec(self, key, val):
        assert key not in self.out, key
        self.out[key] = self.norm(val)

    def attempt(self, key, fn, *a, **kw):
        """Record what a call gave, or how the connection ended"""
        try:
            v = fn(*a, **kw)
        except Closed:
            v = {"connection": "closed"}
        except NoReply:
            v = {"connection": "no reply"}
        except Short:
            v = {"connection": "undecodable reply"}
        self.rec(key, v)
        return v

    def elapsed(self, t0, expect_ms):
        """Symbolic duration relative to an expected wait"""
        ms = (time.time() - t0) * 1000
        if ms < expect_ms * 0.6:
            return "early"
        if ms <= expect_ms * 1.3 + 1200:
            return "after wait"
        return "late"

    def ts(self, v):
        if not isinstance(v, int) or isinstance(v, bool):
            return v
        if abs(v - self.now()) < 60_000:
            return "NOW"
        if abs(v - self.base) < 4_000_000_000:
            return "B%+d" % (v - self.base)
        return v

    def label(self, table, v, prefix):
        if v not in table:
            table[v] = "%s%d" % (prefix, len(table))
        return table[v]

    def norm(self, v, key=None):
        if isinstance(v, dict):
            return {k: self.norm(x, k) for k, x in v.items() if k not in DROP}
        if isinstance(v, (list, tuple)):
            if key in NODES:
                return [self.node(x) for x in v]
            return self.ordered([self.norm(x, key) for x in v])
        if isinstance(v, (bytes, bytearray)):
            return wire._short(bytes(v))
        if key in TEXT:
            return "<text>" if v else v
        if key in VOLATILE_STR:
            return None if v is None else "<str>"
        if isinstance(v, str):
            if key in ("host", "client_host"):
                return "<host>" if v else v
            if key == "member_id" or key == "leader":
                return self.label(self.members, v, "M") if v else v
            if key == "topic_id":
                return "zero" if not v.strip("0") else self.label(self.uuids, v, "UUID")
            return self.labels.get(v, v)
        if isinstance(v, int) and not isinstance(v, bool):
            if key in NODE:
                return self.node(v)
            if key == "port":
                return "<port>" if v > 0 else v
            if key == "producer_id":
                return self.label(self.pids, v, "P") if v >= 0 else v
            if key == "session_id":
                return "<sid>" if v else 0
            if key is not None and (
                key in ("ts", "base_ts", "max_ts", "log_append_time_ms", "transaction_start_time_ms")
                or key.endswith("timestamp")
            ):
                return self.ts(v)
        return v

    @staticmethod
    def ordered(v):
        """Replies come from hash maps: topics and partitions are put in a fixed order (cases about order look before this)"""
        for k in ("partition_index", "index", "partition", "name", "topic"):
            if len(v) > 1 and all(isinstance(x, dict) and x.get(k) is not None for x in v):
                return sorted(v, key=lambda x: x[k])
        return v

    def node(self, v):
        return "B%d" % self.t.nodes.index(v) if v in self.t.nodes else v

    def close(self):
        for c in self.conns:
            c.close()


def run_case(target, case):
    ctx = Ctx(target, case)
    res = {"desc": case.desc, "group": case.group, "set": case.set}
    t0 = time.time()
    try:
        for n in filter(None, case.needs.split(",")):
            a, v = n.split(":")
            ctx.need(a, int(v))
        case.fn(ctx, **case.kw)
        res["status"] = "ok"
    except Skip as e:
        res["status"], res["why"] = "n/a", str(e)
    except Setup as e:
        res["status"], res["why"] = "setup", str(e)
    except Closed:
        ctx.out["_end"] = "connection closed"
        res["status"] = "ok"
    except NoReply:
        ctx.out["_end"] = "no reply"
        res["status"] = "ok"
    except (Short, IndexError, KeyError, TypeError, struct.error) as e:
        ctx.out["_end"] = "unexpected reply shape (%s)" % type(e).__name__
        res["status"] = "ok"
        res["why"] = repr(e)[:200]
    except OSError as e:
        ctx.out["_end"] = "connection error"
        res["status"], res["why"] = "ok", repr(e)[:200]
    except Exception as e:  # e.g. the assert of a helper that could not produce
        ctx.out["_end"] = "could not go on (%s)" % type(e).__name__
        res["status"], res["why"] = "ok", repr(e)[:200]
    finally:
        ctx.close()
    res["out"] = ctx.out
    res["ms"] = int((time.time() - t0) * 1000)
    return res
