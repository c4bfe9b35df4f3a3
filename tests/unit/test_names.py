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


def test_the_package_alone_is_light():
    code = "import sys, horolog; sys.exit(any(m == 'asyncio' or m.startswith('horolog.') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
