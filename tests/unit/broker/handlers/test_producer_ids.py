"""InitProducerId: ids for idempotent producers, and what transactional ones may not ask for."""

import pytest

from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.transactions import InitProducerIdRequest
from tests.support.memory_broker import MemoryBroker
from tests.unit.broker.handlers.stand_ins import StandIn

VERSIONS = range(6)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_producer_gets_an_id_of_its_own(version):
    broker = StandIn()
    answers = [broker.ask(ApiKey.INIT_PRODUCER_ID, version, transactional_id=None) for _ in range(3)]
    assert {(a.error_code, a.producer_epoch) for a in answers} == {(0, 0)}
    assert len({a.producer_id for a in answers}) == 3


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("transactional_id", "timeout_ms", "code"),
    [
        ("", 1000, ErrorCode.INVALID_REQUEST),
        ("x", 0, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ("x", -1, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ("x", 900_001, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_transactional_ids_that_are_refused(version, transactional_id, timeout_ms, code):
    answer = StandIn().ask(
        ApiKey.INIT_PRODUCER_ID, version, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
    )
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)


def test_no_id_is_given_that_is_not_reserved_on_the_disk():
    broker = StandIn()
    broker.machine.storage.fail("sync", "horolog-journal", times=2)
    assert (
        broker.ask(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None).error_code
        == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    )
    assert broker.ask(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None).error_code == 0


async def test_a_transactional_producer_gets_the_next_epoch_each_time():
    async with MemoryBroker(transaction_state_log_num_partitions=1) as memory:
        wire = memory.connect()
        request = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000)
        answers = [await wire.ask(request, 4) for _ in range(3)]
        assert [(one.error_code, one.producer_epoch) for one in answers] == [(0, 0), (0, 1), (0, 2)]
        assert len({one.producer_id for one in answers}) == 1


@pytest.mark.parametrize(("version", "code"), [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED)])
async def test_a_producer_that_was_fenced_is_told_in_the_words_of_its_version(version, code):
    async with MemoryBroker(transaction_state_log_num_partitions=1) as memory:
        wire = memory.connect()
        request = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000)
        first = await wire.ask(request, version)
        for _ in range(2):
            await wire.ask(request, version)
        again = InitProducerIdRequest(
            transactional_id="x", transaction_timeout_ms=1000, producer_id=first.producer_id, producer_epoch=0
        )
        assert (await wire.ask(again, version)).error_code == code


@pytest.mark.parametrize(("producer_id", "epoch"), [(7, -1), (-1, 0)])
def test_a_producer_names_itself_with_id_and_epoch_or_neither(producer_id, epoch):
    answer = StandIn().ask(
        ApiKey.INIT_PRODUCER_ID,
        4,
        transactional_id="x",
        transaction_timeout_ms=1000,
        producer_id=producer_id,
        producer_epoch=epoch,
    )
    assert answer.error_code == ErrorCode.INVALID_REQUEST
