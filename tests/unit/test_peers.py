"""The outcomes of other projects' suites, read from what these print."""

import json

from tests import peers
from tests.peers import FAILED, PASSED, SKIPPED


def test_whole_tests_of_go():
    events = [
        {"Action": "start", "Package": "p"},
        {"Action": "run", "Test": "TestA"},
        {"Action": "run", "Test": "TestA/one"},
        {"Action": "fail", "Test": "TestA/one"},
        {"Action": "pass", "Test": "TestA"},
        {"Action": "run", "Test": "TestB"},
        {"Action": "skip", "Test": "TestB"},
        {"Action": "run", "Test": "TestHangs"},
        {"Action": "fail", "Package": "p"},
    ]
    lines = ["go: downloading x", *map(json.dumps, events)]
    assert peers.of_go(lines) == {"TestA": PASSED, "TestB": SKIPPED, "TestHangs": FAILED}


def test_chosen_tests_of_librdkafka():
    states = {"<MAIN>": "PASSED", "0170_a": "PASSED", "0171_b": "FAILED", "0172_c": "RUNNING", "0001_d": "SKIPPED"}
    report = json.dumps({"tests": {name: {"state": state} for name, state in states.items()}})
    assert peers.of_librdkafka(report) == {"0170_a": PASSED, "0171_b": FAILED, "0172_c": FAILED}


def test_reports_in_the_form_of_junit():
    cases = [
        ("a", ""),
        ("b", "<failure/>"),
        ("c", "<skipped/>"),
        ("d", "<error/>"),
        ("e", "<system-out>x</system-out>"),
    ]
    report = "".join(f'<testcase classname="m" name="{name}">{inner}</testcase>' for name, inner in cases)
    assert peers.of_junit(f"<testsuites><testsuite>{report}</testsuite></testsuites>") == {
        "m::a": PASSED,
        "m::b": FAILED,
        "m::c": SKIPPED,
        "m::d": FAILED,
        "m::e": PASSED,
    }


def test_a_test_that_failed_once_has_failed():
    cases = ["<failure/>", ""]
    report = "".join(f'<testcase classname="m" name="a">{inner}</testcase>' for inner in cases)
    assert peers.of_junit(f"<testsuite>{report}</testsuite>") == {"m::a": FAILED}


def test_an_archive_may_have_a_classifier():
    assert peers.dependency("g:a:1").endswith("<version>1</version></dependency>")
    assert "<classifier>test</classifier>" in peers.dependency("g:a:1:test")


def test_a_row_for_each_suite():
    told = peers.table({"franz-go": {"a": PASSED, "b": PASSED, "c": SKIPPED}}).splitlines()
    assert told[2] == f"| franz-go {peers.FRANZ_GO} | 2 | 0 | 1 |"


def test_a_suite_without_tests_has_not_passed(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(peers, "broker", lambda *_, **__: peers.contextmanager(lambda: iter(["x"]))())
    for outcomes, code in (({}, 1), ({"a": PASSED}, 0), ({"a": FAILED}, 1)):
        monkeypatch.setitem(peers.SUITES, "franz-go", peers.Suite("1", lambda *_, found=outcomes: found))
        assert peers.main(["franz-go"]) == code
    assert "franz-go: a" in capsys.readouterr().out
