"""What brokers ask each other about transactions: Kafka's requests, and what no answer, or half of one, means."""

from types import SimpleNamespace

import pytest

from horolog.broker.base.java_hash import partition_for
from horolog.broker.base.topic_names import TRANSACTION_STATE
from horolog.broker.cluster.cluster_state import NO_NODE, Lead
from horolog.broker.cluster.membership import Members
from horolog.broker.cluster.placement import NOBODY
from horolog.broker.transactions.other_brokers import OtherBrokers, Question
from horolog.broker.transactions.states import VERSION_2, Producer, Transaction, TransactionState
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.list_offsets import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from horolog.protocol.messages.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ListTransactionsResponseTransactionState,
    TopicData,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from horolog.protocol.messages.transactions import (
    TransactionState as DescribedTransaction,
)

ME, OTHER, THIRD = 1, 2, 3
T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)
PRODUCER = Producer(7, 3)
NONE, NOT_NOW = ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE


class Peers:
    """Keeps questions, for the test to answer."""

    def __init__(self):
        self.asked = []

    def ask(self, node, request, version, done, timeout_ms):
        assert version in type(request).VERSIONS
        assert timeout_ms > 0
        self.asked.append((node, request, done))

    def answer(self, message, which=0):
        self.asked.pop(which)[2](message)


class World:
    def __init__(self):
        self.leads = {T0: OTHER, T1: OTHER, U0: THIRD, ("t", 2): ME, ("t", 3): NO_NODE}
        names = {"t": b"t" * 16, "u": b"u" * 16, TRANSACTION_STATE: b"x" * 16}
        self.topics = {name: SimpleNamespace(id=one, partition_count=4) for name, one in names.items()}
        self.cluster = SimpleNamespace(topics=self.topics)
        by_id = {one: name for name, one in names.items()}

        def lead(topic_id, index):
            node = self.leads.get((by_id[topic_id], index), NO_NODE)
            return NOBODY if node == NO_NODE else Lead(node, 4)

        self.peers, members = Peers(), Members(ME, (ME, OTHER, THIRD), frozenset({ME}))
        self.kept = {0: ME, 1: OTHER, 2: THIRD, 3: OTHER}
        self.epochs = {1: 6}
        placement = SimpleNamespace(
            me=ME,
            members=members,
            lead=lead,
            keeper=lambda _, index: self.kept[index],
            recorded_epoch=lambda _, index: self.epochs.get(index, 4),
        )
        self.others = OtherBrokers(self.cluster, placement, self.peers)


@pytest.fixture
def world():
    return World()


def test_who_leads_and_who_coordinates_is_asked_of_the_placement(world):
    others = world.others
    assert others.me == ME
    assert [others.leader_of(*place) for place in (T0, U0, ("t", 3), ("gone", 0))] == [OTHER, THIRD, NO_NODE, NO_NODE]
    shard = partition_for("id", 4)
    world.leads[TRANSACTION_STATE, shard] = THIRD
    assert others.coordinator_of("id") == THIRD
    del world.topics[TRANSACTION_STATE]
    assert others.coordinator_of("id") == NO_NODE
    assert "OtherBrokers by" in repr(others)


class TestQuestions:
    def results(self, *each):
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    transactional_id="x",
                    topic_results=[
                        AddPartitionsToTxnTopicResult(
                            name=name,
                            results_by_partition=[
                                AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                            ],
                        )
                        for (name, index), code in codes.items()
                    ],
                )
                for codes in each
            ]
        )

    def ask(self, world):
        told = []
        adds = Question("x", PRODUCER, [T0, U0, T1, T0], adds=True)
        world.others.ask(OTHER, [adds, Question("y", PRODUCER, [T0], adds=False)], told.append)
        return told

    def test_go_in_one_request(self, world):
        self.ask(world)
        ((node, request, _),) = world.peers.asked
        assert node == OTHER
        first, second = request.transactions
        assert (first.transactional_id, first.producer_id, first.producer_epoch) == ("x", *PRODUCER)
        assert (first.verify_only, second.verify_only) == (False, True)
        assert [(one.name, one.partitions) for one in first.topics] == [("t", [0, 1]), ("u", [0])]

    def test_are_answered_each(self, world):
        told = self.ask(world)
        fenced = ErrorCode.PRODUCER_FENCED
        world.peers.answer(self.results({T0: NONE, U0: NONE, T1: fenced}, {T0: ErrorCode.TRANSACTION_ABORTABLE}))
        assert told == [[{T0: NONE, U0: NONE, T1: fenced}, {T0: ErrorCode.TRANSACTION_ABORTABLE}]]

    @pytest.mark.parametrize("how", ["not at all", "with nothing", "by half"])
    def test_that_are_not_answered_are_to_be_asked_again(self, world, how):
        told = self.ask(world)
        first = {T0: NONE} if how == "by half" else {T0: NOT_NOW}
        answers = {"not at all": None, "with nothing": self.results(), "by half": self.results({T0: NONE})}
        world.peers.answer(answers[how])
        assert told == [[{**first, U0: NOT_NOW, T1: NOT_NOW}, {T0: NOT_NOW}]]


class TestMarkers:
    def write(self, world, *places, state=TransactionState.PREPARE_COMMIT):
        told = []
        transaction = Transaction("x", *PRODUCER, 1000, state, frozenset(places), client_version=VERSION_2)
        world.others.write_markers(transaction, places, 5, told.append)
        return told

    def answer(self, codes):
        topics = [
            WritableTxnMarkerTopicResult(
                name=name, partitions=[WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)]
            )
            for (name, index), code in codes.items()
        ]
        return WriteTxnMarkersResponse(markers=[WritableTxnMarkerResult(producer_id=PRODUCER.id, topics=topics)])

    @pytest.mark.parametrize(
        ("state", "commits"), [(TransactionState.PREPARE_COMMIT, True), (TransactionState.PREPARE_ABORT, False)]
    )
    def test_go_to_each_leader_in_one_request(self, world, state, commits):
        told = self.write(world, T0, U0, T1, state=state)
        assert [node for node, _, _ in world.peers.asked] == [OTHER, THIRD]
        request = world.peers.asked[0][1]
        assert isinstance(request, WriteTxnMarkersRequest)
        (marker,) = request.markers
        assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (*PRODUCER, 5)
        assert (marker.transaction_result, marker.transaction_version) == (commits, VERSION_2)
        assert [(one.name, one.partition_indexes) for one in marker.topics] == [("t", [0, 1])]
        world.peers.answer(self.answer({T0: NONE, T1: NONE}))
        assert told == []
        world.peers.answer(self.answer({U0: NONE}))
        assert told == [frozenset()]

    def test_are_left_where_nobody_answers(self, world):
        told = self.write(world, T0, U0)
        world.peers.answer(None)
        world.peers.answer(self.answer({U0: NONE}))
        assert told == [{T0}]

    def test_are_left_where_nobody_leads(self, world):
        assert self.write(world, ("t", 2), ("t", 3)) == [{("t", 2), ("t", 3)}]
        assert world.peers.asked == []

    @pytest.mark.parametrize(
        ("code", "left"),
        [
            (ErrorCode.INVALID_PRODUCER_EPOCH, set()),
            (ErrorCode.NOT_LEADER_OR_FOLLOWER, {T0}),
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, {T0}),
            (ErrorCode.KAFKA_STORAGE_ERROR, {T0}),
            (ErrorCode.TRANSACTION_COORDINATOR_FENCED, {T0}),
        ],
    )
    def test_are_left_by_what_the_leader_says(self, world, code, left):
        told = self.write(world, T0, T1)
        world.peers.answer(self.answer({T0: code, T1: NONE}))
        assert told == [left]

    def test_are_left_where_the_answer_leaves_them_out(self, world):
        told = self.write(world, T0, T1)
        world.peers.answer(self.answer({T0: NONE}))
        assert told == [{T1}]


class TestTransactionsOfProducers:
    def listed(self, *names, code=0):
        states = [
            ListTransactionsResponseTransactionState(transactional_id=name, producer_id=7, transaction_state="Ongoing")
            for name in names
        ]
        return ListTransactionsResponse(error_code=code, transaction_states=states)

    def described(self, name, code=0):
        return DescribedTransaction(
            error_code=code,
            transactional_id=name,
            transaction_state="PrepareCommit",
            transaction_timeout_ms=1000,
            producer_id=7,
            producer_epoch=3,
            topics=[TopicData(topic="t", partitions=[0, 1])],
        )

    def ask(self, world):
        """After both have said that they serve their shards."""
        told = self.begin(world)
        self.serve(world)
        self.serve(world)
        return told

    def begin(self, world):
        told = []
        world.others.transactions_of({9, 7}, told.append)
        return told

    def serve(self, world, failing=None, code=ErrorCode.NOT_LEADER_OR_FOLLOWER, which=0):
        """Answer a question as a broker that serves all shards in it but one."""
        (topic,) = world.peers.asked[which][1].topics
        results = [
            EpochEndOffset(error_code=code if one.partition == failing else 0, partition=one.partition)
            for one in topic.partitions
        ]
        topics = [OffsetForLeaderTopicResult(topic=topic.topic, partitions=results)]
        world.peers.answer(OffsetForLeaderEpochResponse(topics=topics), which)

    def test_are_gathered_from_all_brokers(self, world):
        told = self.ask(world)
        (first, request, _), (second, _, _) = world.peers.asked
        assert (first, second) == (OTHER, THIRD)
        assert isinstance(request, ListTransactionsRequest)
        assert request.producer_id_filters == [7, 9]
        world.peers.answer(self.listed("x"))
        world.peers.answer(self.listed())
        (node, request, _), (again, _, _) = world.peers.asked
        assert isinstance(request, DescribeTransactionsRequest)
        assert (node, request.transactional_ids, again) == (OTHER, ["x"], THIRD)
        world.peers.answer(DescribeTransactionsResponse(transaction_states=[self.described("x")]))
        self.serve(world)
        assert told == []
        self.serve(world)
        ((found,),) = told
        assert found == (OTHER, Transaction("x", 7, 3, 1000, TransactionState.PREPARE_COMMIT, frozenset({T0, T1})))

    @pytest.mark.parametrize("code", [None, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
    def test_are_not_known_while_one_broker_does_not_say(self, world, code):
        told = self.ask(world)
        world.peers.answer(None if code is None else self.listed(code=code))
        world.peers.answer(self.listed())
        self.serve(world)
        assert told == [None]

    def test_a_broker_is_asked_about_the_shards_that_it_leads_on_record(self, world):
        self.begin(world)
        (node, request, _), _ = world.peers.asked
        (topic,) = request.topics
        assert (node, topic.topic) == (OTHER, TRANSACTION_STATE)
        assert [(one.partition, one.current_leader_epoch) for one in topic.partitions] == [(1, 6), (3, 4)]

    @pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH])
    def test_are_not_known_while_a_broker_does_not_serve_a_shard_of_its_own(self, world, code):
        """It may not know yet that the shard is its own, and would list no transaction of it."""
        told = self.begin(world)
        self.serve(world, failing=3, code=code)
        self.serve(world)
        world.peers.answer(self.listed())
        self.serve(world)
        assert (told, world.peers.asked) == ([None], [])

    def test_are_not_known_of_a_broker_that_does_not_answer_about_its_shards(self, world):
        told = self.begin(world)
        world.peers.answer(None)
        self.serve(world)
        world.peers.answer(self.listed())
        self.serve(world)
        assert told == [None]

    def test_are_not_known_where_a_shard_was_lost_meanwhile(self, world):
        told = self.ask(world)
        world.peers.answer(self.listed())
        world.peers.answer(self.listed())
        self.serve(world, failing=1)
        self.serve(world)
        assert told == [None]

    def test_are_not_known_where_a_shard_has_moved_on_record_meanwhile(self, world):
        told = self.ask(world)
        world.peers.answer(self.listed())
        world.peers.answer(self.listed())
        world.epochs[0] = 5
        self.serve(world)
        self.serve(world)
        assert told == [None]

    @pytest.mark.parametrize("node", [NO_NODE, 9])
    def test_are_not_known_while_a_shard_has_no_broker(self, world, node):
        world.kept[2] = node
        assert self.begin(world) == [None]
        assert world.peers.asked == []

    def test_a_broker_without_a_shard_is_asked_for_its_transactions_alone(self, world):
        world.kept[2] = OTHER
        told = self.begin(world)
        self.serve(world)
        world.peers.answer(self.listed())
        world.peers.answer(self.listed())
        self.serve(world)
        assert told == [[]]

    @pytest.mark.parametrize("code", [None, ErrorCode.NOT_COORDINATOR])
    def test_are_not_known_where_one_is_gone_before_it_is_described(self, world, code):
        told = self.ask(world)
        world.peers.answer(self.listed("x"))
        world.peers.answer(self.listed())
        self.serve(world, which=1)
        states = [self.described("x", code or 0)]
        world.peers.answer(None if code is None else DescribeTransactionsResponse(transaction_states=states))
        assert told == [None]
