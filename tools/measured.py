"""A plugin for pytest that measures which test file runs which lines and branches of the packages.

`python -m tools.own_coverage` loads it into every worker; HOROLOG_MEASURED names the folder that the data goes to. A context of
the data is the path of a test file, so that one run tells all test files apart. Other tests of the same run are not measured, and
take no longer for it. HOROLOG_MEASURED_TESTS may name a file that lists the test files to measure; without it, it is all that mirror
the packages.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from coverage import Coverage

FOLDER = "HOROLOG_MEASURED"
CHOSEN = "HOROLOG_MEASURED_TESTS"
LEFT_OUT = "left-out"
PACKAGES = (
    "horolog.base",
    "horolog.broker",
    "horolog.client",
    "horolog.commands",
    "horolog.console",
    "horolog.pipeline",
    "horolog.protocol",
    "horolog.stores",
    "horolog.testing",
)
TESTS = tuple(f"tests/unit/{package.partition('.')[2]}" for package in PACKAGES)
"""The folders whose tests are measured."""


def measuring(folder: Path) -> Coverage:
    """Measures the packages in this process; other processes measure into the same folder."""
    coverage = Coverage(data_file=folder / "data", data_suffix=True, config_file=False, branch=True, source=PACKAGES)
    coverage.set_option("run:disable_warnings", ["module-not-imported", "module-not-measured", "no-data-collected"])
    return coverage


def left_out(folder: Path) -> frozenset[str]:
    """The test files of which a test was skipped, for lack of time or of a program: they run less than they would."""
    return frozenset(name for path in folder.glob(f"{LEFT_OUT}.*") for name in path.read_text("utf-8").splitlines())


class Contexts:
    """Measures the tests of the packages, and tells the measurement whose test runs."""

    loaded = False
    """Whether this process has one; a test that runs pytest in this very process is measured as a part of it."""

    def __init__(self, coverage: Coverage, folder: Path, root: Path, chosen: frozenset[str] | None = None) -> None:
        Contexts.loaded = True
        self._folder = folder
        self._left_out: set[str] = set()
        self._coverage = coverage
        self._root = root
        self._chosen = chosen
        self._now = ""
        self._measures = False

    def _runs(self, path: Path) -> None:
        name = path.relative_to(self._root).as_posix()
        if name == self._now:
            return
        self._now = name
        if not self._is_measured(name):
            self._pause()
            return
        if not self._measures:
            self._coverage.start()
            self._measures = True
        self._coverage.switch_context(name)

    def _is_measured(self, name: str) -> bool:
        return name.startswith(TESTS) if self._chosen is None else name in self._chosen

    def _pause(self) -> None:
        if self._measures:
            self._coverage.stop()
            self._measures = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._runs(item.path)
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped:
            self._left_out.add(report.nodeid.partition("::")[0])

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """A worker may be ended as soon as it has said that its session is over."""
        self._pause()
        self._coverage.save()
        (self._folder / f"{LEFT_OUT}.{os.getpid()}").write_text("\n".join(self._left_out), "utf-8")


def pytest_configure(config: pytest.Config) -> None:
    if not Contexts.loaded and (hasattr(config, "workerinput") or not config.getoption("numprocesses", None)):
        listed = os.environ.get(CHOSEN)
        chosen = frozenset(Path(listed).read_text("utf-8").splitlines()) if listed else None
        folder = Path(os.environ[FOLDER])
        config.pluginmanager.register(Contexts(measuring(folder), folder, config.rootpath, chosen))
