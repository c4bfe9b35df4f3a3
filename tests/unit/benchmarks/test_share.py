"""Frames of share groups are what the product's codec reads and writes, and members accept what they acquired."""

import socket
import threading

import pytest

from benchmarks import share, share_frames
from benchmarks.peer import BrokerError
from benchmarks.share_frames import Assigned
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.compile import decode, encode
from horolog.protocol.messages import share_groups
from horolog.protocol.messages.share_fetch import (
    AcquiredRecords,
    ShareFetchableTopic,
    ShareFetchResponse,
    ShareLeader,
    SharePartitionData,
)

TOPIC_ID = bytes(range(16))


def read(frame, key, version):
    api = API[key]
    head = 4 + 8 + 2 + int.from_bytes(frame[12:14], "big") + 1
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    return decode(api.request, version, frame, head, to_the_end=True)


def answer(response, version=1):
    body = encode(response, version)
    return (len(body) + 5).to_bytes(4, "big") + b"\0\0\0\0\0" + body


def fetched(partitions, error=0):
    """A ShareFetch's answer; partitions: index -> (error, error of the acknowledgement, first, last)."""
    rows = [
        SharePartitionData(
            partition_index=index,
            error_code=code,
            error_message=None,
            acknowledge_error_code=refused,
            acknowledge_error_message="a",
            current_leader=ShareLeader(leader_id=1, leader_epoch=2),
            records=b"x" * 300,
            acquired_records=[AcquiredRecords(first_offset=first, last_offset=last, delivery_count=1)],
        )
        for index, (code, refused, first, last) in partitions.items()
    ]
    return answer(
        ShareFetchResponse(
            error_code=error,
            error_message="no" if error else None,
            responses=[ShareFetchableTopic(topic_id=TOPIC_ID, partitions=rows)] if rows else [],
            node_endpoints=[],
        )
    )


def test_requests_are_what_the_product_reads():
    beat = read(share_frames.heartbeat("g", "m", "t"), ApiKey.SHARE_GROUP_HEARTBEAT, 1)
    assert (beat.group_id, beat.member_id, beat.member_epoch, beat.rack_id) == ("g", "m", 0, None)
    assert beat.subscribed_topic_names == ["t"]
    begun = read(share_frames.start_at("g", "t", 3, 7), ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0)
    assert begun.group_id == "g"
    (topic,) = begun.topics
    assert [(one.partition_index, one.start_offset) for one in topic.partitions] == [(0, 7), (1, 7), (2, 7)]
    asked = read(share_frames.fetch("g", "m", 4, 50, TOPIC_ID, {2: [(5, 9), (11, 11)]}), ApiKey.SHARE_FETCH, 1)
    assert (asked.share_session_epoch, asked.max_records, asked.batch_size) == (4, 50, 50)
    ((partition,),) = (one.partitions for one in asked.topics)
    batches = [(one.first_offset, one.last_offset, one.acknowledge_types) for one in partition.acknowledgement_batches]
    assert (partition.partition_index, batches) == (2, [(5, 9, [1]), (11, 11, [1])])


def test_answers_are_read_as_the_product_writes_them():
    assert share_frames.acquired(fetched({0: (0, 0, 5, 9), 3: (0, 0, 7, 7)})) == {0: [(5, 9)], 3: [(7, 7)]}
    assert share_frames.acquired(fetched({})) == {}
    for wrong in (fetched({}, error=3), fetched({0: (3, 0, 1, 1)}), fetched({0: (0, 3, 1, 1)})):
        with pytest.raises(BrokerError, match=r"error 3|acknowledgement 3"):
            share_frames.acquired(wrong)


@pytest.mark.parametrize(
    ("assignment", "found"),
    [(None, None), ([], None), ([2, 5], Assigned(TOPIC_ID, (2, 5)))],
)
def test_an_assignment_may_be_missing_or_empty(assignment, found):
    rows = [share_groups.SharePartitionsById(topic_id=TOPIC_ID, partitions=assignment)] if assignment else []
    given = None if assignment is None else share_groups.ShareAssignmentById(topic_partitions=rows)
    said = share_groups.ShareGroupHeartbeatResponse(error_code=0, member_id="m", member_epoch=1, assignment=given)
    assert share_frames.assigned(answer(said)) == found


def test_offsets_that_could_not_be_set_are_an_error():
    def said(code):
        row = share_groups.AlterShareGroupOffsetsResponsePartition(partition_index=1, error_code=code)
        topic = share_groups.AlterShareGroupOffsetsResponseTopic(topic_name="t", topic_id=TOPIC_ID, partitions=[row])
        return answer(share_groups.AlterShareGroupOffsetsResponse(error_code=0, responses=[topic]), 0)

    share_frames.altered(said(0))
    with pytest.raises(BrokerError, match="partition 1: error 16"):
        share_frames.altered(said(16))


def test_a_member_accepts_what_the_last_fetch_has_acquired():
    with socket.create_server(("127.0.0.1", 0)) as server:
        asked = []

        def serve():
            link, _ = server.accept()
            with link, link.makefile("rb") as requests:
                for number in range(3):
                    size = requests.read(4)
                    asked.append(read(size + requests.read(int.from_bytes(size, "big")), ApiKey.SHARE_FETCH, 1))
                    link.sendall(fetched({0: (0, 0, 10 * number, 10 * number + 9)}))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        group = share.Group.__new__(share.Group)
        group.members = [share.Member("g", "m", f"127.0.0.1:{server.getsockname()[1]}", 10, Assigned(TOPIC_ID, (0,)))]
        with group:
            done = group.run(20.0, 20)
            thread.join(20.0)
    assert (done.records, done.requests, len(done.latencies)) == (20, 2, 2)
    assert [one.share_session_epoch for one in asked] == [0, 1, 2]
    accepted = [
        [
            (batch.first_offset, batch.last_offset)
            for topic in one.topics
            for row in topic.partitions
            for batch in row.acknowledgement_batches
        ]
        for one in asked
    ]
    assert accepted == [[], [(0, 9)], [(10, 19)]]


def test_every_second_record_is_by_its_offset():
    assert share.every_second({1: [(2, 5)], 2: [(4, 4)]}) == {1: [(3, 3), (5, 5)], 2: []}
