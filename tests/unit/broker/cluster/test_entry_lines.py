"""Entries of the journal as lines: each kind is read as it was written, and damage is seen."""

import json
from dataclasses import replace

import pytest

from horolog.broker.cluster.cluster_state import (
    BrokerConfigsChanged,
    ClusterState,
    EpochsTold,
    FoldersRemoved,
    Lead,
    LeadsChanged,
    PartitionsAdded,
    ProducerIdsReserved,
    RulesChanged,
    TopicConfigsChanged,
    TopicsCreated,
    TopicsDeleted,
    TopicsFound,
    TopicsWithdrawn,
)
from horolog.broker.cluster.entry_lines import (
    Head,
    Illegible,
    NewerJournal,
    UnknownKind,
    Whole,
    decode_entry,
    encode_entry,
    encode_head,
    find_head,
    illegible,
)
from horolog.broker.on_record.checked_lines import encode_line
from horolog.broker.on_record.cluster_file import StoredTopic
from horolog.broker.on_record.stored_rules import StoredRule

ID = bytes(range(16))
T = StoredTopic("t", ID, 3, {"retention.ms": "5"}, {"AAAA": [0, 2], "BBBB": [1]})
U = StoredTopic("ü.u", bytes(16), 1, {})

ENTRIES = [
    TopicsCreated((T, U)),
    TopicsCreated((T, U), (((ID, 1), Lead(2, 0)), ((bytes(16), 0), Lead(1, 0)))),
    PartitionsAdded((T,)),
    PartitionsAdded((T,), (((ID, 2), Lead(1, 0)),)),
    TopicsFound((U,)),
    TopicsDeleted(("t", "u")),
    TopicsWithdrawn(frozenset(["t", "u"])),
    FoldersRemoved(frozenset([("t", ID), ("u", bytes(16))])),
    TopicConfigsChanged({"t": {"a": "b"}, "u": {}}),
    BrokerConfigsChanged("", {"log.retention.ms": "5"}),
    RulesChanged((StoredRule("acl", "ü", {"host": "*"}),), frozenset([("user", "a"), ("acl", "b")])),
    ProducerIdsReserved(7000),
    LeadsChanged((((ID, 0), Lead(2, 5)), ((ID, 1), Lead(1, 6)), ((bytes(16), 0), Lead(3, 1)))),
    EpochsTold((((ID, 2), 4),)),
]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda one: type(one).__name__)
def test_what_is_written_is_read(entry):
    line = encode_entry(7, entry)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_entry(line[:-1]) == (7, entry)


def test_a_topic_that_was_read_is_written_to_the_cluster_file_as_ever():
    _, entry = decode_entry(encode_entry(1, TopicsCreated((T,)))[:-1])
    assert entry.topics[0].line == T.line


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda one: type(one).__name__)
def test_damage_is_seen(entry):
    line = encode_entry(7, entry)[:-1]
    for place in range(0, len(line), 7):
        damaged = line[:place] + bytes([line[place] ^ 1]) + line[place + 1 :]
        with pytest.raises(ValueError, match="checksum"):
            decode_entry(damaged)


def test_an_entry_of_an_unknown_kind_is_none():
    with pytest.raises(UnknownKind):
        decode_entry(encode_line({"number": 1, "kind": "Guessed"}).encode()[:-1])


class TestIllegible:
    """What an entry may have said that cannot be read does no harm."""

    RULE = StoredRule("acl", "a", {})
    STATE = replace(ClusterState.of([T]), next_producer_id=5000)

    def applied(self, kind, **others):
        return replace(self.STATE, **others).apply(Illegible(kind))

    def test_it_has_its_number(self):
        assert self.applied("TopicsDeleted") == replace(self.STATE, number=1)

    def test_one_of_rules_is_a_rule_that_is_lost(self):
        assert self.applied("RulesChanged").lost_rules == 1

    @pytest.mark.parametrize("rules", [{}, {RULE.id: RULE}])
    def test_one_of_an_unknown_kind_may_have_been_about_rules(self, rules):
        state = self.applied(None, rules=rules)
        assert (state.rules_in_doubt, state.lost_rules) == (True, len(rules))

    @pytest.mark.parametrize("kind", [None, "TopicConfigsChanged", "BrokerConfigsChanged"])
    def test_settings_that_it_may_have_changed_are_unknown(self, kind):
        (topic,) = self.applied(kind).topics.values()
        assert topic.overrides == {"retention.ms": "5", "horolog.settings.unknown": "true"}

    @pytest.mark.parametrize("kind", [None, "ProducerIdsReserved"])
    def test_producer_ids_that_it_may_have_reserved_are_left_out(self, kind):
        assert self.applied(kind).next_producer_id == 6000

    @pytest.mark.parametrize(
        "kind",
        [
            "TopicsCreated", "PartitionsAdded", "TopicsFound", "TopicsDeleted", "TopicsWithdrawn", "FoldersRemoved",
            "LeadsChanged", "EpochsTold",
        ],
    )  # fmt: skip
    def test_what_folders_tell_needs_no_care(self, kind):
        assert self.applied(kind) == replace(self.STATE, number=1)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda one: type(one).__name__)
def test_the_kind_of_a_damaged_line_is_read_where_it_can_be(entry):
    line = encode_entry(7, entry)[:-1]
    kind = type(entry).__name__
    assert illegible(b"x" + line[1:]) == [Illegible(kind)]
    assert illegible(line.replace(kind.encode(), kind.encode()[:-1] + b"x")) == [Illegible()]
    assert illegible(line[:10]) == [Illegible()]


def test_a_line_may_stand_for_two_entries():
    joined = encode_entry(1, ENTRIES[0])[:-1] + b"x" + encode_entry(2, ProducerIdsReserved(0))
    assert illegible(joined) == [Illegible("TopicsCreated"), Illegible("ProducerIdsReserved")]


class TestHeads:
    HEAD = Head(41, (1, 2, 3))

    def test_it_says_where_the_journal_goes_on_from_and_whose_it_is(self):
        first, second, rest = encode_head(self.HEAD).split(b"\n")
        assert json.loads(first[9:]) == {"version": 2, "base": 41, "nodes": [1, 2, 3]}
        assert (second, rest) == (first, b"")
        assert find_head(encode_head(self.HEAD)) == self.HEAD

    def test_it_tells_of_a_whole_state(self):
        head = self.HEAD._replace(whole=Whole(70, 68, 1234))
        assert json.loads(encode_head(head).split(b"\n")[0][9:])["whole"] == {"number": 70, "after": 68, "bytes": 1234}
        assert find_head(encode_head(head) + encode_entry(71, ENTRIES[0])) == head

    def test_no_bit_makes_it_unknown(self):
        data = encode_head(self.HEAD) + encode_entry(1, ENTRIES[0])
        for place in range(len(encode_head(self.HEAD))):
            for bit in range(8):
                hurt = data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :]
                assert find_head(hurt) == self.HEAD, (place, bit)

    def test_where_both_are_lost_there_is_none(self):
        assert find_head(encode_head(self.HEAD).replace(b"base", b"bose")) is None
        assert find_head(b"") is None

    def test_an_older_release_has_written_it_once(self):
        head = self.HEAD._replace(version=1)
        assert encode_head(head).count(b"\n") == 1
        assert find_head(encode_head(head) + encode_entry(1, ENTRIES[0])) == head

    def test_that_of_a_later_release_is_not_guessed_at(self):
        with pytest.raises(NewerJournal, match="version 4"):
            find_head(encode_line({"version": 4, "base": 1, "nodes": []}).encode())
