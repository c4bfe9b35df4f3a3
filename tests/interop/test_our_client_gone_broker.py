"""The bundled producer when its broker is gone for good: everything that waits fails about when its time is over, however much it is."""

import asyncio
import time

from horolog import Client, Producer
from horolog.client.values.errors import KafkaError
from horolog.client.wire.retry import RetryPolicy
from tests.support.names import unique

RECORDS = 4000
DELIVERY_SECONDS = 2
BOUND_SECONDS = 25
"""An attempt for each batch, with the pauses between attempts, would take minutes."""


async def test_thousands_of_batches_give_up_together(start_broker):
    broker = start_broker()
    topic = unique("gone")
    client = Client(broker.address, retry=RetryPolicy(timeout_ms=DELIVERY_SECONDS * 1000))
    async with (
        client,
        Producer(client, batch_bytes=100, linger_ms=60_000, delivery_timeout_ms=DELIVERY_SECONDS * 1000) as producer,
    ):
        written = await producer.send(topic, b"written")
        await producer.flush()
        await written
        broker.kill()
        began = time.monotonic()
        futures = [await producer.send(topic, b"x" * 60) for _ in range(RECORDS)]
        results = await asyncio.wait_for(asyncio.gather(*futures, return_exceptions=True), BOUND_SECONDS)
        assert time.monotonic() - began >= DELIVERY_SECONDS / 2
    assert all(isinstance(result, KafkaError) for result in results)
