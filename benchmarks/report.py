"""Medians, ratios and verdicts out of raw results, as tables for the terminal and for the page of measurements.

The page holds, for each table, a pair of lines `<!-- NAME:begin -->` and `<!-- NAME:end -->`; what stands between them is replaced.
"""

import json
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from benchmarks.brokers import BEFORE, HOROLOG
from benchmarks.scenarios import LIMITS, SCENARIOS, Scenario, Target
from horolog.protocol.records.walk import IS_COMPILED
from tools import interpreter

PAGE = Path(__file__).resolve().parent.parent / "docs" / "measurements.md"
PAGE_WIDTH = 100
MET, SHORT_OF, UNKNOWN = "met", "short", "not measured"
CLIENT_BOUND_SHARE = 0.9

Metrics = dict[str, float]
Results = Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]


def medians(runs: Sequence[Mapping[str, Any]]) -> Metrics:
    """Each metric's median over the rounds; values that are no numbers are left out."""
    names = {name for run in runs for name, value in run.items() if isinstance(value, int | float)}
    return {name: statistics.median(run[name] for run in runs if name in run) for name in names}


def reduce(results: Results) -> dict[str, dict[str, Metrics]]:
    return {name: {broker: medians(runs) for broker, runs in by.items() if runs} for name, by in results.items()}


def ratio(target: Target, scenario: str, reduced: Mapping[str, Mapping[str, Metrics]]) -> float | None:
    """Of horolog against a release in the same scenario, or against itself in another one."""
    ours = reduced.get(scenario, {}).get(HOROLOG, {}).get(target.metric)
    if target.against in reduced:
        base = reduced[target.against].get(HOROLOG, {}).get(target.metric)
    else:
        base = reduced.get(scenario, {}).get(target.against, {}).get(target.metric)
    return ours / base if ours is not None and base else None


def verdict(target: Target, measured: float | None) -> str:
    if measured is None:
        return UNKNOWN
    return MET if (measured >= target.ratio if target.at_least else measured <= target.ratio) else SHORT_OF


def number(value: float) -> str:
    """Three significant figures with k and M."""
    for size, letter in ((1e6, " M"), (1e3, " k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def cell(metrics: Metrics | None) -> str:
    """`rate/s; p50/p99/p99.9 ms; CPU s per million; resident memory`, as far as measured."""
    if not metrics:
        return "-"
    parts = [f"{number(metrics['rate'])}/s"]
    if "p50_ms" in metrics:
        parts.append("/".join(f"{metrics[name]:.2g}" for name in ("p50_ms", "p99_ms", "p999_ms")) + " ms")
    if "cpu_s_per_million" in metrics:
        parts.append(f"CPU {metrics['cpu_s_per_million']:.3g}")
    if "resident_mib" in metrics:
        parts.append(f"{metrics['resident_mib']:.0f} MiB")
    if metrics.get("client_share", 0) > CLIENT_BOUND_SHARE:
        parts.append("(client-bound)")
    return "; ".join(parts)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table that reads well as text and as Markdown."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
        for row in [head, *rows]
    ]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def load_table(results: Results, brokers: Sequence[str]) -> list[str]:
    reduced = reduce(results)
    rows = []
    for scenario in SCENARIOS:
        if scenario.name not in reduced:
            continue
        by = reduced[scenario.name]
        goals = [_goal(scenario, target, reduced) for target in scenario.targets] or [("-", "-", "-")]
        joined = ["<br>".join(goal[column] for goal in goals) for column in range(3)]
        row = [scenario.title, *(cell(by.get(broker)) for broker in brokers), *joined]
        rows.append([*row, beside_before(by)] if BEFORE in brokers else row)
    head = ["scenario", *brokers, "target", "measured", "verdict"]
    return table([*head, "rate, CPU of before"] if BEFORE in brokers else head, rows)


def beside_before(by: Mapping[str, Metrics]) -> str:
    """How this checkout stands to the other one."""
    ours, before = by.get(HOROLOG, {}), by.get(BEFORE, {})
    ratios = [
        ours[name] / before[name] for name in ("rate", "cpu_s_per_million") if ours.get(name) and before.get(name)
    ]
    return ", ".join(f"{one:.2f}" for one in ratios) or "-"


def _goal(scenario: Scenario, target: Target, reduced: Mapping[str, Mapping[str, Metrics]]) -> tuple[str, str, str]:
    measured = ratio(target, scenario.name, reduced)
    return target.says(), "-" if measured is None else f"{measured:.2f}", verdict(target, measured)


def footprint_table(footprint: Mapping[str, Sequence[Mapping[str, Any]]], brokers: Sequence[str]) -> list[str]:
    """A row for each limit that was measured."""
    by = {broker: medians(runs) for broker, runs in footprint.items()}
    rows = []
    for limit in LIMITS:
        if not any(limit.metric in found for found in by.values()):
            continue
        ours = by.get(HOROLOG, {}).get(limit.metric)
        figures = [_figure(by.get(broker, {}).get(limit.metric), limit.unit) for broker in brokers]
        says = UNKNOWN if ours is None else (MET if ours <= limit.most else SHORT_OF)
        rows.append([limit.title, *figures, f"<= {limit.most:g} {limit.unit}", says])
    return table(["", *brokers, "target", "verdict"], rows)


def _figure(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:.3g} {unit}"


def machine() -> str:
    """What the figures were taken on, in words that hold anywhere."""
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, {build()}"


def build() -> str:
    """What runs the product: half of its speed depends on it."""
    return f"{interpreter.said()}, hot path {'compiled' if IS_COMPILED else 'in plain Python'}"


def replace(page: Path, name: str, lines: Sequence[str]) -> None:
    """Put the lines between the page's two marks of this name."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    text = page.read_text()
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"{page} has no place for the table {name}")
    head, rest = text.split(begin)
    fitting = [part for line in lines for part in _fitting(line)]
    page.write_text("\n".join([head + begin, *fitting, end + rest.split(end)[1]]))


def _fitting(line: str) -> list[str]:
    """Prose in lines of the page's width; rows of tables and empty lines stay as they are."""
    return [line] if not line or line.startswith("|") else wrap(line, PAGE_WIDTH)


def save(path: Path, content: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1))


def load(path: Path) -> dict[str, Any]:
    """What an earlier run has saved; empty without one."""
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found
