"""What a broker with a backup shows of it."""

from horolog.broker.base.backup_figures import AGE, BYTES, FAMILIES, BackupFigures, collect


def test_every_family_is_collected_with_its_value():
    found = dict(collect(BackupFigures(1.5, 3, 400, 2)))
    assert list(found) == list(FAMILIES)
    assert (found[AGE], found[BYTES]) == ([((), 1.5)], [((), 400)])


def test_without_a_backup_there_is_none():
    assert list(collect(None)) == []
