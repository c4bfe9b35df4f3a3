"""The first broker that answers is taken, and one that is silent holds up the others for a while at most."""

import asyncio

import pytest

from horolog.client.values.errors import AuthenticationFailed, ConnectionFailed
from horolog.client.wire.any_of import any_of

LONG_S = 60.0


async def answer():
    return "answered"


async def stand_still():
    await asyncio.Event().wait()


def failing(error):
    async def fail():
        raise error

    return fail


async def test_the_first_is_taken_and_the_others_are_not_asked():
    silent = []
    assert await any_of({"a": answer, "b": failing(AssertionError())}, LONG_S, silent.append) == "answered"
    assert silent == []


async def test_one_that_failed_holds_up_no_other():
    silent = []
    attempts = {"a": failing(ConnectionFailed("refused")), "b": answer}
    assert await any_of(attempts, LONG_S, silent.append) == "answered"
    assert silent == []


async def test_one_that_is_silent_is_named_and_given_up():
    silent = []
    assert await any_of({"a": stand_still, "b": answer}, 0.01, silent.append) == "answered"
    assert silent == ["a"]


async def test_one_that_answers_late_is_taken_all_the_same():
    late = asyncio.Event()

    async def answer_late():
        await late.wait()
        return "late"

    assert await any_of({"a": answer_late, "b": stand_still}, 0.01, lambda _: late.set()) == "late"


async def test_all_reasons_are_raised_once_all_have_failed():
    attempts = {one: failing(ConnectionFailed(reason)) for one, reason in (("a", "x"), ("b", "y"), ("c", "x"))}
    with pytest.raises(ConnectionFailed, match=r": x; y$"):
        await any_of(attempts, LONG_S, pytest.fail)


async def test_what_no_retry_helps_against_ends_it():
    attempts = {"a": failing(AuthenticationFailed("who are you")), "b": answer}
    with pytest.raises(AuthenticationFailed):
        await any_of(attempts, LONG_S, pytest.fail)
