"""The table at the top of docs/performance.md: rows of the tables that benchmarks write into docs/measurements.md, with their ratios."""

import re
from pathlib import Path

MEASUREMENTS = Path(__file__).resolve().parents[1] / "docs" / "measurements.md"
LOADS = {
    "1000 x 100 B batches, 2 connections x 4 in flight": "uniform batches, 2 connections",
    "1000 records of 20 to 600 B, times and keys that vary, 2 connections x 4 in flight": "varied batches, 2 connections",
    "lz4, 100 x 1024 B batches, 2 connections x 4 in flight": "lz4 batches, 2 connections",
    "one-record requests, 1 connection": "one-record requests, 1 connection",
    "one-record requests, 16 connections": "one-record requests, 16 connections",
    "one-record requests, 64 connections": "one-record requests, 64 connections",
    "acks=all on the disk, one-record requests, 1 connection": "`acks=all`, 1 connection",
    "acks=all on the disk, one-record requests, 16 connections": "`acks=all`, 16 connections",
    "acks=all on the disk, one-record requests, 256 connections": "`acks=all`, 256 connections",
    "consume 100 B records, 1 MB batches": "consume, 1 MB batches",
    "look-up by time, 16 KB batches, 1 connection": "look-up by time, 16 KB batches",
    "look-up by time, 1 MB batches, 1 connection": "look-up by time, 1 MB batches",
}
"""Which rows users see, and their names there."""
FOOTPRINT = ("start to ready", "start with 3,500 empty partitions", "resident when idle", "CPU of one core when idle")
_RATE = re.compile(r"([0-9.]+(?: [kM])?)/s")
_CPU = re.compile(r"CPU ([0-9.]+)")
_SCALES = {"": 1.0, "k": 1e3, "M": 1e6}


def table(page: Path = MEASUREMENTS) -> str:
    rows: dict[str, list[str]] = {}
    for title, *figures in filter(None, map(cells_of, page.read_text("utf-8").splitlines())):
        rows.setdefault(title, figures)  # some titles come again in later tables
    lines = ["| | horolog | Kafka 4.3.1 | rate | CPU |", "|---|---|---|---|---|"]
    lines += [load(name, rows[title]) for title, name in LOADS.items()]
    lines += [f"| {title} | {rows[title][0]} | {rows[title][1]} | | |" for title in FOOTPRINT]
    return "\n".join(lines) + "\n"


def load(name: str, row: list[str]) -> str:
    """A row of the summary, from one with cells of the form `6.81 M/s; 0.91/4.3/37 ms; CPU 0.125`."""
    ours, kafkas = row[:2]
    rates, costs = (f"{found(ours) / found(kafkas):.2f}" for found in (rate, cost))
    return f"| {name} | {_first(_RATE, ours)}/s | {_first(_RATE, kafkas)}/s | {rates} | {costs} |"


def rate(cell: str) -> float:
    """Requests or records a second."""
    number, _, scale = _first(_RATE, cell).partition(" ")
    return float(number) * _SCALES[scale]


def cost(cell: str) -> float:
    """Seconds of the broker's processor time for a million of them."""
    return float(_first(_CPU, cell))


def _first(pattern: re.Pattern[str], cell: str) -> str:
    found = pattern.search(cell)
    if found is None:
        raise ValueError(f"docs/measurements.md has a cell without a figure: {cell!r}")
    return found[1]


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
