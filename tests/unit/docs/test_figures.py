"""The README and the comparison have the figures of the tables that benchmarks write, to as many digits as they give."""

import re
from decimal import Decimal
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]
README = (PROJECT / "README.md").read_text("utf-8")
COMPARISON = (PROJECT / "docs" / "comparison.md").read_text("utf-8")
MEASURED = (PROJECT / "docs" / "measurements.md").read_text("utf-8")
ROWS = {
    "start to ready": "start to ready",
    "memory when idle": "resident when idle",
    "batches of 1000 x 100 B": "1000 x 100 B batches, 2 connections x 4 in flight",
    "batches of 1000 records that vary": "1000 records of 20 to 600 B, times and keys that vary, 2 connections x 4 in flight",
    "one-record requests, 64 connections": "one-record requests, 64 connections",
    "consume, 1 MB batches": "consume 100 B records, 1 MB batches",
    "`acks=all` with syncs, 16 connections": "acks=all on the disk, one-record requests, 16 connections",
}


def cells(page, name):
    """Of the first row of that name: those of horolog and of Kafka 4.3.1, as number and unit."""
    (row, *_) = re.findall(rf"^\| {re.escape(name)} +\| ([^|]+)\| ([^|]+)\|", page, flags=re.MULTILINE)
    found = [re.match(r"([0-9.]+) ([A-Za-z]+)", cell) for cell in row]
    return [(Decimal(one[1]), one[2]) for one in found]


@pytest.mark.parametrize("name", ROWS)
def test_the_comparison_agrees_with_what_was_measured(name):
    for (given, given_unit), (measured, unit) in zip(cells(COMPARISON, name), cells(MEASURED, ROWS[name]), strict=True):
        assert (given, given_unit) == (measured.quantize(given), unit)


def test_the_first_sentences_agree_with_the_table():
    seconds, size = re.search(r"ready in ([0-9.]+) s, ([0-9]+) MiB at rest", README).groups()
    assert (Decimal(seconds), Decimal(size)) == (
        cells(COMPARISON, "start to ready")[0][0],
        cells(COMPARISON, "memory when idle")[0][0],
    )
