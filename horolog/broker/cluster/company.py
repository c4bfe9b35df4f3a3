"""The kinds of company in which a broker serves a cluster, and all that depends on the kind. `Alone` is the kind without others.

With other workers over the same folders it is `worker_company.Workers`, which a broker alone does not import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from horolog.broker.cluster.cluster_configs import ClusterConfigs
from horolog.broker.cluster.cluster_start import Start
from horolog.broker.cluster.cluster_state import ClusterState
from horolog.broker.cluster.journal import Journal, WholeFile
from horolog.broker.cluster.left_folders import merge_what_workers_left, remove_sockets
from horolog.broker.cluster.topic import Topic
from horolog.broker.config.settings import Settings
from horolog.broker.log.manager import LogManager
from horolog.broker.on_record.cluster_file import ClusterFile


class ClusterStart(Protocol):
    """One start: it finds the state of the cluster, and opens the partitions that are led here."""

    topics: dict[str, Topic]
    foreign: set[str]
    """Names with folders that are no partitions."""

    def run(
        self,
        now_ms: int,
        settings_changed: Callable[[Settings], None],
        begin: Callable[[ClusterState, bool], None],
    ) -> object:
        """`begin` gets the state, and whether it is news that the journal has to keep."""
        ...

    def remember(self) -> None:
        """Keep what the next start is not to do again."""
        ...


class Company(Protocol):
    """The brokers of one cluster, as one of them changes it."""

    nodes: tuple[int, ...]
    """All of them, running or not."""
    journal: Journal

    def start(
        self, logs: LogManager, file: ClusterFile, configs: ClusterConfigs, new_topic_id: Callable[[], bytes]
    ) -> ClusterStart: ...

    def announce(self, number: int, done: Callable[[], None]) -> None:
        """The journal is written up to this entry; `done` is called when the others have applied it, or after a while."""
        ...

    def applied(self, number: int) -> None:
        """The journal is applied here up to this entry."""
        ...

    def listen(
        self, catch_up: Callable[[], None], check_record: Callable[[], None], state: Callable[[], ClusterState]
    ) -> None:
        """Others' words are acted on from now on; `state` is asked for who leads what."""
        ...

    def goes_on(self) -> None:
        """Called amid work of many parts, so that nobody takes this broker to hang."""
        ...


class Alone:
    """No other broker: what is written has been applied by all, and nobody has anything to say."""

    def __init__(self, node: int, file: ClusterFile) -> None:
        self.nodes: tuple[int, ...] = (node,)
        self.journal: Journal = WholeFile(file)

    def __repr__(self) -> str:
        return f"<Alone {self.nodes[0]}>"

    def start(
        self, logs: LogManager, file: ClusterFile, configs: ClusterConfigs, new_topic_id: Callable[[], bytes]
    ) -> ClusterStart:
        storage, folders = logs.resources.storage, [one.path for one in logs.folders.usable()]
        merge_what_workers_left(storage, folders)
        remove_sockets(storage, folders)
        return Start(logs, file, configs, new_topic_id)

    def announce(self, number: int, done: Callable[[], None]) -> None:  # noqa: ARG002
        done()

    def applied(self, number: int) -> None:
        """Nobody waits for it."""

    def listen(
        self, catch_up: Callable[[], None], check_record: Callable[[], None], state: Callable[[], ClusterState]
    ) -> None:
        """Nobody speaks."""

    def goes_on(self) -> None:
        """Nobody watches."""
