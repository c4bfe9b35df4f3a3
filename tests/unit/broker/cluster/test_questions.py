"""Questions between brokers as bytes: answers find who asked, whatever is lost, late, cut into pieces or no answer at all."""

import struct

import pytest

from horolog.broker.cluster.questions import Questions
from horolog.protocol.compile import encode
from horolog.protocol.errors import DecodeError, FrameError
from horolog.protocol.framing import read_request_header
from horolog.protocol.messages.groups import HeartbeatRequest
from horolog.protocol.messages.transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


def answer(number, code=0):
    body = encode(ListTransactionsResponse(error_code=code), 0)
    return struct.pack(">iix", 5 + len(body), number) + body


def ask(questions, told, version=0):
    return questions.put(ListTransactionsRequest(), version, told.append)


def test_a_question_is_a_frame_that_a_broker_reads():
    number, frame = Questions().put(HeartbeatRequest(group_id="g"), 1, lambda _: None)
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
    header = read_request_header(memoryview(frame)[4:])
    assert (header.api_key, header.version, header.correlation_id, header.client_id) == (12, 1, number, "peer")
    assert bytes(frame[4 + header.body_start :]) == encode(HeartbeatRequest(group_id="g"), 1)


@pytest.mark.parametrize("version", [0, 2])
def test_headers_of_both_kinds_are_written_and_read(version):
    questions, told = Questions(), []
    number, frame = questions.put(WriteTxnMarkersRequest(), version, told.append)
    header = read_request_header(memoryview(frame)[4:])
    assert bytes(frame[4 + header.body_start :]) == encode(WriteTxnMarkersRequest(), version)
    body = struct.pack(">i", number) + b"\0" * (version > 0) + encode(WriteTxnMarkersResponse(), version)
    questions.receive(struct.pack(">i", len(body)) + body)
    assert told == [WriteTxnMarkersResponse()]


@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_answers_find_who_asked_however_they_are_cut(piece):
    questions, first, second = Questions(), [], []
    numbers = [ask(questions, first)[0], ask(questions, second)[0]]
    assert len(questions) == 2
    data = answer(numbers[0], 7) + answer(numbers[1], 8)
    for start in range(0, len(data), piece):
        questions.receive(data[start : start + piece])
    assert [one.error_code for one in first + second] == [7, 8]
    assert len(questions) == 0


def test_who_gave_up_is_told_once_and_a_late_answer_is_dropped():
    questions, first, second = Questions(), [], []
    number, _ = ask(questions, first)
    other, _ = ask(questions, second)
    questions.give_up(number)
    questions.give_up(number)
    assert first == [None]
    questions.receive(answer(number) + answer(other))
    assert first == [None]
    assert len(second) == 1


def test_a_loss_is_told_to_all_and_leaves_nothing_of_the_old_connection():
    questions, told = Questions(), []
    number, _ = ask(questions, told)
    questions.receive(answer(number)[:6])
    questions.lose()
    assert told == [None]
    again, _ = ask(questions, told)
    assert again != number
    questions.receive(answer(again))
    assert len(told) == 2
    assert repr(questions) == "<Questions: 0 wait for their answers>"


def test_who_asks_again_at_once_after_a_loss_waits_for_the_next_answer():
    questions, told = Questions(), []
    questions.put(ListTransactionsRequest(), 0, lambda _: ask(questions, told))
    questions.lose()
    assert (len(questions), told) == (1, [])


def test_numbers_begin_again_after_the_largest(monkeypatch):
    monkeypatch.setattr("horolog.broker.cluster.questions.LARGEST_NUMBER", 2)
    questions = Questions()
    assert [ask(questions, [])[0] for _ in range(4)] == [1, 2, 1, 2]


def test_bytes_that_are_no_answer_are_told_after_those_that_are():
    questions, told = Questions(), []
    number, _ = ask(questions, told)
    with pytest.raises(FrameError):
        questions.receive(answer(number) + b"\xff\xff\xff\xff")
    assert len(told) == 1


def test_an_answer_without_a_number_or_a_body_is_none():
    questions, told = Questions(), []
    with pytest.raises(DecodeError):
        questions.receive(b"\0\0\0\2ab")
    number, _ = ask(questions, told)
    with pytest.raises(DecodeError):
        questions.receive(struct.pack(">iix", 5, number))
    assert told == [None]


def test_one_who_fails_at_an_answer_keeps_nobody_from_theirs(caplog):
    questions, told = Questions(), []
    number, _ = questions.put(ListTransactionsRequest(), 0, lambda _: 1 / 0)
    other, _ = ask(questions, told)
    questions.receive(answer(number) + answer(other))
    assert len(told) == 1
    assert "could not handle the response" in caplog.text
