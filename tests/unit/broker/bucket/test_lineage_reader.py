"""The records of a partition from all WALs of its lineage: which runs count, in which order, and what a loss leaves."""

import pytest

from horolog.broker.bucket import lineage_reader
from horolog.broker.bucket.lineage_reader import feed, read_indexes, runs_of
from horolog.broker.bucket.names import Wal, key
from horolog.broker.bucket.seams import Opening, Stretch
from horolog.broker.bucket.wal_index import Gone
from tests.support.log_model import small_config
from tests.support.shipping import TOPIC_ID, ReadyStore, access_to, in_full, put_merged, put_object, run_at

ONE, TWO, MINE = Wal(1, 10), Wal(2, 20), Wal(3, 30)


@pytest.fixture
def store():
    return ReadyStore()


def opening(*stretches, partition=0):
    lineage = (*(Stretch(*one) for one in stretches), Stretch(9, MINE))
    return Opening("t", TOPIC_ID, partition, small_config(), lineage)


def read(store, wanted, lost=()):
    """The offsets of the runs that are passed on."""
    found = []
    runs = runs_of(wanted, in_full(read_indexes(access_to(store), [wanted])))
    in_full(feed(access_to(store), runs, lambda one, data: found.append((one.run.base_offset, len(data))), set(lost)))
    return [offset for offset, _ in found]


def test_a_new_partition_has_no_records(store):
    assert read(store, opening()) == []
    assert store.asked == []


def test_stretches_follow_each_other(store):
    put_object(store, ONE, 0, run_at(0, 0, epoch=1))
    put_object(store, TWO, 0, run_at(1, 0, epoch=2))
    put_object(store, ONE, 1, run_at(2, 1, epoch=3))
    assert read(store, opening((1, ONE, 1), (2, TWO, 1), (3, ONE, 2))) == [0, 1, 2]


def test_runs_of_another_epoch_or_behind_the_end_are_void(store):
    put_object(store, ONE, 0, run_at(0, 0, epoch=1), run_at(1, 0, epoch=4))
    put_object(store, ONE, 1, run_at(1, 1, epoch=1))
    put_object(store, ONE, 2, run_at(5, 2, epoch=4))
    wanted = opening((1, ONE, 1), (4, ONE, 3))
    assert read(store, wanted) == [0, 1, 5]
    assert read(store, opening((1, ONE, 2))) == [0, 1]


def test_a_wal_that_ended_empty_is_not_asked_for(store):
    assert read(store, opening((1, ONE, 0))) == []
    assert store.asked == []


def test_a_stretch_without_an_end_is_a_mistake(store):
    with pytest.raises(AssertionError, match="is not over"):
        runs_of(opening((1, ONE, None)), {})


def test_each_wal_is_read_once_for_all_partitions(store):
    put_object(store, ONE, 0, run_at(0, 0), run_at(7, 0, partition=1))
    several = [opening((0, ONE, 1)), opening((0, ONE, 1), partition=1)]
    indexes = in_full(read_indexes(access_to(store), several))
    assert store.asked == [key(ONE.folder, 0)]
    assert [[run.run.base_offset for run in runs_of(one, indexes)] for one in several] == [[0], [7]]


@pytest.fixture
def in_parts(monkeypatch):
    """Objects are large: their runs are read by ranges."""
    monkeypatch.setattr("horolog.broker.bucket.wal_index.WHOLE_BYTES", 10)


@pytest.mark.usefixtures("in_parts")
def test_runs_that_lie_together_are_read_together(store, monkeypatch):
    put_merged(store, ONE, 0, 3, *(run_at(n, n) for n in range(3)))
    put_object(store, ONE, 3, run_at(3, 3))
    wanted = opening((0, ONE, 4))
    runs = runs_of(wanted, in_full(read_indexes(access_to(store), [wanted])))
    store.asked.clear()
    in_full(feed(access_to(store), runs, lambda *_: None, set()))
    assert len(store.asked) == 2
    monkeypatch.setattr(lineage_reader, "RANGE_BYTES", 1)
    in_full(feed(access_to(store), runs, lambda *_: None, set()))
    assert len(store.asked) == 2 + 4


@pytest.mark.usefixtures("in_parts")
def test_an_object_that_goes_before_its_runs_are_read_is_gone_once_and_lost_then(store, caplog):
    put_object(store, ONE, 0, run_at(0, 0))
    put_object(store, ONE, 1, run_at(1, 1))
    wanted = opening((0, ONE, 2))
    access = access_to(store)
    runs, name, found = (
        runs_of(wanted, in_full(read_indexes(access_to(store), [wanted]))),
        key(ONE.folder, 0),
        [],
    )
    del store.objects[name]

    async def fed(lost):
        try:
            await feed(access, runs, lambda one, _: found.append(one.run.base_offset), lost)
        except Gone as gone:
            return gone.missing

    assert in_full(fed(set())) == name
    assert not access.given_up
    assert in_full(fed({name})) is None
    assert found == [1]
    assert access.given_up == {name}
    assert "offsets 0 up to 1 of partition 0 are lost: the object is missing" in caplog.text


def test_a_run_whose_bytes_were_altered_is_left_out(store, caplog):
    put_object(store, ONE, 0, run_at(0, 0), run_at(1, 0, epoch=1))
    data = bytearray(store.objects[key(ONE.folder, 0)])
    data[100] ^= 1
    store.objects[key(ONE.folder, 0)] = bytes(data)
    assert read(store, opening((0, ONE, 1), (1, ONE, 1))) == [1]
    assert "offsets 0 up to 1 of partition 0 are lost" in caplog.text
