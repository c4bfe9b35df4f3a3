"""Subscriptions and assignments as the members of a group read and write them."""

import pytest

from horolog.client.values.types import TopicPartition
from horolog.client.wire.group_wire import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from horolog.protocol.errors import DecodeError

PARTITIONS = [TopicPartition("x", 0), TopicPartition("x", 3), TopicPartition("y", 1)]


def test_both_come_back():
    subscription = Subscription(("x", "y"), tuple(PARTITIONS), 7, None)
    assert decode_subscription(encode_subscription(subscription)) == subscription
    assert decode_assignment(encode_assignment(PARTITIONS)) == PARTITIONS


def test_the_first_version_is_read():
    data = bytes.fromhex("0000 00000001 0001 78 ffffffff")
    assert decode_subscription(data) == Subscription(("x",))


def test_versions_to_come_are_read_as_the_newest_known():
    data = bytes.fromhex("0063") + encode_subscription(Subscription(("x",), (), 4))[2:] + bytes.fromhex("ffff 0102")
    assert decode_subscription(data) == Subscription(("x",), (), 4)


def test_no_assignment_is_an_empty_one():
    assert decode_assignment(b"") == []


@pytest.mark.parametrize("data", [b"\x00", b"\xff\xff", b"\x00\x00\x00\x00\x00\x09", b"\x00\x00"])
def test_what_cannot_be_read_is_an_error(data):
    with pytest.raises(DecodeError):
        decode_assignment(data)
    with pytest.raises(DecodeError):
        decode_subscription(data)
