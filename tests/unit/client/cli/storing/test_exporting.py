"""`horolog store export`: what it says, and what it refuses."""

import pytest

pytest.importorskip("obstore")

from horolog.broker.bucket.names import LOG, key
from horolog.broker.log.storage import LOCK_FILE, RealStorage
from horolog.broker.transfer.waiting_store import WaitingStore
from horolog.client.cli.storing import exporting
from horolog.commands.exit_codes import ExitCode
from horolog.stores.opening import open_store
from tests.support.command import run_typed
from tests.support.prefix_objects import ENDED, new_prefix


@pytest.fixture
def url(tmp_path):
    made, place = new_prefix(), open_store(f"file://{tmp_path}/store")
    for one in made.list():
        place.create(one.key, made.get(one.key))
    return f"file://{tmp_path}/store"


@pytest.fixture
def export(url, tmp_path, capsys):
    return lambda *more: run_typed(capsys, "store", "export", url, tmp_path / "data", *more)


def test_a_prefix_becomes_a_folder(export, tmp_path, capsys):
    looked = export("--dry-run")
    assert (looked.code, looked.out.endswith("nothing was written\n")) == (ExitCode.OK, True)
    assert not (tmp_path / "data").exists()
    done = export("--set", "node.id=4")
    assert (done.code, done.err) == (ExitCode.OK, "")
    assert "1 topic, 2 partitions" in done.out
    assert done.out.endswith("nothing is missing or damaged\n")
    assert "node.id=4" in (tmp_path / "data" / "meta.properties").read_text()
    assert run_typed(capsys, "doctor", tmp_path / "data").code == ExitCode.OK


def test_a_folder_that_is_not_empty_is_refused(export):
    assert export("-o", "json").json["is_whole"]
    again = export()
    assert (again.code, "choose an empty folder" in again.err) == (ExitCode.FAILED, True)


def test_lost_records_are_shown(export, url):
    open_store(url).delete(key(ENDED.folder, 2))
    found = export()
    assert (found.code, "missing: t-0" in found.out) == (ExitCode.ALERT, True)
    assert found.out.endswith("the lines above list everything that is missing or damaged\n")


def test_a_place_without_a_cluster(tmp_path, capsys):
    said = run_typed(capsys, "store", "export", f"file://{tmp_path}/none", tmp_path / "data")
    assert (said.code, "no broker has used this URL" in said.err) == (ExitCode.FAILED, True)


def test_a_folder_that_is_in_use(export, tmp_path):
    (tmp_path / "data").mkdir()
    lock = RealStorage().lock(f"{tmp_path}/data/{LOCK_FILE}")
    try:
        refused = export()
    finally:
        lock.release()
    assert (refused.code, "continues where it stopped" in refused.err) == (ExitCode.FAILED, True)


def test_a_damaged_journal(export, url):
    store = open_store(url)
    store.delete(key(LOG, 0))
    store.create(key(LOG, 0), b"x")
    assert export().code == ExitCode.FAILED


def test_a_store_that_does_not_answer(export, monkeypatch):
    def refuse(_, steps):
        steps.close()
        raise exporting.StoreError("no answer")

    monkeypatch.setattr(WaitingStore, "result", refuse)
    refused = export("-n")
    assert (refused.code, "no answer; run the same command again" in refused.err) == (ExitCode.FAILED, True)
