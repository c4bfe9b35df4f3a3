"""A plugin for pytest that measures which test file runs which lines and branches of the packages.

`python -m tools.own_coverage` loads it into every worker; HOROLOG_MEASURED names the folder that the data goes to. A context of
the data is the path of a test file, so that one run tells all test files apart.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from coverage import Coverage

FOLDER = "HOROLOG_MEASURED"
PACKAGES = ("horolog.broker", "horolog.console", "horolog.protocol", "horolog.testing")


def measuring(folder: Path) -> Coverage:
    """Measures the packages in this process; other processes measure into the same folder."""
    coverage = Coverage(data_file=folder / "data", data_suffix=True, config_file=False, branch=True, source=PACKAGES)
    coverage.set_option("run:disable_warnings", ["module-not-imported", "module-not-measured", "no-data-collected"])
    return coverage


class Contexts:
    """Tells the measurement whose test runs."""

    def __init__(self, coverage: Coverage, root: Path) -> None:
        self._coverage = coverage
        self._root = root
        self._now = ""

    def _runs(self, path: Path) -> None:
        name = path.relative_to(self._root).as_posix()
        if name != self._now:
            self._now = name
            self._coverage.switch_context(name)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._runs(item.path)
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """A worker may be ended as soon as it has said that its session is over."""
        self._coverage.stop()
        self._coverage.save()


def pytest_configure(config: pytest.Config) -> None:
    if Coverage.current() is not None:  # a test that runs pytest in this very process is measured already
        return
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        coverage = measuring(Path(os.environ[FOLDER]))
        coverage.start()
        config.pluginmanager.register(Contexts(coverage, config.rootpath))
