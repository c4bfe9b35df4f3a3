"""The pytest plugin with brokers as fixtures; pytest finds it once horolog is installed.

- `horolog_broker`: one broker per test, in a thread, in memory; `@pytest.mark.horolog(log_retention_ms=1000, clock=...)` gives
it settings, a clock or a folder.
- `horolog_async` and `horolog_anyio`: the same on the event loop of an asynchronous test, with pytest-asyncio or anyio.
- `horolog_cluster`: three brokers (`brokers=`) of this test's own that are one cluster, in a thread; the mark gives them settings.
- `horolog_registry`: a schema registry of this test's own, in a thread.
- `horolog`: one broker for the whole session, for tests that create their own topics and do not move the clock.
- `--horolog-storage=folder` keeps their data in temporary folders instead of memory.
- `--horolog-update-snapshots` makes `expect_snapshot` write its files instead of comparing them.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from horolog.testing.snapshot_files import UPDATE_VARIABLE

if TYPE_CHECKING:
    from horolog.testing.embedded import EmbeddedBroker
    from horolog.testing.registry_server import ThreadedRegistry
    from horolog.testing.threaded import ThreadedBroker
    from horolog.testing.threaded_cluster import ThreadedCluster

MEMORY, FOLDER = "memory", "folder"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("horolog", "brokers inside tests")
    group.addoption(
        "--horolog-storage",
        choices=(MEMORY, FOLDER),
        default=MEMORY,
        help="where the brokers of fixtures keep their data: in memory (default), or in temporary folders",
    )

    group.addoption(
        "--horolog-update-snapshots",
        action="store_true",
        help="make expect_snapshot() write its files instead of comparing topics with them",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--horolog-update-snapshots"):
        os.environ[UPDATE_VARIABLE] = "1"
    config.addinivalue_line("markers", "horolog(clock=, storage=, **settings): how the broker of one test runs")


@pytest.fixture
def horolog_broker(request: pytest.FixtureRequest) -> Iterator[ThreadedBroker]:
    """A broker of this test's own."""
    from horolog.testing.threaded import broker_in_thread

    with broker_in_thread(**_asked(request)) as broker:
        yield broker


def _asked(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A test's broker options, from its marks and the command line."""
    asked: dict[str, Any] = {}
    for mark in reversed(list(request.node.iter_markers("horolog"))):
        asked |= mark.kwargs
    if request.config.getoption("--horolog-storage") == FOLDER and "storage" not in asked:
        asked["storage"] = request.getfixturevalue("tmp_path") / "horolog"
    return asked


def _asyncio_fixture() -> Callable[..., Any]:
    """pytest-asyncio's strict mode needs its own fixture decorator."""
    try:
        import pytest_asyncio
    except ImportError:
        return pytest.fixture
    return pytest_asyncio.fixture


@_asyncio_fixture()
async def horolog_async(request: pytest.FixtureRequest) -> AsyncIterator[EmbeddedBroker]:
    """A broker of this test's own, on its event loop."""
    from horolog.testing.embedded import horolog_broker

    async with horolog_broker(**_asked(request)) as broker:
        yield broker


@pytest.fixture
async def horolog_anyio(request: pytest.FixtureRequest, anyio_backend_name: str) -> AsyncIterator[EmbeddedBroker]:
    """A broker of this test's own, on the event loop that anyio runs."""
    from horolog.testing.embedded import horolog_broker

    if anyio_backend_name != "asyncio":
        raise pytest.UsageError(f"horolog_anyio runs on asyncio, not on {anyio_backend_name}: see anyio_backend")
    async with horolog_broker(**_asked(request)) as broker:
        yield broker


@pytest.fixture
def horolog_cluster(request: pytest.FixtureRequest) -> Iterator[ThreadedCluster]:
    """Brokers of this test's own that are one cluster, three unless the mark says otherwise; their data is always in memory."""
    from horolog.testing.threaded_cluster import cluster_in_thread

    asked: dict[str, Any] = {}
    for mark in reversed(list(request.node.iter_markers("horolog"))):
        asked |= mark.kwargs
    with cluster_in_thread(**asked) as cluster:
        yield cluster


@pytest.fixture
def horolog_registry() -> Iterator[ThreadedRegistry]:
    """A schema registry of this test's own."""
    from horolog.testing.registry_server import registry_in_thread

    with registry_in_thread() as registry:
        yield registry


@pytest.fixture(scope="session")
def horolog(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedBroker]:
    """One broker for the whole session."""
    from horolog.testing.threaded import broker_in_thread

    in_folder = request.config.getoption("--horolog-storage") == FOLDER
    with broker_in_thread(storage=tmp_path_factory.mktemp("horolog") if in_folder else MEMORY) as broker:
        yield broker
