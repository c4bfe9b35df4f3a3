"""Which files of a segment a sync takes, and what it says when they are gone."""

import pytest

from horolog.broker.log.integrity import Contents
from horolog.broker.log.segments import Segment, syncing
from horolog.broker.log.storage import FileMissing, StorageFault
from tests.support.log_model import NOW_MS
from tests.support.segments import CONFIG, append, completed, new_folder


@pytest.fixture
def folder():
    return new_folder()


@pytest.fixture
def every_log_is_large(monkeypatch):
    monkeypatch.setattr(syncing, "REBUILD_AT_ONCE_BYTES", -1)


def test_a_log_that_is_read_again_at_once_is_synced_alone(folder, monkeypatch):
    segment = completed(folder)
    monkeypatch.setattr(syncing, "REBUILD_AT_ONCE_BYTES", segment.size_bytes)
    syncing.datasync(segment)
    assert folder.storage.operations["sync"] == 1
    monkeypatch.setattr(syncing, "REBUILD_AT_ONCE_BYTES", segment.size_bytes - 1)
    syncing.datasync(segment)
    assert folder.storage.operations["sync"] == 4


@pytest.mark.usefixtures("every_log_is_large")
def test_only_complete_segments_sync_their_indexes(folder):
    segment = Segment.create(folder, 0, CONFIG, NOW_MS)
    append(segment, 2, [5])
    segment.flush()
    syncing.datasync(segment)
    assert folder.storage.operations["sync"] == 1
    segment.complete()
    syncing.datasync(segment)
    assert folder.storage.operations["sync"] == 4


@pytest.mark.usefixtures("every_log_is_large")
def test_indexes_that_a_seal_speaks_of_are_synced_once_and_again_if_that_fails(folder):
    segment = Segment.create(folder, 0, CONFIG, NOW_MS)
    segment.sync.ask_for_indexes()
    folder.storage.fail("sync", ".log")
    with pytest.raises(StorageFault):
        syncing.datasync(segment)
    assert segment.sync.indexes_are_due
    before = folder.storage.operations["sync"]
    syncing.datasync(segment)
    assert folder.storage.operations["sync"] == before + 3
    syncing.datasync(segment)
    assert folder.storage.operations["sync"] == before + 4


def test_a_closed_segment_syncs_its_log_alone(folder):
    segment = completed(folder)
    segment.drop_indexes()
    syncing.datasync(segment)
    assert folder.storage.operations["sync"] == 1


def test_a_log_that_is_gone_before_it_is_opened_has_nothing_to_be_synced(folder):
    segment = Segment(folder, 7, Contents(0, 7), CONFIG, NOW_MS)
    with pytest.raises(FileMissing):
        syncing.datasync(segment)
    segment.removed = True
    syncing.datasync(segment)


def test_a_log_without_its_name_fails_a_sync_unless_it_was_taken_out_of_use(folder):
    segment = completed(folder)
    segment.log.pread(1, 0)
    folder.storage.remove(segment.files.path(".log"))
    with pytest.raises(FileMissing, match="put the same file back"):
        syncing.datasync(segment)
    with pytest.raises(FileMissing, match="put the same file back"):
        syncing.check_in_place(segment)
    segment.removed = True
    syncing.datasync(segment)
    syncing.check_in_place(segment)
