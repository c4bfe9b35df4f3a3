"""A session's frames are what the product's codec reads and writes, and each record that comes is the one that was sent."""

import pytest

from benchmarks import frames, session
from benchmarks.peer import BrokerError, Peer
from horolog.protocol.compile import decode, encode
from horolog.protocol.messages.fetch import FetchRequest, FetchResponse
from horolog.testing import broker_in_thread

BODY_AT = 4 + 8 + 2 + len(frames.CLIENT_ID)


def test_a_request_of_a_session_is_what_the_codec_reads():
    frame = session.fetch("topic", 7, 2, [(3, 40), (5, 60)])
    body = frame[BODY_AT:]
    request = decode(FetchRequest, session.VERSION, body, to_the_end=True)
    assert (request.session_id, request.session_epoch, request.min_bytes) == (7, 2, 1)
    (topic,) = request.topics
    assert [(part.partition, part.fetch_offset) for part in topic.partitions] == [(3, 40), (5, 60)]
    nothing = session.fetch("topic", 7, 3, [])
    assert decode(FetchRequest, session.VERSION, nothing[BODY_AT:], to_the_end=True).topics == []


def answer(**fields):
    return bytes(8) + encode(FetchResponse(**fields), session.VERSION)


def test_a_session_without_news_has_none():
    assert session.news(answer(session_id=7, responses=[]), "topic") is None


def test_an_error_is_no_news():
    with pytest.raises(BrokerError, match="error 71"):
        session.news(answer(error_code=71, session_id=0, responses=[]), "topic")


def test_a_session_reads_what_is_sent_while_it_lasts():
    with broker_in_thread() as broker:
        with Peer(broker.bootstrap) as peer:
            peer.create_topics(["topic"], 20, {})
        with session.Session(broker.bootstrap, "topic", 20) as follower:
            first, second = follower.run(0.05), follower.run(0.05)
        with Peer(broker.bootstrap) as peer:
            ends = sum(
                int.from_bytes(peer.call(frames.list_offsets("topic", -1, number))[-8:], "big") for number in range(20)
            )
    assert ends == first.records + second.records > 0
    assert len(first.latencies) == first.records


def test_a_record_that_is_not_the_expected_one_is_a_fault(monkeypatch):
    with broker_in_thread() as broker:
        with Peer(broker.bootstrap) as peer:
            peer.create_topics(["topic"], 2, {})
        monkeypatch.setattr(session, "news", lambda _reply, _topic: (5, 0))
        with (
            session.Session(broker.bootstrap, "topic", 2) as follower,
            pytest.raises(BrokerError, match="news of topic-5"),
        ):
            follower.run(0.05)
