#!/usr/bin/env python3
"""Scores a probe's result over all oracles beside this file: score.py result.json [--set open|held|all] [-q].

A case holds if its outcome equals that of at least one real broker that has an outcome for it (its quirks apart). Prints the
failing cases with the nearest oracle, then the score.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2]))

from tests.vendor.wire_prober.diff import QUIRKS, compare  # noqa: E402 - the project's root must be known first


class Verdict(NamedTuple):
    """How a case compares with the real broker that is nearest to it; no differences: it holds."""

    nearest: str
    differences: list[tuple[str, str, str]]  # path, what the real broker gave, what we gave
    group: str
    set: str
    description: str


def oracles():
    """(version, cases) of every recorded broker."""
    loaded = [json.loads(path.read_text()) for path in sorted(HERE.glob("oracle-*.json"))]
    return [((one["meta"].get("broker") or "").rsplit(" ", 1)[-1], one["cases"]) for one in loaded]


def differences(expected, result):
    if result is None:
        return [("status", "ok", "not run")]
    if result["status"] != "ok":
        return [("status", "ok", result["status"])]
    return compare(expected["out"], result["out"])


def counts(version, name, case):
    quirk = any(version.startswith(prefix) and name in names for prefix, names in QUIRKS.items())
    return case is not None and case["status"] == "ok" and not quirk


def judge(results):
    """Name -> Verdict for every case that some real broker has an outcome for."""
    known = oracles()
    verdicts = {}
    for name in sorted({name for _, cases in known for name in cases}):
        for version, cases in known:
            case = cases.get(name)
            if not counts(version, name, case):
                continue
            found = differences(case, results.get(name))
            if name not in verdicts or len(found) < len(verdicts[name].differences):
                verdicts[name] = Verdict(version, found, case["group"], case["set"], case["desc"])
    return verdicts


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("result")
    ap.add_argument("--set", choices=["open", "held", "all"], default="all")
    ap.add_argument("--group", default="")
    ap.add_argument("-q", action="store_true")
    a = ap.parse_args()
    score = {}
    for name, verdict in judge(json.loads(Path(a.result).read_text())["cases"]).items():
        if a.set not in ("all", verdict.set) or a.group not in ("", verdict.group):
            continue
        group = score.setdefault(verdict.group, [0, 0])
        group[1] += 1
        group[0] += not verdict.differences
        if verdict.differences and not a.q:
            print(f"{name} [nearest {verdict.nearest}] {verdict.description}")
            for path, real, got in verdict.differences[:4]:
                print(f"    {path}: real {real}, got {got}")
    for group in sorted(score):
        print("group %s: %d of %d" % (group, *score[group]))
    print("total: %d of %d" % (sum(s[0] for s in score.values()), sum(s[1] for s in score.values())))


if __name__ == "__main__":
    main()
