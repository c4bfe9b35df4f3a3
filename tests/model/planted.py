"""Bugs planted in the machines and in the brokers of `world`, each of which breaks a promise within 1,000 seeds."""

from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from unittest.mock import patch

from horolog.broker.base.answers import Answer
from horolog.broker.bucket import wal_fencing, wal_merging
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.wal_writer import WalWriter
from horolog.stores.object_store import Outcome
from tests.model.world import World


class TakenIsMine(WalWriter):
    def _learn_taken(self, number, other):
        self._learn_made(number)


class AcknowledgesOutOfOrder(WalWriter):
    def _learn_made(self, number):
        super()._learn_made(number)
        self._events.safe(number + 1)


class GoesOnFenced(WalWriter):
    """Its numbers above the fence count."""

    def _learn_taken(self, number, other):
        self._made.add(number)


async def unknown_is_made(self, key, data):
    """As a client that says 409 is "exists", and then believes that it is its own."""
    created = await Answer(partial(self._store.create, key, data))
    if created.outcome is not Outcome.TAKEN:
        return None
    there = await self.read(key)
    return None if there == data else there


async def never_void(store, wal, number):
    return False


async def merge_anything(store, writer, mark, wanted, nonce):
    return await wal_merging.merge(store, SimpleNamespace(wal=writer.wal, safe_end=wanted.upto), mark, wanted, nonce)


async def remove_before_the_mark(store, writer, mark, wanted, nonce):
    for number in range(0 if mark is None else mark.upto, wanted.upto):
        await store.delete(f"{writer.wal.folder}/{number:020}")
    return await wal_merging.merge(store, writer, mark, wanted, nonce)


async def remove_without_merging(store, writer, mark, wanted, nonce):
    return await wal_merging.merge(store, writer, mark, wanted._replace(runs=wanted.runs[1:]), nonce)


OF_MACHINES = {
    "taken_is_mine": {"writer_class": TakenIsMine},
    "ack_out_of_order": {"writer_class": AcknowledgesOutOfOrder},
    "goes_on_fenced": {"writer_class": GoesOnFenced},
    "merge_unsafe": {"merge": merge_anything},
    "trim_without_mark": {"merge": remove_before_the_mark},
    "trim_before_merging": {"merge": remove_without_merging},
}
OF_MODULES = {
    "no_trim_check": (wal_fencing, "is_void", never_void),
    "fences_overlooked": (wal_fencing, "_is_no_data", wal_fencing._is_missing),
    "conflict_is_taken": (StoreAccess, "create", unknown_is_made),
}
OF_BROKERS = (
    "entry_without_fence", "hand_over_unshipped", "resume_while_unknown", "entries_taken_blindly", "local_tail_kept", "last_wal_only",
    "404_is_end", "strays_replayed", "runs_of_any_epoch",
)  # fmt: skip
BUGS = (*OF_MACHINES, *OF_MODULES, *OF_BROKERS)


@contextmanager
def planted(bug):
    """Makes worlds with this bug, from a seed."""
    with patch.object(*OF_MODULES[bug]) if bug in OF_MODULES else patch.object(World, "bug", bug, create=True):
        yield lambda seed: World(seed, bug, **OF_MACHINES.get(bug, {}))
