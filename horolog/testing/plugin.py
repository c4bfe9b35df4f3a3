"""A plugin for pytest, found by itself where horolog is installed: brokers as fixtures.

- `horolog_broker`: a broker of the test's own, in a thread, in memory; `@pytest.mark.horolog(log_retention_ms=1000, clock=...)`
  gives it settings, a clock or a folder.
- `horolog`: one broker for all tests of the session, for those that make topics of their own and do not move the clock.
- `--horolog-storage=folder` has both keep their data in temporary folders instead of in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from horolog.testing.threaded import ThreadedBroker

MEMORY, FOLDER = "memory", "folder"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("horolog", "brokers inside tests")
    group.addoption(
        "--horolog-storage",
        choices=(MEMORY, FOLDER),
        default=MEMORY,
        help="where the fixtures' brokers keep their data: in memory (default), or in temporary folders",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "horolog(clock=, storage=, **settings): how the broker of the fixture horolog_broker is to run"
    )


@pytest.fixture
def horolog_broker(request: pytest.FixtureRequest) -> Iterator[ThreadedBroker]:
    """A broker of this test's own."""
    from horolog.testing.threaded import broker_in_thread

    asked: dict[str, Any] = {}
    for mark in reversed(list(request.node.iter_markers("horolog"))):
        asked |= mark.kwargs
    if request.config.getoption("--horolog-storage") == FOLDER and "storage" not in asked:
        asked["storage"] = request.getfixturevalue("tmp_path") / "horolog"
    with broker_in_thread(**asked) as broker:
        yield broker


@pytest.fixture(scope="session")
def horolog(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedBroker]:
    """One broker for the whole session."""
    from horolog.testing.threaded import broker_in_thread

    in_folder = request.config.getoption("--horolog-storage") == FOLDER
    with broker_in_thread(storage=tmp_path_factory.mktemp("horolog") if in_folder else MEMORY) as broker:
        yield broker
