"""The settings of a backup."""

import pytest

from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import Layers, from_layers


def test_there_is_no_backup_unless_a_place_is_named():
    settings = from_layers(Layers())
    assert settings.horolog_backup_store is None
    assert settings.horolog_backup_ms == 60_000


def test_what_is_given():
    given = {
        "horolog.backup.store": "file:///backup",
        "horolog.backup.bytes.per.second": "0",
        "horolog.backup.ms": "1000",
    }
    settings = from_layers(Layers(static=given))
    assert (settings.horolog_backup_store, settings.horolog_backup_bytes_per_second) == ("file:///backup", 0)


@pytest.mark.parametrize(("key", "text"), [("horolog.backup.ms", "10"), ("horolog.backup.store.endpoint", "s3://b")])
def test_what_is_refused(key, text):
    with pytest.raises(SettingsError):
        from_layers(Layers(static={key: text}))
