"""What has changed since `.ci/run` passed last.

`.ci/run` writes the id of the tree that passed to `build/ci-passed`, which is not tracked. A copy of it in `.ci/passed` serves every
other clone: `cp build/ci-passed .ci/passed`, and commit the file with the change. Git compares files with that tree.
"""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTES = (Path("build", "ci-passed"), Path(".ci", "passed"))
"""Where the tree is noted; the first that Git knows counts."""


def changed_files(root: Path = ROOT) -> frozenset[str] | None:
    """Files that are not as they were in the tree that passed, those without a commit among them; None where no such tree is known."""
    for note in NOTES:
        tree = (root / note).read_text("utf-8").strip() if (root / note).exists() else ""
        changed = _git(root, "diff", "--name-only", "--no-renames", "-z", tree, "--") if tree else None
        if changed is not None:
            new = _git(root, "ls-files", "--others", "--exclude-standard", "-z") or []
            return frozenset((*changed, *new))
    return None


def _git(root: Path, *words: str) -> list[str] | None:
    """The names that Git prints; None where it fails or is not installed."""
    git = shutil.which("git")
    if git is None:
        return None
    done = subprocess.run([git, *words], cwd=root, capture_output=True, check=False)  # noqa: S603 - our own words
    return [name for name in done.stdout.decode().split("\0") if name] if done.returncode == 0 else None
