"""Answers are asked for once in their time, whoever wants them; failures are not kept."""

import asyncio

import pytest

from horolog.base.clock import SystemClock
from horolog.console.recent import KEPT_AT_MOST, Recent, recent, view_of


class Now:
    at = 0.0

    def __call__(self):
        return self.at


async def test_one_question_for_all_who_ask_in_its_time():
    now, asked = Now(), []

    async def ask():
        asked.append(1)
        await asyncio.sleep(0)
        return len(asked)

    kept = Recent(now)
    assert await asyncio.gather(*(kept.get("x", 5, ask) for _ in range(3))) == [1, 1, 1]
    now.at = 5
    assert await kept.get("x", 5, ask) == 1
    now.at = 5.1
    assert await kept.get("x", 5, ask) == 2
    assert await kept.get("y", 5, ask) == 3


async def test_failures_are_not_kept():
    kept, tries = Recent(Now()), []

    async def ask():
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("once")
        return "well"

    with pytest.raises(ValueError, match="once"):
        await kept.get("x", 5, ask)
    assert await kept.get("x", 5, ask) == "well"


async def test_who_gives_up_leaves_the_question_to_the_others():
    kept, go = Recent(Now()), asyncio.Event()

    async def ask():
        await go.wait()
        return 7

    one = asyncio.ensure_future(kept.get("x", 5, ask))
    other = asyncio.ensure_future(kept.get("x", 5, ask))
    await asyncio.sleep(0)
    one.cancel()
    await asyncio.sleep(0)
    go.set()
    assert await other == 7
    assert one.cancelled()


async def test_not_everything_is_kept():
    kept = Recent(Now())

    async def ask():
        return 1

    for number in range(KEPT_AT_MOST + 10):
        await kept.get(number, 5, ask)
    assert len(kept._kept) == KEPT_AT_MOST


async def test_each_client_has_its_own():
    class Client:
        looked = 0
        clock = SystemClock()

        async def metadata(self):
            self.looked += 1
            return self.looked

    one, other = Client(), Client()
    assert await view_of(one) == await view_of(one) == 1
    assert await view_of(other) == 1
    assert recent(one) is recent(one) is not recent(other)
