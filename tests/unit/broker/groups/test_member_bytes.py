"""Bytes are counted for each member, as it changes and goes."""

from horolog.broker.groups.member_bytes import MemberBytes


def test_bytes_follow_their_members():
    held = MemberBytes()
    held.set("a", 5)
    held.set("b", 7)
    held.set("a", 2)
    held.assigned = 100
    assert (held.of("a"), held.of("b"), held.of("c"), held.total) == (2, 7, 0, 109)
    held.drop("a")
    held.drop("a")
    assert repr(held) == "<MemberBytes: 107 for 1 members>"
