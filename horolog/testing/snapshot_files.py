"""Compares a snapshot with the file that a test keeps of it, or writes that file on request."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

UPDATE_VARIABLE = "HOROLOG_UPDATE_SNAPSHOTS"


def compare(text: str, file: Path, *, update: bool | None = None) -> None:
    """Raises AssertionError with the difference, line by line; if `update` is None, the environment decides whether to write."""
    if update if update is not None else os.environ.get(UPDATE_VARIABLE) == "1":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        return
    if not file.exists():
        raise AssertionError(f"there is no {file}: use --horolog-update-snapshots or {UPDATE_VARIABLE}=1 to write it")
    kept = file.read_text("utf-8")
    if kept != text:
        lines = difflib.unified_diff(kept.splitlines(), text.splitlines(), str(file), "now", lineterm="")
        raise AssertionError("the topic differs from its snapshot:\n" + "\n".join(lines))
