#!/usr/bin/env python3
"""Compares a probe's result with one recorded broker: diff.py oracle.json result.json [-q] [--max N] [--group X].

A case counts when the oracle has an outcome for it (status ok). Score per group: N same of M. Error -1 in the oracle (unknown
server error) matches any error in the result; cases where the real broker misbehaves (never answers, takes damaged data, upsets
itself) are listed in QUIRKS and not scored unless --quirks is given.
"""

import argparse
import json

QUIRKS = {
    "0.10": {
        "b.bad.magic5",
        "b.bad.magic_neg1",
        "b.bad.random_bytes",
        "b.bad.key_len_overrun",
        "b.z.inner_bad_crc_m0",
        "b.ct.ts_min",
        "b.ct.ts_minus2",
        "e.ct.bad_v1",
        "f.join.errors",
        "a.sasl.handshake_v0",
    },
    "3.9": {"b.bad.null_records", "b.bad.null_records_v3", "e.iac.bad_operation"},
    "4.": {"b.bad.null_records_v3", "e.iac.bad_operation"},
}


def leaves(v, path=""):
    if isinstance(v, dict) and v:
        for k, x in v.items():
            yield from leaves(x, path + "/" + str(k))
    elif isinstance(v, list) and v:
        for i, x in enumerate(v):
            yield from leaves(x, path + "/%d" % i)
    else:
        yield path, json.dumps(v)


def compare(o, r):
    a, b = dict(leaves(o)), dict(leaves(r))
    same = lambda k: (
        a.get(k) == b.get(k)
        or (
            a.get(k) == "-1"
            and k.rsplit("/", 1)[-1].startswith("error")
            and b.get(k, "0").lstrip("-").isdigit()
            and b.get(k) != "0"
        )
    )
    return [
        (k, a.get(k, "(absent)"), b.get(k, "(absent)")) for k in list(a) + [k for k in b if k not in a] if not same(k)
    ]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("oracle")
    ap.add_argument("result")
    ap.add_argument("-q", action="store_true", help="scores only")
    ap.add_argument("--max", type=int, default=6, help="differing values shown per case")
    ap.add_argument("--group", default="")
    ap.add_argument("--set", choices=["open", "held", "all"], default="all")
    ap.add_argument("--quirks", action="store_true", help="score the oracle's own misbehaviour too")
    ap.add_argument("--json", default="")
    a = ap.parse_args()
    o = json.load(open(a.oracle))
    O, R = o["cases"], json.load(open(a.result))["cases"]
    version = (o["meta"].get("broker") or "").rsplit(" ", 1)[-1]
    quirks = set() if a.quirks else set().union(*[v for k, v in QUIRKS.items() if version.startswith(k)])
    score, skipped, missing, quirky, diffs = {}, 0, 0, 0, {}
    for n, o in O.items():
        if (a.group and o["group"] != a.group) or a.set not in ("all", o["set"]):
            continue
        if n in quirks:
            quirky += 1
            continue
        if o["status"] != "ok":
            skipped += 1
            continue
        if n not in R:
            missing += 1
            continue
        r = R[n]
        s = score.setdefault(o["group"], [0, 0, 0, 0])
        s[1] += 1
        no = len(dict(leaves(o["out"])))
        if r["status"] != "ok":
            s[3] += no
            diffs[n] = [("status", "ok", r["status"] + ": " + r.get("why", ""))]
        else:
            d = compare(o["out"], r["out"])
            s[3] += max(no, len(dict(leaves(r["out"]))))
            s[2] += max(0, max(no, len(dict(leaves(r["out"])))) - len(d))
            if d:
                diffs[n] = d
            else:
                s[0] += 1
    if not a.q:
        for n, d in diffs.items():
            print("%s [%s] %s" % (n, O[n]["set"], O[n]["desc"]))
            for k, x, y in d[: a.max]:
                print("    %s: oracle %s, got %s" % (k, x, y))
            if len(d) > a.max:
                print("    ... and %d more values" % (len(d) - a.max))
    tot = [0, 0, 0, 0]
    for g in sorted(score):
        print("group %s: %d same of %d cases (values %d of %d)" % (g, *score[g]))
        tot = [x + y for x, y in zip(tot, score[g])]
    print(
        "total: %d same of %d cases (values %d of %d); not applicable in oracle %d, not run in result %d, oracle quirks left out %d"
        % (*tot, skipped, missing, quirky)
    )
    if a.json:
        json.dump(
            {"score": score, "total": tot, "diffs": {k: v for k, v in diffs.items()}}, open(a.json, "w"), indent=1
        )


if __name__ == "__main__":
    main()
