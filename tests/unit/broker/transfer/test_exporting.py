"""A prefix becomes a data folder that a broker opens, in one attempt or in several."""

import pytest

from horolog.broker.bucket import manifest
from horolog.broker.bucket.names import key, manifests
from horolog.broker.bucket.prefix_contents import found_in
from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.log.files import checkpoints, log_starts, meta_properties
from horolog.broker.log.segments import LOG_SUFFIX
from horolog.broker.on_record.cluster_file import ClusterFile
from horolog.broker.transfer import exporting
from horolog.broker.transfer.exporting import export, weigh
from horolog.broker.transfer.whole_folder import FILE_NAME, ExportTarget, FolderTaken
from horolog.stores.faults import StoreError
from tests.support.imported import EVENTS, TABLE, Folder, Target
from tests.support.log_model import NOW_MS, new_storage

SETTINGS = from_layers(Layers(static={"node.id": "3"}))


class Export:
    """A prefix that a folder was imported into, and the folder that it goes to."""

    def __init__(self):
        self.source, self.prefix, self.storage = Folder(), Target(), new_storage()
        self.prefix.bring(self.source.source())
        self.target = ExportTarget(self.storage, "/data", SETTINGS, "d" * 22, NOW_MS)
        self.sizes = []

    def run(self, **changes):
        found = found_in(self.prefix.store)
        return self.prefix.result(
            export(self.prefix.waiting.access, found, self.target._replace(**changes), self.sizes.append)
        )

    def log_of(self, topic, storage=None):
        """All bytes of the log of its first partition."""
        where = storage or self.storage
        names = sorted(one for one in where.list_dir(f"/data/{topic}-0") if one.endswith(LOG_SUFFIX))
        return b"".join(where.read_all(f"/data/{topic}-0/{one}") for one in names)

    def segments(self):
        return manifest.decode(self.prefix.store.get(key(manifests(EVENTS.id, 0), 0))).segments


@pytest.fixture
def made():
    one = Export()
    yield one
    one.prefix.waiting.close()


def test_all_of_it_is_there(made):
    exported = made.run()
    assert (exported.topics, exported.partitions, exported.findings) == (2, 3, [])
    for topic in ("events", "table"):
        assert made.log_of(topic) == made.log_of(topic, made.source.storage)
    assert exported.size_bytes == sum(made.sizes) == len(made.log_of("events")) + len(made.log_of("table"))
    meta = meta_properties.load(made.storage, "/data")
    assert (meta.node_id, meta.cluster_id, meta.directory_id) == (3, "c1", "d" * 22)
    ends = checkpoints.load_offsets(made.storage, f"/data/{checkpoints.RECOVERY_POINTS}").offsets
    assert ends == {("events", 0): 12, ("events", 1): 0, ("table", 0): 8}
    assert log_starts.load(made.storage, "/data").offsets == {("table", 0): 2}
    stored = ClusterFile(made.storage, "/data").load()
    assert {one.name: one.id for one in stored.topics.values()} == {"events": EVENTS.id, "table": TABLE.id}
    assert stored.next_producer_id > 3_000
    assert made.storage.exists(f"/data/{checkpoints.CLEAN_SHUTDOWN}")
    assert not made.storage.exists(f"/data/{FILE_NAME}")


def test_a_dry_run_reckons_the_same(made):
    found = found_in(made.prefix.store)
    weighed = made.prefix.result(weigh(made.prefix.waiting.access, found, SETTINGS, made.sizes.append))
    assert (weighed.topics, weighed.partitions) == (2, 3)
    assert weighed.size_bytes == sum(made.sizes) == made.run().size_bytes


def test_an_export_that_was_interrupted_goes_on_behind_what_is_complete(made, monkeypatch):
    def interrupted(*_):
        raise StoreError("interrupted")

    monkeypatch.setattr(exporting, "complete", interrupted)
    with pytest.raises(StoreError):
        made.run()
    monkeypatch.undo()
    before = made.log_of("events")
    for segment in made.segments():
        made.prefix.store.delete(segment.log_key)  # it is not read again
    exported = made.run()
    assert (exported.partitions, exported.findings) == (3, [])
    assert made.log_of("events") == before


def test_a_folder_with_other_files_is_refused(made):
    made.storage.make_dir("/data/other-0")
    with pytest.raises(FolderTaken, match="is not empty"):
        made.run()


def test_a_folder_of_another_export_is_refused(made):
    made.storage.write_atomically(f"/data/{FILE_NAME}", b'{"cluster": "c9"}\n')
    with pytest.raises(FolderTaken, match="cluster c9"):
        made.run()


@pytest.mark.parametrize("kind", ["log_key", "meta_key"])
@pytest.mark.parametrize("is_gone", [True, False])
def test_lost_and_damaged_segments_are_reported_and_the_rest_is_there(made, kind, is_gone):
    name = getattr(made.segments()[0], kind)
    data = bytearray(made.prefix.store.get(name))
    made.prefix.store.delete(name)
    if not is_gone:
        data[-5] ^= 1
        made.prefix.store.create(name, bytes(data))
    exported = made.run()
    (finding,) = exported.findings
    assert (finding.name, finding.kind.value) == (name, "missing" if is_gone else "damaged")
    assert exported.ends["events", 0].end_offset == 12


def test_lost_runs_are_reported(made):
    made.prefix.store.delete(key("wal/1-1", 0))
    exported = made.run()
    (finding,) = exported.findings
    assert finding.name == key("wal/1-1", 0)
    assert finding.reason.startswith("is lost")
    assert exported.ends["table", 0].end_offset == 2


def test_a_manifest_that_is_replaced_meanwhile_is_read_again(made, monkeypatch):
    asked = []
    newest = exporting.is_newest

    async def replaced(store, contents):
        asked.append(contents.opening.topic)
        return len(asked) > 1 and await newest(store, contents)

    monkeypatch.setattr(exporting, "is_newest", replaced)
    assert made.run().findings == []
    assert asked[:2] == ["events", "events"]


def test_bytes_that_are_no_batches_are_reported(made, monkeypatch):
    finish = exporting.FolderCopy.finish
    monkeypatch.setattr(
        exporting.FolderCopy,
        "finish",
        lambda copy, *arguments: finish(copy, *arguments)._replace(damaged_bytes=7),
    )
    assert [one.reason for one in made.run().findings] == ["7 bytes are no batches"] * 3
