"""How a broker belongs to its cluster: all that differs between kinds of cluster. `SoleMember` is a broker without others.

With other workers over the same folders it is `worker_membership.WorkerMembership`, which a sole member does not import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, Self

from horolog.broker.base.own_thread import Beside, Later
from horolog.broker.cluster.cluster_configs import ClusterConfigs
from horolog.broker.cluster.cluster_start import Start
from horolog.broker.cluster.cluster_state import ClusterState
from horolog.broker.cluster.journal import Journal
from horolog.broker.cluster.journal_beside import JournalBeside
from horolog.broker.cluster.left_folders import merged_for_one, remove_sockets
from horolog.broker.cluster.own_journal import OwnJournal
from horolog.broker.cluster.topic import Topic
from horolog.broker.config.settings import Settings
from horolog.broker.log.manager import LogManager
from horolog.broker.on_record.cluster_file import ClusterFile


class Members(NamedTuple):
    """The brokers of a cluster, as one of them knows them."""

    me: int
    nodes: tuple[int, ...]
    """All of them, running or not."""
    live: frozenset[int]
    """The nodes that serve. This broker is among them: it answers requests even if others do not know yet that it serves."""

    @classmethod
    def of_one(cls, me: int) -> Self:
        return cls(me, (me,), frozenset({me}))

    @property
    def others(self) -> tuple[int, ...]:
        """All nodes but this one, running or not."""
        return tuple(node for node in self.nodes if node != self.me)

    def with_live(self, live: frozenset[int]) -> Members:
        return self._replace(live=live | {self.me})


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


class Membership(Protocol):
    """The connection of one broker to its cluster."""

    members: Members
    journal: Journal
    is_shared: bool
    """Whether others change the cluster, too; then each entry counts, and one that is not written has not happened."""
    later: Later
    """The timer of callers, who do not wait for ever."""

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
        """Act on messages of others from now on; `state` is asked for who leads what."""
        ...

    def follow_live(self, changed: Callable[[frozenset[int]], None]) -> None:
        """Call `changed` with the others that serve, each time that this changes."""
        ...

    def goes_on(self) -> None:
        """Called amid work of many parts, so that no supervisor takes this broker to hang."""
        ...


class SoleMember:
    """The membership of the only broker: what it has written, all members have applied."""

    is_shared = False

    def __init__(self, node: int, logs: LogManager, file: ClusterFile, beside: Beside) -> None:
        self.members = Members.of_one(node)
        self.later = beside.later
        self._files = OwnJournal(
            logs.resources.storage, file, lambda: [folder.path for folder in logs.folders.usable()]
        )
        self.journal: Journal = JournalBeside(self._files, beside, self._files)

    def __repr__(self) -> str:
        return f"<SoleMember {self.members.me}>"

    def start(
        self, logs: LogManager, file: ClusterFile, configs: ClusterConfigs, new_topic_id: Callable[[], bytes]
    ) -> ClusterStart:
        storage, folders = logs.resources.storage, [one.path for one in logs.folders.usable()]
        logs.record_number = self._files.record_number
        merged = merged_for_one(storage, folders)
        remove_sockets(storage, folders)
        return Start(logs, file, configs, new_topic_id, merged)

    def announce(self, number: int, done: Callable[[], None]) -> None:  # noqa: ARG002
        done()

    def applied(self, number: int) -> None:
        """No member waits for it."""

    def listen(
        self, catch_up: Callable[[], None], check_record: Callable[[], None], state: Callable[[], ClusterState]
    ) -> None:
        """No member sends messages."""

    def follow_live(self, changed: Callable[[frozenset[int]], None]) -> None:
        """There are no others."""

    def goes_on(self) -> None:
        """No supervisor watches."""
