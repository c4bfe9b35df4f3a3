"""The last five batches of producers outlive every end of the broker, and damage to their file costs no more than Kafka would know."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.log.partition import closing
from horolog.broker.log.producers import Remembered, RowFileError, producers_file
from horolog.broker.log.producers.producers_file import FILE_NAME, Appended
from horolog.broker.log.recovery.rescan import set_active_apart
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.log.validation import RefusedSet
from horolog.client.cli.dumping.kinds import kind_of
from horolog.client.cli.dumping.small_files import dump_small
from horolog.client.cli.examining.folder_check import check_small_files
from horolog.protocol.errors import ErrorCode
from tests.support.log_model import DIRECTORY, NOW_MS, Model, send, small_config

PATH = f"{DIRECTORY}/{FILE_NAME}"
SEVERAL = [Remembered(7, 1, [Appended(0, 0, 10, 10, NOW_MS), Appended(1, 3, 12, 14, NOW_MS)])]


@given(st.integers(0, len(producers_file.encode(SEVERAL)) - 1), st.integers(1, 255))
def test_no_changed_byte_and_no_cut_is_believed(position, change):
    good = producers_file.encode(SEVERAL)
    assert producers_file.decode(good) == SEVERAL
    hurt = bytearray(good)
    hurt[position] ^= change
    for bad in (bytes(hurt), good[:position], good + b"\0"):
        with pytest.raises(RowFileError):
            producers_file.decode(bad)


def filled(config=None):
    """Two producers take turns; where each batch is."""
    model = Model(config or small_config(segment_bytes=100_000))
    return model, {(pid, number): send(model, 2 * number, pid) for number in range(8) for pid in (7, 8)}


def stop(model):
    closing.close(model.partition)
    model.reopen(was_clean=True)


def kill(model):
    model.reopen(was_clean=False)


def roll_and_kill(model):
    """The snapshot of the roll is the newest; nothing was written behind it."""
    set_active_apart(model.partition, NOW_MS)
    model.partition.sync_state.save_producers(model.partition.producers, model.partition.log_end_offset)
    model.partition.sync()
    model.reopen(was_clean=False)


def stop_and_cut_power(model):
    closing.close(model.partition)
    model.storage.crash(random.Random(1))
    model.reopen(was_clean=True)


ENDS = [stop, kill, roll_and_kill, stop_and_cut_power]


@pytest.mark.parametrize("end", ENDS)
def test_five_batches_are_known_after_a_restart(end):
    model, places = filled()
    for number in range(8, 10):
        end(model)
        for (pid, sent), place in places.items():
            if sent >= number - 5:
                assert send(model, 2 * sent, pid) == place, "a batch that is sent again is told where it is"
        for pid in (7, 8):
            end_offset = model.partition.log_end_offset
            with pytest.raises(RefusedSet) as refused:
                send(model, 2 * number + 2, pid)
            assert refused.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            places[pid, number] = send(model, 2 * number, pid)
            assert places[pid, number] == end_offset, "the next one is taken"


def test_the_snapshot_keeps_one_batch_of_each_as_kafka_has_it():
    model, _ = filled()
    closing.close(model.partition)
    (snapshot,) = [name for name in model.storage.list_dir(DIRECTORY) if name.endswith(".snapshot")]
    assert len(model.storage.read_all(f"{DIRECTORY}/{snapshot}")) == 10 + 2 * 46


@pytest.mark.parametrize("kind", ["missing", "emptied", "cut", "random", "older", "of other places"])
def test_damage_costs_what_kafka_would_not_know_either(kind):
    model, places = filled()
    closing.close(model.partition)
    data = model.storage.read_all(PATH)
    elsewhere = [
        one._replace(batches=[batch._replace(first_offset=batch.first_offset + 1) for batch in one.batches])
        for one in producers_file.decode(data)
    ]
    spoilt = {
        "emptied": b"",
        "cut": data[:-5],
        "random": bytes(n * 7 % 256 for n in range(len(data))),
        "older": producers_file.encode(
            [Remembered(7, 0, [Appended(0, 1, 0, 1, NOW_MS), Appended(2, 3, 4, 5, NOW_MS)])]
        ),
        "of other places": producers_file.encode(elsewhere),
    }
    model.storage.remove(PATH)
    if kind in spoilt:
        model.storage.write_atomically(PATH, spoilt[kind])
    model.reopen(was_clean=True)
    assert send(model, 14) == places[7, 7], "the last one is known from the snapshot"
    with pytest.raises(RefusedSet):
        send(model, 12)
    assert send(model, 16) == model.partition.log_end_offset - 2
    closing.close(model.partition)
    model.reopen(was_clean=True)
    assert [send(model, 14), send(model, 16)] == [places[7, 7], model.partition.log_end_offset - 2]


def test_the_file_goes_when_there_is_nothing_to_keep():
    model, _ = filled()
    closing.close(model.partition)
    assert model.storage.exists(PATH)
    model.reopen(was_clean=True)
    for pid in (7, 8):
        send(model, 0, pid, epoch=1)
    closing.close(model.partition)
    assert not model.storage.exists(PATH)


def test_a_marker_behind_the_last_batch_changes_nothing():
    """A snapshot has one time for both, that of the marker."""
    model, places = filled()
    states = model.partition.producers
    known = states.get(7)
    states._producers[7] = known._replace(last_timestamp=NOW_MS + 5)
    closing.close(model.partition)
    model.reopen(was_clean=True)
    assert model.partition.producers.get(7).batches == known.batches
    assert send(model, 10) == places[7, 5]


def test_dump_shows_it_and_doctor_finds_it_damaged():
    data = producers_file.encode(SEVERAL)
    first, _, summary = dump_small(kind_of(PATH), data, None)
    assert (first["producer_id"], first["producer_epoch"], first["last_sequence"], first["last_offset"]) == (
        7,
        1,
        0,
        10,
    )
    assert summary == {"type": "summary", "entries": 2}
    model, _ = filled()
    closing.close(model.partition)
    model.storage.write_atomically(PATH, data[:-1])
    (found,) = check_small_files(model.storage, DIRECTORY)
    assert found["file"] == PATH
    model.reopen(was_clean=True)
    assert check_small_files(model.storage, DIRECTORY) == []


def test_the_file_is_there_as_long_as_somebody_is_known():
    storage = MemoryStorage()
    storage.make_dir("/p")
    producers_file.save(storage, "/p", [])
    assert not storage.exists(f"/p/{FILE_NAME}")
    producers_file.save(storage, "/p", SEVERAL)
    assert producers_file.load(storage, "/p") == {7: SEVERAL[0]}
    producers_file.save(storage, "/p", [])
    assert not storage.exists(f"/p/{FILE_NAME}")


def test_batches_out_of_their_order_are_neither_written_nor_read():
    first, second = SEVERAL[0].batches
    with pytest.raises(AssertionError, match="not in the order"):
        producers_file.encode([Remembered(7, 1, [second, first])])
    apart = [Remembered(7, 1, [second]), Remembered(7, 1, [first])]  # as two producers each is in order
    with pytest.raises(RowFileError, match="not in the order"):
        producers_file.decode(producers_file.encode(apart))
