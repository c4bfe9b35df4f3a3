"""Notes of a release: the changelog's section of a version, and the sums of what was built."""

import pytest

from tools import release_notes

CHANGELOG = """# Changelog

## [Unreleased]

### Added
- One thing ([docs/cli.md](docs/cli.md#one), [KIP](https://example.org/kip)).

## [0.1.0] - 2026-11-27

- The first.
"""


def test_sections_are_found_by_version():
    found = release_notes.sections(CHANGELOG)
    assert list(found) == ["Unreleased", "0.1.0"]
    assert found["0.1.0"] == "- The first."


def test_what_is_not_released_yet_is_what_the_notes_are_made_of():
    text = release_notes.notes(CHANGELOG, "0.2.0", [])
    assert text == "# horolog 0.2.0\n\n### Added\n- One thing (docs/cli.md, [KIP](https://example.org/kip)).\n"


def test_a_released_version_has_its_own_section():
    released = CHANGELOG.replace(
        "### Added\n- One thing ([docs/cli.md](docs/cli.md#one), [KIP](https://example.org/kip)).\n", ""
    )
    assert "- The first." in release_notes.notes(released, "0.1.0", [])
    with pytest.raises(SystemExit, match=r"no section \[0.3.0\]"):
        release_notes.notes(released, "0.3.0", [])


def test_every_file_has_its_sum(tmp_path):
    for name in ("horolog-b", "horolog-a"):
        (tmp_path / name).write_bytes(b"")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert release_notes.sums(list(tmp_path.iterdir())) == f"{empty}  horolog-a\n{empty}  horolog-b\n"
    assert f"{empty}  horolog-a\n" in release_notes.notes(CHANGELOG, "0.2.0", list(tmp_path.iterdir()))


def test_the_command_prints_them(tmp_path, capsys):
    (tmp_path / "horolog-0.1.0.tar.gz").write_bytes(b"")
    (tmp_path / "NOTES.md").write_bytes(b"")
    assert release_notes.main(["0.1.0", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("# horolog 0.1.0\n")
    assert "horolog-0.1.0.tar.gz\n" in printed
    assert "NOTES.md" not in printed
