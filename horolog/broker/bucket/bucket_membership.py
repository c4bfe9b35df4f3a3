"""The membership of a broker that shares a store with others: their journal, and the watch over them.

At a start the folder holds nothing that counts: the partitions that this broker leads are opened from the store.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from horolog.broker.bucket.registration import Joined
from horolog.broker.bucket.store_folder import LastUse, claim, refuse_another
from horolog.broker.cluster.cluster_start import refuse_lost_rules
from horolog.broker.cluster.membership import Members
from horolog.broker.cluster.served_topics import folders_of, remove_deleted
from horolog.broker.cluster.topic import Topic

if TYPE_CHECKING:
    from horolog.broker.base.own_thread import Later
    from horolog.broker.bucket.bucket_state import BucketState
    from horolog.broker.bucket.members_watch import ChangingCluster, MembersWatch
    from horolog.broker.bucket.names import Wal
    from horolog.broker.cluster.cluster_configs import ClusterConfigs
    from horolog.broker.cluster.cluster_state import ClusterState
    from horolog.broker.cluster.journal import Journal
    from horolog.broker.config.settings import Settings
    from horolog.broker.log.manager import LogManager
    from horolog.broker.on_record.cluster_file import ClusterFile, StoredTopic

log = logging.getLogger(__name__)


class BucketStart:
    """A start from the state that has registered this broker: topics are known, and no partition is open yet."""

    def __init__(self, use: LastUse, logs: LogManager, configs: ClusterConfigs, state: BucketState) -> None:
        self.topics: dict[str, Topic] = {}
        self.foreign: set[str] = set()
        self._use = use
        self._logs = logs
        self._configs = configs
        self._state = state

    def __repr__(self) -> str:
        return f"<BucketStart with {len(self.topics)} topics>"

    def run(
        self,
        now_ms: int,  # noqa: ARG002 - as `membership.ClusterStart` has it
        settings_changed: Callable[[Settings], None],
        begin: Callable[[ClusterState, bool], None],
    ) -> None:
        if self._configs.take_usable(self._state.broker_configs):
            settings_changed(self._configs.settings)
        refuse_lost_rules(self._state, self._configs.settings)
        storage, left = self._logs.resources.storage, [path for _, _, path in folders_of(self._logs)]
        for folder in self._logs.folders.usable():
            has_partitions = any(path.startswith(f"{folder.path}/") for path in left)
            refuse_another(storage, folder.path, self._use.cluster_id, has_partitions=has_partitions)
            claim(storage, folder.path, self._use)
        begin(self._state, False)
        for path in left:
            remove_deleted(storage, path, synced=False)  # what a power cut brings back, the next start removes again
        for folder in self._logs.folders.usable():
            folder.find_deleted(self._configs.settings.log_segment_delete_delay_ms)
        for name, record in self._state.topics.items():
            self.topics[name] = self._topic(record)

    def remember(self) -> None:
        """The store has everything."""

    def _topic(self, record: StoredTopic) -> Topic:
        overrides = self._configs.usable(record.name, record.overrides)
        return Topic(record.name, record.id, [None] * record.partition_count, overrides, self._configs.topic(overrides))


class BucketMembership:
    """One broker among those that share a store. `fenced` is called when it is not a member any more: see `MembersEvents`."""

    is_shared = True

    def __init__(
        self,
        cluster_id: str,
        joined: Joined,
        journal: Journal,
        watch: MembersWatch,
        later: Later,
        fenced: Callable[[Wal | None], None],
    ) -> None:
        self._cluster_id = cluster_id
        nodes = joined.state.nodes
        self.members = Members(joined.wal.node, nodes, frozenset(nodes))
        self.journal = journal
        self.later = later
        self.fenced = fenced
        self._watch = watch
        self._joined = joined
        self._has_begun = False
        self._changed: Callable[[frozenset[int]], None] = lambda _: None

    def __repr__(self) -> str:
        return f"<BucketMembership of {self.members.me} in {self.members.nodes}>"

    def start(
        self,
        logs: LogManager,
        file: ClusterFile,  # noqa: ARG002 - the store has it
        configs: ClusterConfigs,
        new_topic_id: Callable[[], bytes],  # noqa: ARG002
    ) -> BucketStart:
        state, wal = self._joined.state, self._joined.wal
        return BucketStart(LastUse(self._cluster_id, wal, state.members[wal.node].host), logs, configs, state)

    def begin(self, cluster: ChangingCluster) -> None:
        """Watch the others from now on."""
        self._has_begun = True
        self._watch.begin(cluster, self)

    def announce(self, number: int, done: Callable[[], None]) -> None:
        self._watch.announce(number, done)

    def applied(self, number: int) -> None:  # noqa: ARG002 - the state has it
        if self._has_begun:
            self._watch.applied()

    def listen(
        self, catch_up: Callable[[], None], check_record: Callable[[], None], state: Callable[[], ClusterState]
    ) -> None:
        """The watch hears of others."""

    def follow_live(self, changed: Callable[[frozenset[int]], None]) -> None:
        self._changed = changed

    def goes_on(self) -> None:
        """No supervisor watches."""

    def members_are(self, nodes: frozenset[int]) -> None:
        """All members serve, until others fence them."""
        self.members = Members(self.members.me, tuple(sorted(nodes)), nodes | {self.members.me})
        self._changed(nodes)
