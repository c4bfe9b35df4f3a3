"""How long requests are cut: every part is in one piece, in order, and parts of one name are together."""

from __future__ import annotations

from types import SimpleNamespace

from horolog.broker.handlers.pieces import Cutter, Fields, Pace, split_of
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.flat import flat_of
from horolog.protocol.messages.groups import FindCoordinatorRequest
from horolog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from horolog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from horolog.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from horolog.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from horolog.protocol.wire import NO_UUID

KNOWN = b"the id of topic a"[:16]
BROKER = SimpleNamespace(cluster=SimpleNamespace(by_id={KNOWN: SimpleNamespace(name="a")}))


def cutter(key, version, *, flat=False):
    return Cutter(key, split_of(key, version), flat=flat)


def finished(steps):
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, count
        count += 1


def cut(key, version, request, room, *, flat=False):
    made = cutter(key, version, flat=flat)
    arranged, _ = finished(made.arranged(BROKER, request))
    return list(made.pieces(BROKER, arranged, Pace(room)))


def test_apis_are_cut_by_their_version():
    assert split_of(ApiKey.OFFSET_FETCH, 7).asked == ("topics", "partition_indexes")
    assert split_of(ApiKey.OFFSET_FETCH, 8).asked == ("groups", "topics", "partition_indexes")
    assert split_of(ApiKey.FIND_COORDINATOR, 3) is None
    assert split_of(ApiKey.PRODUCE, 9) is None


def test_a_list_is_cut_into_pieces_in_order():
    keys = [f"g{number}" for number in range(10)]
    pieces = cut(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=1, coordinator_keys=keys), 4)
    assert [piece.request.coordinator_keys for piece in pieces] == [keys[:4], keys[4:8], keys[8:]]
    assert {(piece.request.key_type, piece.depth, piece.fresh) for piece in pieces} == {(1, 0, 0)}
    assert repr(cutter(ApiKey.FIND_COORDINATOR, 4)) == "<Cutter of <Fields coordinator_keys>>"


def test_what_is_named_many_times_is_looked_at_once():
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in ("b", "a", "b", "b", "a")])
    pieces = cut(ApiKey.METADATA, 9, request, 1)
    assert [[one.name for one in piece.request.topics] for piece in pieces] == [["b"], ["a"]]
    assert len(request.topics) == 5


def test_mentions_that_refuse_each_other_stay_together():
    request = CreateTopicsRequest(topics=[CreatableTopic(name=name) for name in ("a", "b", "a", "c", "a")])
    pieces = cut(ApiKey.CREATE_TOPICS, 7, request, 1)
    assert [[one.name for one in piece.request.topics] for piece in pieces] == [["a", "a"], ["b"], ["c"]]
    by_both = [
        DeleteTopicState(name="a", topic_id=NO_UUID),
        DeleteTopicState(name="b", topic_id=NO_UUID),
        DeleteTopicState(name=None, topic_id=KNOWN),
        DeleteTopicState(name=None, topic_id=b"unknown".ljust(16)),
        DeleteTopicState(name=None, topic_id=NO_UUID),
    ]
    pieces = cut(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(topics=by_both), 1)
    assert [[one.name for one in piece.request.topics] for piece in pieces] == [["a", None], ["b"], [None], [None]]
    pieces = cut(ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=["a", "b", "a"]), 1)
    assert [piece.request.topic_names for piece in pieces] == [["a", "a"], ["b"]]


def test_many_mentions_are_arranged_in_steps():
    request = MetadataRequest(topics=[MetadataRequestTopic(name=f"t{number}") for number in range(5_000)])
    arranged, steps = finished(cutter(ApiKey.METADATA, 9).arranged(BROKER, request))
    assert arranged.topics == request.topics
    assert steps == 4


def test_a_part_that_is_too_large_is_cut_itself():
    topics = [
        OffsetFetchRequestTopics(name="a", partition_indexes=[0]),
        OffsetFetchRequestTopics(name="b", partition_indexes=list(range(5))),
        OffsetFetchRequestTopics(name="c", partition_indexes=[0]),
    ]
    groups = [
        OffsetFetchRequestGroup(group_id="few", topics=topics[:1]),
        OffsetFetchRequestGroup(group_id="many", topics=topics),
        OffsetFetchRequestGroup(group_id="all", topics=None),
    ]
    pieces = cut(ApiKey.OFFSET_FETCH, 8, OffsetFetchRequest(groups=groups), 3)
    shown = [
        (
            piece.depth,
            piece.fresh,
            [
                (
                    one.group_id,
                    None if one.topics is None else [(each.name, each.partition_indexes) for each in one.topics],
                )
                for one in piece.request.groups
            ],
        )
        for piece in pieces
    ]
    assert shown == [
        (0, 0, [("few", [("a", [0])])]),
        (1, 0, [("many", [("a", [0])])]),
        (2, 1, [("many", [("b", [0, 1, 2])])]),
        (2, 2, [("many", [("b", [3, 4])])]),
        (1, 1, [("many", [("c", [0])])]),
        (0, 0, [("all", None)]),
    ]


def test_a_topic_that_is_named_twice_goes_together_and_a_partition_that_is_named_twice_stays_twice():
    def topic(name, *indexes):
        return ListOffsetsTopic(name=name, partitions=[ListOffsetsPartition(partition_index=one) for one in indexes])

    request = ListOffsetsRequest(topics=[topic("a", 0, 1, 0, 0), topic("b", 0), topic("a", 1, 2)])
    pieces = cut(ApiKey.LIST_OFFSETS, 5, flat_of(request), 1, flat=True)
    shown = [(name, [one[0] for one in asked]) for piece in pieces for name, asked in piece.request[2]]
    assert shown == [("a", [0, 0]), ("a", [1, 1]), ("a", [2]), ("b", [0])]


def test_partitions_that_an_old_commit_names_twice_stay_together():
    def topic(name, *indexes):
        asked = [OffsetCommitRequestPartition(partition_index=one, committed_offset=7) for one in indexes]
        return OffsetCommitRequestTopic(name=name, partitions=asked)

    request = OffsetCommitRequest(group_id="g", topics=[topic("a", 0, 1), topic("b", 0), topic("a", 0, 0)])
    for version, expected in (
        (1, [("a", [0, 0, 0]), ("a", [1]), ("b", [0])]),
        (2, [("a", [0]), ("a", [1]), ("b", [0]), ("a", [0]), ("a", [0])]),
    ):
        pieces = cut(ApiKey.OFFSET_COMMIT, version, flat_of(request), 1, flat=True)
        shown = [(name, [one[0] for one in asked]) for piece in pieces for name, _, asked in piece.request[5]]
        assert shown == expected


def test_the_oldest_fetch_of_offsets_looks_at_each_partition_once():
    topics = [OffsetFetchRequestTopic(name=name, partition_indexes=[0, 1, 0]) for name in ("a", "b", "a")]
    pieces = cut(ApiKey.OFFSET_FETCH, 0, OffsetFetchRequest(group_id="g", topics=topics), 2)
    shown = [(one.name, one.partition_indexes) for piece in pieces for one in piece.request.topics]
    assert shown == [("a", [0, 1]), ("b", [0, 1])]


def test_pieces_grow_while_they_are_quick_and_shrink_where_they_are_slow():
    pace = Pace(16)
    pace.took(0.0)
    assert repr(pace) == "<Pace of 32 elements>"
    pace.took(0.002)
    assert pace.room == 32
    for _ in range(10):
        pace.took(0.1)
    assert pace.room == 1
    for _ in range(20):
        pace.took(0.0)
    assert pace.room == Pace.MOST_ELEMENTS


def test_fields_are_read_and_replaced_in_copies():
    request = FindCoordinatorRequest(coordinator_keys=["a"])
    fields = Fields(API[ApiKey.FIND_COORDINATOR].request, ("coordinator_keys",), flat=False)
    changed = fields.replaced(request, 0, ["b"])
    assert (fields.of(request, 0), fields.of(changed, 0), len(fields)) == (["a"], ["b"], 1)


def test_weights_count_what_is_inside():
    made = cutter(ApiKey.OFFSET_FETCH, 8)
    topics = [OffsetFetchRequestTopics(name="a", partition_indexes=[0, 1])]
    groups = [OffsetFetchRequestGroup(group_id="g", topics=topics), OffsetFetchRequestGroup(group_id="h", topics=None)]
    assert made.weight(OffsetFetchRequest(groups=groups)) == 2 + (1 + 2) + 64
    assert not made.has_parts(OffsetFetchRequest(groups=[]))


def test_records_are_deleted_by_the_last_offset_that_a_request_names():
    def topic(name, *asked):
        partitions = [DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in asked]
        return DeleteRecordsTopic(name=name, partitions=partitions)

    request = DeleteRecordsRequest(topics=[topic("a", (0, 1), (1, 2), (0, 3)), topic("b", (0, 4)), topic("a", (1, 5))])
    pieces = cut(ApiKey.DELETE_RECORDS, 2, request, 1)
    shown = [
        (each.name, one.partition_index, one.offset)
        for piece in pieces
        for each in piece.request.topics
        for one in each.partitions
    ]
    assert shown == [("a", 0, 3), ("a", 1, 5), ("b", 0, 4)]
