"""Produce requests to partitions that pass wait, in their order; nothing else does."""

from types import SimpleNamespace

import pytest

from horolog.broker.handlers.gate import open_gate
from horolog.broker.handlers.held_produce import HeldProduce
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ProtocolError
from tests.support.request_contexts import Connection, request_context

ID = b"t" * 16
NOTHING_HELD = "<HeldProduce of 0 connections, 0 bytes>"


class Peer(Connection):
    """One connection; requests are handled by their label."""

    __hash__ = object.__hash__
    closed = None

    def close(self, reason):
        self.closed, self.closing = reason, True


class Broker:
    """Partition 1 of topic t passes."""

    def __init__(self, most_bytes=1_000_000):
        topic = SimpleNamespace(id=ID)
        self.cluster = SimpleNamespace(topics={"t": topic}, by_id={ID: topic})
        self.passing, self.handled, self.answers = {(ID, 1): 0.0}, [], []
        self.on_handled = lambda label: None
        self.held = HeldProduce(self.passing, most_bytes)
        self._handle = self.held.gate(open_gate)(ApiKey.PRODUCE, self._serve)

    def _serve(self, broker, request, context):
        assert broker is self
        label = request[0]
        self.handled.append(label)
        self.on_handled(label)
        if label == "broken":
            raise ProtocolError("null records")
        if label == "fails":
            raise ZeroDivisionError
        if label == "refused without answer":
            context.connection.close("acks=0")
        return b"refused" if label == "refused" else None

    def send(self, label, *indexes, peer, name="t", topic_id=bytes(16)):
        context = request_context(connection=peer)
        context.amend(lambda response: self.answers.append((label, response)) or b"")
        topics = [(name, topic_id, [(index, b"records") for index in indexes])]
        response = self._handle(self, (label, -1, 30_000, topics), context)
        if response is not None:
            context.set_response(response)
        return context

    def end(self):
        self.passing.clear()
        self.held.look()


@pytest.mark.parametrize("named", [{}, {"name": "", "topic_id": ID}], ids=["by name", "by id"])
def test_a_request_waits_until_its_partitions_have_passed(named):
    broker, peer = Broker(), Peer()
    broker.send("a", 0, 1, peer=peer, **named)
    broker.held.look()
    assert broker.handled == []
    assert repr(broker.held) == "<HeldProduce of 1 connections, 100 bytes>"
    broker.end()
    assert broker.handled == ["a"]
    assert repr(broker.held) == NOTHING_HELD
    assert broker.held.has_held


@pytest.mark.parametrize(
    "named", [{}, {"name": "other"}, {"name": "", "topic_id": b"o" * 16}], ids=["another index", "name", "id"]
)
def test_other_partitions_do_not_wait(named):
    broker = Broker()
    broker.send("a", 0 if not named else 1, peer=Peer(), **named)
    assert broker.handled == ["a"]
    assert not broker.held.has_held


def test_later_requests_of_the_connection_wait_behind_it_and_others_do_not():
    broker, peer = Broker(), Peer()
    broker.send("a", 1, peer=peer)
    broker.send("b", 0, peer=peer)
    broker.send("c", 0, peer=Peer())
    assert broker.handled == ["c"]
    broker.end()
    assert broker.handled == ["c", "a", "b"]


def test_the_first_that_waits_on_holds_those_behind_it():
    broker, peer = Broker(), Peer()
    broker.passing[ID, 2] = 0.0
    broker.send("a", 1, peer=peer)
    broker.send("b", 2, peer=peer)
    broker.send("c", 0, peer=peer)
    del broker.passing[ID, 1]
    broker.held.look()
    assert broker.handled == ["a"]
    broker.end()
    assert broker.handled == ["a", "b", "c"]


def test_what_arrives_while_held_requests_are_handled_does_not_overtake_them():
    """An answer lets the conversation go on reading."""
    broker, peer = Broker(), Peer()
    broker.send("a", 1, peer=peer)
    broker.send("b", 1, peer=peer)
    broker.on_handled = lambda label: broker.send("c", 1, peer=peer) if label == "a" else None
    broker.end()
    assert broker.handled == ["a", "b", "c"]


def test_an_answer_that_is_given_at_once_leaves():
    broker, peer = Broker(), Peer()
    context = broker.send("refused", 1, peer=peer)
    assert context.parts is None
    broker.end()
    assert (broker.answers, peer.answers) == ([("refused", b"refused")], 1)
    assert context.parts is not None


def test_a_request_that_is_broken_ends_the_connection():
    broker, peer = Broker(), Peer()
    broker.send("broken", 1, peer=peer)
    broker.end()
    assert peer.closed == "null records"


def test_a_request_that_fails_ends_its_connection_and_holds_up_no_other(caplog):
    """Without that, those of other connections would wait for ever: nothing passes any more."""
    broker, peer, other = Broker(), Peer(), Peer()
    broker.send("fails", 1, peer=peer)
    broker.send("a", 1, peer=other)
    broker.end()
    assert (peer.closed, other.closed) == ("internal error", None)
    assert broker.handled == ["fails", "a"]
    assert repr(broker.held) == NOTHING_HELD
    assert "a request of 127.0.0.1 failed inside the broker; its connection is closed" in caplog.text


@pytest.mark.parametrize("label", ["broken", "fails", "refused without answer"])
def test_nothing_behind_a_request_that_has_ended_its_connection_is_handled(label):
    """It would be appended without the records before it; a connection that is not held back does not serve it either."""
    broker, peer = Broker(), Peer()
    broker.send(label, 1, peer=peer)
    second = broker.send("b", 1, peer=peer)
    broker.end()
    second.abandon()
    assert broker.handled == [label]
    assert repr(broker.held) == NOTHING_HELD


def test_nothing_is_handled_on_a_connection_that_has_ended_since():
    """A request before the held ones was refused when the store had answered, and had asked for no answer."""
    broker, peer = Broker(), Peer()
    held = broker.send("a", 1, peer=peer)
    peer.close("acks=0")
    broker.end()
    held.abandon()
    assert broker.handled == []
    assert repr(broker.held) == NOTHING_HELD


def test_requests_of_a_client_that_is_gone_are_dropped():
    broker, peer = Broker(), Peer()
    first, second = broker.send("a", 1, peer=peer), broker.send("b", 1, peer=peer)
    first.abandon()
    broker.held.look()
    second.abandon()
    assert repr(broker.held) == NOTHING_HELD
    broker.end()
    assert broker.handled == []


def test_a_client_that_goes_while_its_requests_are_handled_is_forgotten():
    broker, peer = Broker(), Peer()
    broker.send("a", 1, peer=peer)
    second = broker.send("b", 1, peer=peer)
    broker.on_handled = lambda label: second.abandon()
    broker.end()
    assert broker.handled == ["a"]
    assert repr(broker.held) == NOTHING_HELD


def test_a_request_for_which_there_is_no_room_is_handled_behind_those_of_its_connection():
    broker, peer, other = Broker(most_bytes=350), Peer(), Peer()
    for label, by in (("a", peer), ("b", peer), ("c", other), ("d", peer)):
        broker.send(label, 1, peer=by)
    assert broker.handled == ["a", "b", "d"]
    broker.send("e", 1, peer=peer)
    broker.send("f", 1, peer=peer)
    assert broker.handled == ["a", "b", "d"]
    broker.send("g", 1, peer=Peer())
    assert broker.handled == ["a", "b", "d", "g"]
    broker.end()
    assert broker.handled == ["a", "b", "d", "g", "c", "e", "f"]
    assert repr(broker.held) == NOTHING_HELD


def test_no_request_is_handled_for_which_there_is_no_room_if_one_before_it_ends_the_connection():
    broker, peer = Broker(most_bytes=150), Peer()
    broker.send("refused without answer", 1, peer=peer)
    assert broker.send("b", 0, peer=peer).parts is None
    assert broker.handled == ["refused without answer"]
    assert repr(broker.held) == NOTHING_HELD


def test_other_requests_pass():
    def handle():
        """Stands for a handler."""

    assert HeldProduce({}, 0).gate(open_gate)(ApiKey.FETCH, handle) is handle
