"""The names of the library, and that asking for the package alone loads nothing."""

import subprocess
import sys

import pytest

import horolog


@pytest.mark.parametrize("name", horolog.__all__)
def test_every_name_is_there(name):
    assert getattr(horolog, name) is not None


def test_other_names_are_not():
    with pytest.raises(AttributeError, match="Produzent"):
        _ = horolog.Produzent


def test_a_broker_alone_loads_no_store():
    parts = "horolog.broker.server.app, horolog.broker.workers.serve, horolog.broker.handlers, horolog.broker.network.listener"
    code = f"import sys, {parts}; print([m for m in sys.modules if m.startswith(('horolog.stores', 'obstore'))])"
    ended = subprocess.run([sys.executable, "-c", code], check=False, timeout=60, capture_output=True, text=True)
    assert (ended.stdout, ended.returncode) == ("[]\n", 0)


def test_the_package_alone_is_light():
    code = "import sys, horolog; sys.exit(any(m == 'asyncio' or m.startswith('horolog.') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
