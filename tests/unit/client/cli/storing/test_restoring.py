"""`horolog store restore`: what it brings, what it says, and what it refuses."""

import os
import time
from datetime import UTC

import pytest

pytest.importorskip("obstore")

from horolog.base.readable import format_time
from horolog.broker.bucket.mark import WalMark
from horolog.broker.bucket.names import LOG, key
from horolog.broker.bucket.prefix_contents import found_in
from horolog.client.cli.storing import restoring
from horolog.commands.exit_codes import ExitCode
from horolog.stores.faults import StoreError
from horolog.stores.opening import open_store
from tests.support.command import run_typed
from tests.support.prefix_objects import ENDED, LIVES, new_prefix


@pytest.fixture
def url(tmp_path):
    made, place = new_prefix(), open_store(f"file://{tmp_path}/store")
    for one in made.list():
        place.create(one.key, made.get(one.key))
    hour_ago_s = time.time() - 3_600
    for name in (tmp_path / "store").rglob("*"):
        os.utime(name, (hour_ago_s, hour_ago_s))
    return f"file://{tmp_path}/store"


@pytest.fixture
def restore(url, tmp_path, capsys):
    def run(*more, at="now"):
        return run_typed(capsys, "store", "restore", url, "--at", at, "--to", f"file://{tmp_path}/then", *more)

    return run


def test_the_state_of_a_moment_goes_into_another_prefix(restore, url, tmp_path):
    looked = restore("--dry-run", "--tz", "UTC")
    assert (looked.code, looked.out.endswith("nothing was written\n")) == (ExitCode.OK, True)
    target = open_store(f"file://{tmp_path}/then")
    assert not list(target.list())
    done = restore("--work", tmp_path)
    assert (done.code, done.out.endswith("nothing is missing or damaged\n")) == (ExitCode.OK, True)
    before, after = found_in(open_store(url)), found_in(target)
    assert (after.cluster_id, after.state.topics) == (before.cluster_id, before.state.topics)
    assert not list(tmp_path.glob("horolog-restore-*"))


def test_single_topics(restore, tmp_path):
    unknown = restore("--topics", "t,none")
    assert (unknown.code, "no topic none" in unknown.err) == (ExitCode.NOT_FOUND, True)
    found = restore("--topics", "t", "-o", "json").json
    assert (found["topics"], found["is_whole"], found["at_ms"] > 0) == (1, True, True)


def test_lost_records_are_shown(restore, url):
    open_store(url).delete(key(ENDED.folder, 2))
    found = restore()
    assert (found.code, "missing: t-0" in found.out) == (ExitCode.ALERT, True)


def test_a_moment_outside_of_the_history_is_refused_with_the_range(restore, url):
    founded = open_store(url).stat(key(LOG, 0)).last_modified_ms
    for at in ("2001-01-01", "2101-01-01"):
        refused = restore("--tz", "UTC", at=at)
        assert (refused.code, f"choose a time from {format_time(founded, UTC)} to" in refused.err) == (
            ExitCode.NOT_FOUND,
            True,
        )


def test_a_moment_whose_records_have_been_merged_is_refused(restore, url):
    place = open_store(url)
    place.delete(key(LIVES.folder, 0))
    place.create(key(LIVES.marks, 0), WalMark(LIVES, 0, 1, (), b"n" * 16).encode())
    refused = restore()
    assert (refused.code, "does not reach back" in refused.err) == (ExitCode.NOT_FOUND, True)


def test_a_place_without_a_cluster(tmp_path, capsys):
    said = run_typed(
        capsys, "store", "restore", f"file://{tmp_path}/none", "--at", "now", "--to", f"file://{tmp_path}/then"
    )
    assert (said.code, "no broker has used this URL" in said.err) == (ExitCode.FAILED, True)


def test_a_prefix_that_is_not_empty(restore, url, capsys):
    refused = run_typed(capsys, "store", "restore", url, "--at", "now", "--to", url)
    assert (refused.code, "choose an empty prefix" in refused.err) == (ExitCode.FAILED, True)


def test_a_damaged_journal(restore, url):
    store = open_store(url)
    data = store.get(key(LOG, 5))
    store.delete(key(LOG, 5))
    store.create(key(LOG, 5), data[:-2])
    assert restore().code == ExitCode.FAILED


def test_a_store_that_does_not_answer(restore, monkeypatch):
    def refuse(*_):
        raise StoreError("no answer")

    monkeypatch.setattr(restoring, "MomentStore", refuse)
    refused = restore("-n")
    assert (refused.code, "no answer" in refused.err) == (ExitCode.FAILED, True)
