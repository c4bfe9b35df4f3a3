"""The cluster as this broker serves it: topics, settings and producer ids, and every change to them, durable before it is answered.

A topic exists when the cluster's state says so; its folders follow. Creating first keeps the entry and then makes the folders.
Deleting first keeps the entry (with the topic among those `deleting`) and then removes the folders. After a crash between the two
the start finishes what was begun (`broker.cluster.cluster_start`).

`done` gets the outcome of a change once the journal has it: later, unless the journal answers at once. If the journal does not know it in
time, `done` gets REQUEST_TIMED_OUT, and the change is made when it does.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from horolog.broker.base.late_answers import InTime
from horolog.broker.base.own_thread import Later
from horolog.broker.cluster.change_driver import ChangeDriver
from horolog.broker.cluster.changes import TIMED_OUT, TOO_MANY, Failures, Outcome
from horolog.broker.cluster.cluster_start import identify, is_unread, record_of
from horolog.broker.cluster.cluster_state import (
    BrokerConfigsChanged,
    ClusterState,
    Entry,
    EpochsTold,
    FoldersRemoved,
    PartitionsAdded,
    RulesChanged,
    TopicConfigsChanged,
    TopicsCreated,
    TopicsDeleted,
    TopicsFound,
    TopicsWithdrawn,
)
from horolog.broker.cluster.membership import Membership
from horolog.broker.cluster.new_topics import (
    UNSET,
    NewPartitions,
    NewTopic,
    Planner,
    leads_of_grown,
    leads_of_new,
    unknown_topic,
)
from horolog.broker.cluster.producer_ids import ProducerIds
from horolog.broker.cluster.served_topics import ServedTopics, are_gone, folders_of, topic_id_of
from horolog.broker.cluster.topic import Topic
from horolog.broker.config.settings import Settings
from horolog.broker.log.manager import LogManager
from horolog.broker.log.partition import Partition
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.cluster_file import ClusterFile, StoredTopic
from horolog.broker.on_record.stored_rules import Rules, StoredRule
from horolog.protocol.errors import ErrorCode

Created = list[StoredTopic | ClusterError]
"""Every requested topic, as it is or would be, or its error."""


def random_topic_id() -> bytes:
    return uuid.uuid4().bytes


Overrides = Mapping[str, str]
Edit = Callable[[Overrides], Overrides]
"""Gives new overrides for present ones. Called again if changes by other brokers came first; raises ClusterError."""


class Cluster(ServedTopics):
    """Topics, their configurations and the producer ids, as one broker serves them."""

    def __init__(
        self,
        cluster_id: str,
        settings: Settings,
        logs: LogManager,
        file: ClusterFile,
        membership: Membership,
        new_topic_id: Callable[[], bytes] = random_topic_id,
    ) -> None:
        super().__init__(settings, logs)
        self.cluster_id = cluster_id
        self.nodes = membership.members.nodes
        """The brokers of the cluster."""
        self._membership = membership
        self.later = membership.later
        """The timer of callers, who do not wait for ever."""
        self.wants_upkeep = membership.is_shared
        """Whether the upkeep looks for changes of others, and after the record."""
        self._file = file
        self._new_topic_id = new_topic_id
        self.changes = ChangeDriver(
            membership.journal,
            settings.node_id,
            self._carry_out,
            membership.announce,
            membership.applied,
            is_shared=membership.is_shared,
        )
        self._foreign: set[str] = set()
        self._being_made: set[str] = set()
        """Topics that `create_topic` has asked for, until the change is made or late."""
        self.producer_ids = ProducerIds(self.changes, membership.later)

    def __repr__(self) -> str:
        return f"<Cluster {self.cluster_id}: {len(self.topics)} topics, {self.state.partition_count} partitions>"

    @property
    def state(self) -> ClusterState:
        return self.changes.state

    @property
    def broker_configs(self) -> Mapping[str, Mapping[str, str]]:
        """The settings changed while running, by the broker's number, or by an empty name for all brokers."""
        return self.state.broker_configs

    @property
    def is_shared(self) -> bool:
        """Whether others change the cluster, too."""
        return self._membership.is_shared

    def open(self, now_ms: int) -> None:
        """Find the state of the cluster, and open the partitions that are led here with their topics' configurations."""

        def begin(state: ClusterState, is_news: bool) -> None:
            self.changes.begin(state if state.nodes else replace(state, nodes=self.nodes), is_news=is_news)
            self._tell_rules(state.rules)

        start = self._membership.start(self._logs, self._file, self._configs, self._new_topic_id)
        start.run(now_ms, self._take_settings, begin)
        self.topics, self._foreign = start.topics, start.foreign
        self.by_id = {topic.id: topic for topic in self.topics.values()}
        self.partition_cache.clear()
        start.remember()
        self._membership.listen(self.changes.catch_up, self.changes.check_record, lambda: self.state)
        self._tell_epochs(self._logs.partitions.values())
        self.changes.catch_up()

    def reopened(self, partition: Partition) -> None:
        """A folder can be read again: its topic may take the id in it, and other brokers learn the epoch in which it is led."""
        self._identify_by(partition)
        self._tell_epochs([partition])

    def _identify_by(self, partition: Partition) -> None:
        """A topic that waits for its id takes the one in the folder.

        A folder without an id, or with another topic's, decides nothing while another folder of the topic is unread.
        """
        record = self.state.topics.get(partition.topic)
        if record is None:
            return
        others = self.topics[record.name].led_here
        if record.name in self.state.unidentified:
            topic_id = partition.topic_id
            if topic_id is not None and topic_id not in self.by_id:
                record = replace(record, id=topic_id, line="")
            elif any(map(is_unread, others)):
                return
            self.changes.note(TopicsFound((record,)))
        identify(self._logs, others, record.id)

    def _tell_epochs(self, partitions: Iterable[Partition]) -> None:
        """An epoch goes up if a log was not closed."""
        if not self.is_shared:
            return  # clients learn it from this broker alone
        told = {}
        for one in partitions:
            topic = self.topics.get(one.topic)
            if topic is not None and one.leader_epoch > self.state.epoch(topic.id, one.index):
                told[topic.id, one.index] = one.leader_epoch
        if told:
            self.changes.note(EpochsTold(tuple(told.items())))

    # -- changes

    def create_topic(
        self, name: str, partition_count: int = UNSET, overrides: Mapping[str, str | None] | None = None
    ) -> Topic:
        """Create one topic; raises ClusterError, also if it is not there at once, for the journal takes its time.

        Callers retry until it is there: while a creation of the same name is under way, none is added to it.
        """
        results: Created = []

        def made(created: Created) -> None:
            self._being_made.discard(name)
            results.extend(created)

        if name not in self._being_made:
            self._being_made.add(name)
            self.create_topics([NewTopic(name, partition_count, overrides=overrides or {})], made)
        for result in results:
            if isinstance(result, ClusterError):
                raise result
        if name not in self.topics:
            raise ClusterError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the topic {name} is still being created")
        return self.topics[name]

    def create_topics(
        self, wanted: Sequence[NewTopic], done: Callable[[Created], None], *, validate_only: bool = False
    ) -> None:
        """Create topics with one entry; `done` gets the result of each in its place."""
        results: Created = [TOO_MANY] * len(wanted)
        told = InTime[Created](done, [TIMED_OUT] * len(wanted), self._membership.later)

        def decide(state: ClusterState) -> Entry | None:
            results[:] = self._planner().topics(state, wanted)
            planned = tuple(one for one in results if isinstance(one, StoredTopic))
            leads = leads_of_new(wanted, results)
            return TopicsCreated(planned, leads) if planned and not validate_only else None

        def made(outcome: Failures | ClusterError) -> None:
            if not isinstance(outcome, ClusterError) and outcome:
                self.changes.note(_not_made(self._logs, outcome))
            told([_outcome_of(one, outcome) if isinstance(one, StoredTopic) else one for one in results])

        self.changes.make_for_client(decide, made)

    def delete_topics(self, doomed: Mapping[str, bytes], done: Callable[[Failures], None]) -> None:
        """Delete topics, by name and id, with one entry; `done` gets those that could not be deleted.

        A topic of the same name that was created after the caller looked has another id: it stays.
        """
        if not doomed:
            done({})
            return
        found: list[str] = []
        told = InTime[Failures](done, dict.fromkeys(doomed, TIMED_OUT), self._membership.later)

        def decide(state: ClusterState) -> Entry | None:
            known = state.topics
            found[:] = [name for name, topic_id in doomed.items() if name in known and known[name].id == topic_id]
            return TopicsDeleted(tuple(found)) if found else None

        def made(outcome: Failures | ClusterError) -> None:
            if isinstance(outcome, ClusterError):
                told(dict.fromkeys(doomed, outcome))
                return
            if found:
                self._note_removed({(name, doomed[name]) for name in found if name not in outcome})
            told({name: unknown_topic(name) for name in doomed.keys() - set(found)})

        self.changes.make_for_client(decide, made)

    def _note_removed(self, topics: Collection[tuple[str, bytes]]) -> None:
        """Deleted topics, by name and id, of which this broker has no folder any more.

        Where other brokers have folders of their own, the disk shows whether all of them are removed. The next settling removes
        the rest.
        """
        if self.is_shared:
            storage = self._logs.resources.storage
            left = {(name, topic_id_of(storage, path)) for name, _, path in folders_of(self._logs)}
            topics = [(name, one) for name, one in topics if not {(name, one), (name, None)} & left]
        self.changes.note(FoldersRemoved(frozenset(topics)))

    def add_partitions(
        self, wanted: Sequence[NewPartitions], done: Callable[[Failures], None], *, validate_only: bool = False
    ) -> None:
        """Give topics more partitions with one entry; `done` gets those that could not have them."""
        refused = dict.fromkeys((one.name for one in wanted), TOO_MANY)
        grown: list[StoredTopic] = []
        told = InTime[Failures](done, dict.fromkeys((one.name for one in wanted), TIMED_OUT), self._membership.later)

        def decide(state: ClusterState) -> Entry | None:
            grown[:], failures = self._planner().growth(state, wanted)
            refused.clear()
            refused.update(failures)
            leads = leads_of_grown(wanted, grown)
            return PartitionsAdded(tuple(grown), leads) if grown and not validate_only else None

        def made(outcome: Failures | ClusterError) -> None:
            if isinstance(outcome, ClusterError):
                outcome = dict.fromkeys((topic.name for topic in grown), outcome)
            elif outcome:
                self.changes.note(TopicsFound(tuple(record_of(self._logs, self.topics[name]) for name in outcome)))
            told({**refused, **outcome})

        self.changes.make_for_client(decide, made)

    def _planner(self) -> Planner:
        return Planner(
            self.settings,
            self.nodes,
            self._foreign,
            self.topic_config,
            self._new_topic_id,
            self._logs.folders.placing(),
            self._is_leaving,
        )

    def _is_leaving(self, name: str) -> bool:
        """Whether a deleted topic of this name has folders that another broker is still to remove."""
        is_deleted = self.is_shared and name in self.state.deleting
        return is_deleted and any(name == one for one, _, _ in folders_of(self._logs))

    def _new_partition(self, topic: Topic, index: int, topic_id: bytes | None, place: str | None) -> Partition:
        """A shared journal decides, whichever broker wrote the entry: a partition whose files cannot be made is offline."""
        self._membership.goes_on()
        make = self._logs.create_or_offline if self.is_shared else self._logs.create
        return make(topic.name, index, topic.config, topic_id, place)

    def _remove_folder(self, partition: Partition) -> None:
        self._membership.goes_on()
        super()._remove_folder(partition)

    def alter_topic_configs(
        self, changes: Mapping[str, Overrides | Edit], done: Callable[[ClusterError | None], None]
    ) -> None:
        """Change the overrides of known topics with one entry; they take effect at once."""

        def decide(state: ClusterState) -> Entry | ClusterError:
            try:
                known = {name: state.topics[name].overrides for name in changes if name in state.topics}
                changed = {name: _edited(changes[name], self._configs.usable(name, known[name])) for name in known}
                for overrides in changed.values():
                    self.topic_config(overrides)
            except ClusterError as error:
                return error
            return TopicConfigsChanged(changed)

        self.changes.make_for_client(decide, _in_time(done, self._membership.later))

    def check_broker_configs(self, node: str, configs: Mapping[str, str]) -> None:
        """Whether a change may be made; `node` is a broker's number, or empty for all. Raises ClusterError."""
        overrides = (topic.overrides for topic in self.topics.values())
        self._configs.check({**self.broker_configs, node: configs}, overrides, node)

    def settings_of(self, node: str) -> Settings:
        """The settings of a broker, which differ in nothing but what was changed while running."""
        if node == str(self.settings.node_id):
            return self.settings
        return self._configs.with_dynamic(self.broker_configs, node)

    def alter_broker_configs(
        self, node: str, change: Overrides | Edit, done: Callable[[ClusterError | None], None]
    ) -> None:
        """Change the dynamic configuration of a broker or of all; it takes effect at once."""

        def decide(state: ClusterState) -> Entry | ClusterError:
            try:
                configs = _edited(change, state.broker_configs.get(node, {}))
                self.check_broker_configs(node, configs)
            except ClusterError as error:
                return error
            return BrokerConfigsChanged(node, self._configs.encoder.encoded_configs(configs))

        self.changes.make_for_client(decide, _in_time(done, self._membership.later))

    def rules(self, kind: str) -> dict[str, StoredRule]:
        """The rules of a kind, by their keys."""
        return {rule.key: rule for rule in self.state.rules.values() if rule.kind == kind}

    def change_rules(
        self,
        decide: Callable[[Rules], RulesChanged | ClusterError | None],
        done: Callable[[ClusterError | None], None],
    ) -> None:
        """Change rules with one entry; they take effect at once. `decide` is called again if others' changes came first."""
        encoder = self._configs.encoder

        def decide_encoded(state: ClusterState) -> Entry | ClusterError | None:
            decided = decide(state.rules)
            if isinstance(decided, RulesChanged):
                return replace(decided, put=encoder.encoded_beside(decided.put, state.rules))
            return decided

        self.changes.make_for_client(decide_encoded, _in_time(done, self._membership.later))

    def decoded_rules(self) -> Rules:
        """All rules, with the secrets of users as they are used."""
        return self._configs.encoder.decoded_rules(self.state.rules)


def _not_made(logs: LogManager, topics: Collection[str]) -> Entry:
    """Folders that may be left are removed by the next start, as those of deleted topics are: else it finds topics in them."""
    return TopicsWithdrawn(frozenset(topics)) if are_gone(logs, topics) else TopicsDeleted(tuple(topics))


def _outcome_of(topic: StoredTopic, outcome: Failures | ClusterError) -> StoredTopic | ClusterError:
    return outcome if isinstance(outcome, ClusterError) else outcome.get(topic.name, topic)


def _in_time(done: Callable[[ClusterError | None], None], later: Later) -> InTime[Outcome]:
    return InTime[Outcome](lambda outcome: done(_error_of(outcome)), TIMED_OUT, later)


def _error_of(outcome: Failures | ClusterError) -> ClusterError | None:
    return outcome if isinstance(outcome, ClusterError) else None


def _edited(change: Overrides | Edit, present: Overrides) -> Overrides:
    """A mapping replaces the present overrides."""
    return change(present) if callable(change) else change
