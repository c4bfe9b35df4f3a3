"""Metrics of this process, under the names that every Prometheus client library uses."""

import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

from horolog.broker.base.metrics import Described, Kind, Samples
from horolog.protocol.records.walk import IS_COMPILED
from horolog.version import __version__

CPU = Described("process_cpu_seconds_total", Kind.COUNTER, "CPU time, user and system.", standard=True)
MEMORY = Described("process_resident_memory_bytes", Kind.GAUGE, "Resident memory.", standard=True)
FILES = Described("process_open_fds", Kind.GAUGE, "Open file descriptors.", standard=True)
MAX_FILES = Described("process_max_fds", Kind.GAUGE, "Maximum number of open file descriptors.", standard=True)
STARTED = Described(
    "process_start_time_seconds", Kind.GAUGE, "Start time of the broker, in seconds since 1970.", standard=True
)
BUILD = Described(
    "build_info",
    Kind.GAUGE,
    "Always 1. The labels have the versions, and whether the hot path is compiled (yes, no).",
    ("version", "python", "implementation", "compiled"),
)
FAMILIES = (CPU, MEMORY, FILES, MAX_FILES, STARTED, BUILD)

_STATM = Path("/proc/self/statm")
_DESCRIPTORS = Path("/proc/self/fd")


def collect(started_ms: int) -> Iterator[tuple[Described, Samples]]:
    """Where the system does not say something (no /proc), the family has no sample."""
    yield CPU, [((), time.process_time())]
    yield MEMORY, [((), value) for value in _resident_bytes()]
    yield FILES, [((), value) for value in _open_files()]
    yield MAX_FILES, [((), value) for value in _max_files()]
    yield STARTED, [((), started_ms / 1000)]
    compiled = "yes" if IS_COMPILED else "no"
    yield BUILD, [((__version__, platform.python_version(), platform.python_implementation(), compiled), 1)]


def _resident_bytes() -> Iterator[int]:
    if _STATM.exists():
        yield int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _open_files() -> Iterator[int]:
    if _DESCRIPTORS.is_dir():
        yield sum(1 for _ in _DESCRIPTORS.iterdir()) - 1  # one of them is the listing's own


def _max_files() -> Iterator[int]:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    yield resource.getrlimit(resource.RLIMIT_NOFILE)[0]
