"""The settings file of the project is current, and says of every key what the table says."""

import re

from horolog.broker.server_properties import text
from horolog.broker.settings import SPECS, load
from tests.support.style import PROJECT

FILE = PROJECT / "config" / "server.properties"


def test_the_file_is_current():
    assert FILE.read_text("utf-8") == text(), "run make config"


def test_as_it_is_it_changes_nothing():
    assert load(FILE, {}, {}) == load(None, {}, {})


def test_every_key_with_its_default_can_be_switched_on(tmp_path):
    switched_on = tmp_path / "server.properties"
    switched_on.write_text(re.sub(r"(?m)^#([a-z][a-z.]*=)", r"\1", text()))
    settings, warnings = load(switched_on, {}, {})
    assert warnings == []
    for key, spec in SPECS.items():
        assert settings.is_set(key)
        assert settings.value(key) == spec.default
