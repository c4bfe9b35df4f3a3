"""The files of a folder that is written as a whole: complete partitions survive an interruption, and the record comes last."""

import pytest

from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.log.files import checkpoints, log_starts, meta_properties
from horolog.broker.log.storage import LOCK_FILE
from horolog.broker.on_record.cluster_file import ClusterFile, StoredTopic
from horolog.broker.transfer.folder_copy import Copied
from horolog.broker.transfer.whole_folder import FILE_NAME, ExportTarget, FolderTaken, Record, begin, complete, note
from tests.support.log_model import NOW_MS, new_storage

COPIED = {("t", 0): Copied(3, 9, 100, 0), ("t", 1): Copied(0, 4, 50, 0)}


@pytest.fixture
def target():
    return ExportTarget(new_storage(), "/data", from_layers(Layers(static={"node.id": "4"})), "d" * 22, NOW_MS)


def test_an_attempt_goes_on_behind_the_one_before(target):
    source = {"cluster": "c1", "moment": 3}
    target.storage.write_atomically(f"/data/{LOCK_FILE}", b"")
    assert begin(target, source) == {}
    for place, copied in COPIED.items():
        note(target, place, copied)
    assert begin(target, source) == COPIED
    with pytest.raises(FolderTaken, match="another copy, of cluster c1"):
        begin(target, {"cluster": "c1", "moment": 4})


def test_other_files_are_refused(target):
    target.storage.make_dir("/data/t-0")
    with pytest.raises(FolderTaken, match="is not empty"):
        begin(target, {"cluster": "c1"})


def test_the_folder_of_one_broker(target):
    begin(target, {"cluster": "c1"})
    topic = StoredTopic("t", b"i" * 16, 2, {"retention.ms": "5"}, {"elsewhere": [0]})
    complete(target, COPIED, Record("c1", [topic], {"": {"a": "b"}}, 7_000, []))
    stored = ClusterFile(target.storage, "/data").load()
    assert stored.topics == {"t": StoredTopic("t", b"i" * 16, 2, {"retention.ms": "5"})}
    assert (stored.next_producer_id, stored.broker_configs) == (7_000, {"": {"a": "b"}})
    meta = meta_properties.load(target.storage, "/data")
    assert (meta.node_id, meta.cluster_id, meta.directory_id) == (4, "c1", "d" * 22)
    ends = checkpoints.load_offsets(target.storage, f"/data/{checkpoints.RECOVERY_POINTS}").offsets
    assert ends == {("t", 0): 9, ("t", 1): 4}
    assert log_starts.load(target.storage, "/data").offsets == {("t", 0): 3}
    assert target.storage.exists(f"/data/{checkpoints.CLEAN_SHUTDOWN}")
    assert not target.storage.exists(f"/data/{FILE_NAME}")
