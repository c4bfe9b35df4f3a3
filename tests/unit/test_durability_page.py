"""Every row of the damage table names a test that exists, and no measured fault is left out."""

import re

import pytest

from tests.support.style import PROJECT

PAGE = (PROJECT / "docs" / "durability.md").read_text("utf-8")
ROWS = re.findall(r"^\| ([DFH]\d+[a-z]?) \|.*\| `(tests/[\w/]+\.py)::(\w+)` \|$", PAGE, re.MULTILINE)
LABELS = re.findall(r"^\| ([DFH]\d+[a-z]?) \|", PAGE, re.MULTILINE)
MEASURED = [f"D{number}" for number in range(1, 16)] + [f"F{number}" for number in range(26, 38)]


def test_every_row_names_a_test():
    assert [label for label, _, _ in ROWS] == LABELS
    assert len(set(LABELS)) == len(LABELS)


def test_every_measured_fault_has_a_row():
    assert [label for label in MEASURED if label not in LABELS] == []


@pytest.mark.parametrize(("label", "path", "name"), ROWS)
def test_the_test_exists(label, path, name):
    assert re.search(rf"^(async )?def {name}\(", (PROJECT / path).read_text("utf-8"), re.MULTILINE), label
