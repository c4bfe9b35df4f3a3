"""`horolog store verify`: its report and its exit codes."""

import json

import pytest

pytest.importorskip("obstore")

from horolog.broker.bucket.names import key
from horolog.stores.opening import open_store
from tests.support.command import run_typed
from tests.support.hostile_store import ENVIRONMENT
from tests.support.prefix_objects import ENDED, new_prefix


@pytest.fixture
def url(tmp_path):
    made, place = new_prefix(), open_store(f"file://{tmp_path}")
    for one in made.list():
        place.create(one.key, made.get(one.key))
    return f"file://{tmp_path}"


def test_a_whole_prefix(url, capsys):
    said = run_typed(capsys, "store", "verify", url)
    assert said.code == 0
    (line,) = said.out.splitlines()
    assert line.startswith("cluster c1, entry 5 of its journal, 1 topic, 2 partitions, 17 objects, ")
    assert line.endswith(": nothing is missing or damaged")


def test_lost_records(url, tmp_path, capsys):
    (tmp_path / key(ENDED.folder, 2)).unlink()
    (tmp_path / "other").write_bytes(b"x")
    said = run_typed(capsys, "store", "verify", url)
    assert said.code == 3
    assert said.out.splitlines()[1:4] == [
        "missing: t-0: offsets 2 to 2 are in no object",
        "missing: t-1: offsets 1 to 1 are in no object",
        "left over: other: 1 object, 1 byte: no broker has written them; they belong elsewhere",
    ]
    found = json.loads(run_typed(capsys, "store", "verify", url, "-o", "json").out)
    assert (found["is_whole"], found["findings"][1]["name"]) == (False, "t-0")


def test_a_place_without_a_cluster(tmp_path, capsys):
    said = run_typed(capsys, "store", "verify", f"file://{tmp_path}")
    assert (said.code, "no broker has used this URL" in said.err) == (1, True)


def test_a_store_that_does_not_answer(monkeypatch, capsys):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    said = run_typed(capsys, "store", "verify", "s3://lake/f", "--endpoint", "http://127.0.0.1:1")
    assert (said.code, "the check is not complete" in said.err) == (1, True)
