"""The names of the library, and that asking for the package alone loads nothing."""

import subprocess
import sys

import pytest

import client


@pytest.mark.parametrize("name", client.__all__)
def test_every_name_is_there(name):
    assert getattr(client, name) is not None


def test_other_names_are_not():
    with pytest.raises(AttributeError, match="Produzent"):
        _ = client.Produzent


def test_the_package_alone_is_light():
    code = "import sys, client; sys.exit(any(m in sys.modules for m in ('asyncio', 'protocol', 'broker')))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
