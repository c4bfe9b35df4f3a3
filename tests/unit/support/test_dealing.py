"""Each process begins with long tests, files of them stay whole, and no test is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.dealing import dealt


def dealt_names(names, hands):
    return dealt(names, hands, lambda name: name.startswith("long"), lambda name: name.split(":")[0])


def test_each_process_begins_with_its_share_of_the_long_files():
    names = ["long-a:1", "long-a:2", "long-b:1", "short:1", "short:2", "short:3", "short:4", "short:5"]
    assert dealt_names(names, 2) == [
        *("long-a:1", "long-a:2", "short:1", "short:2"),
        *("long-b:1", "short:3", "short:4", "short:5"),
    ]


@given(
    st.lists(st.tuples(st.sampled_from(["long-a", "long-b", "long-c", "short"]), st.integers(0, 9))), st.integers(1, 5)
)
def test_no_test_is_lost_and_none_is_added(tests, hands):
    names = [f"{file}:{number}" for file, number in tests]
    assert sorted(dealt_names(names, hands)) == sorted(names)


@pytest.mark.parametrize("hands", [1, 2, 3])
def test_where_all_are_long_files_stay_whole(hands):
    names = [f"long-{file}:{number}" for file in range(6) for number in range(2)]
    made = dealt_names(names, hands)
    assert made[::2] == [name.replace(":1", ":0") for name in made[1::2]]
