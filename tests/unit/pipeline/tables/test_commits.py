"""Commits that cannot overwrite each other: real processes at once, killed at any moment."""

import json
import multiprocessing
import os
import random
import time

import pytest

from horolog.client.values.types import TopicPartition
from horolog.pipeline.stores.store import LocalStore
from horolog.pipeline.tables.commits import Commit, CommitLog
from horolog.pipeline.tables.layout import Folders
from horolog.pipeline.tables.table import CommitLost, TableError

PLACE = TopicPartition("t", 0)
SEED = int(os.environ.get("HOROLOG_SEED", "1"))


def commit(number, offset=0, **more):
    return Commit(number, {PLACE: offset}, {"t": "id"}, **more)


def test_a_commit_says_what_it_was_told(tmp_path):
    log = CommitLog(LocalStore(tmp_path))
    folders = Folders("hour", "Europe/Berlin")
    made = commit(1, 17, add=["date=1/a"], remove=["date=1/b"], staging="s", records=5, folders=folders)
    log.add(made)
    assert (log.newest, log.read(1)) == (1, made)
    with pytest.raises(CommitLost, match="nothing of this step was added"):
        log.add(commit(1, 18))
    assert log.read(1).offsets == {PLACE: 17}


def test_a_commit_keeps_decoded_columns_and_readers_of_former_versions_do_not_take_it(tmp_path):
    log, columns = CommitLog(LocalStore(tmp_path)), [{"name": "value_decoded", "type": "string", "nullable": True}]
    log.add(commit(1, folders=Folders("hour", "UTC"), columns=columns))
    assert (log.read(1).columns, log.read(1).folders) == (columns, Folders("hour", "UTC"))
    assert json.loads((tmp_path / "commits/00000001.json").read_bytes())["version"] == 3


def test_commits_of_former_versions_are_read(tmp_path):
    old = {"version": 1, "offsets": {"t": {"0": 3}}, "add": ["date=1/a"], "remove": [], "records": 3}
    LocalStore(tmp_path).create("commits/00000001.json", json.dumps(old).encode())
    assert CommitLog(LocalStore(tmp_path)).read(1) == Commit(1, {PLACE: 3}, {}, ["date=1/a"], [], "00000001", 3)


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"version": 4}', b"{"])
def test_what_is_no_commit_is_told(tmp_path, damage):
    LocalStore(tmp_path).create("commits/00000001.json", damage)
    with pytest.raises(TableError, match="is not a commit"):
        CommitLog(LocalStore(tmp_path)).read(1)


def test_the_files_of_a_table_are_found_without_reading_every_commit(tmp_path, monkeypatch):
    log = CommitLog(LocalStore(tmp_path))
    expected = {}
    for number in range(1, 200):
        gone = [f"f{number - 2}"] if number % 3 == 0 else []
        log.add(commit(number, add=[f"f{number}"], remove=gone))
        before = expected.get(number - 1, set())
        expected[number] = (before - set(gone)) | {f"f{number}"}
    read = []
    monkeypatch.setattr(
        CommitLog, "read", lambda log, number, real=CommitLog.read: read.append(number) or real(log, number)
    )
    for number in (1, 63, 64, 65, 127, 128, 199):
        read.clear()
        assert log.files(number) == expected[number]
        assert len(read) <= 64


def chain(folder, seed, steps):
    """A job without its rows: from where the newest commit ends, a step further; what it lost to others it begins again."""
    rng = random.Random(seed)
    log = CommitLog(LocalStore(folder))
    for _ in range(steps):
        seen = log.newest
        start = log.read(seen).offsets[PLACE] if seen else 0
        time.sleep(rng.random() * 0.004)
        try:
            log.add(commit(seen + 1, start + 10, add=[f"{start}-{start + 10}"]))
        except CommitLost:
            continue


def test_jobs_at_once_that_are_killed_at_any_moment_leave_a_chain_without_gaps(tmp_path):
    """No lock is held here: commits alone see to it that no row is lost or repeated."""
    # Not of this process, which has threads of Spark and others by now.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    rng = random.Random(SEED)
    for round_number in range(3):
        jobs = [context.Process(target=chain, args=(tmp_path, f"{SEED} {round_number} {n}", 60)) for n in range(4)]
        for job in jobs:
            job.start()
        time.sleep(rng.random() * 0.3)
        for job in jobs[:2]:
            job.kill()
        for job in jobs:
            job.join()
    log = CommitLog(LocalStore(tmp_path))
    ranges = [name for number in range(1, log.newest + 1) for name in log.read(number).add]
    assert ranges == [f"{10 * n}-{10 * n + 10}" for n in range(len(ranges))]
    assert log.files(log.newest) == set(ranges)
    assert len(ranges) > 100


def test_a_log_without_commits_names_no_files(tmp_path):
    log = CommitLog(LocalStore(tmp_path))
    assert (log.newest, log.files(0), log.find(1), log.forgettable(10**15)) == (0, set(), None, [])
    with pytest.raises(TableError, match="commit 1 is missing"):
        log.read(1)


def test_a_commit_that_is_there_is_not_replaced(tmp_path):
    log = CommitLog(LocalStore(tmp_path))
    log.add(commit(1, 5))
    with pytest.raises(CommitLost, match="another job has committed"):
        log.add(commit(1, 9))
    assert log.read(1).offsets == {PLACE: 5}


def test_old_commits_are_forgotten_once_a_later_one_names_all_files(tmp_path):
    log = CommitLog(LocalStore(tmp_path))
    for number in range(1, 6):
        log.add(commit(number, number, add=[f"f{number}"]), whole=number == 4)
    assert log.forgettable(0) == []
    assert log.forgettable(10**15) == [1, 2, 3, 4]
    log.forget([1, 2, 3])
    assert log.files(5) == {f"f{number}" for number in range(1, 6)}
    with pytest.raises(CommitLost):
        log.add(commit(3, 9))  # by a job that has slept since
    assert log.find(3) is None
