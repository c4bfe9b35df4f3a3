"""`horolog store import`: what it says, what it refuses, and that it can be run again."""

import json
import shutil
from functools import partial

import pytest

pytest.importorskip("obstore")

from horolog.broker.bucket.names import DATA, LOG, key
from horolog.broker.bucket.prefix_contents import found_in
from horolog.broker.log.storage import LOCK_FILE, RealStorage
from horolog.broker.prefix.findings import Finding, FindingKind
from horolog.broker.prefix.verifying import Verified
from horolog.broker.transfer.waiting_store import WaitingStore
from horolog.client.cli.main import main
from horolog.client.cli.storing import importing
from horolog.commands.exit_codes import ExitCode
from horolog.stores.opening import open_store
from horolog.testing import broker_in_thread
from tests.support.command import run_typed
from tests.support.hostile_store import ENVIRONMENT


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of a broker that has stopped."""
    data = tmp_path_factory.mktemp("made") / "data"
    with broker_in_thread(storage=data) as broker:
        broker.create_topic("t", 2, retention_ms=-1)
        lines = data.parent / "lines"
        lines.write_text("".join(f"{number}\n" for number in range(10)))
        assert main(["produce", "t", str(lines), "-b", broker.bootstrap]) == ExitCode.OK
    return data


@pytest.fixture
def data(made, tmp_path):
    return shutil.copytree(made, tmp_path / "data")


@pytest.fixture
def url(tmp_path):
    (tmp_path / "store").mkdir()
    return f"file://{tmp_path}/store"


@pytest.fixture
def bring(data, url, capsys):
    return lambda *more: run_typed(capsys, "store", "import", data, url, *more)


def stored(url):
    return sorted(one.key for one in open_store(url).list())


def test_a_dry_run_reads_all_and_writes_nothing(bring, url):
    looked = bring("--dry-run")
    assert looked.code == ExitCode.OK
    assert "1 topic, 2 partitions" in looked.out
    assert looked.out.endswith("nothing was written\n")
    assert stored(url) == []


def test_an_import_says_what_it_brought_and_may_be_run_again(bring, url):
    done = bring()
    assert (done.code, done.err) == (ExitCode.OK, "")
    assert done.out.endswith("0 users, access rules and quotas: nothing is missing or damaged\n")
    before = stored(url)
    again = bring("-o", "json").json
    assert (again["is_whole"], again["dry_run"], again["findings"], again["topics"]) == (True, False, [], 1)
    assert stored(url) == before
    state = found_in(open_store(url)).state
    assert dict(state.topics["t"].overrides) == {"retention.ms": "-1"}


def test_an_import_that_was_interrupted_goes_on(bring, url):
    assert bring().code == ExitCode.OK
    whole, store = stored(url), open_store(url)
    for one in whole:
        if one.startswith(LOG) and one != key(LOG, 0):
            store.delete(one)
    assert bring().code == ExitCode.OK
    assert stored(url) == whole


def test_a_prefix_that_is_in_use_is_refused(bring, url):
    open_store(url).create(key("wal/1-1", 0), b"x")
    refused = bring()
    assert (refused.code, "the prefix is not empty" in refused.err) == (ExitCode.FAILED, True)
    assert "choose an empty prefix" in refused.err


def test_the_folder_of_a_broker_that_runs_is_refused(bring, data, url):
    lock = RealStorage().lock(f"{data}/{LOCK_FILE}")
    try:
        refused = bring()
    finally:
        lock.release()
    assert (refused.code, "a broker runs on" in refused.err) == (ExitCode.FAILED, True)
    assert stored(url) == []


def test_a_folder_that_cannot_be_locked_is_read(bring, data, monkeypatch):
    def refuse(_storage, path):
        raise importing.StorageFault(f"{path} cannot be written", path=path)

    monkeypatch.setattr(RealStorage, "lock", refuse)
    assert bring("--dry-run").code == ExitCode.OK


def test_a_folder_that_is_not_there(url, tmp_path, capsys):
    assert run_typed(capsys, "store", "import", tmp_path / "none", url).code == ExitCode.NOT_FOUND


def test_damage_is_refused_with_the_next_step(bring, data):
    (log,) = [one for one in data.glob("t-*/*.log") if one.stat().st_size]
    content = bytearray(log.read_bytes())
    content[30] ^= 1
    log.write_bytes(content)
    for snapshot in (data / log.parent.name).glob("horolog-seals"):
        snapshot.unlink()
    refused = bring()
    assert (refused.code, "horolog doctor" in refused.err) == (ExitCode.FAILED, True)


def test_settings_that_are_wrong_are_refused(bring):
    assert bring("--set", "log.retention.ms=x").code == ExitCode.USAGE


def test_a_record_of_a_later_release_is_refused(bring, data):
    from horolog.broker.on_record.checked_lines import encode_line

    (data / "horolog-cluster").write_text(encode_line({"version": 9, "number": 1, "topics": 0}))
    refused = bring()
    assert (refused.code, "version 9" in refused.err) == (ExitCode.FAILED, True)


def test_a_folder_without_ids_gets_the_same_ones_in_every_attempt(bring, data, url):
    for name in ("meta.properties", "horolog-cluster"):
        (data / name).unlink()
    for path in data.glob("*/partition.metadata"):
        path.unlink()
    first, before = bring("-o", "json").json, stored(url)
    assert bring("-o", "json").json == first
    assert stored(url) == before
    assert any(one.startswith(DATA) for one in before)


def test_a_damaged_name_of_the_cluster_is_made_up_for(bring, data):
    (data / "meta.properties").write_text("version=1\nnode.id=x\n")
    assert len(bring("--dry-run", "-o", "json").json["cluster_id"]) == 22


def test_a_fault_that_the_verification_finds_is_shown(bring, url, monkeypatch):
    def hurt(store, **_):
        doomed = next(one for one in stored(url) if one.endswith(".log"))
        store.delete(doomed)
        return verify(store)

    verify = importing.verify
    monkeypatch.setattr(importing, "verify", hurt)
    found = bring()
    assert (found.code, "missing: data/" in found.out) == (ExitCode.ALERT, True)
    assert found.out.endswith("the lines above list everything that is missing or damaged\n")


def test_a_store_that_does_not_answer(data, monkeypatch, capsys):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("horolog.broker.transfer.waiting_store.LONGEST_PAUSE_S", 0.01)
    monkeypatch.setattr(importing, "WaitingStore", partial(WaitingStore, most_pauses=0))
    said = run_typed(capsys, "store", "import", data, "s3://lake/f", "--endpoint", "http://127.0.0.1:1")
    assert (said.code, "continues where it stopped" in said.err) == (ExitCode.FAILED, True)


def test_json_is_one_document(bring):
    assert json.loads(bring("-n", "-o", "json").out)["wal_objects"] == 0


def test_what_is_missing_after_an_import_is_shown(bring, monkeypatch):
    finding = Finding(FindingKind.MISSING, "t-0", "offsets 3 up to 5")
    monkeypatch.setattr(importing, "verify", lambda _store, seen: Verified("c", 1, 1, 2, (), (finding,)))
    shown = bring()
    assert (shown.code, "missing: t-0: offsets 3 up to 5" in shown.out) == (ExitCode.ALERT, True)


def test_a_partition_without_a_folder_is_brought_empty(bring, data, url):
    shutil.rmtree(data / "t-1")
    brought = bring("-o", "json").json
    assert (brought["topics"], brought["is_whole"]) == (1, True)
    assert found_in(open_store(url)).state.topics["t"].partition_count == 2
