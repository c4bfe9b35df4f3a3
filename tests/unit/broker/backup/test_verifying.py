"""Every piece that moments name is read."""

from horolog.broker.backup.verifying import verify
from tests.support.backed_up import BackedUp


def test_all_is_there():
    made, seen = BackedUp(), []
    moments = [made.round().moment]
    made.source.fill("events", 3)
    moments.append(made.round().moment)
    found = verify(made.store, moments, seen.append)
    assert (found.objects, found.findings) == (2, ())
    assert found.size_bytes == sum(seen) == sum(one.size_bytes for one in made.store.list("data"))


def test_objects_that_are_lost_or_damaged():
    made = BackedUp()
    first = made.round().moment
    made.source.fill("events", 3)
    second = made.round().moment
    (lost,) = first.objects()
    (damaged,) = second.objects() - first.objects()
    data = bytearray(made.store.get(damaged))
    data[5] ^= 1
    made.store.delete(lost)
    made.store.delete(damaged)
    made.store.create(damaged, bytes(data[:-1]))
    found = verify(made.store, [second])
    assert {one.name: one.kind.value for one in found.findings} == {lost: "missing", damaged: "damaged"}
