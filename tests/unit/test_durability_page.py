"""Every row of the damage table names a test that exists and hurts a real disk, and no measured fault is left out."""

import ast
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


@pytest.mark.parametrize(("label", "path", "name"), ROWS)
def test_the_test_hurts_a_real_disk(label, path, name):
    """Tests over a disk in memory stand beside these: what a user meets is files."""
    assert not in_memory(path, name), label


def in_memory(path, name):
    """Whether a test, or what its module builds for it, is over `MemoryStorage`."""
    source = (PROJECT / path).read_text("utf-8")
    (test,) = [one for one in ast.walk(ast.parse(source)) if getattr(one, "name", None) == name]
    body = ast.get_source_segment(source, test)
    return "tests/unit/" in path or "Model(" in source or bool(re.search("MemoryStorage|MemoryBroker", body))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("tests/damage/test_data_folder.py", "test_a_full_disk_at_the_start"),
        ("tests/damage/test_transaction_files.py", "test_transaction_index"),
        ("tests/unit/broker/log/recovery/test_scrub.py", "test_the_scrub_finds_what_nobody_reads"),
    ],
)
def test_a_disk_in_memory_is_told(path, name):
    assert in_memory(path, name)
