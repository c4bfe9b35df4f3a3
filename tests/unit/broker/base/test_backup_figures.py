"""What a broker with a backup shows of it."""

import pytest

from horolog.broker.base.backup_figures import AGE, BYTES, FAMILIES, BackupFigures, collect


def test_every_family_is_collected_with_its_value():
    found = dict(collect(BackupFigures(1.5, 3, 400, 2)))
    assert list(found) == list(FAMILIES)
    assert (found[AGE], found[BYTES]) == ([((), 1.5)], [((), 400)])


@pytest.mark.parametrize(
    ("figures", "warnings"),
    [
        (BackupFigures(90.4, 3), []),
        (BackupFigures(90.4, 3, 0, 1, "it is away"), ["the backup fails: it is away; its newest moment is 90 s old"]),
        (
            BackupFigures(90.4, fault="it is away"),
            ["the backup fails: it is away; it has made no moment since the start, 90 s ago"],
        ),
    ],
)
def test_a_fault_is_a_warning_until_there_is_a_moment(figures, warnings):
    assert list(figures.warnings()) == warnings


def test_without_a_backup_there_is_none():
    assert list(collect(None)) == []
