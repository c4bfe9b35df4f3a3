"""Offsets of groups whose members have epochs."""

from types import SimpleNamespace

import pytest

from horolog.broker.groups.consumer_group import ClassicPart, ConsumerGroup, ConsumerMember
from horolog.broker.groups.epoch_commits import FIRST_COMMIT_WITH_MEMBER_EPOCH, GroupWithEpochs
from horolog.broker.groups.offsets import Committed, GroupOffsets
from horolog.broker.groups.reconcile import Current
from horolog.broker.groups.streams.streams_group import StreamsGroup
from horolog.protocol.errors import ErrorCode

NEW, OLD = FIRST_COMMIT_WITH_MEMBER_EPOCH, FIRST_COMMIT_WITH_MEMBER_EPOCH - 1


class Group(GroupWithEpochs):
    def __init__(self, *members):
        self.members = {name: SimpleNamespace(current=SimpleNamespace(epoch=5)) for name in members}
        self.subscribed = frozenset({"read"})
        self.got = {}

    def _got_in(self, member, topic, topic_id, index):
        return self.got.get((member.current.epoch, topic, topic_id, index))


@pytest.mark.parametrize("kind", [ConsumerGroup, StreamsGroup])
def test_both_kinds_of_groups_have_them(kind):
    group = kind("g", 0, GroupOffsets(), 0)
    assert isinstance(group, GroupWithEpochs)
    assert (group.is_empty, group.check_delete(), group.check_offset_delete()) == (True, 0, 0)


@pytest.mark.parametrize(
    ("members", "asked", "transactional", "code"),
    [
        ([], ("", None, -1, NEW), False, ErrorCode.NONE),
        ([], ("m", None, 5, NEW), False, ErrorCode.UNKNOWN_MEMBER_ID),
        (["m"], ("m", None, 5, NEW), False, ErrorCode.NONE),
        (["m"], ("m", None, 4, NEW), False, ErrorCode.STALE_MEMBER_EPOCH),
        (["m"], ("m", None, 5, OLD), False, ErrorCode.UNSUPPORTED_VERSION),
        (["m"], ("m", None, 5, OLD), True, ErrorCode.NONE),
        (["m"], ("other", None, 5, NEW), False, ErrorCode.UNKNOWN_MEMBER_ID),
        (["m"], ("", None, -1, NEW), False, ErrorCode.UNKNOWN_MEMBER_ID),
        (["m"], ("", None, -1, NEW), True, ErrorCode.NONE),
        (["m"], ("", "i", -1, NEW), True, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_commit_is_by_a_member_in_its_epoch_or_from_outside(members, asked, transactional, code):
    assert Group(*members).check_commit(*asked, transactional=transactional) == code


@pytest.mark.parametrize(
    ("name", "epoch", "indexes", "is_kept"),
    [
        ("m", 3, (0,), True),
        ("m", 5, (0, 1), True),
        ("m", 4, (0, 1), True),
        ("m", 3, (0, 1), False),
        ("m", 2, (0,), False),
        ("m", 5, (0, 2), False),
        ("m", 6, (0,), False),
        ("other", 5, (0,), False),
    ],
)
def test_what_a_member_has_had_since_an_earlier_epoch_is_committed_with_that_one(name, epoch, indexes, is_kept):
    group = Group("m")
    group.got = {(5, "t", b"id", 0): 3, (5, "t", b"id", 1): 4}
    assert group.has_kept(name, epoch, [("t", b"id", index) for index in indexes]) is is_kept


@pytest.mark.parametrize(("epoch", "code"), [(5, ErrorCode.NONE), (4, ErrorCode.ILLEGAL_GENERATION)])
@pytest.mark.parametrize("version", [OLD, NEW])
def test_a_member_that_speaks_the_classic_protocol_has_a_generation(epoch, code, version):
    group, member = ConsumerGroup("g", 0, GroupOffsets(), 0), ConsumerMember("m", None)
    member.classic, member.current = ClassicPart(1, ()), Current(epoch=5)
    group.add(member)
    assert group.check_commit("m", None, epoch, version, transactional=False) == code


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ((None, -1), ErrorCode.NONE),
        (("", -1), ErrorCode.NONE),
        (("m", 5), ErrorCode.NONE),
        (("m", 4), ErrorCode.STALE_MEMBER_EPOCH),
        (("other", 5), ErrorCode.UNKNOWN_MEMBER_ID),
        ((None, 5), ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_fetch_that_names_a_member_is_of_its_epoch(asked, code):
    assert Group("m").check_fetch(*asked) == code


def test_offsets_of_topics_that_are_read_stay():
    committed = Committed(1, 0, "", 7, -1)
    empty, group = Group(), Group("m")
    assert (group.is_empty, group.check_delete()) == (False, ErrorCode.NON_EMPTY_GROUP)
    assert [one.reads("read") for one in (empty, group)] == [False, True]
    assert group.expiry_starts(("read", 0), committed) is None
    assert group.expiry_starts(("other", 0), committed) == empty.expiry_starts(("read", 0), committed) == 7
