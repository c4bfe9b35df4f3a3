"""How a broker becomes a member, in a store that is calm or not."""

from dataclasses import replace

import pytest

from horolog.broker.base.answers import run
from horolog.broker.bucket.journal_objects import Founding, encode_founding
from horolog.broker.bucket.names import LOG, Wal, key
from horolog.broker.bucket.registration import ImportUnfinished, Registration, TwoOfOneNumber, at_one_address
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.store_journal import StoreJournal
from horolog.broker.bucket.wal_object import Identity, NewRun, encode
from tests.support.simulated_store import CALM, Schedule, SimulatedStore
from tests.unit.broker.bucket.bucket_states import ID, after, created, registered


class Store:
    """A simulated store, and brokers that register in it."""

    def __init__(self, seed=0, weather=CALM):
        self.schedule = Schedule()
        self.store = SimulatedStore(self.schedule, seed, weather)
        self.nonces, self.probed, self.errors = 0, [], []

    def nonce(self):
        self.nonces += 1
        return b"%16d" % self.nonces

    def registration(self, lives=False):
        access = StoreAccess(self.store, self.schedule.pause)

        def probe(member, done):
            self.probed.append(member)
            done(lives)

        return Registration(access, StoreJournal(access, self.nonce), self.nonce, probe)

    def register(self, *nodes, known_dead=None, lives=False):
        """What becomes of brokers that register at the same time, by number."""
        joined = {}

        async def register(node):
            try:
                joined[node] = await self.registration(lives).register(registered(node), known_dead)
            except TwoOfOneNumber as error:
                self.errors.append(str(error))

        for node in nodes:
            run(register(node))
        self.schedule.run()
        return joined


def test_members_that_advertise_one_address_are_found():
    state = after(registered(1), registered(2), replace(registered(3), listeners=registered(1).listeners))
    assert at_one_address(state, 3) == [(1, "host1:9092")]
    assert at_one_address(state, 1) == [(3, "host1:9092")]
    assert at_one_address(state, 2) == []


def test_no_broker_starts_behind_an_entry_that_it_cannot_read():
    store, refused = Store(), []
    store.store.objects[key(LOG, 1)] = b"of a later release"

    async def register():
        try:
            await store.registration().register(registered(1), None)
        except FormatError as error:
            refused.append(str(error))

    run(register())
    store.schedule.run()
    assert refused == [f"{key(LOG, 1)} cannot be read: no line with a right checksum"]


def test_no_broker_starts_on_a_part_of_an_import():
    store, ids = Store(), []
    founding = Founding("c", b"n" * 16, 2, "the folder of cluster c")
    store.store.objects[key(LOG, 0)] = encode_founding(founding)
    store.store.objects[key(LOG, 1)] = b"entry"

    async def found():
        try:
            ids.append(await store.registration().found("b"))
        except ImportUnfinished as error:
            store.errors.append(str(error))

    run(found())
    store.schedule.run()
    assert "an import of the folder of cluster c into this store has not ended" in store.errors[0]
    store.store.objects[key(LOG, 2)] = b"entry"
    run(found())
    store.schedule.run()
    assert ids == ["c"]


def test_the_first_broker_founds_the_cluster():
    store, ids = Store(), []

    async def found(new):
        ids.append(await store.registration().found(new))

    run(found("a"))
    run(found("b"))
    store.schedule.run()
    assert len(ids) == 2
    assert len(set(ids)) == 1


def test_something_else_in_the_place_of_the_founding_is_refused():
    store, faults = Store(), []
    store.store.objects[key(LOG, 0)] = b"x"

    async def found():
        try:
            await store.registration().found("a")
        except FormatError as error:
            faults.append(error)

    run(found())
    store.schedule.run()
    assert faults


@pytest.mark.parametrize("seed", range(30))
def test_brokers_that_register_at_the_same_time_are_all_members(seed):
    store = Store(seed, None)
    joined = store.register(1, 2, 3)
    assert sorted(joined) == [1, 2, 3]
    assert sorted(one.wal.incarnation for one in joined.values()) == [1, 2, 3]
    last = max(joined.values(), key=lambda one: one.state.number)
    assert last.state.nodes == (1, 2, 3)
    assert all(one.state.is_member(one.wal) for one in joined.values())


def test_a_predecessor_that_is_known_dead_is_fenced_unasked():
    store = Store()
    before = store.register(1)[1].wal
    run_of_it = NewRun(ID, 0, 0, 0, 0, 1, 0, 0, [b"x"])
    store.store.objects[key(before.folder, 0)] = encode(Identity(before, 0, 1, bytes(16)), [run_of_it])
    joined = store.register(1, known_dead=before)[1]
    assert joined.wal == Wal(1, 2)
    assert store.probed == []
    assert not joined.state.fenced
    assert key(before.folder, 1) in store.store.objects


def test_a_predecessor_that_does_not_answer_is_fenced_and_may_live():
    store = Store()
    before = store.register(1)[1].wal
    joined = store.register(1)[1]
    assert joined.state.fenced == {before}
    assert len(store.probed) == 1


def test_a_number_is_run_by_one_process():
    store = Store()
    store.register(1)
    assert store.register(1, lives=True) == {}
    assert store.errors == ["node.id=1 is in use: another broker with this id runs at machine1"]


def with_a_topic(store, brokers):
    """A topic that these brokers lead."""
    state = max((one.state for one in brokers.values()), key=lambda one: one.number)
    entry = created(partitions=6)
    becomes = state.apply(entry)
    store.registration().journal.append(entry, becomes, lambda _: None)
    store.schedule.run()
    return becomes


def withdrawn(store, joined):
    run(store.registration().withdraw(joined))
    store.schedule.run()
    return store.register(9)[9].state


@pytest.mark.parametrize("seed", range(30))
def test_a_broker_whose_start_has_failed_leaves_again_and_others_lead_what_it_led(seed):
    store = Store(seed, None)
    brokers = store.register(1, 2, 3)
    before = with_a_topic(store, brokers)
    assert before.led_by(2)
    wal = brokers[2].wal
    run_of_it = NewRun(ID, 0, 0, 0, 0, 1, 0, 0, [b"x"])
    store.store.objects[key(wal.folder, 0)] = encode(Identity(wal, 0, 1, bytes(16)), [run_of_it])
    after = withdrawn(store, brokers[2])
    assert after.nodes == (1, 3, 9)
    assert not after.fenced, "it serves nothing, so nothing waits for its lease"
    assert {lead.node for lead in after.leads.values()} == {1, 3}
    ends = {line[-2].end for line in after.lineages.values() if len(line) > 1}
    assert ends == {1}
    assert key(wal.folder, 1) in store.store.objects


@pytest.mark.parametrize("seed", range(60))
def test_a_broker_that_is_stopped_while_it_registers_is_no_member(seed):
    """At whatever moment, in a store that answers badly."""
    store, ended, stopped = Store(seed, None), [], []

    async def register():
        ended.append(await store.registration().register(registered(2), None, lambda: not stopped))

    store.register(1)
    store.schedule.later(seed / 60, lambda: stopped.append(True))
    run(register())
    store.schedule.run()
    (joined,) = ended
    state = store.register(9)[9].state
    assert state.nodes == ((1, 9) if joined is None else (1, 2, 9))
    assert not state.fenced


def test_a_broker_that_is_stopped_before_it_registers_writes_nothing():
    store, ended = Store(), []

    async def register():
        ended.append(await store.registration().register(registered(1), None, lambda: False))

    run(register())
    store.schedule.run()
    assert (ended, list(store.store.objects)) == ([None], [])


@pytest.mark.parametrize("seed", range(10))
def test_brokers_that_leave_again_at_the_same_time_leave_all_to_the_last(seed):
    store = Store(seed, None)
    brokers = store.register(1, 2, 3)
    with_a_topic(store, brokers)
    for node in (1, 2):
        run(store.registration().withdraw(brokers[node]))
    after = withdrawn(store, brokers[2])
    assert after.nodes == (3, 9)
    assert {lead.node for lead in after.leads.values()} == {3}


def test_the_only_broker_that_leaves_again_leaves_partitions_without_a_leader():
    store = Store()
    brokers = store.register(1)
    with_a_topic(store, brokers)
    after = withdrawn(store, brokers[1])
    assert after.nodes == (9,)
    assert {(lead.node, lead.epoch) for lead in after.leads.values()} == {(9, 1)}


def test_a_broker_that_others_have_fenced_has_nothing_to_leave():
    store = Store()
    brokers = store.register(1, 2)
    first = brokers[1]
    store.register(1)  # the same number again
    objects = set(store.store.objects)
    run(store.registration().withdraw(first))
    store.schedule.run()
    assert set(store.store.objects) == objects
