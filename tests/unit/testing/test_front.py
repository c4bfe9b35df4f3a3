"""The names that `horolog.testing` has, each loaded when it is asked for."""

import subprocess
import sys
from importlib import import_module

import pytest

import horolog.testing


@pytest.mark.parametrize("name", horolog.testing.__all__)
def test_each_name_is_that_of_its_home(name):
    found = getattr(horolog.testing, name)
    assert found is getattr(import_module(found.__module__), name)
    assert found.__module__.startswith("horolog.testing.")


def test_another_name_is_none_of_it():
    with pytest.raises(AttributeError, match=r"module 'horolog.testing' has no attribute 'nothing'"):
        _ = horolog.testing.nothing


def test_the_broker_is_imported_where_a_name_is_asked_for():
    code = (
        "import sys, horolog.testing; print('horolog.broker.server.app' in sys.modules);"
        " horolog.testing.horolog_broker; print('horolog.broker.server.app' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["False", "True"]
