"""One answer out of those of several workers."""

import json

import pytest
from prometheus_client.parser import text_string_to_metric_families

from horolog.broker.base.metrics import Described, Histogram, Kind, lines
from horolog.broker.workers import merged
from horolog.broker.workers.merged import WorkerReadiness, expositions, readiness, said

COUNTER = Described("things_total", Kind.COUNTER, "Things\nof two lines.", ("name",))
GAUGE = Described("stores", Kind.GAUGE, "Stores.")
TIMES = Described("waits_seconds", Kind.HISTOGRAM, "Waits.", ("api",))
AWKWARD = 'a {b} "c"\\ \n# HELP d'


def exposition(count, *, has_times=True):
    histogram = Histogram()
    histogram.observe(0.002)
    text = "".join(lines(COUNTER, [((AWKWARD,), count), (("plain",), 1)])) + "".join(lines(GAUGE, [((), count)]))
    return text + ("".join(lines(TIMES, [(("Fetch",), histogram)])) if has_times else "")


def samples(text):
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


class TestExpositions:
    def test_each_sample_gets_its_worker_and_nothing_else_changes(self):
        texts = {1: exposition(5), 2: exposition(7, has_times=False)}
        found = samples("".join(expositions(texts)))
        wanted = {
            (name, tuple(sorted([*labels, ("worker", str(number))]))): value
            for number, text in texts.items()
            for (name, labels), value in samples(text).items()
        }
        assert found == wanted
        assert found["horolog_things_total", (("name", AWKWARD), ("worker", "2"))] == 7

    def test_each_family_has_one_head_before_all_its_samples(self):
        text = "".join(expositions({1: exposition(5), 2: exposition(7), 3: exposition(9)}))
        heads = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
        assert heads == ["horolog_things_total", "horolog_stores", "horolog_waits_seconds"]
        assert len(list(text_string_to_metric_families(text))) == 3

    def test_workers_that_say_nothing_add_nothing(self):
        assert list(expositions({})) == []
        assert "".join(expositions({1: "", 2: exposition(7)})) == "".join(expositions({2: exposition(7)}))


class TestReadiness:
    def test_what_a_worker_says(self):
        answer = json.dumps({"ready": False, "phase": "ready", "reasons": ["r"], "warnings": ["w"]}).encode()
        assert said(answer) == WorkerReadiness(ready=False, reasons=["r"], warnings=["w"])

    @pytest.mark.parametrize(
        "answer", [b"", b"Bad Request", b"[]", b"{}", b'{"ready": true, "reasons": 3, "warnings": 4}']
    )
    def test_an_answer_that_is_none(self, answer):
        assert said(answer) == WorkerReadiness(ready=False, reasons=["it does not answer"])

    def test_all_have_to_be_ready(self):
        ready = WorkerReadiness(ready=True)
        assert readiness("ready", {1: ready, 2: ready})["ready"] is True
        assert readiness("stopping", {1: ready, 2: ready})["ready"] is False
        assert readiness("ready", {1: ready, 2: WorkerReadiness(ready=False, reasons=["it is starting"])}) == {
            "ready": False,
            "phase": "ready",
            "reasons": ["worker 2: it is starting"],
            "warnings": [],
        }

    def test_a_warning_of_all_is_said_once(self):
        workers = {1: WorkerReadiness(True, warnings=["open", "slow"]), 2: WorkerReadiness(True, warnings=["open"])}
        assert readiness("ready", workers)["warnings"] == ["open", "worker 1: slow"]


def test_pages_of_a_topic_are_one_page():
    def page(*numbers):
        return 200, json.dumps({"topic": "t", "partitions": [{"partition": one} for one in numbers]}).encode()

    status, body = merged.logs({1: page(0, 2), 2: page(1), 3: (0, b""), 4: (200, b'{"partitions'), 5: (404, b"no")})
    found = json.loads(body)
    assert status == 200
    assert [one["partition"] for one in found["partitions"]] == [0, 1, 2]
    assert (found["topic"], found["unanswered"]) == ("t", [3, 4])
    assert merged.logs({1: (200, b"[]"), 2: (404, b"no"), 3: (400, b"bad")}) == (404, b"no")
    assert merged.logs({1: (503, b"x"), 2: (0, b"")})[0] == 503
