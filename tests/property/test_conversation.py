"""However the bytes of a conversation are cut into pieces, the same requests are served and the same answers leave."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.conversations import finish, framed, talk

ENDS = st.sampled_from([b"", b"\0\0", b"\0\0\0\x09abc", b"\xff\xff\xff\xff", b"GET / HTTP/1.1", b"\0\0\0\0"])
KINDS = st.lists(st.sampled_from([b"a", b"w", b"n", b"x"]), max_size=12)


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """The bytes of a conversation, and the same in pieces."""
    bodies = [kind + draw(st.binary(max_size=30)) for kind in draw(KINDS)]
    data = framed(*bodies) + draw(ENDS)
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=20)))
    return data, [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def history(pieces: list[bytes]) -> tuple[list[bytes], list[bytes], bool]:
    """What was served and answered, and whether the peer was sent away; what waits is answered at the end, the last first."""
    conversation, service = talk()
    answers: list[bytes] = []
    for piece in pieces:
        conversation.receive(piece)
        answers += map(bytes, conversation.take_output())
    for number, context in reversed(list(enumerate(service.waiting))):
        finish(context, b"W%d" % number)
        answers += map(bytes, conversation.take_output())
    return service.seen, answers, conversation.closing


@given(streams())
def test_the_same_requests_and_answers_come_of_it(stream: tuple[bytes, list[bytes]]) -> None:
    data, pieces = stream
    assert history(pieces) == history([data])


@given(streams(), st.integers(1, 3))
def test_nor_does_it_matter_when_limits_stop_the_reading(stream: tuple[bytes, list[bytes]], most: int) -> None:
    """With requests answered as soon as the peer may send no more."""
    data, pieces = stream

    def served(pieces: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        conversation, service = talk(queued_max_requests=most)
        answers: list[bytes] = []
        answered = 0
        for piece in pieces:
            conversation.receive(piece)
            while not (conversation.wants_to_read or conversation.closing):
                finish(service.waiting[answered], b"W%d" % answered)
                answered += 1
            answers += map(bytes, conversation.take_output())
        return service.seen, answers

    whole, whole_answers = served([data])
    seen, answers = served(pieces)
    shorter = min(len(whole), len(seen))
    assert whole[:shorter] == seen[:shorter], "a faulty size may end it before what was kept is served"
    shorter = min(len(whole_answers), len(answers))
    assert whole_answers[:shorter] == answers[:shorter]
