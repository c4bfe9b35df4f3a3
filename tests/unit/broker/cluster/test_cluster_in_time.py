"""Callers of changes whose outcome the journal does not know for a while."""

from types import SimpleNamespace

import pytest

from horolog.broker.cluster.changes import TIMED_OUT, TOO_MANY
from horolog.broker.cluster.cluster_state import RulesChanged
from horolog.broker.cluster.new_topics import NewPartitions, NewTopic
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.stored_rules import StoredRule
from horolog.protocol.errors import ErrorCode
from tests.unit.broker.cluster.cluster_stand_ins import Machine, SlowJournal

BOB = StoredRule("user", "bob", {})


@pytest.fixture
def machine():
    return Machine(num_partitions="3")


class Timers:
    """Time passes when a test says so."""

    def __init__(self):
        self.due = []

    def later(self, _seconds, callback):
        self.due.append(callback)
        return SimpleNamespace(cancel=lambda: self.due.remove(callback))

    def pass_by(self):
        due, self.due = list(self.due), []
        for callback in due:
            self.due.append(callback)
            callback()


class TestAnOutcomeThatIsNotKnownYet:
    """The journal takes longer than a caller waits: the caller gets one error, and the change is made all the same."""

    @pytest.fixture
    def journal(self):
        return SlowJournal()

    @pytest.fixture
    def timers(self):
        return Timers()

    @pytest.fixture
    def cluster(self, machine, journal, timers):
        cluster = machine.start(journal)
        cluster._membership.later, cluster._membership.is_shared = timers.later, False
        return cluster

    def begun(self, method, *arguments):
        told = []
        method(*arguments, told.append)
        return told

    def test_a_topic_is_there_later(self, cluster, journal, timers):
        told = self.begun(cluster.create_topics, [NewTopic("t"), NewTopic("u")])
        timers.pass_by()
        ((one, other),) = told
        assert one.code == other.code == ErrorCode.REQUEST_TIMED_OUT
        journal.answer()
        assert (len(told), set(cluster.topics), timers.due) == (1, {"t", "u"}, [])

    def test_of_changes_that_clients_ask_for_only_so_many_wait(self, cluster, journal, monkeypatch):
        self.begun(cluster.create_topics, [NewTopic("t", 1)])
        journal.answer()
        monkeypatch.setattr("horolog.broker.cluster.change_driver.MOST_WAITING", 1)
        waiting = [self.begun(cluster.create_topics, [NewTopic(name)]) for name in ("u", "v")]
        told = [
            *self.begun(cluster.create_topics, [NewTopic("w"), NewTopic("x")])[0],
            self.begun(cluster.add_partitions, [NewPartitions("t", 2)])[0]["t"],
            self.begun(cluster.delete_topics, {"t": cluster.topics["t"].id})[0]["t"],
            *self.begun(cluster.alter_topic_configs, {"t": {"retention.ms": "5"}}),
            *self.begun(cluster.alter_broker_configs, "", {"log.retention.ms": "7"}),
            *self.begun(cluster.change_rules, lambda _: RulesChanged((BOB,))),
        ]
        assert (told, waiting) == ([TOO_MANY] * 7, [[], []])
        journal.answer()
        journal.answer()
        assert set(cluster.topics) == {"t", "u", "v"}

    def test_what_the_broker_itself_changes_is_not_refused(self, cluster, journal, monkeypatch):
        monkeypatch.setattr("horolog.broker.cluster.change_driver.MOST_WAITING", 0)
        ids = []
        cluster.producer_ids.when_there(lambda: ids.append(cluster.producer_ids.take()))
        journal.answer()
        assert ids == [0]

    def test_so_are_changes_of_every_kind(self, cluster, journal, timers):
        self.begun(cluster.create_topics, [NewTopic("t", 1)])
        journal.answer()
        told = [
            self.begun(cluster.add_partitions, [NewPartitions("t", 2)]),
            self.begun(cluster.alter_topic_configs, {"t": {"retention.ms": "5"}}),
            self.begun(cluster.alter_broker_configs, "", {"log.retention.ms": "7"}),
            self.begun(cluster.change_rules, lambda _: RulesChanged((BOB,))),
        ]
        timers.pass_by()
        assert [one if isinstance(one, ClusterError) else one["t"] for (one,) in told] == [TIMED_OUT] * 4
        for _ in told:
            journal.answer()
        topic = cluster.topics["t"]
        assert (topic.partition_count, topic.config.retention_ms, set(cluster.rules("user"))) == (2, 5, {"bob"})
        told.append(self.begun(cluster.delete_topics, {"t": topic.id}))
        timers.pass_by()
        assert told[-1] == [{"t": TIMED_OUT}]
        journal.answer()
        assert (cluster.topics, [len(one) for one in told]) == ({}, [1] * 5)

    def test_a_caller_that_is_answered_has_no_timer(self, cluster, journal, timers):
        told = self.begun(cluster.create_topics, [NewTopic("t")])
        journal.answer()
        timers.pass_by()
        assert [one.name for one in told[0]] == ["t"]
        assert (len(told), timers.due) == (1, [])

    def test_callers_that_retry_add_no_further_creation(self, cluster, journal, timers):
        """A coordinator asks for its topic with each request that comes before it is there."""
        made = cluster.changes._changes
        for _ in range(5):
            with pytest.raises(ClusterError, match="the topic t is still being created"):
                cluster.create_topic("t")
        assert repr(made) == "<Changes: 0 made, 0 waiting, appending>"
        timers.pass_by()
        with pytest.raises(ClusterError, match="the topic t is still being created"):
            cluster.create_topic("t")
        assert repr(made) == "<Changes: 0 made, 1 waiting, appending>", "the first one is late"
        journal.answer()
        assert (set(cluster.topics), cluster.changes._changes.is_at_rest) == ({"t"}, True)
