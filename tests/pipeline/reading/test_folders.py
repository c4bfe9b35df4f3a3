"""Which partitions lie in a path, and which of them a read opens."""

import shutil

import pytest

from horolog.broker.log.partition import Resources
from horolog.broker.log.storage import OverlayStorage, ReadOnlyStorage
from horolog.client.values.types import TopicPartition
from horolog.pipeline.base.positions import OptionError
from horolog.pipeline.options.options import Selection
from horolog.pipeline.reading.folders import Look, find_partitions, open_partitions
from tests.pipeline.reading.test_offline import log_of

T0 = TopicPartition("topic", 0)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data folder with a topic, an internal one, and folders of no partition."""
    folder, _ = log_of(tmp_path_factory.mktemp("folders"), segments=2)
    shutil.copytree(folder / "topic-0", folder / "__consumer_offsets-0")
    (folder / "empty-0").mkdir()
    (folder / "no partition").mkdir()
    (folder / "file-0").write_bytes(b"")
    return folder


def test_partitions_are_found_in_a_data_folder_and_in_their_own(data):
    storage = ReadOnlyStorage()
    assert set(find_partitions(str(data), storage)) == {T0, TopicPartition("__consumer_offsets", 0)}
    assert find_partitions(f"file://{data}/topic-0", storage) == {T0: str(data / "topic-0")}


@pytest.mark.parametrize(
    ("name", "said"),
    [("gone", "is not a folder"), ("empty-0", "neither a data folder nor the folder of a partition")],
)
def test_a_path_without_partitions_is_told(data, name, said):
    with pytest.raises(OptionError, match=said):
        find_partitions(str(data / name), ReadOnlyStorage())


def opened(data, selection, *, is_partial=False, with_transactions=False):
    found = open_partitions(
        str(data), selection, Resources(OverlayStorage(ReadOnlyStorage())), Look(is_partial, with_transactions)
    )
    return {place: (partition.log_start_offset, partition.log_end_offset) for place, partition in found.items()}


@pytest.mark.parametrize("look", [{}, {"is_partial": True}, {"with_transactions": True}])
def test_internal_topics_are_read_by_name_alone(data, look):
    assert opened(data, Selection(), **look) == {T0: (0, 400)}
    internal = TopicPartition("__consumer_offsets", 0)
    assert opened(data, Selection(topics=("__consumer_offsets",)), **look) == {internal: (0, 400)}
    assert opened(data, Selection(pattern="none")) == {}


def test_logs_begin_where_their_broker_says(data):
    path = data / "log-start-offset-checkpoint"
    path.write_text("0\n1\ntopic 0 120\n")
    try:
        assert opened(data, Selection(partitions=(T0,))) == {T0: (120, 400)}
    finally:
        path.unlink()


@pytest.mark.parametrize(
    "selection", [Selection(topics=("other",)), Selection(partitions=(TopicPartition("other", 0),))]
)
def test_what_is_not_there_is_told_with_what_is(data, selection):
    with pytest.raises(OptionError, match=r"has no other.*; it has __consumer_offsets, topic"):
        opened(data, selection)
