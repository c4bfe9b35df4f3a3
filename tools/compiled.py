"""Compiles modules of the hot path with mypyc: the same typed source runs as it is, or as the extension module that is made of it.

    python -m tools.compiled            # beside the sources, where Python finds them before the sources, if anything is due
    python -m tools.compiled FOLDER     # below a folder, laid out as the package is
    python -m tools.compiled --due      # names the sources that are due; exit code 1 if there are any
    python -m tools.compiled --remove   # back to plain Python

An extension module that is older than its source would run instead of it: `outdated` names such ones, and no test starts with them.
Needs mypy, setuptools and a C compiler (`make compiled` brings the first two).
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULES = (
    # What a batch pays for by the record, and a set of old producers by the message.
    "horolog/protocol/records/walk.py",
    "horolog/protocol/records/walk_set.py",
    "horolog/protocol/records/plain_messages.py",
    "horolog/protocol/records/numbers.py",
    # Checks of every batch.
    "horolog/protocol/records/batch.py",
    "horolog/protocol/records/scan.py",
    "horolog/protocol/records/timestamps.py",
    "horolog/broker/log/producers/producer_state.py",
    "horolog/broker/log/validation/validate.py",
    "horolog/broker/log/validation/validate_batch.py",
    "horolog/broker/log/validation/validate_set.py",
    "horolog/broker/log/validation/plain_set.py",
    "horolog/broker/log/validation/validation_result.py",
    # Where it goes.
    "horolog/broker/log/integrity/crc_combine.py",
    "horolog/broker/log/integrity/block_sums.py",
    "horolog/broker/log/partition/condition.py",
    "horolog/broker/log/partition/partition.py",
    "horolog/broker/log/partition/rolling.py",
    "horolog/broker/log/segments/segment.py",
    # Lookups by time.
    "horolog/broker/handlers/list_offsets.py",
    "horolog/broker/handlers/lookup.py",
    "horolog/broker/cluster/topic.py",
    "horolog/broker/log/partition/lookups.py",
    "horolog/broker/log/indexes/index_file.py",
    "horolog/broker/log/indexes/offset_index.py",
    "horolog/broker/log/indexes/time_index.py",
    "horolog/broker/log/segments/batch_times.py",
    "horolog/broker/log/segments/index_loading.py",
    "horolog/broker/log/segments/lookup.py",
    "horolog/broker/log/segments/time_search.py",
    # Fetch, also of old data over a store.
    "horolog/broker/handlers/fetch.py",
    "horolog/broker/log/segments/log_reader.py",
    "horolog/broker/log/segments/reader.py",
    "horolog/broker/log/storage/file_slice.py",
    "horolog/broker/log/storage/refusing.py",
    "horolog/broker/bucket/block_files.py",
    "horolog/broker/bucket/block_ledger.py",
    "horolog/broker/bucket/block_slices.py",
    "horolog/broker/bucket/remote_log.py",
    "horolog/broker/bucket/shipped_partition.py",
    "horolog/broker/network/send_turns.py",
    "horolog/broker/network/transport.py",
    "horolog/broker/network/waiting_parts.py",
    # What every request passes through, and Produce.
    "horolog/broker/log/storage/real_file.py",
    "horolog/broker/commit/committer.py",
    "horolog/broker/base/metrics.py",
    "horolog/broker/bucket/lease.py",
    "horolog/broker/handlers/leased.py",
    "horolog/broker/handlers/context.py",
    "horolog/broker/handlers/produce.py",
    "horolog/broker/network/conversation.py",
    "horolog/broker/network/dispatch.py",
    "horolog/broker/network/meters.py",
    "horolog/broker/network/unanswered.py",
    "horolog/protocol/framing.py",
)
"""Typed with `i64` where numbers are counted, and `bytes` where they are read. Constants are `Final`: they are read in place.

A function in a function is a circle of references in compiled code, which keeps what its surroundings name until a collection: on a hot path
it is a `partial` of a function of the module. `tests/performance/test_garbage.py` finds others.

Modules win together: calls between them are cheap, those between a compiled one and a plain one are not.
"""

SHARED = "horolog/compiled__mypyc"
"""The extension module that holds the code of all; those beside the sources are names for its parts."""

OPTIMISATION = os.environ.get("HOROLOG_OPTIMISATION", "3")
"""The level of the C compiler. With 0 it takes a third of the time, which is enough for a test."""

SUFFIX: str = sysconfig.get_config_var("EXT_SUFFIX")


def is_possible() -> bool:
    """Whether there is a C compiler, and the headers of this Python, which distributions have in a package of their own."""
    compiler = os.environ.get("CC", "cc").split()[0]
    if shutil.which(compiler) is None or not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        return False
    return subprocess.run([compiler, "--version"], capture_output=True, check=False).returncode == 0  # noqa: S603 - as CC names it


def build(target: Path) -> None:
    """Compile into `target`."""
    from mypyc.build import mypycify
    from setuptools import Distribution

    with tempfile.TemporaryDirectory(prefix="horolog-compiled-") as work:
        extensions = mypycify(
            ["--strict", *MODULES], target_dir=f"{work}/c", opt_level=OPTIMISATION, group_name="horolog.compiled"
        )
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
    return [source for source, made in _pairs(root) if made.exists() and _is_older(made, source)]


def due(root: Path = ROOT) -> list[Path]:
    """What has to be compiled: sources without an extension module for this Python, or with one that is older; this file, if it is newer."""
    made_of = [*_pairs(root), (root / "tools/compiled.py", root / (SHARED + SUFFIX))]
    return [source for source, made in made_of if not made.exists() or _is_older(made, source)]


def _pairs(root: Path) -> list[tuple[Path, Path]]:
    """Each source, and the extension module of it that this Python would take."""
    return [(root / module, (root / module).with_suffix(SUFFIX)) for module in MODULES]


def _is_older(made: Path, source: Path) -> bool:
    return made.stat().st_mtime < source.stat().st_mtime


def remove(root: Path = ROOT) -> None:
    for made in extensions(root):
        made.unlink()


def main(arguments: list[str]) -> int:
    if arguments == ["--remove"]:
        remove()
    elif arguments == ["--due"]:
        found = due()
        sys.stdout.writelines(f"{source.relative_to(ROOT)}\n" for source in found)
        return 1 if found else 0
    elif arguments:
        build(Path(arguments[0]))
    elif due():
        remove()  # one that is no longer on the list would stay
        build(ROOT)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
