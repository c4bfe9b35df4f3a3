"""A partition goes from one worker to another: nothing is lost, and at every step there is one leader."""

import random

import pytest

from horolog.broker.cluster.hand_over import HandOvers
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.cluster.placement import Placement
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.storage.memory_disk import PowerCut
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.reassignments import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from tests.support.at_once import at_once, delete_topic
from tests.support.crew import Crew
from tests.support.log_model import NEW, NOW_MS, encode, read_all
from tests.unit.broker.cluster.test_placement import Endpoints, members_of


class Settled:
    """The result of work in a thread, there at once."""

    def __init__(self, work, argument, *, is_cancelled=False):
        self.error, self.is_cancelled = None, is_cancelled
        try:
            work(argument)
        except Exception as error:  # noqa: BLE001 - as a future has it
            self.error = error

    def cancelled(self):
        return self.is_cancelled

    def exception(self):
        return self.error

    def add_done_callback(self, callback):
        callback(self)


class Loop:
    """Threads of the disk that are through at once."""

    def __init__(self):
        self.is_closing = False

    def run_in_executor(self, _executor, work, argument):
        return Settled(work, argument, is_cancelled=self.is_closing)


class Committer:
    """Writes and syncs; it may wait until the test lets it."""

    def __init__(self):
        self.holds = False
        self.waiting = []

    def submit(self, commit):
        self.waiting.append(commit)
        if not self.holds:
            self.go_on()

    def go_on(self):
        while self.waiting:
            commit, failures = self.waiting.pop(0), {}
            for partition in commit.partitions:
                try:
                    partition.flush()
                    partition.sync()
                except StorageFault as fault:
                    failures[partition] = fault
            commit.finish(failures)


class Peers:
    """Asks the hand-overs of the other worker as a request would."""

    def __init__(self, benches):
        self.benches = benches
        self.answers = True

    def ask(self, node, request, version, done, timeout_ms):
        (topic,) = request.topics
        (wanted,) = topic.partitions
        assert (version, timeout_ms) == (1, 30_000)

        def told(error):
            code = ErrorCode.NONE if error is None else error.code
            message = None if error is None else error.message
            partition = ReassignablePartitionResponse(
                partition_index=wanted.partition_index, error_code=code, error_message=message
            )
            answer = ReassignableTopicResponse(name=topic.name, partitions=[partition])
            done(AlterPartitionReassignmentsResponse(responses=[answer]) if self.answers else None)

        self.benches[node].hand_overs.move(topic.name, wanted.partition_index, wanted.replicas[0], told)


class Bench:
    """One worker's hand-overs."""

    def __init__(self, crew, node, benches):
        self.loop, self.committer = Loop(), Committer()
        self.cluster = crew.clusters[node]
        self.peers = Peers(benches)
        self.placement = Placement(self.cluster, Endpoints(), members_of(crew, node))
        self.hand_overs = HandOvers(self.cluster, self.placement, self.peers, self.committer, None, self.loop)


def benches_of(crew):
    benches = {}
    for node in crew.clusters:
        benches[node] = Bench(crew, node, benches)
    return benches


def append(partition, value):
    partition.append(encode(2, 0, [NOW_MS], [value]), NOW_MS, produce_version=NEW)


def values(partition):
    return [value for _, _, value in read_all(partition)]


@pytest.fixture
def crew():
    crew = Crew((1, 2)).start()
    at_once(crew.clusters[1].create_topics, [NewTopic("t", 2)])
    for index in range(2):
        append(crew.partition("t", index), b"first")
    return crew


def index_of(crew, node):
    (partition,) = crew.clusters[node].topics["t"].led_here
    return partition.index


@pytest.mark.parametrize("asked", [1, 2])
def test_whoever_is_asked_it_is_led_there_with_all_it_had(crew, asked):
    benches, index = benches_of(crew), index_of(crew, 2)
    scanned = sum(logs.resources.counters.segments_scanned.value for logs in crew.logs.values())
    assert at_once(benches[asked].hand_overs.move, "t", index, 1) is None
    partition = crew.partition("t", index)
    assert crew.clusters[1].topics["t"].find(index) is partition
    assert values(partition) == [b"first"]
    assert partition.leader_epoch == 1
    assert benches[2].hand_overs.moves == {}
    assert sum(logs.resources.counters.segments_scanned.value for logs in crew.logs.values()) == scanned
    append(partition, b"second")
    partition.flush()
    assert at_once(benches[asked].hand_overs.move, "t", index, 2) is None
    assert values(crew.partition("t", index)) == [b"first", b"second"]
    assert crew.partition("t", index).leader_epoch == 2


def test_while_it_is_under_way_nobody_serves_it(crew):
    benches, index = benches_of(crew), index_of(crew, 2)
    crew.partition("t", index).flush()
    benches[2].committer.holds = True
    told = []
    benches[2].hand_overs.move("t", index, 1, told.append)
    assert crew.clusters[2].topics["t"].find(index) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert benches[2].hand_overs.moves == {("t", index): 1}
    assert repr(benches[2].hand_overs) == f"<HandOvers: {{('t', {index}): 1}} under way>"
    with pytest.raises(ClusterError) as refused:
        at_once(benches[2].hand_overs.move, "t", index, 1)
    assert refused.value.code == ErrorCode.REASSIGNMENT_IN_PROGRESS
    assert told == []
    benches[2].committer.go_on()
    assert told == [None]


def test_where_it_is_already_nothing_happens(crew):
    benches, index = benches_of(crew), index_of(crew, 2)
    was = crew.partition("t", index)
    assert at_once(benches[1].hand_overs.move, "t", index, 2) is None
    assert crew.partition("t", index) is was


class TestRefusals:
    def code_of(self, bench, index, node):
        with pytest.raises(ClusterError) as refused:
            at_once(bench.hand_overs.move, "t", index, node)
        return refused.value.code

    def test_a_worker_that_is_away_gets_nothing(self, crew):
        benches, index = benches_of(crew), index_of(crew, 1)
        benches[1].placement.live_are(frozenset({1}))
        assert self.code_of(benches[1], index, 2) == ErrorCode.BROKER_NOT_AVAILABLE

    def test_what_a_worker_that_is_away_leads_stays_there(self, crew):
        benches, index = benches_of(crew), index_of(crew, 2)
        benches[1].placement.live_are(frozenset({1}))
        assert self.code_of(benches[1], index, 1) == ErrorCode.LEADER_NOT_AVAILABLE

    def test_a_partition_without_a_disk_cannot_be_closed(self, crew):
        benches, index = benches_of(crew), index_of(crew, 2)
        crew.partition("t", index).condition.go_offline("bad sector")
        assert self.code_of(benches[2], index, 1) == ErrorCode.KAFKA_STORAGE_ERROR
        assert self.code_of(benches[1], index, 1) == ErrorCode.KAFKA_STORAGE_ERROR

    def test_a_leader_that_does_not_answer(self, crew):
        benches, index = benches_of(crew), index_of(crew, 2)
        benches[1].peers.answers = False
        assert self.code_of(benches[1], index, 1) == ErrorCode.REQUEST_TIMED_OUT


class TestFaults:
    @pytest.fixture(params=["write", "close", "sync", "threads", "journal"])
    def broken(self, request, crew):
        """What fails on the way."""
        benches, index = benches_of(crew), index_of(crew, 2)
        crew.partition("t", index).flush()
        match request.param:
            case "write":
                append(crew.partition("t", index), b"unwritten")
                crew.storage.fail("write", f"t-{index}")
            case "close":
                crew.partition("t", index).sync()
                crew.storage.fail("write", f"t-{index}")
            case "sync":
                crew.storage.fail("sync", f"t-{index}")
            case "threads":
                benches[2].loop.is_closing = True
            case "journal":
                crew.storage.fail("sync", "horolog-journal")
        return benches, index

    def test_it_stays_where_it_is(self, crew, broken):
        benches, index = broken
        with pytest.raises(ClusterError):
            at_once(benches[1].hand_overs.move, "t", index, 1)
        crew.storage.heal()
        assert benches[2].hand_overs.moves == {}
        partition = crew.clusters[2].topics["t"].find(index)
        assert values(partition) == [b"first"]
        assert crew.clusters[1].topics["t"].find(index) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        append(partition, b"second")
        partition.flush()
        assert values(partition) == [b"first", b"second"]

    def test_its_topic_may_be_deleted_meanwhile(self, crew):
        benches, index = benches_of(crew), index_of(crew, 2)
        benches[2].committer.holds = True
        told = []
        benches[2].hand_overs.move("t", index, 1, told.append)
        delete_topic(crew.clusters[1], "t")
        benches[2].committer.go_on()
        (error,) = told
        assert error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert not crew.storage.is_dir(f"/data/t-{index}")


@pytest.mark.parametrize("survivors", [None, 1, 2])
def test_after_a_power_cut_at_any_step_there_is_one_leader_with_all_it_had(survivors):
    changes, is_over = 0, False
    while not is_over:
        changes += 1
        crew = Crew((1, 2)).start()
        at_once(crew.clusters[1].create_topics, [NewTopic("t", 2)])
        benches, index = benches_of(crew), index_of(crew, 2)
        append(crew.partition("t", index), b"first")
        crew.partition("t", index).flush()
        crew.partition("t", index).sync()
        crew.storage.power_off_after(changes)
        told = []
        try:
            benches[2].hand_overs.move("t", index, 1, told.append)
            is_over = True
        except PowerCut:
            pass
        crew.storage.crash(None if survivors is None else random.Random(survivors * 1000 + changes))
        crew = Crew((1, 2), crew.storage).start()
        assert values(crew.partition("t", index)) == [b"first"]
        leader = crew.clusters[1].state.leader(crew.clusters[1].topics["t"].id, index)
        assert leader == (1 if told else leader)
    assert changes > 5


def test_after_the_end_of_a_worker_the_other_one_leads_or_its_successor(crew):
    benches, index = benches_of(crew), index_of(crew, 2)
    benches[2].committer.holds = True
    benches[2].hand_overs.move("t", index, 1, lambda _: None)
    crew.kill(2)
    crew.begin(2)
    assert values(crew.partition("t", index)) in ([b"first"], [])
    assert crew.clusters[2].topics["t"].find(index) is crew.partition("t", index)
