"""The name of a file of bytes that were set aside tells where they come from; other names tell nothing."""

import pytest

from horolog.broker.log.storage.aside_names import SetAside, parse_name

BASE = f"{70:020d}.log"


def test_a_damaged_range_is_told_by_its_name():
    name = f"{BASE}.1234.75-80.0012abcd.damaged"
    assert parse_name(name) == SetAside(name, "damaged", 70, 1234, 75, 80, 0x12ABCD)


def test_a_torn_end_has_no_last_offset():
    name = f"{BASE}.0.70.ffffffff.torn"
    assert parse_name(name) == SetAside(name, "torn", 70, 0, 70, None, 0xFFFFFFFF)


@pytest.mark.parametrize(
    "name",
    [
        BASE,
        f"{BASE}.1234.75.0012abcd.damaged",
        f"{BASE}.1234.75-80.0012abcd.torn",
        f"{BASE}.1234.75-80.0012ABCD.damaged",
        f"{BASE}.1234.75-80.12abcd.damaged",
        f"{BASE}.1234.75-80.0012abcd.damaged.bak",
        "70.log.1234.75-80.0012abcd.damaged",
    ],
)
def test_other_names_are_not_ours(name):
    assert parse_name(name) is None
