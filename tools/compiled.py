"""Compiles modules of the hot path with mypyc: the same typed source runs as it is, or as the extension module that is made of it.

    python -m tools.compiled            # beside the sources, where Python finds them before the sources
    python -m tools.compiled FOLDER     # below a folder, laid out as the package is
    python -m tools.compiled --remove   # back to plain Python

An extension module that is older than its source would run instead of it: `outdated` names such ones, and no test starts with them.
Needs mypy, setuptools and a C compiler (`make compiled` brings the first two).
"""

import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULES = ("horolog/protocol/records/walk.py",)
"""What a request pays for by the record. Typed with `i64` where numbers are counted, and `bytes` where they are read."""

SUFFIX: str = sysconfig.get_config_var("EXT_SUFFIX")


def build(target: Path) -> None:
    """Compile into `target`."""
    from mypyc.build import mypycify
    from setuptools import Distribution

    with tempfile.TemporaryDirectory(prefix="horolog-compiled-") as work:
        extensions = mypycify(["--strict", *MODULES], target_dir=f"{work}/c", opt_level="3")
        build_ext = Distribution({"name": "horolog", "ext_modules": extensions}).get_command_obj("build_ext")
        build_ext.build_lib = str(target)
        build_ext.build_temp = work
        build_ext.ensure_finalized()
        build_ext.run()


def extensions(root: Path = ROOT) -> list[Path]:
    """All extension modules of the package below `root`, whatever Python they were made for."""
    return sorted((root / "horolog").rglob("*.so"))


def outdated(root: Path = ROOT) -> list[Path]:
    """Sources that this Python would pass over in favour of something older."""
    pairs = [(root / module, (root / module).with_suffix(SUFFIX)) for module in MODULES]
    return [source for source, made in pairs if made.exists() and made.stat().st_mtime < source.stat().st_mtime]


def remove(root: Path = ROOT) -> None:
    for made in extensions(root):
        made.unlink()


def main(arguments: list[str]) -> int:
    if arguments == ["--remove"]:
        remove()
        return 0
    build(Path(arguments[0]) if arguments else ROOT)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
