"""Files that are made anew because they were damaged are counted, until the next start."""

import pytest

from horolog.broker.log.storage import MemoryStorage
from horolog.broker.observability.state import StateMetrics
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support import raw_records as raw
from tests.support.memory_broker import NOW_MS, MemoryBroker

REBUILT = "log_files_rebuilt_total"
NAMES = (
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "horolog-log-starts",
    "t-0/leader-epoch-checkpoint",
    "t-0/horolog-seals",
    "t-0/.snapshot",
)


async def stopped_after_records() -> MemoryStorage:
    """The disk of a broker that has stopped well: an idempotent producer's batches in several segments."""
    storage = MemoryStorage()
    async with MemoryBroker(storage) as memory:
        memory.topic("t", segment_bytes=200)
        wire = memory.connect()
        for number in range(4):
            batch = raw.batch(
                [raw.record(b"v")],
                base_timestamp=NOW_MS,
                max_timestamp=NOW_MS,
                producer=(7, 0, number),
            )
            data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=batch)])
            answer = await wire.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[data]), 9)
            assert answer.responses[0].partition_responses[0].error_code == 0
    return storage


def path_of(storage: MemoryStorage, name: str) -> str:
    folder, _, last = name.rpartition("/")
    directory = f"/data/{folder}".rstrip("/")
    if not last.startswith("."):
        return f"{directory}/{last}"
    return max(f"{directory}/{one}" for one in storage.list_dir(directory) if one.endswith(last))


@pytest.mark.parametrize("name", NAMES)
async def test_a_damaged_file_is_counted_once_and_is_whole_at_the_next_start(name: str) -> None:
    storage = await stopped_after_records()
    storage.write_atomically(path_of(storage, name), b"\xff damaged")
    for expected in (1, 0):
        async with MemoryBroker(storage) as memory:
            found = {family.name: dict(samples) for family, samples in StateMetrics(memory.broker).collect()}
            assert found[REBUILT] == {(): expected}
            assert memory.broker.cluster.topics["t"].find(0).log_end_offset == 4


async def test_a_start_from_whole_files_counts_nothing() -> None:
    async with MemoryBroker(await stopped_after_records()) as memory:
        assert memory.broker.logs.resources.counters.files_rebuilt.value == 0
