"""The settings file of the project is current, and says of every key what the table says."""

import re

import pytest

from horolog.broker.config.server_properties import text
from horolog.broker.config.setting_types import SettingsError
from horolog.broker.config.settings import SPECS, load
from tests.support.style import PROJECT

FILE = PROJECT / "config" / "server.properties"


def test_the_file_is_current():
    assert FILE.read_text("utf-8") == text(), "run make config"


def test_as_it_is_it_changes_nothing():
    assert load(FILE, {}, {}) == load(None, {}, {})


def switched_on(folder, but=None):
    """The file with all its keys, or all but one, at their defaults."""
    path = folder / "server.properties"
    path.write_text(re.sub(rf"(?m)^#(?!{re.escape(but or '=')})([a-z][a-z.]*=)", r"\1", text()))
    return path


CLOSES_LISTS = "allow.everyone.if.no.acl.found"


def test_every_key_with_its_default_can_be_switched_on(tmp_path):
    settings, warnings = load(switched_on(tmp_path, CLOSES_LISTS), {}, {})
    assert warnings == []
    for key, spec in SPECS.items():
        assert settings.is_set(key) is (key != CLOSES_LISTS)
        assert settings.value(key) == spec.default


def test_access_lists_that_close_need_an_authorizer(tmp_path):
    with pytest.raises(SettingsError, match=f"{CLOSES_LISTS}.*without an authorizer"):
        load(switched_on(tmp_path), {}, {})
