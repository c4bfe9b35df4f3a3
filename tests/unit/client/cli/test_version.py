"""`horolog version` names what runs here."""

import platform

from horolog.client.cli import version
from horolog.version import __version__


def test_versions_are_those_that_run(horolog):
    ended = horolog("version")
    assert ended.code == 0
    assert ended.out.splitlines()[:2] == [f"horolog {__version__}", f"python {platform.python_version()}"]
    found = horolog("version", "-o", "json").json
    assert found["compiled"] in {"yes", "no"}
    assert set(found["libraries"]) == set(version.LIBRARIES)


def test_a_library_that_is_missing_is_said_to_be(horolog, monkeypatch):
    monkeypatch.setattr(version, "LIBRARIES", ("crc32c", "no-such-library"))
    assert version.installed("no-such-library") is None
    shown = horolog("version").out
    assert f"  crc32c {version.installed('crc32c')}\n" in shown
    assert shown.endswith("  no-such-library not installed\n")
