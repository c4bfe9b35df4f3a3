"""The conversation alone: no socket, no event loop, no clock but the test's."""

from __future__ import annotations

import logging
import struct

import pytest

from horolog.broker.base.principal import ANONYMOUS, Principal
from horolog.broker.handlers.context import RequestContext
from horolog.broker.network.conversation import Conversation, ConversationState, HandshakeRefused
from horolog.broker.network.unanswered import WRITE_HIGH_WATER_BYTES
from tests.support.conversations import PRODUCE, Peer, context_of, finish, framed, limits, talk


def taken(conversation: Conversation) -> list[bytes]:
    return [bytes(part) for part in conversation.take_output()]


# -- bytes and frames


def test_half_a_frame_is_served_when_the_rest_has_come() -> None:
    conversation, service = talk()
    data = framed(b"abc")
    for position in range(len(data)):
        assert service.seen == []
        conversation.receive(data[position : position + 1])
    assert service.seen == [b"abc"]
    assert taken(conversation) == [b"abc"]
    assert conversation.unfinished_bytes == 0


def test_what_is_held_of_half_a_frame_is_counted_over_all_conversations() -> None:
    shared = limits()
    conversation, _ = talk(shared)
    conversation.receive(framed(b"abcdef")[:7])
    assert conversation.unfinished_bytes == shared.memory.unfinished.total_bytes == 7
    conversation.receive(framed(b"abcdef")[7:] + b"\0")
    assert conversation.unfinished_bytes == shared.memory.unfinished.total_bytes == 1
    conversation.lost()
    assert shared.memory.unfinished.total_bytes == 0


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (struct.pack(">i", 1001), "more than the 1000 that are allowed"),
        (struct.pack(">i", -1), "negative"),
        (struct.pack(">i", 0), "empty"),
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00", "TLS"),
    ],
)
def test_what_is_no_frame_ends_the_conversation_behind_the_answers_before_it(
    bad: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    conversation, service = talk(socket_request_max_bytes=1000)
    with caplog.at_level(logging.INFO):
        conversation.receive(framed(b"a") + bad)
    assert conversation.state is ConversationState.CLOSING
    assert conversation.closing
    assert not conversation.wants_to_read
    assert taken(conversation) == [b"a"]
    assert reason in caplog.text
    conversation.receive(framed(b"b"))
    assert service.seen == [b"a"]


def test_the_largest_frame_that_is_allowed_is_served() -> None:
    conversation, service = talk(socket_request_max_bytes=1000)
    conversation.receive(framed(b"a" * 1000))
    assert len(service.seen[0]) == 1000


# -- large requests


LARGE = b"large" * 20_000


def receive_in_place(conversation: Conversation, data: bytes, step: int) -> None:
    at = 0
    while at < len(data) and not conversation.closing:
        large = conversation.reader.large
        count = min(step, len(data) - at)
        if large is None:
            conversation.receive(data[at : at + count])
        else:
            count = min(count, len(large.room))
            large.room[:count] = data[at : at + count]
            large.advance(count)
            conversation.receive(b"")
        at += count


def test_a_large_request_is_received_in_place() -> None:
    shared = limits()
    conversation, service = talk(shared)
    peer = Peer(conversation)
    begun: list[int] = []
    conversation.on_large_request = lambda: begun.append(conversation.unfinished_bytes)
    receive_in_place(conversation, framed(b"a", LARGE)[:3000], 3000)
    assert begun == [shared.memory.unfinished.total_bytes]
    assert begun[0] >= 3000
    receive_in_place(conversation, framed(b"a", LARGE)[3000:] + framed(b"b"), 7000)
    assert service.seen == [b"a", LARGE, b"b"]
    assert peer.answers == service.seen
    assert shared.memory.unfinished.total_bytes == 0


def test_a_large_request_need_not_be_received_in_place() -> None:
    conversation, service = talk()
    data = framed(b"a", LARGE, b"b")
    for at in range(0, len(data), 7000):
        conversation.receive(data[at : at + 7000])
    assert service.seen == [b"a", LARGE, b"b"]


def test_a_large_request_of_a_closed_conversation_is_dropped() -> None:
    conversation, service = talk()
    receive_in_place(conversation, framed(LARGE)[:-1], 50_000)
    assert conversation.reader.large is not None
    conversation.close()
    conversation.reader.large.advance(1)
    conversation.receive(b"")
    assert service.seen == []


def test_a_large_request_before_the_handshake_is_over_is_measured_by_what_has_arrived() -> None:
    password = Password()
    conversation, _ = talk(handshake=password)
    receive_in_place(conversation, framed(LARGE)[: password.max_unfinished_bytes], 50)
    assert not conversation.closing
    receive_in_place(conversation, b"z", 1)
    assert conversation.closing


# -- answers in order


def test_answers_leave_in_the_order_of_their_requests_however_late_they_come() -> None:
    conversation, service = talk()
    conversation.receive(framed(b"w1", b"a", b"w2", b"b"))
    assert taken(conversation) == []
    assert len(conversation.unanswered) == 4
    finish(service.waiting[1], b"W2")
    assert taken(conversation) == []
    assert conversation.unanswered.held_back_bytes == len(b"aW2b")
    finish(service.waiting[0], b"W1")
    assert taken(conversation) == [b"W1", b"a", b"W2", b"b"]
    assert conversation.unanswered.held_back_bytes == 0
    assert conversation.idle


def test_a_request_without_an_answer_holds_nothing_up() -> None:
    conversation, service = talk()
    conversation.receive(framed(b"n", b"w1", b"a"))
    service.waiting[0].set_no_response()
    conversation.answered()
    assert taken(conversation) == [b"a"]


def test_output_is_handed_out_once() -> None:
    conversation, _ = talk()
    conversation.receive(framed(b"a", b"b"))
    assert taken(conversation) == [b"a", b"b"]
    assert taken(conversation) == []


def test_who_carries_it_is_told_of_each_answer_that_may_leave() -> None:
    conversation, service = talk()
    peer = Peer(conversation)
    conversation.receive(framed(b"a", b"w1", b"b"))
    assert peer.answers == [b"a"]
    finish(service.waiting[0], b"W1")
    assert peer.answers == [b"a", b"W1", b"b"]
    assert peer.changes == []


# -- turns


def test_much_at_once_is_served_in_turns_and_nothing_is_lost() -> None:
    """Every look at the clock finds the turn over."""
    seconds = iter(range(1000))
    conversation, service = talk(monotonic=lambda: next(seconds))
    bodies = [b"%02d" % number for number in range(10)]
    conversation.receive(framed(*bodies))
    seen, answers = [len(service.seen)], taken(conversation)
    while conversation.wants_turn:
        assert not conversation.wants_to_read
        conversation.resume_if_allowed()
        seen.append(len(service.seen))
        answers += taken(conversation)
    assert seen == [4, 8, 10]
    assert answers == bodies
    assert conversation.wants_to_read


def test_a_few_requests_at_once_never_look_at_the_clock() -> None:
    def clock() -> float:
        raise AssertionError("looked at")

    conversation, service = talk(monotonic=clock)
    conversation.receive(framed(b"1", b"2", b"3", b"4"))
    assert len(service.seen) == 4


def test_what_comes_while_others_have_their_turn_is_served_after_what_came_before() -> None:
    seconds = iter(range(1000))
    conversation, service = talk(monotonic=lambda: next(seconds))
    conversation.receive(framed(*(b"%d" % number for number in range(6))))
    conversation.receive(framed(b"6", b"7"))
    assert len(service.seen) == 4
    while conversation.wants_turn:
        conversation.resume_if_allowed()
    assert service.seen == [b"%d" % number for number in range(8)]


# -- limits, and reading


def test_too_many_unanswered_requests_end_the_reading_until_one_is_answered() -> None:
    conversation, service = talk(queued_max_requests=2)
    peer = Peer(conversation)
    conversation.receive(framed(*(b"w%d" % number for number in range(4))))
    assert len(service.seen) == 2
    assert not conversation.wants_to_read
    finish(service.waiting[0], b"0")
    assert len(service.seen) == 3
    for place in (1, 2, 3):
        finish(service.waiting[place], b"%d" % place)
    assert peer.answers == [b"0", b"1", b"2", b"3"]
    assert conversation.wants_to_read
    assert peer.changes[-1] == (True, False, False)


def test_too_many_bytes_without_an_answer_end_the_reading() -> None:
    conversation, service = talk(horolog_connection_queued_max_bytes=100)
    conversation.receive(framed(b"w" * 60, b"w" * 60, b"w"))
    assert len(service.seen) == 2
    finish(service.waiting[0], b"0")
    assert len(service.seen) == 3


def test_a_peer_that_does_not_read_is_not_read_from() -> None:
    conversation, service = talk()
    peer = Peer(conversation)
    peer.unsent_bytes = WRITE_HIGH_WATER_BYTES + 1
    conversation.pause_writing()
    assert not conversation.wants_to_read
    conversation.receive(framed(b"a", b"b"))
    assert service.seen == []
    assert not conversation.idle
    peer.unsent_bytes = 0
    conversation.resume_writing()
    assert peer.answers == [b"a", b"b"]
    assert conversation.wants_to_read


def test_a_peer_that_is_a_little_slow_is_still_served_until_it_owes_too_much() -> None:
    conversation, service = talk()
    peer = Peer(conversation)
    peer.unsent_bytes = WRITE_HIGH_WATER_BYTES - 1
    conversation.pause_writing()
    conversation.receive(framed(b"a"))
    assert peer.answers == [b"a"]
    peer.unsent_bytes += 2
    conversation.receive(framed(b"b", b"c"))
    assert service.seen == [b"a", b"b"]
    assert not conversation.wants_to_read


def test_output_that_nobody_takes_ends_the_serving_until_it_is_taken() -> None:
    shared = limits()
    conversation, service = talk(shared)
    size_bytes = WRITE_HIGH_WATER_BYTES // 4
    conversation.receive(framed(*[b"a" * size_bytes] * 9))
    assert len(service.seen) == 5
    assert shared.memory.answers.total_bytes == 5 * size_bytes
    conversation.resume_if_allowed()
    assert len(service.seen) == 5, "what it owes has not been taken"
    answers = taken(conversation)
    assert shared.memory.answers.total_bytes == 0
    assert conversation.wants_turn
    conversation.resume_if_allowed()
    assert len(answers) + len(taken(conversation)) == 9
    assert conversation.wants_to_read


def test_a_turn_that_something_else_forbids_is_not_asked_for_again() -> None:
    conversation, service = talk(queued_max_requests=2)
    conversation.receive(framed(b"a" * (WRITE_HIGH_WATER_BYTES + 1), b"b", b"c"))
    conversation.pause_writing()
    taken(conversation)
    turns = 0
    while conversation.wants_turn:
        conversation.resume_if_allowed()
        turns += 1
    assert turns == 1
    assert len(service.seen) == 1
    conversation.resume_writing()
    assert service.seen[1:] == [b"b", b"c"]


def test_late_answers_that_nobody_takes_are_counted_until_they_are() -> None:
    shared = limits()
    conversation, service = talk(shared)
    conversation.receive(framed(b"w1"))
    finish(service.waiting[0], b"a" * (WRITE_HIGH_WATER_BYTES + 1))
    assert not conversation.wants_to_read
    conversation.receive(framed(b"b"))
    assert taken(conversation) == [b"a" * (WRITE_HIGH_WATER_BYTES + 1)]
    conversation.resume_if_allowed()
    assert taken(conversation) == [b"b"]


def test_records_that_wait_to_be_written_stop_conversations_in_the_order_of_stopping() -> None:
    shared = limits(queued_max_request_bytes=100)
    (one, ones), (other, others) = talk(shared), talk(shared)
    record = PRODUCE + b"p" * 58
    one.receive(framed(record, record, record))
    assert len(ones.seen) == 2
    assert shared.memory.requests.held_bytes == 120
    other.receive(framed(b"a"))
    assert others.seen == []
    finish(ones.waiting[0], b"1")
    assert len(ones.seen) == 3
    finish(ones.waiting[1], b"2")
    finish(ones.waiting[2], b"3")
    assert others.seen == [b"a"]
    assert one.wants_to_read
    assert other.wants_to_read
    assert shared.memory.requests.held_bytes == 0


def test_for_how_long_a_peer_was_not_read_from_is_observed() -> None:
    seconds = iter([10.0, 12.5])
    shared = limits(queued_max_requests=1)
    conversation, service = talk(shared, lambda: next(seconds))
    conversation.receive(framed(b"w1"))
    finish(service.waiting[0], b"1")
    assert shared.pauses.sum == 2.5


# -- the end


def test_a_request_that_makes_no_sense_ends_the_conversation(caplog: pytest.LogCaptureFixture) -> None:
    conversation, service = talk()
    conversation.peer_host = "10.0.0.1"
    peer = Peer(conversation)
    with caplog.at_level(logging.INFO):
        conversation.receive(framed(b"a", b"x", b"b"))
    assert peer.answers == [b"a"]
    assert peer.changes == [(False, False, True)]
    assert service.seen == [b"a", b"x"]
    assert "closing the connection of 10.0.0.1 on PLAINTEXT: unknown api key 120" in caplog.text


def test_a_bug_in_a_handler_ends_one_conversation_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    conversation, _ = talk()
    conversation.receive(framed(b"e"))
    assert conversation.state is ConversationState.CLOSING
    assert "a bug" in caplog.text


def test_answers_that_come_after_the_end_are_dropped_and_those_before_it_may_leave() -> None:
    conversation, service = talk()
    conversation.receive(framed(b"a", b"w1"))
    conversation.close("enough")
    finish(service.waiting[0], b"W1")
    assert taken(conversation) == [b"a"]


def test_after_a_cut_nothing_leaves() -> None:
    conversation, service = talk()
    conversation.receive(framed(b"a", b"w1"))
    conversation.cut("enough")
    assert conversation.state is ConversationState.CLOSED
    finish(service.waiting[0], b"W1")
    assert taken(conversation) == []


def test_it_ends_once() -> None:
    conversation, _ = talk()
    peer = Peer(conversation)
    conversation.close("first")
    conversation.close("second")
    conversation.cut("third")
    conversation.drain()
    assert conversation.state is ConversationState.CLOSING
    assert len(peer.changes) == 1


def test_draining_answers_what_was_served_and_serves_nothing_more() -> None:
    conversation, service = talk(queued_max_requests=2)
    conversation.receive(framed(b"w1", b"w2", b"w3"))
    conversation.drain()
    assert conversation.state is ConversationState.DRAINING
    conversation.receive(framed(b"a"))
    finish(service.waiting[0], b"W1")
    finish(service.waiting[1], b"W2")
    assert taken(conversation) == [b"W1", b"W2"]
    assert service.seen == [b"w1", b"w2"]
    assert not conversation.wants_to_read


def test_who_waits_is_told_when_the_peer_is_lost_and_what_it_held_is_given_back() -> None:
    shared = limits(queued_max_request_bytes=100)
    (one, ones), (other, others) = talk(shared), talk(shared)
    one.receive(framed(PRODUCE + b"p" * 98, b"begun")[:-2])
    other.receive(framed(b"a"))
    assert others.seen == []
    abandoned: list[int] = []
    ones.waiting[0].on_abandoned = lambda: abandoned.append(1)
    one.lost()
    assert abandoned == [1]
    assert others.seen == [b"a"]
    assert shared.memory.requests.held_bytes == shared.memory.unfinished.total_bytes == 0
    finish(ones.waiting[0], b"late")
    assert taken(one) == []


def test_it_can_be_told_apart_in_a_log() -> None:
    conversation, _ = talk(queued_max_requests=1)
    conversation.peer_host = "10.0.0.1"
    conversation.receive(framed(b"w"))
    assert repr(conversation) == (
        "<Conversation serving with User:ANONYMOUS at 10.0.0.1 on PLAINTEXT, 1 unanswered, not read from>"
    )


# -- before serving


class Password:
    """The first frame has to be a password; it is looked up at once, or later for those that begin with 'l'."""

    max_unfinished_bytes = 20

    def __init__(self) -> None:
        self.waiting: list[RequestContext] = []
        self.seen: list[bytes] = []

    def serve(self, frame: memoryview, conversation: Conversation) -> RequestContext:
        said = bytes(frame)
        self.seen.append(said)
        context = context_of(frame, conversation)
        if said.startswith(b"l"):
            self.waiting.append(context)
        elif said == b"alice":
            conversation.serve_as(Principal("User", "alice"))
            context.parts = [b"welcome"]
        elif said == b"who?":
            context.parts = [b"say your name"]
        else:
            raise HandshakeRefused("nobody of that name", [b"no"])
        return context


def test_a_plain_conversation_begins_in_serving_as_anonymous() -> None:
    conversation, service = talk()
    assert conversation.state is ConversationState.SERVING
    assert conversation.principal is ANONYMOUS
    conversation.receive(framed(b"a"))
    assert service.principals == ["User:ANONYMOUS"]


def test_the_handshake_has_the_frames_until_it_knows_the_peer() -> None:
    password = Password()
    conversation, service = talk(handshake=password)
    assert conversation.state is ConversationState.HANDSHAKING
    conversation.receive(framed(b"who?", b"alice", b"a" * 50))
    assert password.seen == [b"who?", b"alice"]
    assert service.seen == [b"a" * 50]
    assert service.principals == ["User:alice"]
    assert conversation.state is ConversationState.SERVING
    assert taken(conversation) == [b"say your name", b"welcome", b"a" * 50]


def test_a_peer_that_is_refused_is_told_why_and_nothing_of_it_is_served() -> None:
    conversation, service = talk(handshake=Password())
    conversation.receive(framed(b"mallory", b"a"))
    assert taken(conversation) == [b"no"]
    assert conversation.state is ConversationState.CLOSING
    assert service.seen == []


def test_while_the_handshake_thinks_nothing_behind_it_is_looked_at() -> None:
    password = Password()
    conversation, service = talk(handshake=password)
    conversation.receive(framed(b"later", b"a"))
    assert not conversation.wants_to_read
    assert password.seen == [b"later"]
    assert service.seen == []
    conversation.serve_as(Principal("User", "bob"))
    finish(password.waiting[0], b"welcome")
    assert taken(conversation) == [b"welcome", b"a"]
    assert service.principals == ["User:bob"]
    assert conversation.wants_to_read
    conversation.receive(framed(b"w1", b"w2"))
    assert len(service.waiting) == 2, "the limit of one at a time was the handshake's"


def test_a_late_refusal_is_told_before_the_end() -> None:
    password = Password()
    conversation, service = talk(handshake=password)
    conversation.receive(framed(b"later", b"a"))
    peer = Peer(conversation)
    finish(password.waiting[0], b"no")
    conversation.close("nobody of that name")
    assert peer.answers[0] == b"no"
    assert service.seen == []


def test_who_is_not_known_cannot_have_much_kept_of_a_request() -> None:
    conversation, service = talk(handshake=Password())
    conversation.receive(framed(b"z" * 1000)[:30])
    assert conversation.closing
    piped, service = talk(handshake=Password())
    piped.receive(framed(b"alice", b"z" * 1000)[:-500])
    assert not piped.closing, "by then it was known"
    known, service = talk(handshake=Password())
    known.receive(framed(b"alice"))
    known.receive(framed(b"z" * 1000)[:500])
    known.receive(framed(b"z" * 1000)[500:])
    assert len(service.seen[0]) == 1000


# -- who is over a quota


class Timer(Peer):
    """Notes for how long its conversation is muted."""

    def __init__(self, conversation: Conversation) -> None:
        super().__init__(conversation)
        self.waits: list[float] = []

    def muted(self, seconds: float) -> None:
        self.waits.append(seconds)


def test_a_muted_peer_is_answered_and_not_served_until_it_is_over() -> None:
    conversation, service = talk()
    peer = Timer(conversation)
    conversation.receive(framed(b"w1"))
    conversation.mute(2.5)
    assert (peer.waits, conversation.wants_to_read, conversation.idle) == ([2.5], False, False)
    conversation.receive(framed(b"later"))
    finish(service.waiting[0], b"first")
    conversation.resume_if_allowed()
    assert (peer.answers, service.seen) == ([b"first"], [b"w1"])
    assert not conversation.idle
    conversation.mute(0)
    assert peer.answers == [b"first", b"later"]
    assert (conversation.wants_to_read, conversation.idle) == (True, True)


def test_one_that_is_muted_by_nobody_who_tells_the_time_stays_so() -> None:
    conversation, _ = talk()
    conversation.mute(1.0)
    assert conversation.is_muted
    conversation.resume_if_allowed()
    assert not conversation.wants_to_read


def test_who_is_gone_is_not_muted() -> None:
    conversation, _ = talk()
    peer = Timer(conversation)
    conversation.close()
    conversation.mute(1.0)
    conversation.mute(0)
    assert (peer.waits, conversation.wants_to_read) == ([], False)
