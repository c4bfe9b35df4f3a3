"""The kept inputs of each target: a few made from real frames and files, and every input that once broke something."""

import hashlib
from pathlib import Path

HERE = Path(__file__).resolve().parent / "corpus"
SHARED = {"server": "frames"}
"""Targets that begin with another one's inputs as well."""


def folder(name: str) -> Path:
    path = HERE / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def load(name: str) -> list[bytes]:
    folders = [folder(name)] + [folder(other) for target, other in SHARED.items() if target == name]
    return [path.read_bytes() for source in folders for path in sorted(source.iterdir())]


def keep(name: str, data: bytes, kind: str = "crash") -> Path:
    path = folder(name) / f"{kind}-{hashlib.sha256(data).hexdigest()[:16]}"
    path.write_bytes(data)
    return path
