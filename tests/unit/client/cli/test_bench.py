"""`horolog bench` measures, and takes its topic away."""

from horolog.commands.online import measuring


def test_bench_measures_and_leaves_nothing_behind(run):
    before = run("topics", "list", "-o", "json").json
    ended = run("bench", "produce", "consume", "lookup", "--records", "2000", "--lookups", "20", "-o", "json")
    assert ended.code == 0
    assert [each["part"] for each in ended.json["results"]] == ["produce", "consume", "lookup"]
    assert all(each["per_second"] > 0 for each in ended.json["results"])
    after = {each["topic"] for each in run("topics", "list", "-o", "json").json}
    assert not any(name.startswith("horolog-bench") for name in after)
    assert {each["topic"] for each in before} <= after
    assert run("bench", "nothing").code == 2


def test_measurements_are_shown_as_a_table(horolog, address, monkeypatch):
    monkeypatch.setattr(measuring, "LATENCY_SECONDS", 1)
    words = ("--records", "500", "--rate", "30", "--lookups", "3", "--codec", "gzip")
    ended = horolog("bench", *words, "--bootstrap", address, "--timeout", "30s")
    assert ended.code == 0, ended
    rows = [line.split() for line in ended.out.splitlines()]
    assert [row[0] for row in rows] == ["PART", "produce", "consume", "latency", "lookup"]
    ended = horolog("bench", "latency", *words, "--bootstrap", address, "--timeout", "30s", "-o", "json")
    (found,) = ended.json["results"]
    assert (found["part"], found["count"]) == ("latency", 30)
    assert found["p50_ms"] <= found["max_ms"]
