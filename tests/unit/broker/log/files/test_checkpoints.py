"""The checkpoint files: byte for byte what real brokers write, and never believed when damaged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.log.files import CheckpointError, checkpoints
from horolog.broker.log.storage import MemoryStorage

NAMES = (
    checkpoints.RECOVERY_POINTS,
    checkpoints.HIGH_WATERMARKS,
    checkpoints.LOG_START_OFFSETS,
    checkpoints.CLEANER_OFFSETS,
)


@pytest.fixture
def storage():
    made = MemoryStorage()
    made.make_dir("/data")
    return made


def test_offset_checkpoints_of_real_brokers_come_back_byte_for_byte(golden_root):
    seen = 0
    for name in NAMES:
        for path in golden_root.glob(f"*/*/logdir/{name}"):
            data = path.read_bytes()
            if data:
                assert checkpoints.encode_offsets(checkpoints.decode_offsets(data)) == data, path
                seen += 1
    assert seen > 100


def test_partition_metadata_of_real_brokers_comes_back_byte_for_byte(golden_root):
    paths = list(golden_root.glob("*/*/partition.metadata"))
    assert paths
    for path in paths:
        data = path.read_bytes()
        topic_id = checkpoints.decode_partition_metadata(data)
        assert len(topic_id) == 16
        assert checkpoints.encode_partition_metadata(topic_id) == data


def test_clean_shutdown_mark_of_3_9(golden_root):
    data = (golden_root / "v2-txn/clean/logdir/.kafka_cleanshutdown").read_bytes()
    assert checkpoints.decode_clean_shutdown(data) == 365
    assert checkpoints.encode_clean_shutdown(365) == data


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"7", b'{"brokerEpoch":"x"}', b"\xff"])
def test_any_clean_shutdown_mark_counts_whatever_it_holds(data):
    assert checkpoints.decode_clean_shutdown(data) is None


@given(
    st.dictionaries(
        st.tuples(st.from_regex(r"[a-zA-Z0-9._-]{1,30}", fullmatch=True), st.integers(0, 2**31 - 1)),
        st.integers(0, 2**63 - 1),
    )
)
def test_offsets_survive_the_round_trip(offsets):
    assert checkpoints.decode_offsets(checkpoints.encode_offsets(offsets)) == offsets


def test_every_cut_and_every_changed_byte_of_the_frame_is_noticed():
    data = checkpoints.encode_offsets({("t", 0): 12, ("u", 1): 34})
    assert data == b"0\n2\nt 0 12\nu 1 34\n"
    for size in range(1, len(data)):
        with pytest.raises(CheckpointError):
            checkpoints.decode_offsets(data[:size])


@pytest.mark.parametrize(
    "data",
    [
        b"1\n0\n",  # a version nobody knows
        b"0\n1\n",  # fewer entries than promised
        b"0\n0\nt 0 1\n",  # more
        b"0\n1\nt 0\n",
        b"0\n1\nt 0 -1\n",
        b"0\n1\nt x 1\n",
        b"0\n1\n 0 1\n",
        b"0\n1\nt 0 9223372036854775808\n",
        b"0\n1\nt 2147483648 1\n",
        b"0\n2\nt 0 1\nt 0 2\n",  # the same partition twice
        b"0\n1\nt 0 1 2\n",
        b"\xff\xfe\n",
        b"0\n-1\n",
        bytes(40),
    ],
)
def test_damage_is_an_error_with_a_reason(data):
    with pytest.raises(CheckpointError, match=r"\w"):
        checkpoints.decode_offsets(data)


def test_a_missing_and_an_empty_file_are_no_fault_and_a_damaged_one_is(storage):
    path = "/data/recovery-point-offset-checkpoint"
    assert checkpoints.load_offsets(storage, path) == checkpoints.Loaded({}, None)
    storage.write_atomically(path, b"")
    assert checkpoints.load_offsets(storage, path) == checkpoints.Loaded({}, None)
    storage.write_atomically(path, b"0\n2\nt 0 1\n")
    loaded = checkpoints.load_offsets(storage, path)
    assert loaded.offsets == {}
    assert path in loaded.fault
    checkpoints.save_offsets(storage, path, {("t", 0): 1})
    assert checkpoints.load_offsets(storage, path) == checkpoints.Loaded({("t", 0): 1}, None)


def test_the_clean_shutdown_mark_is_taken_once_and_for_good(storage):
    checkpoints.mark_clean_shutdown(storage, "/data", 3)
    assert checkpoints.take_clean_shutdown(storage, "/data")
    storage.crash()
    assert not checkpoints.take_clean_shutdown(storage, "/data")


def test_topic_id_in_the_partition_folder(storage):
    assert checkpoints.load_topic_id(storage, "/data") is None
    checkpoints.save_topic_id(storage, "/data", bytes(range(16)))
    assert checkpoints.load_topic_id(storage, "/data") == bytes(range(16))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"version: 0",
        b"version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ",
        b"version: 0\ntopic_id: x",
        b"version: 0\ntopic_id: ",
        b"version: 0\ntopic_id: ????????????????????AQ",
    ],
)
def test_damaged_partition_metadata_is_an_error(data):
    with pytest.raises(CheckpointError):
        checkpoints.decode_partition_metadata(data)


@pytest.mark.parametrize(("partition", "offset"), [(("", 0), 1), (("t", -1), 1), (("t", 2**31), 1), (("t", 0), -1)])
def test_a_partition_that_cannot_be_is_neither_written_nor_read(partition, offset):
    with pytest.raises(AssertionError):
        checkpoints.encode_offsets({partition: offset})
    with pytest.raises(CheckpointError):
        checkpoints.decode_offsets(f"0\n1\n{partition[0]} {partition[1]} {offset}\n".encode())


def test_a_line_is_one_line_and_a_topic_id_has_its_size():
    with pytest.raises(AssertionError, match="several"):
        checkpoints.frame_lines(["a 0 1\nb 0 2"])
    with pytest.raises(AssertionError, match="not a topic id"):
        checkpoints.encode_partition_metadata(bytes(15))
