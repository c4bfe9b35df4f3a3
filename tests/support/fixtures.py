"""Fixtures with a running broker; `tests/conftest.py` makes them available to every test."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import golden
from tests.support.broker_process import TARGET_SETTINGS, BrokerProcess

BrokerStarter = Callable[..., BrokerProcess]


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[BrokerStarter]:
    """Start brokers with the test's own settings; `data=` takes over a folder, `brokers=` is the size of the cluster over a store."""
    started: list[BrokerProcess] = []

    def start(data: Path | None = None, *, brokers: int | None = None, **settings: object) -> BrokerProcess:
        chosen = {key.replace("__", "."): str(value) for key, value in settings.items()}
        broker = BrokerProcess(data or tmp_path / f"broker-{len(started)}", chosen)
        broker.cluster_size = brokers or broker.cluster_size
        started.append(broker)
        return broker.start()

    yield start
    for broker in started:
        broker.kill()


@pytest.fixture
def broker(start_broker: BrokerStarter) -> BrokerProcess:
    """A broker for one test, with the defaults."""
    return start_broker()


@pytest.fixture(scope="session")
def session_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One broker shared by all tests that create their own topics.

    `HOROLOG_TEST_BROKER=127.0.0.1:PORT` names another one, so that a test can run against a real Kafka.
    """
    if other := os.environ.get("HOROLOG_TEST_BROKER"):
        yield BrokerProcess.at(other)
        return
    with shared_broker(tmp_path_factory.mktemp("session-broker")) as running:
        yield running


@contextmanager
def shared_broker(folder: Path, brokers: int | None = None) -> Iterator[BrokerProcess]:
    """`brokers`: of its cluster, unless as many as `pytest --brokers` says."""
    running = BrokerProcess(folder / "data", TARGET_SETTINGS)
    running.cluster_size = brokers or running.cluster_size
    running.start()
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def golden_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders that Kafka wrote."""
    return golden.unpacked(tmp_path_factory)
