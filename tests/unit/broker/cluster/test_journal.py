"""The cluster file as a journal: the whole state with every entry, and nothing that is not known yet."""

import pytest

from horolog.broker.cluster.cluster_state import ClusterState, ProducerIdsReserved, TopicsCreated
from horolog.broker.cluster.journal import AppendOutcome, WholeFile
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.on_record.cluster_file import ClusterFile, StoredTopic

T = StoredTopic("t", b"t" * 16, 2, {"retention.ms": "5"})
UNSURE = StoredTopic("unsure", b"u" * 16, 1, {})


@pytest.fixture
def storage():
    storage = MemoryStorage()
    storage.make_dir("/data")
    return storage


def test_every_entry_leaves_the_whole_state_in_the_file(storage):
    journal, outcomes = WholeFile(ClusterFile(storage, "/data")), []
    state = ClusterState()
    for entry in (TopicsCreated((T,)), ProducerIdsReserved(0)):
        state = state.apply(entry)
        journal.append(entry, state, outcomes.append)
    assert outcomes == [AppendOutcome.WRITTEN] * 2
    followed = []
    journal.follow(0, followed.append)
    assert (journal.written_count, followed) == (2, [()])
    stored = ClusterFile(storage, "/data").load()
    assert (stored.topics, stored.next_producer_id, stored.damages) == ({"t": T}, 1000, [])


def test_a_topic_whose_id_is_not_known_is_not_on_record(storage):
    journal = WholeFile(ClusterFile(storage, "/data"))
    assert journal.keep(ClusterState.of([T, UNSURE], unidentified=frozenset(["unsure"])))
    assert set(ClusterFile(storage, "/data").load().topics) == {"t"}


@pytest.mark.parametrize("left", [b"", b"nonsense", None])
def test_what_is_not_what_was_written_is_written_anew(storage, left, caplog):
    journal, state = WholeFile(ClusterFile(storage, "/data")), ClusterState.of([T])
    journal.check(state)
    assert not storage.exists("/data/horolog-cluster"), "nothing was written yet"
    journal.keep(state)
    written = storage.read_all("/data/horolog-cluster")
    journal.check(state)
    assert storage.read_all("/data/horolog-cluster") == written
    if left is None:
        storage.remove("/data/horolog-cluster")
    else:
        storage.write_atomically("/data/horolog-cluster", left)
    journal.check(state)
    assert "it is written anew" in caplog.text
    assert ClusterFile(storage, "/data").load().topics == {"t": T}
    storage.fail("read", "horolog-cluster")
    journal.check(state)


def test_a_disk_that_takes_nothing_is_told(storage):
    journal, outcomes = WholeFile(ClusterFile(storage, "/nowhere")), []
    state = ClusterState().apply(TopicsCreated((T,)))
    journal.append(TopicsCreated((T,)), state, outcomes.append)
    assert (outcomes, journal.written_count) == ([AppendOutcome.FAILED], 0)
