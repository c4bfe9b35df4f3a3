"""A fetch watch gives the partitions that may have news, in the order of answers, and its waits end when it is closed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from horolog.broker.commit.waiting import Wait, WaitingRequests
from horolog.broker.handlers.fetch_sessions import FetchPosition
from horolog.broker.handlers.fetch_watch import FetchWatch, Terms
from horolog.broker.log.partition import RareChanges

TERMS = Terms(7, 0, -1)


class Post:
    """A fetch watch over three partitions, which are letters here, and what it stands on."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.waiting = WaitingRequests(loop, lambda: 1_000_000)
        self.changes = RareChanges()
        self.positions = {("t", number): FetchPosition(0, 1, -1, -1) for number in range(3)}
        self.watch = FetchWatch(self.positions, self.waiting, self.changes)

    def look(self, terms: Terms = TERMS) -> list[int]:
        return [index for _, index in self.watch.to_look_at(terms)]

    def note(self, index: int, partition: Any, *, is_quiet: bool = True) -> None:
        key = ("t", index)
        self.watch.note(key, self.positions[key], partition, is_quiet=is_quiet)

    def quieten(self) -> None:
        self.look()
        for index, partition in enumerate("abc"):
            self.note(index, partition)


@pytest.fixture
async def post() -> Post:
    return Post(asyncio.get_running_loop())


async def test_at_first_all_may_have_news(post: Post) -> None:
    assert post.look() == [0, 1, 2]
    assert repr(post.watch) == "<FetchWatch: 3 of 3 partitions may have news>"


async def test_only_what_changed_is_looked_at_again(post: Post) -> None:
    post.quieten()
    assert post.look() == []
    post.waiting.changed(["c", "other"])  # type: ignore[list-item]
    post.waiting.changed(["a"])  # type: ignore[list-item]
    assert post.look() == [0, 2]
    post.note(0, "a", is_quiet=False)
    post.note(2, "c")
    assert post.look() == [0]


async def test_what_is_not_there_is_looked_at_each_time(post: Post) -> None:
    post.quieten()
    post.note(1, None)
    assert post.look() == [1]
    post.waiting.changed(["b"])  # type: ignore[list-item]
    assert post.look() == [1]


async def test_another_partition_of_that_name_is_watched_instead(post: Post) -> None:
    post.quieten()
    post.note(1, "anew")
    post.waiting.changed(["b"])  # type: ignore[list-item]
    assert post.look() == []
    post.waiting.changed(["anew"])  # type: ignore[list-item]
    assert post.look() == [1]


async def test_a_rare_change_or_other_terms_make_it_look_at_all(post: Post) -> None:
    post.quieten()
    post.changes.note()
    assert post.look() == [0, 1, 2]
    post.quieten()
    assert post.look(TERMS._replace(isolation_level=1)) == [0, 1, 2]


async def test_the_order_is_that_of_the_turns(post: Post) -> None:
    post.quieten()
    post.watch.put_last(post.positions["t", 0])
    post.waiting.changed(["a", "c", "b"])  # type: ignore[list-item]
    assert post.look() == [1, 2, 0]


async def test_what_the_client_asks_for_is_looked_at_and_what_it_drops_is_not(post: Post) -> None:
    post.quieten()
    added = post.positions["t", 3] = FetchPosition(0, 1, -1, -1)
    post.watch.ask(("t", 3), added, is_new=True)
    post.watch.ask(("t", 1), post.positions["t", 1], is_new=False)
    assert post.look() == [1, 3]
    post.watch.drop(("t", 1))
    post.watch.drop(("t", 1))
    post.waiting.changed(["b"])  # type: ignore[list-item]
    assert post.look() == [3]


async def test_a_closed_lookout_stays_until_nobody_waits(post: Post) -> None:
    post.quieten()
    wait = Wait(lambda: False, lambda: None, post.watch.leave)
    post.watch.enter(wait)
    post.waiting.add(wait, 60_000)
    post.watch.close()
    assert "3 partitions are watched" in repr(post.waiting)
    post.waiting.remove(wait)
    assert "0 partitions are watched" in repr(post.waiting)
    post.note(0, "a")
    assert "0 partitions are watched" in repr(post.waiting)


async def test_a_watch_shows_its_partition(post: Post) -> None:
    post.quieten()
    (watch,) = post.waiting._watches["a"]  # type: ignore[index]
    assert repr(watch) == "<PartitionWatch on 'a'>"
