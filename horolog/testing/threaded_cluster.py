"""A cluster in its own thread, for synchronous tests: `with cluster_in_thread() as cluster`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from horolog.testing.clustered import BROKERS, EmbeddedCluster, horolog_cluster
from horolog.testing.in_thread import InThread, awaited, called, in_thread


class ThreadedCluster(InThread[EmbeddedCluster]):
    """A cluster in another thread: an `EmbeddedCluster` whose methods may be called from any other thread."""

    kill = awaited(EmbeddedCluster.kill)
    stop = awaited(EmbeddedCluster.stop)
    start = awaited(EmbeddedCluster.start)
    restart = awaited(EmbeddedCluster.restart)
    create_topic = awaited(EmbeddedCluster.create_topic)
    leaders = called(EmbeddedCluster.leaders)
    leader = called(EmbeddedCluster.leader)
    until_led = awaited(EmbeddedCluster.until_led)
    move = awaited(EmbeddedCluster.move)
    records = awaited(EmbeddedCluster.records)

    def __init__(self, embedded: EmbeddedCluster, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(embedded, loop)
        self.bootstrap = embedded.bootstrap
        self.addresses = embedded.addresses

    def __repr__(self) -> str:
        return f"<ThreadedCluster at {self.bootstrap}>"

    @property
    def running(self) -> list[int]:
        """The numbers of the brokers that run."""
        return self._call(lambda: self._embedded.running)


@contextmanager
def cluster_in_thread(
    brokers: int = BROKERS, *, settings: Mapping[str, object] | None = None, **more: object
) -> Iterator[ThreadedCluster]:
    """Like `horolog_cluster`, with its own event loop and thread."""
    with in_thread(horolog_cluster(brokers, settings=settings, **more), ThreadedCluster) as cluster:
        yield cluster
