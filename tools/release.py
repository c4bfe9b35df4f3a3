"""Builds a release in `dist/` and checks it: `make release`.

    python -m tools.release             # archives, site, checks, list of parts, image, signature, notes
    python -m tools.release archives    # the source archive and the wheels alone: `make dist`

It runs in the environment of `requirements/release.lock`. The last lines list every part as built, checked, skipped (with the reason)
or failed; exit code 1 if one failed. Nothing is published.

    HOROLOG_SIGNING_KEY=KEY    the GnuPG key that signs SHA256SUMS
    BASE_IMAGE=NAME            the image that the container image is built from
    IMAGE_ARGS="--volume ..."  more options of the engine's `build`, for example for a proxy
"""

import os
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tools import release_notes
from tools.release_check import BUILD_SECONDS, CheckFailed, check, run

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
SITE = ROOT / "build" / "docs-site"
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
POSSIBLE = "from tools import compiled; raise SystemExit(not compiled.is_possible())"
BIN = Path(sys.executable).parent
IMAGE = "localhost/horolog"
BASE_IMAGE = "docker.io/library/python:3.13-slim"
BUILT, CHECKED, SKIPPED, FAILED = "built", "checked", "skipped", "failed"


class Part(NamedTuple):
    """One line of the report."""

    name: str
    outcome: str
    why: str = ""


class Skipped(Exception):
    """A part needs something that this machine does not have."""


def part(name: str, work: Callable[[], str], outcome: str = BUILT) -> Part:
    """Do the work, which returns what the report says about it."""
    sys.stdout.write(f"== {name}\n")
    sys.stdout.flush()
    try:
        return Part(name, outcome, work())
    except Skipped as skipped:
        return Part(name, SKIPPED, str(skipped))
    except CheckFailed as failed:
        return Part(name, FAILED, str(failed))


def version() -> str:
    read: dict[str, str] = {}
    exec((ROOT / "horolog" / "version.py").read_text("utf-8"), read)  # noqa: S102 - one assignment
    return read["__version__"]


def compiling_pythons(wanted: tuple[str, ...] = PYTHONS) -> list[str]:
    """The interpreters here that a wheel can be compiled for."""
    return [path for name in wanted if (path := next(filter(_can_compile, _places(name)), None))]


def _places(name: str) -> list[str]:
    """Where this Python may be: on the path, or among those of pyenv, newest first."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    on_path = shutil.which(name)
    return [*([on_path] if on_path else []), *(str(one) for one in sorted(pyenv.glob(f"*/bin/{name}"), reverse=True))]


def _can_compile(python: str) -> bool:
    return subprocess.run([python, "-c", POSSIBLE], cwd=ROOT, capture_output=True, check=False).returncode == 0


def _tool(name: str, *words: str, **environment: str) -> str:
    path = os.environ.get("PATH", "")
    return run(
        [str(BIN / name), *words], ROOT, {"PATH": f"{BIN}{os.pathsep}{path}"} | environment, seconds=BUILD_SECONDS
    )


def only(pattern: str) -> Path:
    found = sorted(DIST.glob(pattern))
    if len(found) != 1:
        raise CheckFailed(f"dist has {len(found)} files {pattern}, expected one")
    return found[0]


# -- archives


def source_archive() -> str:
    _tool("uv", "build", "--quiet", "--sdist", "--out-dir", str(DIST))
    return only("horolog-*.tar.gz").name


def plain_wheel() -> str:
    """Made of the source archive, as an index or a distribution makes it."""
    _wheel(sys.executable, "0")
    return only("horolog-*-py3-none-any.whl").name


def compiled_wheel(python: str) -> str:
    before = set(DIST.glob("*.whl"))
    _wheel(python, "1")
    (made,) = set(DIST.glob("*.whl")) - before
    return _for_every_linux(made).name


def _wheel(python: str, compiled: str) -> None:
    words = ("build", "--quiet", "--wheel", "--python", python, "--out-dir", str(DIST))
    _tool("uv", *words, str(only("horolog-*.tar.gz")), HOROLOG_COMPILED=compiled)


def _for_every_linux(wheel: Path) -> Path:
    """The wheel under the tag of all systems that it runs on; as built, its tag names this system's C library."""
    if "-linux_" not in wheel.name or not (BIN / "auditwheel").exists():
        return wheel
    before = set(DIST.glob("*.whl"))
    _tool("auditwheel", "repair", "--wheel-dir", str(DIST), str(wheel))
    wheel.unlink()
    (made,) = set(DIST.glob("*.whl")) - before
    return made


def metadata() -> str:
    """The fields and the description, as an index reads them."""
    _tool("twine", "check", "--strict", *(str(one) for one in archives()))
    return f"{len(archives())} archives"


def archives() -> list[Path]:
    return sorted([*DIST.glob("horolog-*.whl"), *DIST.glob("horolog-*[0-9].tar.gz")])


def build_archives() -> Iterator[Part]:
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    yield part("source archive", source_archive)
    yield part("wheel of plain Python", plain_wheel)
    pythons = compiling_pythons()
    for python in pythons:
        yield part(f"compiled wheel, {Path(python).name}", lambda python=python: compiled_wheel(python))  # type: ignore[misc]
    here = {Path(python).name for python in pythons}
    if missing := [name for name in PYTHONS if name not in here]:
        yield Part("compiled wheels, other Pythons", SKIPPED, f"{', '.join(missing)}: not here, or without a compiler")
    yield part("metadata", metadata, CHECKED)


# -- checks


def python_of(wheel: Path) -> str:
    """The interpreter that a compiled wheel is for: `cp311` is python3.11."""
    tag = wheel.stem.split("-")[2]
    (found,) = compiling_pythons((f"python{tag[2]}.{tag[3:]}",))
    return found


def check_archive(archive: Path) -> str:
    is_compiled = archive.suffix == ".whl" and "-cp3" in archive.name
    python = python_of(archive) if is_compiled else sys.executable
    check(archive, python=python, compiled="yes" if is_compiled else "no")
    return "installed, served, produced, found by time, shown in the console"


# -- what comes with the archives


def site() -> str:
    if not (SITE / "index.html").is_file():
        raise Skipped("build/docs-site is missing: run make docs-site first")
    target = DIST / f"horolog-{version()}-docs.tar.gz"
    with tarfile.open(target, "w:gz") as packed:
        packed.add(SITE, arcname=f"horolog-{version()}-docs")
    return target.name


def list_of_parts() -> str:
    """What an installation with the console consists of (SBOM, CycloneDX)."""
    target = DIST / f"horolog-{version()}.cdx.json"
    lock = ROOT / "requirements" / "console.lock"
    words = ("requirements", "--pyproject", str(ROOT / "pyproject.toml"), "--output-file", str(target), str(lock))
    _tool("cyclonedx-py", *words)
    return target.name


def image() -> str:
    """For this machine's architecture; the workflow builds for both."""
    engine = _engine()
    base = os.environ.get("BASE_IMAGE", BASE_IMAGE)
    have = subprocess.run([engine, "inspect", base], capture_output=True, check=False).returncode == 0
    if not have and subprocess.run([engine, "pull", base], capture_output=True, check=False).returncode:
        raise Skipped(f"the base image {base} cannot be pulled; BASE_IMAGE names another one")
    name = f"{IMAGE}:{version()}"
    more = ["--isolation", "chroot", "--network", "host", "--format", "docker"] if engine == "buildah" else []
    more += shlex.split(os.environ.get("IMAGE_ARGS", ""))
    run([engine, "build", *more, "--build-arg", f"BASE_IMAGE={base}", "--tag", name, "."], ROOT)
    return f"{name}, by {engine}"


def _engine() -> str:
    for engine in ("docker", "podman", "buildah"):
        if shutil.which(engine) and not subprocess.run([engine, "info"], capture_output=True, check=False).returncode:
            return engine
    raise Skipped("no container engine answers (docker, podman, buildah)")


def write_sums() -> str:
    files = [one for one in DIST.iterdir() if one.name.startswith("horolog-")]
    (DIST / "SHA256SUMS").write_text(release_notes.sums(files))
    return f"{len(files)} files"


def signature() -> str:
    key = os.environ.get("HOROLOG_SIGNING_KEY")
    if not key:
        raise Skipped("HOROLOG_SIGNING_KEY is not set")
    sums = DIST / "SHA256SUMS"
    run(["gpg", "--batch", "--yes", "--local-user", key, "--armor", "--detach-sign", str(sums)], ROOT)
    return "SHA256SUMS.asc"


def write_notes() -> str:
    files = [one for one in DIST.iterdir() if one.name.startswith("horolog-")]
    text = release_notes.notes((ROOT / "CHANGELOG.md").read_text("utf-8"), version(), files)
    (DIST / "NOTES.md").write_text(text)
    return "NOTES.md"


def workflows() -> str:
    """What the workflows of this repository give away: tokens, secrets, actions whose code can change."""
    _tool("zizmor", "--offline", "--quiet", "--no-progress", ".github/workflows")
    return ".github/workflows"


def parts() -> Iterator[Part]:
    yield part("workflows", workflows, CHECKED)
    yield from build_archives()
    for archive in archives():
        yield part(archive.name, lambda archive=archive: check_archive(archive), CHECKED)  # type: ignore[misc]
    yield part("documentation", site)
    yield part("list of parts", list_of_parts)
    yield part("image", image)
    yield part("checksums", write_sums)
    yield part("signature", signature)
    yield part("notes", write_notes)


def report(found: list[Part]) -> str:
    width = max(len(one.name) for one in found)
    return "".join(f"{one.outcome:8} {one.name:{width}}  {one.why}".rstrip() + "\n" for one in found)


def main(arguments: list[str]) -> int:
    found = list(build_archives() if arguments == ["archives"] else parts())
    sys.stdout.write(f"\nhorolog {version()}\n{report(found)}")
    return 1 if any(one.outcome == FAILED for one in found) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
