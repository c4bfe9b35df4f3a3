#!/usr/bin/env python3
"""probe.py HOST:PORT --out result.json [--only NAME...] [--set open|held|all] [--jobs N] [--list] [--no-slow]
Differential conformance probe: runs raw-frame cases against a Kafka-protocol broker and writes normalised outcomes.
"""

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.wire.prober import cases, core


def dump(o, path):
    """One case per line: small files, readable line diffs"""
    with open(path, "w") as f:
        f.write('{"meta": %s,\n"cases": {\n' % json.dumps(o["meta"]))
        f.write(",\n".join("%s: %s" % (json.dumps(k), json.dumps(v)) for k, v in o["cases"].items()))
        f.write("\n}}\n")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("target", nargs="?")
    ap.add_argument("--out", default="result.json")
    ap.add_argument("--only", nargs="*", default=[], help="case names or prefixes")
    ap.add_argument("--set", choices=["open", "held", "all"], default="all")
    ap.add_argument("--jobs", type=int, default=3)
    ap.add_argument("--list", action="store_true")
    ap.add_argument("--no-slow", action="store_true")
    ap.add_argument("--only-slow", action="store_true")
    ap.add_argument("--budget", type=float, default=1200, help="seconds after which no further case is started")
    ap.add_argument("--label", default="", help="broker name to note in the result")
    ap.add_argument("-v", action="store_true")
    a = ap.parse_args()
    chosen = [
        c
        for c in cases.CASES
        if (a.set == "all" or c.set == a.set)
        and (not a.only or any(c.name == o or c.name.startswith(o) for o in a.only))
        and not (a.no_slow and c.slow)
        and not (a.only_slow and not c.slow)
    ]
    if a.list:
        for c in chosen:
            print(c.set, c.name, "-", c.desc)
        return
    host, port = a.target.rsplit(":", 1)
    try:
        t = core.Target(host, int(port))
    except OSError as e:
        sys.exit("cannot connect to %s: %s" % (a.target, e))
    t0 = time.time()
    try:  # internal topics exist before the first case
        w = core.Ctx(t, core.Case("warm", "", None, {}, "", False))
        w.coordinator("warm-group")
        if t.has("InitProducerId", 0):
            w.coordinator("warm-txn", 1)
        w.close()
    except (core.Setup, core.Skip, core.Closed, core.NoReply, core.Short) as e:
        print("warning: warming up:", e)

    def one(c):
        if time.time() - t0 > a.budget:
            return c.name, {
                "desc": c.desc,
                "group": c.group,
                "set": c.set,
                "status": "not run",
                "why": "time budget",
                "out": {},
                "ms": 0,
            }
        r = core.run_case(t, c)
        if a.v:
            print("%-50s %-6s %5d ms %s" % (c.name, r["status"], r["ms"], r.get("why", "")), flush=True)
        return c.name, r

    alone = [c for c in chosen if c.kw.get("alone")]
    # damaged frames first and one at a time: old brokers can lose a neighbour's request in the same network poll
    first = [c for c in chosen if c.group == "A" and c not in alone]
    rest = [c for c in chosen if c.group != "A" and c not in alone]
    res = dict(one(c) for c in first)
    with ThreadPoolExecutor(a.jobs) as ex:
        res.update(ex.map(one, rest))
    for c in alone:
        res.update([one(c)])
    order = {c.name: i for i, c in enumerate(chosen)}
    res = dict(sorted(res.items(), key=lambda x: order[x[0]]))
    ms = {k: v.pop("ms") for k, v in res.items()}
    alive = True
    try:
        core.Target(host, int(port))
    except OSError:
        alive = False
    counts = {}
    for r in res.values():
        counts[r["status"]] = counts.get(r["status"], 0) + 1
    dump(
        {
            "meta": {
                "broker": a.label,
                "cases": len(res),
                "counts": counts,
                "seconds": round(time.time() - t0, 1),
                "alive_after": alive,
                "slowest": sorted(ms.items(), key=lambda x: -x[1])[:5],
            },
            "cases": res,
        },
        a.out,
    )
    print("cases %d %s in %.0f s, broker alive after: %s" % (len(res), counts, time.time() - t0, alive))


if __name__ == "__main__":
    main()
