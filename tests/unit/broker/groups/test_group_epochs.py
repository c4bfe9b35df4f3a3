"""Epochs of groups: what begins one, and the hash of the topics."""

import pytest

from horolog.broker.groups.decision import Decision
from horolog.broker.groups.group_epochs import begin_epoch, hash_of
from horolog.broker.groups.share.share_group import ShareGroup

TOPICS = {"a": (b"1" * 16, 2), "b": (b"2" * 16, 1)}


@pytest.fixture
def group():
    group = ShareGroup("g", 0, 0)
    assert begin_epoch(Decision(group), TOPICS, bump=True)
    group.assignment_epoch = group.epoch
    return group


def test_the_first_topics_begin_an_epoch_and_are_written(group):
    assert (group.topics, group.subscribed) == (TOPICS, {"a", "b"})
    assert group.metadata_hash == hash_of(TOPICS)


def test_nothing_new_begins_no_epoch(group):
    before = group.epoch
    step = Decision(group)
    assert not begin_epoch(step, dict(TOPICS), bump=False)
    assert (group.epoch, step.entries) == (before, [])


def test_other_members_begin_an_epoch(group):
    before = group.epoch
    step = Decision(group)
    assert begin_epoch(step, TOPICS, bump=True)
    assert (group.epoch, step.entries) == (before + 1, [group.group_entry()])


def test_another_partition_count_begins_an_epoch(group):
    before = group.epoch
    grown = TOPICS | {"a": (b"1" * 16, 3)}
    step = Decision(group)
    assert begin_epoch(step, grown, bump=False)
    assert (group.epoch, group.topics, len(step.entries)) == (before + 1, grown, 1)


def test_an_epoch_without_a_target_stays_due(group):
    group.epoch += 1
    step = Decision(group)
    assert begin_epoch(step, TOPICS, bump=False)
    assert not step.entries


@pytest.mark.parametrize("other", [{}, {"a": TOPICS["a"]}, TOPICS | {"b": (b"3" * 16, 1)}, TOPICS | {"c": TOPICS["b"]}])
def test_other_topics_have_another_hash(other):
    assert hash_of(other) != hash_of(TOPICS)


def test_the_order_of_topics_does_not_matter_and_no_topic_is_zero():
    assert hash_of(dict(reversed(TOPICS.items()))) == hash_of(TOPICS)
    assert hash_of({}) == 0
