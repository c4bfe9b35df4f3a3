"""`horolog pipeline pack`: one archive of everything that the Python of Spark's workers needs besides Spark itself.

A gzipped tar file whose root is a folder for `PYTHONPATH`: horolog, and the files of each package that its tasks import, with their
dependencies, as installed here. Packages with compiled parts are for this Python's version and this kind of machine, which
workers must have, too; `horolog-pack.json` in the archive names them.
"""

import argparse
import io
import json
import os
import platform
import re
import sys
import tarfile
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

from horolog.commands.console import Console
from horolog.commands.errors import CommandError
from horolog.commands.exit_codes import ExitCode
from horolog.version import __version__

NEEDED = ("crc32c", "cramjam", "lz4", "mypy_extensions", "numpy", "pandas", "pyarrow")
"""What tasks import, whatever they do."""
AS_INSTALLED = (
    "backports.zstd",
    "cryptography",
    "fastavro",
    "hdfs-native",
    "msgpack",
    "obstore",
    "protobuf",
    "PyJWT",
    "uvloop",
)
"""What some tasks import: packed if it is installed."""
BROUGHT_BY_SPARK = frozenset({"pyspark", "py4j"})
OWN = ("horolog", "pyspark_horolog")
LABEL = "horolog-pack.json"
DEFAULT = "horolog-pack.tar.gz"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LEFT_OUT = frozenset({"__pycache__", "tests"})


class Packed(NamedTuple):
    """What an archive holds, and for which Python and machine."""

    archive: str
    files: int
    bytes: int
    packages: dict[str, str]
    """Their versions."""
    python: str
    machine: str

    @property
    def conf(self) -> dict[str, str]:
        """The settings of Spark that bring it to the workers."""
        folder = "horolog-pack"
        return {"spark.archives": f"{self.archive}#{folder}", "spark.executorEnv.PYTHONPATH": f"./{folder}"}


def pack(to: str | Path) -> Packed:
    """Write the archive; it appears whole or not at all."""
    target = Path(to)
    if not target.name.endswith((".tar.gz", ".tgz")):
        raise CommandError(f"{target}: Spark unpacks archives whose names end with .tar.gz or .tgz")
    packages = _with_requirements(NEEDED, AS_INSTALLED)
    versions = {"horolog": __version__} | {name: each.version for name, each in packages.items()}
    aside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with tarfile.open(aside, "w:gz", compresslevel=6) as archive:
            files = [*_own_files(), *(each for package in packages.values() for each in _files_of(package))]
            for path, name in files:
                archive.add(path, name, recursive=False, filter=_same_for_all)
            _add_label(archive, versions)
        aside.replace(target)
    except OSError as error:
        raise CommandError(f"{target}: {error.strerror}") from error
    finally:
        aside.unlink(missing_ok=True)
    return Packed(str(target), len(files), target.stat().st_size, versions, *_made_for())


def _made_for() -> tuple[str, str]:
    """The version of Python and the kind of machine that the compiled parts are for."""
    return f"{sys.version_info.major}.{sys.version_info.minor}", platform.machine()


def _with_requirements(needed: Iterable[str], as_installed: Iterable[str]) -> dict[str, Distribution]:
    """The packages and all that they require, by normal name."""
    found: dict[str, Distribution] = {}
    waiting = [*((name, True) for name in needed), *((name, False) for name in as_installed)]
    while waiting:
        name, must = waiting.pop()
        normal = _normal(name)
        if normal in found or normal in BROUGHT_BY_SPARK:
            continue
        try:
            package = distribution(name)
        except PackageNotFoundError as error:
            if must:
                raise CommandError(f"{name} is not installed", "install it: pip install 'horolog[pipeline]'") from error
            continue
        found[normal] = package
        waiting += [(each, must) for each, must in _requirements(package) if _normal(each) not in found]
    return dict(sorted(found.items()))


def _requirements(package: Distribution) -> Iterator[tuple[str, bool]]:
    """What a package requires, and whether it always does: a marker depends on the machine, so that there the installed packages decide."""
    for line in package.requires or ():
        requirement, _, marker = line.partition(";")
        name = _NAME.match(requirement)
        if name is not None and "extra" not in marker:
            yield name[0], not marker


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _own_files() -> Iterator[tuple[Path, str]]:
    """Of horolog itself, which may be a checkout that was never installed."""
    root = Path(__file__).resolve().parents[3]
    for name in OWN:
        for path in sorted((root / name).rglob("*")):
            inside = path.relative_to(root)
            if path.is_file() and not _LEFT_OUT.intersection(inside.parts):
                yield path, inside.as_posix()


def _files_of(package: Distribution) -> Iterator[tuple[Path, str]]:
    """The files that were installed for it, without programs, tests and what Python makes itself."""
    if not package.files:
        name = package.metadata["Name"]
        raise CommandError(
            f"{name} has no list of its files (RECORD), so it cannot be packed",
            f"pip install --force-reinstall {name} writes the list",
        )
    for each in package.files or ():
        if ".." in each.parts or _LEFT_OUT.intersection(each.parts):
            continue
        path = Path(str(package.locate_file(each)))
        if path.is_file():
            yield path, each.as_posix()


def _same_for_all(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Nothing of the user who packed it."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _add_label(archive: tarfile.TarFile, versions: dict[str, str]) -> None:
    python, machine = _made_for()
    data = json.dumps({"python": python, "machine": machine, "packages": versions}, indent=2).encode()
    entry = tarfile.TarInfo(LABEL)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))


# -- the command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", default=DEFAULT, metavar="FILE", help=f"the archive (default: {DEFAULT})")


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    packed = pack(arguments.to)
    if console.as_json:
        console.json_line({"job": "pack", **packed._asdict(), "conf": packed.conf})
        return ExitCode.OK
    console.print(
        f"{packed.archive}: {packed.files:,} files of {len(packed.packages)} packages, {packed.bytes / 1e6:,.1f} MB,"
        f" for Python {packed.python} on {packed.machine}"
    )
    for name, value in packed.conf.items():
        console.print(f"  --conf {name}={value}")
    return ExitCode.OK
