"""The summary for users is made of the rows that benchmarks write."""

import re

import pytest

from tools import performance_summary as summary

ROW = ["6.81 M/s; 0.91/4.3/37 ms; CPU 0.125", "3.96 M/s; 1.8/5.3/22 ms; CPU 0.301", "-"]


def test_a_row_has_both_rates_and_their_ratios():
    assert summary.load("batches", ROW) == "| batches | 6.81 M/s | 3.96 M/s | 1.72 | 0.42 |"


def test_rates_have_scales():
    assert [summary.rate(cell) for cell in ("816 k/s; CPU 0.264", "7/s", "1.5 M/s")] == [816_000, 7, 1_500_000]


def test_a_cell_without_a_figure_is_refused_by_name():
    with pytest.raises(ValueError, match=r"docs/measurements\.md has a cell without a figure: '-'"):
        summary.cost("-")


def test_the_first_row_of_a_title_counts(tmp_path):
    page = tmp_path / "page.md"
    loads = [f"| {title} | {ROW[0]} | {ROW[1]} | - |" for title in summary.LOADS]
    sizes = [f"| {title} | 1 s | 2 s | - |" for title in summary.FOOTPRINT]
    again = [f"| {title} | 1.1 (1.2) | 1.05 | met |" for title in summary.LOADS]
    page.write_text("\n".join(["words", *loads, *sizes, *again]), "utf-8")
    lines = summary.table(page).splitlines()
    assert len(lines) == 2 + len(loads) + len(sizes)
    assert lines[2] == "| uniform batches, 2 connections | 6.81 M/s | 3.96 M/s | 1.72 | 0.42 |"
    assert lines[-1] == "| CPU of one core when idle | 1 s | 2 s | | |"


def test_ratios_agree_with_the_column_of_the_table():
    """That column is made of unrounded figures, the summary of those of three digits that the table shows."""
    shown = {cells[0]: cells for cells in map(summary.cells_of, summary.table().splitlines())}
    for title, name in summary.LOADS.items():
        (measured,) = re.findall(
            rf"^\| {re.escape(title)} +\|(?:[^|]+\|){{5}} ([0-9.]+)(?:<br>[0-9.]+)* +\|",
            summary.MEASUREMENTS.read_text("utf-8"),
            flags=re.MULTILINE,
        )
        assert float(shown[name][3]) == pytest.approx(float(measured), abs=0.011, rel=0.005), title
