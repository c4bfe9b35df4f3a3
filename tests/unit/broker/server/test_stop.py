"""Whatever takes several writes is carried through and answered before a stop is done."""

from __future__ import annotations

from horolog.protocol.messages.transactions import InitProducerIdRequest
from horolog.protocol.wire import Message
from tests.support.memory_broker import MemoryBroker, Wire
from tests.support.transactional import Producer, fetch

SETTINGS = {"transaction_state_log_num_partitions": 2, "offsets_topic_num_partitions": 2}


async def test_ends_of_transactions_and_new_ids_are_answered() -> None:
    memory = MemoryBroker(**SETTINGS)
    await memory.__aenter__()
    memory.topic()
    ends, goes_on = Producer(memory.connect(), "ends"), Producer(memory.connect(), "goes on")
    for producer in (ends, goes_on):
        assert await producer.initialize() == 0
        assert await producer.send("t", 0, b"a", version=12) == 0
    new = InitProducerIdRequest(transactional_id="new", transaction_timeout_ms=60_000)
    asked: list[tuple[Wire, Message, int]] = [
        (ends.wire, ends.end_request(commit=True), 4),
        (goes_on.wire, goes_on.produce_request("t", 0, b"b"), 12),
        (memory.connect(), new, 4),
    ]
    for wire, request, version in asked:
        wire.send(request, version)
    assert not ends.wire.answers()
    await memory.broker.stop()
    assert [wire.answers() for wire, _, _ in asked] == [1, 1, 1]
    ended, produced, begun = [await wire.take(request, version) for wire, request, version in asked]
    assert (ended.error_code, begun.error_code) == (0, 0)
    assert produced.responses[0].partition_responses[0].error_code == 0

    async with MemoryBroker(memory.storage, **SETTINGS) as again:
        answer = await fetch(again.connect(), "t", committed=True)
        assert (answer.high_watermark, answer.last_stable_offset) == (4, 1), "three records and a marker, one is open"
