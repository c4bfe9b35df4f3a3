"""Whom a broker takes for gone, and when: the machine alone, with the time as an argument."""

from horolog.broker.bucket.bucket_entries import Suspected, SuspicionEnded, WalEnded
from horolog.broker.bucket.detection import Detection, FenceOff
from horolog.broker.bucket.names import Wal
from tests.unit.broker.bucket.bucket_states import after, of, registered

TIMEOUT_S = 2.0


class Watcher:
    """Broker `me` of a cluster, asked ten times a second; entries that it proposes are written at once unless `writes` is False."""

    def __init__(self, state, me=1, *, writes=True):
        self.state, self.me, self.now, self.writes = state, me, 100.0, writes
        self.detection = Detection(state.wal_of(me), TIMEOUT_S)
        self.acts, self.silent, self.answering = [], {}, set(state.members) - {me}
        self.detection.state_is(state, self.now)

    def write(self, entry):
        self.state = self.state.apply(entry)
        self.detection.state_is(self.state, self.now)

    def run(self, seconds):
        """The acts of that time, with how many seconds had passed."""
        first, acts = self.now, []
        while self.now < first + seconds:
            self.now += 0.1
            for node in self.answering:
                self.detection.heard(node, self.silent.get(node, 0.0), self.now)
            for act in self.detection.due(self.now):
                acts.append((round(self.now - first, 1), act))
                if self.writes and not isinstance(act, FenceOff):
                    self.write(act)
        return acts


def test_brokers_that_answer_are_left_alone():
    assert Watcher(of(1, 2, 3)).run(60) == []


def test_a_broker_that_falls_silent_is_suspected_and_fenced_without_an_answer():
    watcher = Watcher(of(1, 2, 3))
    watcher.run(5)
    watcher.answering.discard(2)
    acts = watcher.run(3.6)
    assert acts[0][1] == Suspected(2, 1)
    assert 1.8 <= acts[0][0] <= 2.2
    assert acts[1][1] == FenceOff(Wal(2, 2))
    assert 3.0 <= acts[1][0] <= 3.4


def test_an_answer_is_waited_for_until_there_is_one():
    watcher = Watcher(of(1, 2, 3))
    watcher.run(5)
    watcher.answering.discard(2)
    assert not watcher.detection.waits_for_answer
    watcher.run(2.3)
    assert watcher.detection.waits_for_answer
    watcher.write(Suspected(2, 2))
    assert not watcher.detection.waits_for_answer


def test_whether_others_hear_of_the_store_is_what_they_said_a_short_while_ago():
    watcher = Watcher(of(1, 2, 3), writes=False)
    assert not watcher.detection.hears_of_store(watcher.now), "none was heard"
    watcher.silent = {2: 9.0, 3: 9.0}
    watcher.run(1)
    assert not watcher.detection.hears_of_store(watcher.now)
    watcher.silent = {2: 9.0}
    watcher.run(1)
    assert watcher.detection.hears_of_store(watcher.now)
    assert not watcher.detection.hears_of_store(watcher.now + TIMEOUT_S)


def test_a_broker_whose_port_refuses_is_fenced_at_once_if_it_was_heard_before():
    watcher = Watcher(of(1, 2, 3))
    watcher.detection.refused(2)
    assert watcher.run(0.1) == []
    watcher.answering.discard(2)
    watcher.detection.refused(2)
    assert watcher.run(0.1) == [(0.1, FenceOff(Wal(2, 2)))]


def test_a_broker_that_has_no_store_is_suspected():
    watcher = Watcher(of(1, 2, 3))
    watcher.silent[2] = 2.0
    assert watcher.run(0.1) == [(0.1, Suspected(2, 1))]
    watcher.silent[2] = 0.0
    assert watcher.run(0.1) == [(0.1, SuspicionEnded(2, 1))]


def test_an_answer_keeps_a_broker_alive_until_all_others_suspect_it_for_long():
    watcher = Watcher(of(1, 2, 3))
    watcher.run(1)
    watcher.answering.discard(2)
    watcher.run(3)
    watcher.write(Suspected(2, 2))
    assert [act for _, act in watcher.run(8)] == []
    watcher.write(Suspected(2, 3))
    acts = watcher.run(2)
    assert acts[0][1] == FenceOff(Wal(2, 2))


def test_a_suspicion_that_others_do_not_share_ends():
    watcher = Watcher(of(1, 2, 3))
    watcher.run(1)
    watcher.answering.discard(2)
    watcher.run(3)
    watcher.write(Suspected(2, 2))
    watcher.writes = False
    acts = watcher.run(12)
    assert acts[0][1] == SuspicionEnded(2, 1)


def test_of_two_that_see_only_the_store_the_higher_number_goes():
    for me, other, gone in ((1, 2, True), (2, 1, False)):
        watcher = Watcher(of(1, 2), me)
        watcher.run(1)
        watcher.answering.clear()
        watcher.run(3)
        watcher.write(Suspected(other, other))
        watcher.writes = False
        (first, *_) = [act for _, act in watcher.run(12)]
        assert first == (FenceOff(watcher.state.wal_of(other)) if gone else SuspicionEnded(other, me))


def test_who_is_suspected_answers_and_suspects_no_other():
    watcher = Watcher(of(1, 2, 3), writes=False)
    watcher.run(1)
    watcher.answering.clear()
    watcher.write(Suspected(1, 2))
    assert watcher.run(0.1) == [(0.1, Suspected(1, 1))]
    watcher.write(Suspected(1, 1))
    watcher.detection.refused(3)
    assert watcher.run(5) == []


def test_a_broker_that_stood_still_suspects_no_other_for_that():
    watcher = Watcher(of(1, 2, 3))
    watcher.run(1)
    watcher.now += 60
    assert watcher.run(0.1) == []
    watcher.answering.clear()
    assert {act for _, act in watcher.run(3)} >= {Suspected(2, 1), Suspected(3, 1)}


def test_one_fence_in_five_seconds():
    watcher = Watcher(of(1, 2, 3, 4))
    watcher.run(1)
    watcher.answering.clear()
    watcher.run(2.5)
    watcher.write(WalEnded(Wal(2, 2), 0, {}))
    acts = [(when, act) for when, act in watcher.run(6) if isinstance(act, FenceOff)]
    assert acts
    assert acts[0][0] >= 4.9


def test_a_broker_that_registered_later_may_take_its_time_to_start():
    watcher = Watcher(of(1))
    watcher.write(registered(2))
    assert watcher.run(25) == []
    assert watcher.run(6)[0][1] == Suspected(2, 1)
    watcher.write(Suspected(2, 2))
    watcher.writes = False
    assert watcher.run(25) == []
    assert watcher.run(6)[0][1] == FenceOff(Wal(2, 3))


def test_a_new_incarnation_is_another_broker_and_who_is_gone_is_forgotten():
    watcher = Watcher(of(1, 2))
    watcher.run(1)
    watcher.answering.clear()
    watcher.run(2.5)
    watcher.write(registered(2, ended=3))
    watcher.detection.heard(7, 0.0, watcher.now)
    watcher.detection.refused(7)
    assert watcher.run(1) == []
    assert repr(watcher.detection) == "<Detection of 1-1: [2]>"


def test_a_broker_that_is_no_member_any_more_does_nothing():
    watcher = Watcher(of(1, 2))
    watcher.answering.clear()
    watcher.write(WalEnded(Wal(1, 1), 0, {}))
    assert watcher.run(9) == []


def test_suspicions_of_others_count_from_when_this_broker_suspects():
    state = after(Suspected(2, 3), state=of(1, 2, 3))
    assert Watcher(state).run(3) == []


def test_a_reason_for_a_fence_ends_when_the_broker_answers():
    watcher = Watcher(of(1, 2, 3))
    wal = Wal(2, 2)
    assert not watcher.detection.is_against(wal)
    watcher.run(1)
    watcher.detection.refused(2)
    assert watcher.detection.is_against(wal)
    watcher.run(0.1)
    assert not watcher.detection.is_against(wal)
    watcher.answering.discard(2)
    watcher.run(2.5)
    assert watcher.detection.is_against(wal)
    assert not watcher.detection.is_against(Wal(2, 1))
    assert not watcher.detection.is_against(Wal(9, 2))
