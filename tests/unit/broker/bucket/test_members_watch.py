"""The other brokers as one of them knows them: in a simulated company whose machines, links and store are under the test's hand."""

import logging

import pytest

from horolog.broker.base.answers import run
from horolog.broker.bucket import wal_object
from horolog.broker.bucket.bucket_entries import Suspected, SuspicionEnded
from horolog.broker.bucket.detection import FenceOff
from horolog.broker.bucket.journal_objects import decode_log_entry
from horolog.broker.bucket.members_watch import Pong
from horolog.broker.bucket.names import LOG, Wal, key
from horolog.broker.bucket.wal_object import Identity
from horolog.protocol.errors import ErrorCode
from tests.simulation.bucket.company_world import CompanyWorld, SimulatedMachine
from tests.simulation.bucket.processes import TOPIC, Process
from tests.support.simulated_store import CALM


class Calm(CompanyWorld):
    """Brokers in a calm store, without clients, after they have all registered."""

    def __init__(self, brokers=3, seed=1):
        super().__init__(seed, CALM, brokers=brokers, faults=False)
        self.client = lambda: None
        self.run_for(8)

    def run_for(self, seconds):
        self.schedule.run(until=self.schedule.now + seconds)

    def __getitem__(self, node):
        return self.machines[node].process


@pytest.fixture
def world():
    return Calm()


def test_all_brokers_are_members_and_hold_their_lease(world):
    state = world.journal()
    assert state.nodes == (1, 2, 3)
    for process in world.processes():
        assert process.changes.state == state
        assert process.watch.lease.holds()
        assert process.watch.silent_s == 0


def test_a_change_is_answered_once_the_others_have_applied_it(world):
    seen = []
    world[1].changes.make(lambda state: Suspected(2, 1), lambda _: seen.append(world[2].changes.state.number))
    number = world.journal().number
    world.run_for(1)
    assert seen == [number + 1]


def test_a_change_does_not_wait_for_a_broker_that_does_not_answer(world):
    world.links.cuts |= {(2, 1), (3, 1), (1, 2), (1, 3)}
    world.run_for(2.1)
    seen = []
    world[1].changes.make(lambda state: Suspected(2, 3), lambda _: seen.append(world.schedule.now))
    world.run_for(0.4)
    assert len(seen) == 1


def test_a_broker_that_dies_is_fenced_and_its_partitions_move(world, caplog):
    gone = world.journal().leads[TOPIC, 0].node
    dead = world.journal().led_by(gone)
    with caplog.at_level(logging.WARNING):
        world.machines[gone].end_process()
        world.run_for(6)
    state = world.journal()
    assert state.nodes == tuple({1, 2, 3} - {gone})
    assert {state.leads[place].node for place in dead} <= set(state.nodes)
    for place in dead:
        assert any(process.high_watermark(place) for process in world.processes())
    assert f"broker {gone} is gone: fencing its WAL {gone}-" in caplog.text


def test_a_broker_that_stands_still_finds_itself_fenced_and_begins_anew(world):
    before = world[2].wal
    world.machines[2].awake_at = world.schedule.now + 20
    world.run_for(15)
    assert not world.journal().is_member(before)
    assert not world[2].watch.lease.holds()
    world.run_for(15)
    assert world.journal().nodes == (1, 2, 3)
    assert world[2].wal.incarnation > before.incarnation


def test_the_journal_is_read_often_while_a_suspicion_waits_for_its_answer(world, monkeypatch):
    reads, changes = [], world[1].changes
    catch_up = changes.catch_up
    monkeypatch.setattr(changes, "catch_up", lambda: reads.append(world.schedule.now) or catch_up())
    world.run_for(2)
    assert len(reads) <= 4, "a third of the lease apart"
    world.machines[2].awake_at = world.schedule.now + 20
    while not world.journal().suspicions:
        world.run_for(0.1)
    reads.clear()
    world.run_for(1)
    assert len(reads) >= 5


def test_a_fence_in_the_wal_ends_the_lease_before_the_journal_says_so(world):
    watch, ended = world[2].watch, []
    world[2].fenced = ended.append
    watch.wal_ended()
    watch.wal_ended()
    assert not watch.lease.holds()
    assert ended == [None]
    watch.applied()
    world.run_for(3)
    assert ended == [None]
    assert repr(watch).endswith("over>")


def test_a_successor_with_the_same_number_is_named(world):
    ended = []
    world[2].fenced = ended.append
    old = world[2]
    Process(world.machines[2], None)  # on a machine that was copied
    world.run_for(5)
    assert ended == [Wal(2, world.journal().members[2].incarnation)]
    assert old.is_dead is False


def test_a_broker_without_a_link_is_suspected_answers_and_is_not_suspected_again(world, caplog):
    world.links.cuts |= {(1, 2)}
    with caplog.at_level(logging.WARNING):
        world.run_for(4)
        assert set(world.journal().suspicions[2]) == {1, 2}
        world.links.cuts.clear()
        world.run_for(2)
    assert world.journal().suspicions == {}
    assert world.journal().nodes == (1, 2, 3)
    told = [one.getMessage() for one in caplog.records]
    assert "broker 2 is suspected to have failed" in told
    assert "other brokers suspect that this broker has failed" in told
    assert "broker 2 is no longer suspected" in told


def test_a_broker_without_the_store_says_so_and_does_nothing(world):
    world.store.create = world.store.get = lambda *_: None
    world.run_for(5)
    assert world[1].watch.silent_s > 3
    assert not world[1].watch.lease.holds()
    pongs = []
    world[1].watch.pinged(0, pongs.append)
    assert pongs[0].silent_s > 3


def without_store(process):
    """The store answers the others alone."""
    front = process.access._store
    front.create = front.get = front.list = lambda *_, **__: None


def test_a_broker_that_alone_is_without_the_store_leaves_its_clients_to_others(world, caplog):
    process, line = world[1], "the store answers other brokers and not this one, which leaves its clients to them"
    without_store(process)
    world.run_for(3)
    assert line not in caplog.text, "others may be about to lose it, too"
    world.run_for(4)
    assert caplog.text.count(line) == 1
    assert process.watch.lease.left_s() == float("-inf")
    assert world[1] is not process, "it begins anew"
    world.run_for(10)
    assert world.journal().nodes == (1, 2, 3)


def test_a_broker_that_hears_from_the_store_in_time_is_not_cut_off(world, caplog):
    """As one that stood still: others answer it before the store does."""
    watch = world[1].watch
    watch._read_s -= 30.0
    assert watch.is_cut_off
    world.run_for(3)
    assert not watch.is_cut_off
    assert world[1].watch is watch
    assert "leaves its clients" not in caplog.text


def test_a_store_that_answers_no_broker_cuts_none_off(world, caplog):
    for process in world.processes():
        without_store(process)
    for _ in range(30):
        world.run_for(0.5)
        assert not any(process.watch.is_cut_off for process in world.processes())
    assert "leaves its clients" not in caplog.text


def test_the_log_says_once_that_clients_are_refused_and_served_again(world, caplog):
    for process in world.processes():
        without_store(process)
    world.run_for(5)
    refused = [one.getMessage() for one in caplog.records if "clients are" in one.getMessage()]
    assert len(refused) == 3
    assert all(one.startswith("clients are refused: this broker has not heard from the store for ") for one in refused)
    for process in world.processes():
        process.watch.lease.proved(process.watch.lease.now())
    world.run_for(0.2)
    assert caplog.text.count("clients are served again: the store answers this broker") == 3


def test_a_ping_is_answered_when_the_journal_is_read_so_far_or_after_a_while(world):
    pongs = []
    world[1].watch.pinged(world.journal().number + 5, pongs.append)
    assert pongs == []
    world.run_for(1)
    assert [one.wal for one in pongs] == [world[1].wal]
    world[1].watch.end()
    world[1].watch.pinged(world.journal().number, pongs.append)
    assert len(pongs) == 2


def test_an_answer_of_an_earlier_incarnation_says_nothing(world):
    world[1].ping = lambda node, number, done: done(Pong(Wal(node, 99), 0.0))
    world.run_for(3)
    assert 1 in world.journal().suspicions[2] or 1 in world.journal().suspicions[3]


def test_an_entry_that_says_nothing_new_is_not_written(world):
    watch, number = world[1].watch, world.journal().number
    watch._do(SuspicionEnded(2, 1))
    watch._do(SuspicionEnded(2, 1))
    world.run_for(1)
    assert world.journal().number == number


def test_one_fences_and_the_other_finds_it_done(world):
    world.machines[3].end_process()
    act = FenceOff(world.journal().wal_of(3))
    for node in (1, 2):
        world[node].watch._do(act)
        world[node].watch._do(act)
    world.run_for(4)
    assert [type(entry).__name__ for entry in entries(world)].count("WalEnded") == 1


def test_a_broker_that_another_has_fenced_is_not_called_alive(world, caplog):
    caplog.set_level(logging.INFO)
    wal = world.journal().wal_of(3)
    world.machines[3].end_process()
    world.run_for(6)
    said = [one.getMessage() for one in caplog.records]
    assert sum(one.startswith("broker 3 is fenced at number ") for one in said) == 1
    assert said.count("broker 3 is no longer a member") == 2, "each of the others says so"
    run(world[1].watch._fence(wal, is_wanted=lambda: False))
    world.run_for(1)
    assert "is not gone" not in caplog.text


def test_a_broker_that_answers_again_is_not_chased_along_its_wal(world, caplog):
    wal = world.journal().wal_of(3)
    for number in range(20):
        world.store.objects[key(wal.folder, number)] = wal_object.encode(
            Identity(wal, number, number + 1, bytes(16)), []
        )
    with caplog.at_level(logging.WARNING):
        world[1].watch._do(FenceOff(wal))
        world.run_for(5)
    assert world.journal().is_member(wal)
    assert [one.getMessage() for one in caplog.records if "is not gone" in one.getMessage()] == [
        f"broker 3 is not gone: {wal} continues at number 20"
    ]


def test_a_wal_with_a_strange_object_cannot_be_fenced(world, caplog):
    world.machines[3].end_process()
    wal = world.journal().wal_of(3)
    world.store.objects[key(wal.folder, 0)] = b"strange"
    with caplog.at_level(logging.ERROR):
        world.run_for(5)
    assert world.journal().is_member(wal)
    assert any("cannot be fenced" in one.getMessage() for one in caplog.records)


def unregistered(world, by, node):
    """What `by` answers to the request that takes a broker off the list of members."""
    answers = []

    async def ask():
        answers.append(await world[by].watch.unregister(node))

    run(ask())
    world.run_for(2.4)
    (answer,) = answers
    return answer


@pytest.mark.parametrize("by", [1, 2])
def test_a_broker_that_runs_is_not_unregistered(world, by):
    answer = unregistered(world, by, 2)
    assert answer.code == ErrorCode.INVALID_REQUEST
    assert answer.message == "broker 2 is running: stop it, and it leaves the cluster"
    assert world.journal().nodes == (1, 2, 3)


def test_a_number_that_no_member_has_is_not_registered(world):
    answer = unregistered(world, 1, 7)
    assert (answer.code, answer.message) == (
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        "Broker ID 7 is not currently registered",
    )


def test_a_broker_that_does_not_answer_is_unregistered_before_it_would_be_fenced(world):
    wal, led = world.journal().wal_of(3), world.journal().led_by(3)
    world.machines[3].awake_at = world.schedule.now + 30
    assert unregistered(world, 1, 3) is None
    state = world.journal()
    assert (state.nodes, state.suspicions) == ((1, 2), {})
    assert {state.leads[place].node for place in led} <= {1, 2}
    world.run_for(40)
    assert world.journal().wal_of(3).incarnation > wal.incarnation, "it goes on, and registers again"


def test_a_broker_that_is_away_already_is_unregistered_all_the_same(world):
    world.machines[3].end_process()
    world.run_for(15)
    assert world.journal().nodes == (1, 2)
    assert unregistered(world, 1, 3) is None
    assert unregistered(world, 2, 7).code == ErrorCode.BROKER_ID_NOT_REGISTERED


@pytest.mark.parametrize("asked_after_s", [0, 45])
def test_a_broker_that_is_killed_right_after_it_has_joined_is_unregistered(world, asked_after_s):
    """It has led nothing, and the broker that is asked may not have read of it yet."""
    joining = world.machines[4] = SimulatedMachine(world, 4)
    joining.start()
    while world.journal().wal_of(4) is None:
        world.run_for(0.001)
    joining.end_process()
    assert world[1].watch.state.wal_of(4) is None
    world.run_for(asked_after_s)
    assert not [place for place, line in world.journal().lineages.items() if any(one.wal.node == 4 for one in line)]
    assert unregistered(world, 1, 4) is None
    assert world.journal().nodes == (1, 2, 3)


def test_a_member_whose_wal_cannot_be_fenced_stays(world):
    world.machines[3].end_process()
    world.store.objects[key(world.journal().wal_of(3).folder, 0)] = b"strange"
    assert unregistered(world, 1, 3).code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.journal().nodes == (1, 2, 3)


def test_a_broker_alone_is_a_company(world):
    alone = Calm(brokers=1)
    assert alone.journal().nodes == (1,)
    assert alone[1].watch.lease.holds()
    assert TOPIC == b"t" * 16


def entries(world):
    return [decode_log_entry(world.store.objects[key(LOG, n)], n).entry for n in range(1, world.journal().number + 1)]
