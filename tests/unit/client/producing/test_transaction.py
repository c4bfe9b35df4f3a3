"""A transaction is committed as a whole or aborted; a loss, a fence or an unknown outcome says which steps may follow."""

import pytest

from horolog.client.producing.sequences import Sequences
from horolog.client.producing.transaction import Phase, Transactions
from horolog.client.values.errors import ConnectionFailed, KafkaError
from horolog.client.values.types import Committed, TopicPartition
from horolog.client.wire.group_state import MemberState
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.transactions import (
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
    EndTxnResponse,
    InitProducerIdResponse,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tests.support.fake_peer import Scripted
from tests.support.scripted_client import Time, client_of

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
FENCED = ErrorCode.PRODUCER_FENCED


class Place:
    """The coordinator answers with the next code of a request's list, or 0."""

    def __init__(self):
        self.broker, self.time = Scripted(), Time()
        self.codes = {}
        self.asked = []
        self.producer_ids = iter(range(70, 99))
        scripts = {
            ApiKey.INIT_PRODUCER_ID: self.init,
            ApiKey.ADD_PARTITIONS_TO_TXN: self.add_partitions,
            ApiKey.ADD_OFFSETS_TO_TXN: lambda code, _: AddOffsetsToTxnResponse(error_code=code),
            ApiKey.TXN_OFFSET_COMMIT: self.commit_offsets,
            ApiKey.END_TXN: lambda code, _: EndTxnResponse(error_code=code),
        }
        for key, script in scripts.items():
            self.broker.scripts[key] = self.scripted(key, script)

    def scripted(self, key, script):
        def answer(request):
            self.asked.append(request)
            codes = self.codes.get(key, [])
            return script(int(codes.pop(0)) if codes else 0, request)

        return answer

    def init(self, code, _request):
        return InitProducerIdResponse(error_code=code, producer_id=next(self.producer_ids), producer_epoch=3)

    def add_partitions(self, code, request):
        results = [
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index,
                        partition_error_code=code if number else int(code and ErrorCode.OPERATION_NOT_ATTEMPTED),
                    )
                    for number, index in enumerate(topic.partitions)
                ],
            )
            for topic in request.v3_and_below_topics
        ]
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)

    def commit_offsets(self, code, request):
        return TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    async def __aenter__(self):
        self.serving = self.broker.serving()
        self.client = client_of(await self.serving.__aenter__(), self.time)
        self.sequences = Sequences()
        self.transactions = Transactions(self.client, "pay", 9000, self.sequences)
        return self

    async def __aexit__(self, *error):
        await self.client.close()
        await self.serving.__aexit__(*error)

    def count(self, key):
        return self.broker.count(key)


@pytest.fixture
async def place():
    async with Place() as made:
        yield made


@pytest.fixture
async def opened(place):
    await place.transactions.begin()
    return place


async def fails(call):
    with pytest.raises(KafkaError) as caught:
        await call
    return caught.value


async def test_a_transaction_has_partitions_and_one_end(place):
    transactions = place.transactions
    await transactions.begin()
    assert (place.asked[0].transactional_id, place.asked[0].transaction_timeout_ms) == ("pay", 9000)
    await transactions.before_send([B, A])
    await transactions.before_send([A])
    (added,) = place.asked[1:]
    assert [(topic.name, topic.partitions) for topic in added.v3_and_below_topics] == [("t", [0, 1])]
    await transactions.end(commit=True)
    end = place.asked[-1]
    assert (end.transactional_id, end.producer_id, end.producer_epoch, end.committed) == ("pay", 70, 3, True)
    await transactions.begin()
    assert place.count(ApiKey.INIT_PRODUCER_ID) == 1
    await transactions.before_send([A])
    await transactions.end(commit=False)
    assert not place.asked[-1].committed


async def test_a_transaction_without_anything_needs_no_end(opened):
    await opened.transactions.end(commit=True)
    assert opened.count(ApiKey.END_TXN) == 0
    assert opened.transactions.phase is Phase.IDLE


async def test_only_one_is_open_and_records_need_one(place):
    with pytest.raises(KafkaError, match="can send only inside a transaction"):
        place.transactions.check_open()
    await place.transactions.begin()
    place.transactions.check_open()
    assert (await fails(place.transactions.begin())).message == "a transaction is open already"


async def test_what_is_lost_dooms_it_and_is_raised_in_place_of_the_commit(opened):
    transactions, lost = opened.transactions, ConnectionFailed("gone")
    await transactions.before_send([A])
    transactions.failed(lost)
    transactions.failed(ConnectionFailed("later"))
    with pytest.raises(ConnectionFailed, match="gone"):
        transactions.check_open()
    assert await fails(transactions.end(commit=True)) is lost
    assert not opened.asked[-1].committed
    assert not opened.sequences.is_known, "the lost records may have used sequence numbers"
    await transactions.begin()
    transactions.failed(lost)
    await transactions.end(commit=False)


@pytest.mark.parametrize("key", [ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.END_TXN])
async def test_another_producer_of_that_id_ends_this_one(place, key):
    transactions = place.transactions
    place.codes[key] = [FENCED]
    if key is ApiKey.INIT_PRODUCER_ID:
        error = await fails(transactions.begin())
    else:
        await transactions.begin()
        if key is ApiKey.ADD_PARTITIONS_TO_TXN:
            error = await fails(transactions.before_send([A, B]))
        else:
            await transactions.before_send([A])
            error = await fails(transactions.end(commit=True))
    assert (error.code, transactions.phase) == (FENCED, Phase.FENCED)
    for call in (transactions.begin(), transactions.end(commit=False)):
        assert await fails(call) is error
    with pytest.raises(KafkaError):
        transactions.check_open()


async def test_an_end_that_fails_leaves_the_outcome_open_and_the_next_begins_anew(opened):
    await opened.transactions.before_send([A])
    opened.codes[ApiKey.END_TXN] = [ErrorCode.INVALID_TXN_STATE]
    assert (await fails(opened.transactions.end(commit=True))).code == ErrorCode.INVALID_TXN_STATE
    assert opened.transactions.phase is Phase.IDLE
    await opened.transactions.begin()
    assert opened.count(ApiKey.INIT_PRODUCER_ID) == 2


@pytest.mark.parametrize(
    ("key", "code"),
    [
        (ApiKey.INIT_PRODUCER_ID, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ApiKey.ADD_PARTITIONS_TO_TXN, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ApiKey.END_TXN, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ApiKey.ADD_OFFSETS_TO_TXN, ErrorCode.NOT_COORDINATOR),
        (ApiKey.TXN_OFFSET_COMMIT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    ],
)
async def test_each_step_is_tried_again_when_that_may_help(place, key, code):
    place.codes[key] = [code]
    await place.transactions.begin()
    await place.transactions.before_send([A, B])
    await place.transactions.send_offsets("g", {A: Committed(5)}, None, None)
    await place.transactions.end(commit=True)
    assert place.count(key) == 2
    assert place.time.pauses_ms == [100]


async def test_the_code_that_names_the_fault_is_raised_not_that_of_partitions_left_out(opened):
    opened.codes[ApiKey.ADD_PARTITIONS_TO_TXN] = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    error = await fails(opened.transactions.before_send([A, B]))
    assert (error.code, error.message) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not authorized for topic 't'")


def member():
    state = MemberState()
    state.joined("m", 4, "range", is_leader=False)
    return state


@pytest.mark.parametrize(("newest", "named"), [(4, ("m", 4, "me")), (2, ("", -1, None))])
async def test_offsets_of_a_group_are_part_of_it(place, newest, named):
    place.broker.versions[ApiKey.TXN_OFFSET_COMMIT] = (0, newest)
    await place.transactions.begin()
    offsets = {A: Committed(5, "why"), B: Committed(6)}
    await place.transactions.send_offsets("g", offsets, member(), "me")
    request = place.asked[-1]
    assert (request.member_id, request.generation_id, request.group_instance_id) == named
    committed = {
        each.partition_index: (each.committed_offset, each.committed_metadata) for each in request.topics[0].partitions
    }
    assert committed == {0: (5, "why"), 1: (6, "")}
    await place.transactions.end(commit=True)
    assert place.count(ApiKey.END_TXN) == 1


async def test_offsets_that_are_refused_doom_it(opened):
    opened.codes[ApiKey.TXN_OFFSET_COMMIT] = [ErrorCode.GROUP_AUTHORIZATION_FAILED]
    error = await fails(opened.transactions.send_offsets("g", {A: Committed(5)}, None, None))
    assert error.message == "not authorized for group 'g'"
    assert opened.transactions.phase is Phase.DOOMED
    assert await fails(opened.transactions.end(commit=True)) is error
