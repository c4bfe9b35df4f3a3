"""Whether partitions are part of a transaction, asked of its coordinator wherever that is: once, together, and without waiting twice."""

from types import SimpleNamespace

import pytest

from horolog.broker.cluster.cluster_state import NO_NODE
from horolog.broker.cluster.topic import Topic
from horolog.broker.log.partition import Resources, append_marker
from horolog.broker.log.recovery import PartitionFolder, create_partition
from horolog.broker.transactions.joining import Joining
from horolog.broker.transactions.states import VERSION_0, VERSION_2, Producer
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.control import Marker
from tests.support.log_model import NEW, NOW_MS, new_storage, small_config
from tests.support.transactional import batch

ME, OTHER, THIRD = 1, 2, 3
T0, T1 = ("t", 0), ("t", 1)
PRODUCER = Producer(7, 3)
NONE, NOT_NOW = ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE


class Here:
    """The coordinator of this broker."""

    def __init__(self):
        self.asked = []
        self.known = {}

    def get(self, transactional_id):
        return self.known.get(transactional_id)

    def add(self, *arguments):
        self.asked.append(("add", *arguments[:-1]))
        arguments[-1](NONE)

    def verify(self, *arguments):
        self.asked.append(("verify", *arguments[:-1]))
        arguments[-1](NONE)


class Others:
    """Coordinators elsewhere; they answer when the test says so."""

    me = ME

    def __init__(self):
        self.nodes = {"mine": ME, "x": OTHER, "y": OTHER, "z": THIRD}
        self.asked = []

    def coordinator_of(self, transactional_id):
        return self.nodes.get(transactional_id, NO_NODE)

    def ask(self, node, questions, done):
        self.asked.append((node, questions, done))

    def answer(self, *found, which=0):
        self.asked.pop(which)[2](list(found))


class World:
    def __init__(self):
        self.storage = new_storage()
        self.partitions = [self._made(index) for index in range(2)]
        self.cluster = SimpleNamespace(topics={"t": Topic("t", bytes(16), self.partitions, {}, small_config())})
        self.here, self.others, self.soon = Here(), Others(), []
        later = lambda action, node: self.soon.append((action, node))  # noqa: E731
        self.joining = Joining(self.here, self.others, self.cluster, later)

    def _made(self, index):
        place = PartitionFolder("t", index, f"/data/t-{index}")
        return create_partition(place, None, small_config(), Resources(self.storage), NOW_MS)

    def tick(self):
        soon, self.soon = self.soon, []
        for action, node in soon:
            action(node)

    def add(self, place=T0, name="x", producer=PRODUCER):
        told = []
        self.joining.add(name, producer, [place], VERSION_2, told.append)
        return told

    def verify(self, place=T0, name="x", producer=PRODUCER):
        told = []
        self.joining.verify(name, producer, place, told.append)
        return told


@pytest.fixture
def world():
    return World()


def test_the_coordinator_here_is_asked_at_once_and_every_time(world):
    assert world.add(name="mine") == world.verify(name="mine") == [NONE]
    assert world.here.asked == [("add", "mine", PRODUCER, [T0], VERSION_2), ("verify", "mine", PRODUCER, T0)]
    assert world.others.asked == []


def test_where_nobody_coordinates_it_this_broker_says_why(world):
    assert world.add(name="nobody's") == world.verify(name="nobody's") == [NONE]
    assert len(world.here.asked) == 2


def test_questions_of_one_tick_go_in_one_request_to_each_coordinator(world):
    told = [world.add(T0), world.add(T1), world.verify(T0, "y"), world.add(T0, "z")]
    assert world.others.asked == []
    assert "4 questions" in repr(world.joining)
    world.tick()
    (first, questions, _), (second, others, _) = world.others.asked
    assert (first, second) == (OTHER, THIRD)
    assert [(one.transactional_id, one.producer, one.places, one.adds) for one in questions] == [
        ("x", PRODUCER, (T0, T1), True),
        ("y", PRODUCER, (T0,), False),
    ]
    assert [one.places for one in others] == [(T0,)]
    world.others.answer({T0: NONE}, which=1)
    assert told == [[], [], [], [NONE]]
    world.others.answer({T0: NONE, T1: ErrorCode.PRODUCER_FENCED}, {T0: ErrorCode.TRANSACTION_ABORTABLE})
    assert told == [[NONE], [ErrorCode.PRODUCER_FENCED], [ErrorCode.TRANSACTION_ABORTABLE], [NONE]]


def test_the_same_place_is_named_once(world):
    told = [world.add(), world.add()]
    world.tick()
    assert world.others.asked[0][1][0].places == (T0,)
    world.others.answer({T0: NONE})
    assert told == [[NONE], [NONE]]


def test_a_request_under_way_holds_up_nobody(world):
    first = world.add(T0)
    world.tick()
    second = world.add(T1)
    world.tick()
    world.others.answer({T1: NONE}, which=1)
    assert (first, second) == ([], [NONE])


class TestAPartitionThatKnowsTheTransaction:
    def begin(self, world, producer=PRODUCER):
        world.partitions[0].append(batch([b"v"], *producer, 0), NOW_MS, produce_version=NEW)

    def test_is_not_asked_about_again(self, world):
        self.begin(world)
        assert world.add() == world.verify() == [NONE]
        assert world.soon == []

    def test_is_asked_about_for_another_epoch_another_producer_and_other_partitions(self, world):
        self.begin(world)
        told = [world.add(producer=Producer(7, 4)), world.add(producer=Producer(8, 3)), world.add(T1)]
        assert told == [[], [], []]
        assert world.soon

    def test_knows_it_no_more_once_it_could_not_be_written(self, world):
        self.begin(world)
        world.partitions[0].producers.undo_unwritten()
        assert world.add() == []


class TestAMarkerThatComesBeforeTheAnswer:
    """The transaction that was asked about has ended meanwhile."""

    def mark(self, world, epoch=PRODUCER.epoch):
        append_marker(world.partitions[0], PRODUCER.id, epoch, Marker(False, 0), NOW_MS)

    @pytest.mark.parametrize("epoch", [PRODUCER.epoch, PRODUCER.epoch + 1])
    @pytest.mark.parametrize("has_written", [False, True])
    def test_makes_the_answer_worthless(self, world, epoch, has_written):
        if has_written:
            world.partitions[0].append(batch([b"v"], *PRODUCER, 0), NOW_MS, produce_version=NEW)
            self.mark(world)
        told = world.verify()
        world.tick()
        self.mark(world, epoch)
        world.others.answer({T0: NONE})
        assert told == [ErrorCode.CONCURRENT_TRANSACTIONS]

    def test_is_not_what_another_request_has_written_in_the_same_transaction(self, world):
        told = world.add()
        world.tick()
        world.partitions[0].append(batch([b"v"], *PRODUCER, 0), NOW_MS, produce_version=NEW)
        world.others.answer({T0: NONE})
        assert told == [NONE]

    def test_does_not_make_a_refusal_another(self, world):
        told = world.verify()
        world.tick()
        self.mark(world)
        world.others.answer({T0: ErrorCode.TRANSACTION_ABORTABLE})
        assert told == [ErrorCode.TRANSACTION_ABORTABLE]


@pytest.mark.parametrize("place", [("gone", 0), ("t", 9)])
def test_what_is_not_here_is_asked_about(world, place):
    world.add(place)
    world.tick()
    assert world.others.asked[0][1][0].places == (place,)


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_codes_for_brokers_become_one_that_clients_try_again(world, code):
    told = world.add()
    world.tick()
    world.others.answer({T0: code})
    assert told == [NOT_NOW]


def test_who_fails_at_an_answer_keeps_nobody_from_theirs(world, caplog):
    world.joining.verify("x", PRODUCER, T0, lambda _: 1 / 0)
    told = world.verify(T0)
    world.tick()
    world.others.answer({T0: NONE})
    assert told == [NONE]
    assert "could not handle the response" in caplog.text


def test_no_client_of_the_older_kind_has_partitions_added_here(world):
    with pytest.raises(AssertionError):
        world.joining.add("x", PRODUCER, [T0], VERSION_0, lambda _: None)
