"""A client of a scripted broker, whose clock goes on by exactly the pauses that it asks for."""

import asyncio
from collections.abc import Callable
from typing import Any

from horolog.base.clock import ManualClock
from horolog.client.wire.client import Client
from horolog.client.wire.retry import RetryPolicy
from horolog.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from horolog.protocol.wire import Message


class Time:
    """The clock, and the pauses."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.pauses_ms: list[int] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses_ms.append(round(seconds * 1000))
        self.clock.advance(round(seconds * 1000))
        await asyncio.sleep(0)


def client_of(address: str, time: Time, **options: Any) -> Client:
    """Gives up after five seconds of that clock; pauses are 100, 200, 400, 400 ... ms."""
    policy = RetryPolicy(backoff_ms=100, backoff_max_ms=400, timeout_ms=5000)
    settings = {"request_timeout_ms": 2000, "random": lambda: 0.5, **options}
    return Client(address, retry=policy, clock=time.clock, sleep=time.sleep, **settings)


def in_turn(*answers: Message) -> Callable[[Any], Message]:
    """A script that gives these answers, and the last one from then on."""
    left = list(answers)
    return lambda _request: left.pop(0) if len(left) > 1 else left[0]


def offsets(offset: int, error_code: int = 0, partition: int = 0, **more: Any) -> ListOffsetsResponse:
    """The answer to ListOffsets about one partition of topic t."""
    found = ListOffsetsPartitionResponse(
        partition_index=partition, offset=offset, **{"timestamp": 7, "error_code": error_code, **more}
    )
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[found])])
