"""Requests of a transactional id wait for its transaction, one behind the other, and not for ever."""

from functools import partial

import pytest

from horolog.broker.commit.waiting import WaitingRequests
from horolog.broker.handlers.transaction_lines import LONGEST_WAIT_MS, TransactionLines
from horolog.protocol.errors import ErrorCode

BUSY, LOADING, OK = ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE
ELSEWHERE = ErrorCode.NOT_COORDINATOR


class Timer:
    def __init__(self, loop, due_s, action):
        self.loop, self.due_s, self.action = loop, due_s, action

    def cancel(self):
        self.loop.timers.remove(self)


class Loop:
    """Its time is the test's."""

    def __init__(self):
        self.soon, self.timers, self.now_s = [], [], 0.0

    def call_soon(self, action, *arguments):
        self.soon.append(partial(action, *arguments))

    def call_later(self, seconds, action, *arguments):
        self.timers.append(Timer(self, self.now_s + seconds, partial(action, *arguments)))
        return self.timers[-1]

    def run(self):
        while self.soon:
            self.soon.pop(0)()

    def pass_time(self, seconds):
        self.now_s += seconds
        for timer in [one for one in self.timers if one.due_s <= self.now_s]:
            timer.action()


class World:
    """A coordinator whose answer to each request is the next of those that the test has given for it, the last one for ever."""

    def __init__(self):
        self.loop, self.most_bytes, self.answers, self.later = Loop(), 10_000, [], {}
        self.codes = {}
        self.lines = TransactionLines(WaitingRequests(self.loop, lambda: self.most_bytes), self.loop.call_soon)

    def ask(self, name, *codes, transactional_id="x", **more):
        self.codes[name] = list(codes)

        def ask(done):
            codes = self.codes[name]
            code = codes.pop(0) if len(codes) > 1 else codes[0]
            if code is None:
                self.later[name] = done
            else:
                done(code, name)

        self.lines.serve(transactional_id, ask, lambda code, rest: self.answers.append((rest, code)), **more)

    def settle(self, transactional_id="x"):
        self.lines.settled(transactional_id)
        self.loop.run()


@pytest.fixture
def world():
    return World()


def test_a_request_that_nothing_holds_up_is_made_at_once(world):
    world.ask("add", OK)
    world.settle()
    assert (world.answers, world.loop.timers, repr(world.lines)) == (
        [("add", OK)],
        [],
        "<TransactionLines of 0 transactional ids>",
    )


def test_one_that_is_held_up_is_made_again_with_each_step_of_the_transaction(world):
    world.ask("add", BUSY, BUSY, OK)
    assert repr(world.lines) == "<TransactionLines of 1 transactional ids>"
    world.settle("y")
    world.settle()
    assert world.answers == []
    world.settle()
    assert (world.answers, world.loop.timers) == ([("add", OK)], [])


def test_one_waits_while_the_coordinator_loads_and_the_end_behind_it(world):
    world.ask("add", LOADING, LOADING, OK)
    world.ask("end", ErrorCode.INVALID_TXN_STATE)
    world.ask("of another", LOADING, ELSEWHERE, transactional_id="y")
    world.lines.look()
    world.loop.run()
    assert world.answers == [("of another", ELSEWHERE)]
    world.codes["end"] = [OK]
    world.lines.look()
    world.lines.look()
    assert len(world.loop.soon) == 1
    world.loop.run()
    assert (world.answers[1:], world.loop.timers) == ([("add", OK), ("end", OK)], [])
    world.lines.look()
    assert world.loop.soon == []


def test_a_step_that_ends_while_the_coordinator_is_asked_does_not_make_requests_twice(world):
    world.ask("add", BUSY, OK)
    world.lines.settled("x")
    world.lines.settled("x")
    assert world.answers == []
    world.loop.run()
    assert world.answers == [("add", OK)]


def test_the_end_waits_behind_what_it_ends_though_it_could_be_answered(world):
    world.ask("add", BUSY, BUSY, OK)
    world.ask("end", ErrorCode.INVALID_TXN_STATE)
    world.ask("of another", OK, transactional_id="y")
    world.settle()
    assert world.answers == [("of another", OK)]
    world.codes["end"] = [OK]
    world.settle()
    assert world.answers[1:] == [("add", OK), ("end", OK)]


def test_one_that_the_coordinator_has_taken_holds_up_the_next_by_itself(world):
    world.ask("add", BUSY, None)
    world.ask("end", BUSY, OK)
    world.settle()
    assert world.answers == []
    world.later["add"](BUSY, "add")
    assert world.answers == [("add", BUSY)], "it was taken: this is its answer"
    world.settle()
    assert world.answers == [("add", BUSY), ("end", OK)]


def test_after_a_while_each_is_answered_as_without_a_line(world):
    world.ask("add", BUSY)
    world.loop.pass_time(1)
    world.ask("end", ErrorCode.INVALID_TXN_STATE)
    world.loop.pass_time(LONGEST_WAIT_MS / 1000 - 1)
    assert world.answers == [("add", BUSY)]
    world.loop.pass_time(1)
    assert world.answers == [("add", BUSY), ("end", ErrorCode.INVALID_TXN_STATE)]
    assert repr(world.lines) == "<TransactionLines of 0 transactional ids>"


def test_above_the_bound_nothing_waits(world):
    world.ask("add", BUSY, place_count=20)
    assert world.answers == [("add", BUSY)]
    world.ask("other", BUSY, place_count=1)
    assert world.answers == [("add", BUSY)]


def test_a_bug_of_the_coordinator_leaves_no_line(world):
    def ask(_done):
        raise KeyError("x")

    with pytest.raises(KeyError):
        world.lines.serve("x", ask, lambda *_: None)
    world.ask("add", OK)
    assert world.answers == [("add", OK)]
