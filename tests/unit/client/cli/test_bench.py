"""`horolog bench` measures, and takes its topic away."""


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
