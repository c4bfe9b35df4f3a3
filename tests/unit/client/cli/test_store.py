"""`horolog store check`: what it prints, and its exit codes."""

import pytest

pytest.importorskip("obstore")

from tests.support.command import run_typed
from tests.support.hostile_store import ENVIRONMENT, Habit, serving


@pytest.fixture
def check(monkeypatch, capsys):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)

    return lambda *arguments: run_typed(capsys, "store", "check", *arguments)


def test_a_good_store(check):
    with serving() as server:
        said = check("s3://lake/f", "--endpoint", server.endpoint, "--keys", "2")
        created = {key for method, key in server.requests if method == "PUT"}
    assert said.code == 0
    first, second, *_, last = said.out.splitlines()
    assert first == "ok: list the place: credentials, bucket and prefix are right"
    assert second.startswith(
        "ok: create 2 keys with 20 writers each at once: one winner of each, its bytes read at once; 40 req"
    )
    assert last == "ok: remove what was created: nothing is left"
    assert len(created) == 3
    assert all(key.startswith("f/check/") for key in created)


def test_a_folder_of_this_machine(check, tmp_path):
    said = check(f"file://{tmp_path}", "--keys", "2", "--writers", "3", "-o", "json")
    findings = said.lines
    assert (said.code, [one["fault"] for one in findings]) == (0, [""] * 6)
    assert findings[1]["tried"] == "create 2 keys with 3 writers each at once"


def test_a_bad_store(check):
    with serving(Habit.FORGETS_CONDITION) as server:
        said = check("s3://lake/f", "--endpoint", server.endpoint, "--keys", "2")
    assert said.code == 1
    assert "fault: create 2 keys with 20 writers each at once: 20 of 20 creates of one key succeeded" in said.out


@pytest.mark.parametrize(
    ("arguments", "said"), [(["nowhere"], "s3://BUCKET/FOLDER"), (["s3://b", "--writers", "65"], "at most 64")]
)
def test_arguments_that_make_no_sense(check, arguments, said):
    ended = check(*arguments)
    assert ended.code == 2
    assert said in ended.err
