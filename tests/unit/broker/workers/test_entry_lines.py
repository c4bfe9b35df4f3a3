"""Entries of the journal as lines: each kind is read as it was written, and damage is seen."""

import json

import pytest

from horolog.broker.checked_lines import encode_line
from horolog.broker.cluster_file import StoredTopic
from horolog.broker.cluster_state import (
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
from horolog.broker.stored_rules import StoredRule
from horolog.broker.workers.entry_lines import (
    Head,
    Illegible,
    NewerJournal,
    Whole,
    decode_entry,
    decode_head,
    encode_entry,
    encode_head,
)

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
    with pytest.raises(KeyError):
        decode_entry(encode_line({"number": 1, "kind": "Guessed"}).encode()[:-1])


def test_a_damaged_entry_may_have_been_about_rules():
    rules = {rule.id: rule for rule in (StoredRule("acl", "a", {}),)}
    assert ClusterState(rules=rules).apply(Illegible()).lost_rules == 1
    assert ClusterState().apply(Illegible()).lost_rules == 0


def test_the_head_says_where_the_journal_goes_on_from_and_whose_it_is():
    head = Head(41, (1, 2, 3))
    assert decode_head(encode_head(head)[:-1]) == head
    assert json.loads(encode_head(head)[9:]) == {"version": 1, "base": 41, "nodes": [1, 2, 3]}


def test_the_head_tells_of_a_whole_state():
    head = Head(41, (1, 2, 3), Whole(70, 68, 1234))
    assert decode_head(encode_head(head)[:-1]) == head
    assert json.loads(encode_head(head)[9:])["whole"] == {"number": 70, "after": 68, "bytes": 1234}


def test_the_journal_of_a_later_release_is_not_guessed_at():
    with pytest.raises(NewerJournal, match="version 2"):
        decode_head(encode_line({"version": 2, "base": 1, "nodes": []}).encode()[:-1])


def test_what_cannot_be_read_changes_nothing():
    state = ClusterState.of([T])
    assert state.apply(Illegible()).topics == state.topics
    assert state.apply(Illegible()).number == 1
