"""Turns keep the order of what shares a key, whenever each piece of work ends."""

import random

import pytest

from horolog.broker.coordination.keyed_queue import KeyedQueue, RetryGuard, gather


class Bench:
    def __init__(self):
        self.turns = KeyedQueue()
        self.begun = []
        self.ends = {}

    def take(self, name, *keys):
        def work(end):
            self.begun.append(name)
            self.ends[name] = end

        self.turns.take(keys, work)

    def end(self, name):
        self.ends.pop(name)()


@pytest.fixture
def bench():
    return Bench()


def test_what_shares_no_key_does_not_wait(bench):
    bench.take("a", 1)
    bench.take("b", 2, 3)
    bench.take("c")
    assert bench.begun == ["a", "b", "c"]


def test_what_shares_a_key_waits_for_all_that_is_ahead(bench):
    bench.take("a", 1)
    bench.take("b", 2)
    bench.take("c", 1, 2)
    bench.take("d", 2)
    bench.end("b")
    assert bench.begun == ["a", "b"]
    bench.end("a")
    assert bench.begun == ["a", "b", "c"]
    bench.end("c")
    assert bench.begun == ["a", "b", "c", "d"]
    bench.end("d")
    assert repr(bench.turns) == "<KeyedQueue at 0 keys>"


def test_a_key_given_twice_is_one_key(bench):
    bench.take("a", 1, 1)
    bench.end("a")
    bench.take("b", 1)
    assert bench.begun == ["a", "b"]


def test_work_ends_once(bench):
    bench.take("a", 1)
    bench.take("b", 1)
    end = bench.ends["a"]
    end()
    with pytest.raises(AssertionError):
        end()


def test_a_long_queue_of_work_that_ends_at_once_does_not_nest():
    turns, ends, begun = KeyedQueue(), [], []

    def at_once(number, end):
        begun.append(number)
        end()

    turns.take([1], ends.append)
    for number in range(5_000):
        turns.take([1], lambda end, number=number: at_once(number, end))
    ends[0]()
    assert begun == list(range(5_000))


def fails(_end):
    raise ZeroDivisionError


def ends_and_fails(end):
    end()
    raise ZeroDivisionError


@pytest.mark.parametrize("work", [fails, ends_and_fails])
def test_work_that_fails_does_not_keep_its_turn(bench, work):
    with pytest.raises(ZeroDivisionError):
        bench.turns.take([1, 2], work)
    bench.take("a", 1)
    bench.take("b", 2)
    assert bench.begun == ["a", "b"]


@pytest.mark.parametrize("work", [fails, ends_and_fails])
def test_what_waits_for_work_that_fails_begins(bench, work):
    bench.take("a", 1)
    bench.turns.take([1], work)
    bench.turns.take([1], work)
    bench.take("b", 1)
    with pytest.raises(ExceptionGroup) as raised:
        bench.end("a")
    assert raised.group_contains(ZeroDivisionError)
    assert bench.begun == ["a", "b"]
    bench.end("b")
    assert repr(bench.turns) == "<KeyedQueue at 0 keys>"


def test_work_that_has_failed_ends_nobody_elses_turn(bench):
    ends = []

    def fails_late(end):
        ends.append(end)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bench.turns.take([1], fails_late)
    bench.take("a", 1)
    bench.take("b", 1)
    ends[0]()
    assert bench.begun == ["a"]


@pytest.mark.parametrize("seed", range(10))
def test_at_every_key_work_begins_in_the_order_in_which_it_came(seed):
    chance, bench = random.Random(seed), Bench()
    came = {}
    for name in range(100):
        came[name] = chance.sample(range(5), chance.randrange(4))
        bench.take(name, *came[name])
        while bench.ends and chance.random() < 0.6:
            bench.end(chance.choice(list(bench.ends)))
    while bench.ends:
        bench.end(chance.choice(list(bench.ends)))
    for key in range(5):
        at_key = [name for name in bench.begun if key in came[name]]
        assert at_key == sorted(at_key)
    assert sorted(bench.begun) == list(range(100))


def test_answers_are_gathered_in_the_order_of_the_questions():
    waiting, told = [], []
    gather([waiting.append, lambda done: done("b"), waiting.append], told.append)
    waiting[1]("c")
    assert told == []
    waiting[0]("a")
    assert told == [["a", "b", "c"]]
    with pytest.raises(AssertionError):
        waiting[0]("again")


def test_nothing_asked_is_answered_at_once():
    told = []
    gather([], told.append)
    assert told == [[]]


class TestSentBack:
    def test_later_work_is_kept_back_until_the_first_has_come_again(self):
        now = [0.0]
        sent_back = RetryGuard(lambda: now[0])
        sent_back.note("k", 5)
        sent_back.note("k", 3)
        sent_back.note("k", 4)
        assert [sent_back.comes_before("k", number) for number in (4, 5, 3, 4)] == [True, True, False, False]
        assert not sent_back.comes_before("other", 9)
        assert repr(sent_back) == "<RetryGuard: 0 keys>"

    def test_what_does_not_come_again_is_forgotten(self):
        now = [0.0]
        sent_back = RetryGuard(lambda: now[0])
        sent_back.note("k", 3)
        now[0] = RetryGuard.KEPT_S
        sent_back.note("k", 7)
        assert [sent_back.comes_before("k", number) for number in (8, 7, 8)] == [True, False, False]
        sent_back.note("k", 3)
        now[0] += RetryGuard.KEPT_S
        assert not sent_back.comes_before("k", 8)

    def test_of_many_those_are_kept_whose_time_is_not_up(self, monkeypatch):
        monkeypatch.setattr(RetryGuard, "MOST", 2)
        now = [0.0]
        sent_back = RetryGuard(lambda: now[0])
        for key in range(2):
            sent_back.note(key, 0)
        now[0] = RetryGuard.KEPT_S
        sent_back.note(2, 0)
        assert repr(sent_back) == "<RetryGuard: 1 keys>"

    def test_more_than_it_keeps_push_out_those_that_were_sent_back_first(self, monkeypatch):
        """Clients choose the keys: neither memory nor the time for one may grow with what they send."""
        monkeypatch.setattr(RetryGuard, "MOST", 3)
        sent_back = RetryGuard(lambda: 0.0)
        for key in (0, 1, 2, 0, 3, 4):
            sent_back.note(key, 5)
        assert repr(sent_back) == "<RetryGuard: 3 keys>"
        assert [sent_back.comes_before(key, 6) for key in range(5)] == [True, False, False, True, True]
