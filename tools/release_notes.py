"""The notes of a release: a version's section of the changelog, and what was built.

    python -m tools.release_notes 0.1.0 [FOLDER]

An alpha is built from the section `[Unreleased]` while its version has none.
"""

import hashlib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADING = re.compile(r"^## \[([^\]]+)\].*\n", re.MULTILINE)
UNRELEASED = "Unreleased"


def sections(changelog: str) -> dict[str, str]:
    """Each version's text, newest first."""
    _, *parts = HEADING.split(changelog)
    return {name: text.strip() for name, text in zip(parts[::2], parts[1::2], strict=True)}


def version_for_notes(found: dict[str, str], version: str) -> str:
    """The section that the notes of this version are made of: unreleased changes belong to the next version."""
    if found.get(UNRELEASED):
        return UNRELEASED
    if version in found:
        return version
    raise SystemExit(f"CHANGELOG.md has no section [{version}], and [Unreleased] is empty: add one and run this again")


def with_names(text: str) -> str:
    """Links to files of the repository lead nowhere from a release's page: their names stay."""
    return re.sub(r"\[`?([^\]`]+)`?\]\((?![a-z]+:)[^)\s]+\)", r"\1", text)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sums(files: list[Path]) -> str:
    """In the form that `sha256sum --check` reads."""
    return "".join(f"{digest(one)}  {one.name}\n" for one in sorted(files))


def notes(changelog: str, version: str, files: list[Path]) -> str:
    found = sections(changelog)
    name = version_for_notes(found, version)
    text = f"# horolog {version}\n\n{with_names(found[name])}\n"
    return f"{text}\n## Files\n\n```text\n{sums(files)}```\n" if files else text


def main(arguments: list[str]) -> int:
    version, *folders = arguments
    files = [one for folder in folders for one in Path(folder).iterdir() if one.name.startswith("horolog-")]
    sys.stdout.write(notes((ROOT / "CHANGELOG.md").read_text("utf-8"), version, files))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
