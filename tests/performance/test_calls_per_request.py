"""Python calls per request, counted inside one process: the hot path may not grow unnoticed. Calls, unlike times, are the same every day.

A bound is what the path takes today. A change that needs more says why in its commit, and moves the bound.
"""

import sys
from pathlib import Path

import pytest

import horolog
from benchmarks import fill, frames, inside

ROUNDS = 200
PRODUCT = str(Path(horolog.__file__).parent)

BOUNDS = {
    "newest": 52,
    "newest-16": 36,
    "newest-8": 196,
    "idempotent": 59,
    "all": 70,
    "fetch": 56,
    "list offsets": 51,
}


def is_ours(code):
    """The product's own modules, and the codecs that it writes: they have no file."""
    return code.co_filename.startswith((PRODUCT, "<"))


def calls_of(step, rounds=ROUNDS):
    """Calls of the product's own functions in one step, on average."""
    count = 0

    def look(frame, event, _):
        nonlocal count
        count += event == "call" and is_ours(frame.f_code)

    sys.setprofile(look)
    try:
        for _ in range(rounds):
            step()
    finally:
        sys.setprofile(None)
    return count / rounds


def warm(step):
    for _ in range(20):
        step()
    return step


def filled(at):
    name = at.topic("filled")
    for frame in fill.requests(name, 2_000, 100, 16_384, old=False):
        at.send(frame, 1)
    return name


def step_of(at, name):
    """One request, over and over; and how many requests that is."""
    if name == "fetch":
        frame = frames.fetch(4, filled(at), 0)
        return lambda: at.send(frame, 1), 1
    if name == "list offsets":
        frame = frames.list_offsets(filled(at), fill.FIRST_TIMESTAMP + 1_000)
        return lambda: at.send(frame, 1), 1
    _, requests, prepare = inside.CASES[name]
    return prepare(at), requests


@pytest.mark.parametrize("name", BOUNDS)
def test_a_request_takes_no_more_calls(name):
    with inside.inside() as at:
        step, requests = step_of(at, name)
        assert calls_of(warm(step)) / requests <= BOUNDS[name]


def test_one_more_call_is_counted():
    with inside.inside() as at:
        step, _ = step_of(at, "newest")
        before = calls_of(warm(step))
        plain = at.conversation.receive

        class Longer:
            def receive(self, data):
                at.broker.clock.wall_ms()
                plain(data)

        at.conversation = Longer()
        assert calls_of(warm(step)) == pytest.approx(before + 1, abs=0.2)
