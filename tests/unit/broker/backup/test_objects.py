"""Pieces go into objects and come out of them; differences are noticed."""

from itertools import count

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.backup import objects
from horolog.broker.backup.moment import KeptPiece
from horolog.broker.backup.objects import LostPiece, Patient, PieceReader, PieceWriter
from horolog.broker.backup.pacing import BytePace
from horolog.stores.faults import StoreError
from horolog.stores.memory_store import MemoryStore
from horolog.stores.object_store import Created, Outcome


class Moody(MemoryStore):
    """Answers creates as the script says, and then well."""

    def __init__(self, *script):
        super().__init__(ManualClock(0))
        self.script = list(script)

    def create(self, key, data):
        return self.script.pop(0) if self.script else super().create(key, data)


UNKNOWN = Created(Outcome.UNKNOWN, "no answer")


def written(store, *parts, slept=None):
    names = (f"{number:032x}" for number in count())
    patient = Patient(store, (slept if slept is not None else []).append)
    writer = PieceWriter(patient, lambda: next(names), BytePace(0, lambda: 0.0, lambda _: None))
    pieces = [writer.add(one) for one in parts]
    writer.flush()
    writer.flush()
    return writer, pieces


def test_pieces_share_an_object_until_it_is_full(monkeypatch):
    monkeypatch.setattr(objects, "OBJECT_BYTES", 10)
    store = Moody()
    writer, pieces = written(store, b"12345", b"6789", b"abc", b"x" * 30)
    assert [(one.object[-1], one.position) for one in pieces] == [("0", 0), ("0", 5), ("1", 0), ("2", 0)]
    assert writer.shipped_bytes == 42
    reader = PieceReader(store)
    assert [reader.read(one) for one in pieces] == [b"12345", b"6789", b"abc", b"x" * 30]


def test_a_create_without_an_answer_is_tried_again():
    slept = []
    store = Moody(UNKNOWN, UNKNOWN)
    (piece,) = written(store, b"data", slept=slept)[1]
    assert len(slept) == 2
    assert store.get(piece.key) == b"data"


@pytest.mark.parametrize(("created", "left"), [(UNKNOWN, 0), (Created(Outcome.UNKNOWN, "denied", True), 5)])
def test_a_store_that_does_not_take_it(created, left):
    store = Moody(*[created] * objects.ATTEMPTS)
    with pytest.raises(StoreError, match=created.fault):
        Patient(store, lambda _: None).create("data/x", b"1")
    assert len(store.script) == left


def test_a_key_that_is_taken():
    store = Moody()
    patient = Patient(store, lambda _: None)
    assert [patient.create("k", b"1"), patient.create("k", b"1"), patient.create("k", b"2")] == [None, None, b"1"]


@pytest.mark.parametrize("small_bytes", [1, 1 << 20])
def test_lost_and_damaged_pieces(monkeypatch, small_bytes):
    monkeypatch.setattr(objects, "SMALL_BYTES", small_bytes)
    store = Moody()
    (first, second) = written(store, b"first", b"second")[1]
    with pytest.raises(LostPiece) as lost:
        PieceReader(store).read(second._replace(crc=0))
    assert not lost.value.is_missing
    with pytest.raises(LostPiece):
        PieceReader(store).read(KeptPiece(7, first.crc, first.object, 5))
    store.delete(first.key)
    with pytest.raises(LostPiece) as lost:
        PieceReader(store).read(first)
    assert lost.value.is_missing


def test_a_few_objects_are_remembered(monkeypatch):
    monkeypatch.setattr(objects, "OBJECT_BYTES", 1)
    monkeypatch.setattr(objects, "KEPT_OBJECTS", 2)
    store = Moody()
    pieces = written(store, b"a", b"b", b"c")[1]
    reader = PieceReader(store)
    assert [reader.read(one) for one in pieces] == [b"a", b"b", b"c"]
    for one in pieces:
        store.delete(one.key)
    assert (reader.read(pieces[2]), reader.read(pieces[1])) == (b"c", b"b")
    with pytest.raises(LostPiece):
        reader.read(pieces[0])
