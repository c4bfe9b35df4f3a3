"""The files that come ready-made for Prometheus, Grafana and systemd ask for what there is."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from horolog.broker.base.metrics import Kind
from horolog.broker.observability.exposition import CATALOGUE
from horolog.broker.workers.watching import FAMILIES

CONFIG = Path(__file__).resolve().parents[3] / "config"
DASHBOARD = json.loads((CONFIG / "grafana" / "horolog.json").read_text())
RULES = (CONFIG / "prometheus-rules.yml").read_text()

OF_PROMETHEUS = {"up", "job", "instance", "worker"}
WORDS = {
    *("sum", "min", "max", "topk", "rate", "increase", "histogram_quantile", "by", "le", "label_values"),
    *("or", "and", "time", "predict_linear"),
    "__rate_interval",
}


def shown_series():
    """The names that a query may use, with the labels of each."""
    found = {}
    for family in (*CATALOGUE, *FAMILIES):
        labels = {*family.labels, "job", "instance", "worker"}
        if family.kind is Kind.HISTOGRAM:
            found |= {
                f"{family.shown}_bucket": labels | {"le"},
                f"{family.shown}_sum": labels,
                f"{family.shown}_count": labels,
            }
        else:
            found[family.shown] = labels
    return found


SERIES = shown_series()


def names_in(query):
    """Metric names, and every label that is selected, grouped by or shown, with those metrics."""
    bare = re.sub(r'"[^"]*"|\$\w+|\$\{\w+\}|\[[^\]]*\]', " ", query)
    grouped = {word for group in re.findall(r"by \(([^)]*)\)", bare) for word in re.findall(r"\w+", group)}
    selected = {
        word for inside in re.findall(r"\{([^}]*)\}", bare) for word in re.findall(r"([a-z_]\w*)\s*[=!]", inside)
    }
    rest = re.sub(r"by \([^)]*\)|\{[^}]*\}", " ", bare)
    return {word for word in re.findall(r"[a-z_]\w*", rest) if word not in WORDS}, grouped | selected


def queries():
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"], set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"], set()
    for expression in re.findall(r"expr: (.*)", RULES):
        yield expression, set()


@pytest.mark.parametrize(("query", "legend"), list(queries()))
def test_queries_ask_for_metrics_and_labels_that_exist(query, legend):
    names, labels = names_in(query)
    metrics = names - OF_PROMETHEUS
    assert metrics or "up" in names
    for metric in metrics:
        assert metric in SERIES, f"{metric} is not there"
        assert labels | legend <= SERIES[metric], f"{metric} has {SERIES[metric]}"


def test_names_are_found_in_queries():
    query = 'histogram_quantile(0.99, sum by (le, api) (rate(a_seconds_bucket{job=~"$job",x!="y"}[$__rate_interval]))) > b_total'
    assert names_in(query) == ({"a_seconds_bucket", "b_total"}, {"le", "api", "job", "x"})


def test_every_family_of_time_is_on_the_dashboard():
    asked = {name for query, _ in queries() for name in names_in(query)[0]}
    wanted = {one.shown for one in CATALOGUE if re.search("timestamp|future|lag_seconds|lookups|age_seconds", one.name)}
    assert all(any(name.startswith(one) for name in asked) for one in wanted), wanted - asked


def test_panels_do_not_overlap_and_have_their_own_ids():
    panels = DASHBOARD["panels"]
    assert len({one["id"] for one in panels}) == len(panels)
    taken = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not taken & cells, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells


def test_the_unit_runs_a_command_that_exists_and_is_told_when_it_is_ready():
    text = (CONFIG / "horolog.service").read_text()
    unit = dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    assert unit["Type"] == "notify"
    assert unit["ExecStart"].split()[1] == "serve"
    assert "AF_UNIX" in unit["RestrictAddressFamilies"]  # the socket of systemd itself


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_understands_the_unit(tmp_path):
    text = (CONFIG / "horolog.service").read_text()
    unit = tmp_path / "horolog.service"
    unit.write_text(re.sub(r"ExecStart=\S+", f"ExecStart={shutil.which('true')}", text))
    said = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=60, check=False)
    ours = [line for line in said.stderr.splitlines() if "horolog.service" in line]
    assert not ours, said.stderr
    assert said.returncode == 0
