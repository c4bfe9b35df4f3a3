"""Bytes are counted for each member and each principal, as they change and go."""

from horolog.broker.base.principal import USER, Principal
from horolog.broker.groups.member_bytes import MemberBytes, OwnedBytes

ALICE, BOB = Principal(USER, "alice"), Principal(USER, "bob")


def test_bytes_follow_their_members():
    held = MemberBytes()
    held.set("a", 5)
    held.set("b", 7)
    held.set("a", 2)
    held.assign(100)
    assert (held.of("a"), held.of("b"), held.of("c")) == (OwnedBytes(2), OwnedBytes(7), OwnedBytes(0))
    assert held.total == 109
    held.drop("a")
    held.drop("a")
    assert repr(held) == "<MemberBytes: 107 for 1 members>"
    assert held.by_owner == {}


def test_bytes_belong_to_who_sent_them_last():
    held = MemberBytes()
    held.set("a", 5, ALICE)
    held.set("b", 7, BOB)
    held.assign(100, ALICE)
    assert held.by_owner == {ALICE: 105, BOB: 7}
    held.set("b", 8, ALICE)
    held.assign(10, BOB)
    assert held.by_owner == {ALICE: 13, BOB: 10}
    held.drop("a")
    held.drop("b")
    held.assign(0)
    assert (held.total, held.by_owner) == (0, {})
