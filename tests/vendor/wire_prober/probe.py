#!/usr/bin/env python3
"""Runs raw-frame cases against a Kafka-protocol broker and writes normalised outcomes, to be compared with those of real brokers.

probe.py HOST:PORT --out result.json [--only NAME...] [--set open|held|all] [--jobs N] [--list] [--no-slow] [--only-slow]
"""

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.vendor.wire_prober import cases, core


def dump(o, path):
    """One case per line: small files, readable line diffs"""
    with open(path, "w") as f:
        f.write('{"meta": %s,\n"cases": {\n' % json.dumps(o["meta"]))
        f.write(",\n".join("%s: %s" % (json.dumps(k), json.dumps(v)) for k, v in o["cases"].items()))
        f.write("\n}}\n")


def arguments():
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
    return ap.parse_args()


def wanted(a, case):
    named = not a.only or any(case.name.startswith(one) for one in a.only)
    slow = not case.slow if a.no_slow else case.slow or not a.only_slow
    return named and slow and a.set in ("all", case.set)


def warm_up(target):
    """Internal topics exist before the first case."""
    context = core.Ctx(target, core.Case("warm", "", None, {}, "", False))
    try:
        context.coordinator("warm-group")
        if target.has("InitProducerId", 0):
            context.coordinator("warm-txn", 1)
    except (core.Setup, core.Skip, core.Closed, core.NoReply, core.Short) as e:
        print("warning: warming up:", e)
    finally:
        context.close()


def run(target, chosen, jobs, budget, verbose):
    """Outcomes by name, in the order of the cases."""
    began = time.time()

    def one(case):
        if time.time() - began > budget:
            told = {"desc": case.desc, "group": case.group, "set": case.set}
            return case.name, told | {"status": "not run", "why": "time budget", "out": {}, "ms": 0}
        result = core.run_case(target, case)
        if verbose:
            print(
                "%-50s %-6s %5d ms %s" % (case.name, result["status"], result["ms"], result.get("why", "")), flush=True
            )
        return case.name, result

    alone = [case for case in chosen if case.kw.get("alone")]
    # damaged frames first and one at a time: old brokers can lose a neighbour's request in the same network poll
    first = [case for case in chosen if case.group == "A" and case not in alone]
    rest = [case for case in chosen if case.group != "A" and case not in alone]
    results = dict(one(case) for case in first)
    with ThreadPoolExecutor(jobs) as executor:
        results.update(executor.map(one, rest))
    results.update(one(case) for case in alone)
    order = {case.name: place for place, case in enumerate(chosen)}
    return dict(sorted(results.items(), key=lambda item: order[item[0]]))


def is_alive(host, port):
    try:
        core.Target(host, port)
        return True
    except OSError:
        return False


def main():
    a = arguments()
    chosen = [case for case in cases.CASES if wanted(a, case)]
    if a.list:
        for case in chosen:
            print(case.set, case.name, "-", case.desc)
        return
    host, port = a.target.rsplit(":", 1)
    try:
        target = core.Target(host, int(port))
    except OSError as e:
        sys.exit("cannot connect to %s: %s" % (a.target, e))
    began = time.time()
    warm_up(target)
    results = run(target, chosen, a.jobs, a.budget, a.v)
    took = {name: result.pop("ms") for name, result in results.items()}
    alive = is_alive(host, int(port))
    counts = {}
    for result in results.values():
        counts[result["status"]] = counts.get(result["status"], 0) + 1
    meta = {"broker": a.label, "cases": len(results), "counts": counts, "seconds": round(time.time() - began, 1)}
    meta |= {"alive_after": alive, "slowest": sorted(took.items(), key=lambda item: -item[1])[:5]}
    dump({"meta": meta, "cases": results}, a.out)
    print("cases %d %s in %.0f s, broker alive after: %s" % (len(results), counts, time.time() - began, alive))


if __name__ == "__main__":
    main()
