"""What members say to each other: read as far as the broker has to, and refused where it says nothing."""

import pytest

from horolog.protocol.errors import DecodeError
from horolog.protocol.group_metadata import (
    NEWEST_VERSION,
    read_assignment,
    read_subscription,
    subscribed_topics,
    version_of,
    write_assignment,
)
from tests.support.group_members import subscription


@pytest.mark.parametrize("version", range(NEWEST_VERSION + 1))
def test_an_assignment_comes_back_as_it_was_written(version):
    data = write_assignment(version, {"t": [0, 2], "u": [1]})
    read = read_assignment(data)
    assert version_of(data) == version
    assert {one.topic: one.partitions for one in read.assigned_partitions} == {"t": [0, 2], "u": [1]}


def test_a_version_that_is_not_known_yet_is_read_as_the_newest_that_is():
    assert version_of(b"\0\x09") == NEWEST_VERSION


@pytest.mark.parametrize(("data", "words"), [(b"", "no version"), (b"\0", "no version"), (b"\xff\xff", "version -1")])
def test_metadata_without_a_version_is_refused(data, words):
    with pytest.raises(DecodeError, match=words):
        read_subscription(data)


def test_the_topics_of_a_group_are_those_of_all_members():
    assert subscribed_topics([subscription("t", "u"), subscription("u", "v")]) == {"t", "u", "v"}
    assert subscribed_topics([]) == frozenset()


def test_one_member_that_speaks_in_its_own_way_hides_what_the_group_reads():
    assert subscribed_topics([subscription("t"), b"mine"]) is None


def test_a_member_without_an_assignment_has_no_partitions():
    assert read_assignment(b"").assigned_partitions == []
