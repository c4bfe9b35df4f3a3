"""Where logs start is known whichever of the two files is damaged, and what a Kafka has written since hides nothing."""

import pytest
from crc32c import crc32c

from horolog.broker.log.files import CheckpointError, checkpoints, log_starts
from horolog.broker.log.storage import MemoryStorage

STARTS = {("a", 0): 14, ("b", 3): 5}
OURS, KAFKAS = f"/d/{log_starts.LOG_STARTS}", f"/d/{checkpoints.LOG_START_OFFSETS}"


@pytest.fixture
def storage():
    storage = MemoryStorage()
    storage.make_dir("/d")
    storage.write_atomically(OURS, log_starts.encode(STARTS))
    storage.write_atomically(KAFKAS, checkpoints.encode_offsets(STARTS))
    return storage


def starts(storage):
    return log_starts.load(storage, "/d").offsets


def test_what_is_written_is_read(storage):
    assert log_starts.decode(log_starts.encode(STARTS)) == STARTS
    assert log_starts.decode(log_starts.encode({})) == {}
    assert (starts(storage), log_starts.load(storage, "/d").fault) == (STARTS, None)


def test_how_often_the_record_was_written_is_told(storage):
    for record in (0, 7):
        data = log_starts.encode({("t", 1): 5}, record)
        storage.write_atomically(OURS, data)
        assert log_starts.decode(data) == {("t", 1): 5}
        assert log_starts.record_in(storage, "/d") == record
    storage.write_atomically(OURS, data[1:])
    assert log_starts.record_in(storage, "/d") == 0


@pytest.mark.parametrize("path", [OURS, KAFKAS])
def test_any_flipped_bit_changes_nothing(storage, path):
    for position in range(len(storage.read_all(path))):
        for mask in (1, 2, 4, 8, 16, 32, 64, 128):
            storage.corrupt(path, position, mask)
            found = log_starts.load(storage, "/d")
            assert found.offsets == STARTS
            assert found.fault is not None
            storage.corrupt(path, position, mask)


@pytest.mark.parametrize("data", [b"", b"\0\0\0", b"0\n1\n", None])
def test_either_file_is_enough(storage, data):
    for path in (OURS, KAFKAS):
        before = storage.read_all(path)
        if data is None:
            storage.remove(path)
        else:
            storage.write_atomically(path, data)
        assert starts(storage) == STARTS
        storage.write_atomically(path, before)


def test_what_a_kafka_has_written_since_hides_nothing(storage):
    kafkas = {("a", 0): 140, ("b", 3): 1, ("new", 0): 7}
    storage.make_dir("/d/new-0")
    storage.write_atomically(KAFKAS, checkpoints.encode_offsets(kafkas))
    assert starts(storage) == {("a", 0): 14, ("b", 3): 1, ("new", 0): 7}
    storage.write_atomically(KAFKAS, checkpoints.encode_offsets({("new", 0): 7}))
    assert starts(storage) == {("new", 0): 7}, "those that it does not name have been made anew"


def test_a_name_that_is_damaged_in_a_file_that_ours_has_not_followed_yet_is_none_of_a_kafkas(storage):
    """The broker ended between the two writes, and a bit of the newer one flipped."""
    storage.make_dir("/d/a-0")
    storage.write_atomically(KAFKAS, checkpoints.encode_offsets({("A", 0): 15, ("b", 3): 5}))
    assert starts(storage) == STARTS


@pytest.mark.parametrize(
    "data", [b"", b"horolog-log-starts 1\n", log_starts.encode(STARTS)[:-2], b"checksum 00000000\n"]
)
def test_what_is_not_whole_is_refused(data):
    with pytest.raises(CheckpointError):
        log_starts.decode(data)


@pytest.mark.parametrize("start", [(("t", -1), 5), (("t", 0), -5), (("", 0), 5)])
def test_a_start_that_cannot_be_is_neither_written_nor_read(start):
    with pytest.raises(AssertionError):
        log_starts.encode(dict([start]))
    (topic, index), offset = start
    body = f"horolog-log-starts 1\n{topic} {index} {offset}\n".encode()
    with pytest.raises(CheckpointError, match="cannot be"):
        log_starts.decode(body + f"checksum {crc32c(body):08x}\n".encode())
