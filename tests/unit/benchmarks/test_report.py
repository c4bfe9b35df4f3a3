"""Medians, ratios and verdicts, and where they are written."""

import re

import pytest

from benchmarks import report
from benchmarks.scenarios import LIMITS, SCENARIOS, Target
from tests.support.style import PROJECT


def results(ours, theirs):
    return {
        "small-1": {
            "horolog": [{"rate": rate, "mode": "smallreq"} for rate in ours],
            "4.3.1": [{"rate": rate} for rate in theirs],
        }
    }


def test_a_ratio_is_of_medians():
    reduced = report.reduce(results([10, 30, 1000], [10, 20, 1]))
    assert report.ratio(Target("rate", "4.3.1", 1.5), "small-1", reduced) == 3.0


def test_a_ratio_may_be_against_a_scenario_of_its_own():
    reduced = {"growth-1": {"horolog": {"rate": 100.0}}, "growth-2": {"horolog": {"rate": 90.0}}}
    assert report.ratio(Target("rate", "growth-1", 0.8), "growth-2", reduced) == pytest.approx(0.9)


def test_what_was_not_measured_is_said_to_be_so():
    target = Target("rate", "4.3.1", 1.5)
    assert report.verdict(target, report.ratio(target, "small-1", {})) == report.UNKNOWN


@pytest.mark.parametrize(
    ("at_least", "measured", "said"),
    [(True, 1.5, report.MET), (True, 1.49, report.SHORT_OF), (False, 1.5, report.MET), (False, 1.51, report.SHORT_OF)],
)
def test_the_bound_itself_is_met(at_least, measured, said):
    assert report.verdict(Target("rate", "4.3.1", 1.5, at_least), measured) == said


def test_the_table_holds_the_verdict_and_falls_short_in_words():
    lines = "\n".join(report.load_table(results([10], [10]), ["horolog", "4.3.1"]))
    assert "1.00" in lines
    assert report.SHORT_OF in lines


def test_a_footprint_over_its_limit_is_short():
    over = {limit.metric: limit.most * 2 for limit in LIMITS}
    under = {limit.metric: limit.most for limit in LIMITS}
    assert all(report.SHORT_OF in line for line in report.footprint_table({"horolog": [over]}, ["horolog"])[2:])
    assert all(report.MET in line for line in report.footprint_table({"horolog": [under]}, ["horolog"])[2:])


def test_a_figure_that_no_broker_has_is_no_row():
    assert len(report.footprint_table({"horolog": [{"ready_s": 0.3}]}, ["horolog"])) == 3


def test_a_cell_ends_with_the_resident_memory():
    assert report.cell({"rate": 1.0, "resident_mib": 63.6}) == "1/s; 64 MiB"


def test_client_bound_figures_are_marked():
    assert "client-bound" in report.cell({"rate": 1.0, "client_share": 0.97})
    assert "client-bound" not in report.cell({"rate": 1.0, "client_share": 0.5})


@pytest.mark.parametrize(("value", "text"), [(3.456, "3.46"), (1234, "1.23 k"), (2_500_000, "2.5 M")])
def test_numbers_are_short(value, text):
    assert report.number(value) == text


def test_every_row_of_a_table_is_as_wide_as_the_head():
    lines = report.table(["a", "long head"], [["a long cell", "b"], ["c", "d"]])
    assert len({len(line) for line in lines}) == 1


def test_only_what_stands_between_the_marks_is_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- loads:begin -->\nold\n<!-- loads:end -->\nafter\n")
    report.replace(page, "loads", ["new"])
    report.replace(page, "loads", ["newer", "lines"])
    assert page.read_text() == "before\n<!-- loads:begin -->\nnewer\nlines\n<!-- loads:end -->\nafter\n"
    with pytest.raises(ValueError, match="no place"):
        report.replace(page, "footprint", ["x"])


def test_prose_is_wrapped_and_rows_of_tables_are_not(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- loads:begin -->\n<!-- loads:end -->\n")
    row = f"| {'wide ' * 30}|"
    report.replace(page, "loads", ["word " * 30, "", row])
    first, second = " ".join(["word"] * 20), " ".join(["word"] * 10)
    assert page.read_text().split("\n")[1:-2] == [first, second, "", row]


WRITTEN = re.compile(r'report\.replace\(\s*report\.PAGE, "([a-z-]+)"')
NAMED_BY_VARIABLES = {"loads", "footprint", "second-loads"}


def test_the_page_of_measurements_has_a_place_for_every_table():
    """Of every benchmark, by what its program says."""
    text = report.PAGE.read_text()
    programs = [path.read_text() for path in (PROJECT / "benchmarks").glob("*.py")]
    names = {name for program in programs for name in WRITTEN.findall(program)}
    assert {"groups", "hostile", "index-designs", "pipeline", "steps", "trust"} <= names
    for name in names | NAMED_BY_VARIABLES:
        assert text.count(f"<!-- {name}:begin -->") == text.count(f"<!-- {name}:end -->") == 1, name


def test_scenarios_have_names_of_their_own():
    assert len({one.name for one in SCENARIOS}) == len(SCENARIOS)


def test_another_checkout_is_a_column_and_a_ratio():
    results = {
        "small-1": {
            "horolog": [{"rate": 30.0, "cpu_s_per_million": 5.0}],
            "before": [{"rate": 20.0, "cpu_s_per_million": 10.0}],
        }
    }
    table = report.load_table(results, ["horolog", "before"])
    assert table[0].endswith("| rate, CPU of before |")
    assert table[2].endswith("| 1.50, 0.50          |")
