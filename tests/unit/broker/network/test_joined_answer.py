"""Answers to pieces become the answer to the whole: `tests/property/test_pieces.py` compares them for every API, this module the rest."""

from __future__ import annotations

from horolog.broker.network.joined_answer import JoinedAnswer
from horolog.protocol.apis import ApiKey
from horolog.protocol.compile import decode
from horolog.protocol.messages.groups import LeaveGroupResponse, MemberResponse
from horolog.protocol.messages.list_offsets import ListOffsetsResponse
from horolog.protocol.messages.offsets import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from horolog.protocol.messages.transactions import WritableTxnMarkerResult, WriteTxnMarkersResponse


def leaving() -> JoinedAnswer:
    return JoinedAnswer(ApiKey.LEAVE_GROUP, 5, ("members",), flat=False)


def left(member_id: str, **fields: int) -> LeaveGroupResponse:
    return LeaveGroupResponse(members=[MemberResponse(member_id=member_id)], **fields)


def test_the_longest_wait_is_told() -> None:
    joined = leaving()
    for wait_ms in (3, 9, 5):
        joined.add(left("m", throttle_time_ms=wait_ms), 0, 0)
    answer = decode(LeaveGroupResponse, 5, joined.encoded())
    assert (answer.throttle_time_ms, len(answer.members)) == (9, 3)
    assert repr(leaving()) == "<JoinedAnswer of <Fields members>, 0 bytes>"


def test_an_error_of_the_whole_is_all_that_is_told() -> None:
    joined = leaving()
    joined.add(left("m"), 0, 0)
    assert not joined.fails(left("m", error_code=25)), "it tells of a part"
    assert not joined.fails(LeaveGroupResponse())
    assert joined.fails(LeaveGroupResponse(error_code=25))
    answer = decode(LeaveGroupResponse, 5, joined.encoded())
    assert (answer.error_code, answer.members) == (25, [])


def test_an_element_that_grows_is_closed_by_the_next() -> None:
    def piece(group: str, topic: str, *indexes: int) -> OffsetFetchResponse:
        partitions = [OffsetFetchResponsePartitions(partition_index=one) for one in indexes]
        topics = [OffsetFetchResponseTopics(name=topic, partitions=partitions)] if topic else []
        return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id=group, topics=topics)])

    joined = JoinedAnswer(ApiKey.OFFSET_FETCH, 8, ("groups", "topics", "partitions"), flat=False)
    joined.add(piece("a", "t", 0), 0, 0)
    joined.add(piece("b", "t", 0, 1), 2, 0)
    joined.add(piece("b", "t", 2), 2, 2)
    joined.add(piece("b", "u", 0), 2, 1)
    joined.add(piece("c", ""), 2, 0)  # refused as a whole
    joined.add(piece("c", ""), 2, 2)
    joined.add(piece("d", "t", 0), 1, 0)
    joined.add(OffsetFetchResponse(groups=[]), 1, 1)
    answer = decode(OffsetFetchResponse, 8, joined.encoded())
    shown = [
        (group.group_id, [(topic.name, [one.partition_index for one in topic.partitions]) for topic in group.topics])
        for group in answer.groups
    ]
    assert shown == [
        ("a", [("t", [0])]),
        ("b", [("t", [0, 1, 2]), ("u", [0])]),
        ("c", []),
        ("d", [("t", [0])]),
    ]


def test_tuples_are_joined_as_messages_are_with_the_longest_wait() -> None:
    def piece(wait_ms: int, topic: str, *indexes: int) -> tuple[object, ...]:
        return wait_ms, [(topic, [(index, 0, [], 5, 7, 1) for index in indexes])]

    joined = JoinedAnswer(ApiKey.LIST_OFFSETS, 4, ("topics", "partitions"), flat=True)
    assert not joined.fails(piece(0, "t", 0)), "it has no error of the whole"
    joined.add(piece(3, "t", 0, 1), 1, 0)
    joined.add(piece(9, "t", 2), 1, 1)
    joined.add(piece(0, "u", 0), 0, 0)
    answer = decode(ListOffsetsResponse, 4, joined.encoded())
    shown = [(topic.name, [one.partition_index for one in topic.partitions]) for topic in answer.topics]
    assert (answer.throttle_time_ms, shown) == (9, [("t", [0, 1, 2]), ("u", [0])])


def test_a_piece_of_which_nothing_is_told_adds_nothing() -> None:
    joined = leaving()
    joined.add(LeaveGroupResponse(), 0, 0)
    joined.add(left("m"), 0, 0)
    assert [one.member_id for one in decode(LeaveGroupResponse, 5, joined.encoded()).members] == ["m"]


def test_an_answer_that_has_no_place_for_a_wait_is_joined_without() -> None:
    def piece(producer_id: int) -> WriteTxnMarkersResponse:
        return WriteTxnMarkersResponse(markers=[WritableTxnMarkerResult(producer_id=producer_id)])

    joined = JoinedAnswer(ApiKey.WRITE_TXN_MARKERS, 1, ("markers", "topics", "partitions"), flat=False)
    for producer_id in (7, 8):
        joined.add(piece(producer_id), 0, 0)
    answer = decode(WriteTxnMarkersResponse, 1, joined.encoded())
    assert [one.producer_id for one in answer.markers] == [7, 8]
