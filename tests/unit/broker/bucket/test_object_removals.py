"""Objects that nothing names are removed after a while, and not before."""

from horolog.broker.bucket.object_removals import ObjectRemovals
from horolog.broker.bucket.store_access import StoreAccess
from horolog.stores.faults import StoreRefusal
from tests.support.shipping import ReadyStore, access_to


class Slow(ReadyStore):
    """Answers removals when a test says."""

    def __init__(self):
        super().__init__()
        self.waiting = []

    def delete(self, key, done):
        self.waiting.append(lambda: super(Slow, self).delete(key, done))


class Locking(ReadyStore):
    """Refuses to delete some objects."""

    locked = "ab"

    def delete(self, key, done):
        if key in self.locked:
            done(StoreRefusal("access denied"))
        else:
            super().delete(key, done)


def removals(store, times):
    return ObjectRemovals(access_to(store), lambda: times[0], lambda: 60_000)


def test_objects_wait_for_the_delay():
    store, times = ReadyStore(), [0.0]
    store.objects |= {"a": b"", "b": b"", "c": b""}
    found = removals(store, times)
    found.later(["a", "b"])
    times[0] = 30
    found.later(["c"])
    for at, left in ((59, "abc"), (60, "c"), (89, "c"), (90, "")):
        times[0] = at
        found.look()
        assert "".join(store.objects) == left
    assert len(found) == 0


def test_one_round_of_removals_is_made_at_a_time():
    store, times = Slow(), [100.0]
    found = removals(store, times)
    found.later(["a", "b", "c"])
    times[0] = 160
    found.look()
    found.later(["d"])
    times[0] = 300
    found.look()
    assert (len(store.waiting), len(found)) == (2, 1)
    while store.waiting:
        store.waiting.pop()()
    found.look()
    assert (len(store.waiting), len(found)) == (1, 0)


def test_objects_that_the_store_does_not_delete_hold_nothing_up():
    """However many: all others go, and they go once the store permits."""
    store, times, pauses = Locking(), [0.0], []
    store.objects |= dict.fromkeys("abcd", b"")
    found = ObjectRemovals(
        StoreAccess(store, lambda seconds, done: pauses.append(done)), lambda: times[0], lambda: 60_000
    )
    found.later("abcd")
    times[0] = 60
    found.look()
    assert "".join(store.objects) == "ab"
    store.objects |= dict.fromkeys("ef", b"")
    found.later("ef")
    times[0] = 120
    found.look()
    assert "".join(store.objects) == "ab"
    store.locked = ""
    pauses.pop()(None)
    assert not store.objects
