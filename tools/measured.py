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
PACKAGES = (
    "horolog.base",
    "horolog.broker",
    "horolog.client.admin",
    "horolog.client.charting",
    "horolog.client.cli.kafka_scripts",
    "horolog.client.consuming",
    "horolog.client.decoding",
    "horolog.client.moments",
    "horolog.client.producing",
    "horolog.client.security",
    "horolog.client.segments",
    "horolog.client.values",
    "horolog.client.wire",
    "horolog.commands",
    "horolog.console",
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


class Contexts:
    """Measures the tests of the packages, and tells the measurement whose test runs."""

    loaded = False
    """Whether this process has one; a test that runs pytest in this very process is measured as a part of it."""

    def __init__(self, coverage: Coverage, root: Path, chosen: frozenset[str] | None = None) -> None:
        Contexts.loaded = True
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

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """A worker may be ended as soon as it has said that its session is over."""
        self._pause()
        self._coverage.save()


def pytest_configure(config: pytest.Config) -> None:
    if not Contexts.loaded and (hasattr(config, "workerinput") or not config.getoption("numprocesses", None)):
        listed = os.environ.get(CHOSEN)
        chosen = frozenset(Path(listed).read_text("utf-8").splitlines()) if listed else None
        config.pluginmanager.register(Contexts(measuring(Path(os.environ[FOLDER])), config.rootpath, chosen))
