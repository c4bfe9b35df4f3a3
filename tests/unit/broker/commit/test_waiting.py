"""Waits end once: by new data, by time, or because the client went away."""

import asyncio
from typing import Any

from horolog.broker.commit.waiting import Wait, WaitingRequests


def new_waiting(most_bytes: int = 1_000_000) -> WaitingRequests:
    return WaitingRequests(asyncio.get_running_loop(), lambda: most_bytes)


class Asker:
    """Watches partitions, which are letters here, and counts how often it is looked at; done after `needed` looks."""

    def __init__(self, waiting: WaitingRequests, needed: int = 1) -> None:
        self.waiting = waiting
        self.needed = needed
        self.waits: list[Wait] = []
        self.partitions: tuple[Any, ...] = ()
        self.looks = 0
        self.expired = 0

    def check(self) -> bool:
        self.looks += 1
        return self.looks >= self.needed

    def expire(self) -> None:
        self.expired += 1

    def changed(self) -> list[Wait]:
        return self.waits

    def wait(self, *partitions: Any, places: int = 0) -> Wait:
        self.partitions = partitions
        for partition in partitions:
            self.waiting.watch(partition, self)
        wait = Wait(self.check, self.expire, self.leave, places)
        self.waits.append(wait)
        return wait

    def leave(self, wait: Wait) -> None:
        self.waits.remove(wait)
        for partition in self.partitions:
            self.waiting.unwatch(partition, self)


async def test_new_data_ends_a_wait_once_for_several_partitions() -> None:
    waiting = new_waiting()
    asker = Asker(waiting)
    waiting.add(asker.wait("a", "b"), 60_000)
    waiting.changed(["a", "b"])
    waiting.changed(["a", "b"])
    assert asker.looks == 1
    assert len(waiting) == 0


async def test_too_little_data_keeps_waiting() -> None:
    waiting = new_waiting()
    asker = Asker(waiting, needed=2)
    waiting.add(asker.wait("a"), 60_000)
    waiting.changed(["a"])
    assert len(waiting) == 1
    waiting.changed(["other"])
    assert asker.looks == 1
    waiting.changed(["a"])
    assert len(waiting) == 0


async def test_time_ends_a_wait() -> None:
    waiting = new_waiting()
    asker = Asker(waiting, needed=9)
    waiting.add(asker.wait("a"), 10)
    await asyncio.sleep(0.05)
    assert (asker.expired, len(waiting)) == (1, 0)
    waiting.changed(["a"])
    assert asker.looks == 0


async def test_a_removed_wait_is_forgotten() -> None:
    waiting = new_waiting()
    asker = Asker(waiting)
    wait = asker.wait("a", "b")
    waiting.add(wait, 10)
    waiting.remove(wait)
    waiting.remove(wait)
    waiting.changed(["a", "b"])
    await asyncio.sleep(0.03)
    assert (asker.looks, asker.expired) == (0, 0)


async def test_what_waits_is_counted_until_it_ends_in_whatever_way() -> None:
    waiting = new_waiting()
    asker = Asker(waiting)
    waits = [asker.wait("a", places=places) for places in (0, 10, 1000)]
    for wait in waits:
        waiting.add(wait, 60_000)
    assert waiting.held_bytes == sum(wait.size_bytes for wait in waits) > 1010 * 100
    waiting.remove(waits[2])
    waiting.remove(waits[2])
    assert waiting.held_bytes == waits[0].size_bytes + waits[1].size_bytes
    waiting.watch("a", asker)  # type: ignore[arg-type]
    waiting.changed(["a"])  # type: ignore[list-item]
    assert waiting.held_bytes == 0


async def test_there_is_room_up_to_the_bound() -> None:
    first, second = (Wait(lambda: False, lambda: None, lambda _: None) for _ in range(2))
    waiting = new_waiting(first.size_bytes + second.size_bytes - 1)
    assert waiting.has_room_for(first)
    waiting.add(first, 60_000)
    assert not waiting.has_room_for(second)
    waiting.remove(first)
    assert waiting.has_room_for(second)


async def test_whoever_waits_is_answered_once_when_the_broker_stops() -> None:
    waiting = new_waiting()
    asker = Asker(waiting, needed=9)
    waiting.add(asker.wait("a", "b"), 60_000)
    waiting.expire_all()
    waiting.expire_all()
    assert (asker.looks, asker.expired, len(waiting)) == (0, 1, 0)


async def test_a_wait_that_another_one_ended_is_not_looked_at() -> None:
    waiting = new_waiting()
    first, second = Asker(waiting), Asker(waiting)
    waits = first.wait("a"), second.wait("a")

    def ends_the_other() -> bool:
        waiting.remove(waits[1])
        return True

    waits[0].check = ends_the_other
    for wait in waits:
        waiting.add(wait, 60_000)
    waiting.changed(["a"])  # type: ignore[list-item]
    assert (second.looks, len(waiting)) == (0, 0)
