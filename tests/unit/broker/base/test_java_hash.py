"""The hash that decides where groups and transactional ids are kept, against values that Java gives."""

import pytest

from horolog.broker.base.java_hash import java_hash, partition_for

JAVA_SAYS = {
    "": 0,
    "a": 97,
    "my-group": -1_906_497_762,
    "polygenelubricants": -(2**31),
    "\u00e9t\u00e9": 227_742,
    "\U0001f600": 1_772_899,
}


@pytest.mark.parametrize(("text", "value"), JAVA_SAYS.items())
def test_hashes(text, value):
    assert java_hash(text) == value


def test_the_smallest_hash_has_no_absolute_value_and_goes_to_the_first_partition():
    assert partition_for("polygenelubricants", 50) == 0


def test_partitions_are_in_range():
    assert {partition_for(f"x{number}", 7) for number in range(500)} == set(range(7))
