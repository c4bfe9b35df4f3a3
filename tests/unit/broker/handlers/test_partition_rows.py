"""Kept rows: an answer is the same as rows that are made anew, whatever changes; pauses; and the bound of kept rows."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from horolog.broker.base.answers import run
from horolog.broker.cluster.cluster_state import Lead, LeadsChanged
from horolog.broker.cluster.membership import Members
from horolog.broker.cluster.new_topics import NewPartitions, NewTopic
from horolog.broker.cluster.placement import Placement
from horolog.broker.handlers import metadata, partition_rows, topic_partitions
from horolog.broker.handlers.lookup import leadership
from horolog.broker.handlers.partition_rows import LARGE, RUN, PartitionRows, RowForm, begun
from horolog.broker.log.partition import closing
from horolog.protocol.apis import ApiKey
from tests.support.at_once import at_once
from tests.support.bucket_crew import BucketCrew
from tests.support.crew import Crew
from tests.unit.broker.handlers.stand_ins import ended, with_large_topic

FORMS = (RowForm(ApiKey.METADATA, 1, metadata._row), RowForm(ApiKey.METADATA, 12, metadata._row))
FORM = FORMS[1]
PAGES = RowForm(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, topic_partitions._row)


def anew(placement, topic, form, indexes):
    """Rows that nothing was kept for."""
    return form.encode([form.row(index, leadership(placement, topic, index)) for index in indexes])


def pauses(steps):
    """How often steps pause."""
    return sum(1 for _ in steps)


class Broker:
    """One broker of several, as far as rows need it."""

    def __init__(self, cluster, changes, members):
        self.cluster = cluster
        self.placement = Placement(cluster, None, members)
        self.rows = PartitionRows(cluster, self.placement, changes)

    def verify(self, name="t"):
        topic = self.cluster.topics.get(name)
        if topic is None:
            return
        count = topic.partition_count
        for form, indexes in ((FORMS[0], range(count)), (FORM, range(count)), (PAGES, range(count // 3, count))):
            found = ended(self.rows.of(topic, form, indexes))
            assert b"".join(found.parts) == anew(self.placement, topic, form, indexes)
            assert len(found) == len(indexes)
            codes = [code for index in indexes if (code := leadership(self.placement, topic, index).code)]
            assert [one.error_code for one in found] == codes


def workers(count=8):
    crew = Crew((1, 2, 3)).start()
    at_once(crew.clusters[1].create_topics, [NewTopic("t", count)])
    live = frozenset(crew.nodes)
    return crew, {
        node: Broker(cluster, crew.logs[node].resources.changes, Members(node, crew.nodes, live))
        for node, cluster in crew.clusters.items()
    }


def selector_of(nodes):
    class Selector:
        def readers(self, topic, index):
            return () if topic.config.compact else nodes

    return Selector()


class Actions:
    """What may happen to a topic of workers; each takes a random number."""

    def __init__(self):
        self.crew, self.brokers = workers()

    def led(self, chance):
        node = chance.choice(self.crew.nodes)
        topic = self.crew.clusters[node].topics["t"]
        return node, topic, chance.choice(topic.led_here) if topic.led_here else None

    def moved(self, chance):
        node, topic, one = self.led(chance)
        if one is not None and one.condition.fault is None:
            to = Lead(chance.choice(self.crew.nodes), one.leader_epoch + 1)
            closing.close(self.crew.clusters[node].withdraw("t", one.index))
            at_once(self.crew.clusters[1].changes.make, lambda _: LeadsChanged((((topic.id, one.index), to),)))

    def withdrawn(self, chance):
        node, topic, one = self.led(chance)
        if one is not None and one.condition.fault is None:
            closing.close(self.crew.clusters[node].withdraw("t", one.index))
            self.brokers[node].verify()
            self.crew.clusters[node].lead_again(topic.id, one.index, was_clean=True)

    def failed(self, chance):
        _, _, one = self.led(chance)
        if one is not None:
            one.condition.go_offline("the disk is gone")

    def reported(self, chance):
        node, _, one = self.led(chance)
        if one is not None:
            one.leader_epoch += 1
            self.crew.logs[node].resources.changes.note()
            self.crew.clusters[node].reopened(one)

    def live(self, chance):
        node = chance.choice(self.crew.nodes)
        self.brokers[node].placement.live_are(frozenset(chance.sample(self.crew.nodes, chance.randrange(4))))

    def selected(self, chance):
        node = chance.choice(self.crew.nodes)
        self.brokers[node].placement.selector = chance.choice([None, selector_of([1, 3]), selector_of([2])])

    def grown(self, chance):
        count = self.crew.clusters[1].topics["t"].partition_count
        if count < 20:
            at_once(self.crew.clusters[1].add_partitions, [NewPartitions("t", count + 1)])

    def configured(self, chance):
        policy = chance.choice(["compact", "delete"])
        at_once(self.crew.clusters[2].alter_topic_configs, {"t": {"cleanup.policy": policy}})

    def other(self, chance):
        at_once(self.crew.clusters[1].create_topics, [NewTopic(f"other-{chance.random()}", 1)])


ACTIONS = ("moved", "withdrawn", "failed", "reported", "live", "selected", "grown", "configured", "other")


@settings(max_examples=40)
@given(st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=14), st.integers(0, 1 << 30))
def test_no_change_among_workers_leaves_an_old_row(actions, seed):
    chance, crew = random.Random(seed), Actions()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_rows, "RUN", 3)
        for broker in crew.brokers.values():
            broker.verify()
        for action in actions:
            getattr(crew, action)(chance)
            for broker in crew.brokers.values():
                broker.verify()


@settings(max_examples=8)
@given(st.integers(0, 1 << 30))
def test_no_change_over_a_store_leaves_an_old_row(seed):
    """Leaders die and come back, give partitions away, open others: each broker is asked at every moment of it."""
    chance, crew, seen = random.Random(seed), BucketCrew(1, 2, 3), {}
    crew[1].create_topics([NewTopic("t", 11)], lambda _: None)

    def verify_all():
        for node, one in crew.brokers.items():
            if one.is_dead:
                continue
            if node not in seen or seen[node].cluster is not one.cluster:
                members = one.membership.members
                seen[node] = Broker(one.cluster, one.logs.resources.changes, members)
            if one.live:
                seen[node].placement.live_are(one.live[-1])
            seen[node].verify()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_rows, "RUN", 3)
        for _ in range(6):
            happen(crew, chance)
            for _ in range(chance.randrange(1, 80)):
                crew.run_for(0.05)
                verify_all()
            for dead in [node for node, one in crew.brokers.items() if one.is_dead]:
                crew.start(dead)


def happen(crew, chance):
    """Something to one of three brokers over a store."""
    one = chance.choice(list(crew.brokers.values()))
    topic = one.cluster.topics.get("t")
    match chance.choice(("kill", "give", "leave", "grow", "wait")):
        case "kill":
            one.kill()
        case "leave":
            one.watch.end()
            run(one.handing.leave())
            one.later(1, one.kill)
        case "give" if topic is not None:
            led = topic.led_here[: chance.randrange(1, 4)]
            run(
                one.handing.give(
                    {
                        (topic.id, each.index): Lead(chance.choice(list(crew.brokers)), each.leader_epoch + 1)
                        for each in led
                    }
                )
            )
        case "grow" if topic is not None:
            one.cluster.add_partitions([NewPartitions("t", topic.partition_count + 2)], lambda _: None)


def test_a_broker_that_takes_no_part_in_a_move_says_the_new_leader():
    crew = BucketCrew(1, 2, 3)
    crew[1].create_topics([NewTopic("t", 9)], lambda _: None)
    crew.run_for(1)
    given = crew[1].topics["t"].led_here[0]
    other = Broker(crew[3], crew.brokers[3].logs.resources.changes, Members(3, (1, 2, 3), frozenset({1, 2, 3})))
    number = crew.brokers[3].logs.resources.changes.number
    other.verify()
    run(crew.brokers[1].handing.give({(given.topic_id, given.index): Lead(2, 1)}))
    crew.run_for(1)
    assert leadership(other.placement, crew[3].topics["t"], given.index).leader == 2
    assert crew.brokers[3].logs.resources.changes.number == number, "no partition of broker 3 has changed"
    other.verify()


def test_a_leader_that_moves_costs_the_run_that_has_it():
    crew = BucketCrew(1, 2, 3)
    crew[1].create_topics([NewTopic("t", 3 * RUN)], lambda _: None)
    crew.run_for(1)
    topic = crew[3].topics["t"]
    other = Broker(crew[3], crew.brokers[3].logs.resources.changes, Members(3, (1, 2, 3), frozenset({1, 2, 3})))
    ended(other.rows.of(topic, FORM, range(3 * RUN)))
    index = next(one.index for one in crew[1].topics["t"].led_here if one.index >= 2 * RUN)
    run(crew.brokers[1].handing.give({(topic.id, index): Lead(2, 1)}))
    crew.run_for(1)
    assert leadership(other.placement, topic, index).leader == 2
    assert pauses(other.rows.of(topic, FORM, range(3 * RUN))) == 1
    assert pauses(other.rows.of(topic, FORM, range(3 * RUN))) == 0
    other.verify()


def test_a_topic_that_becomes_compacted_is_read_from_its_leader():
    crew, brokers = workers()
    brokers[1].placement.selector = selector_of([2, 3])
    brokers[1].verify()
    at_once(crew.clusters[1].alter_topic_configs, {"t": {"cleanup.policy": "compact"}})
    brokers[1].verify()


@pytest.fixture
def large():
    return with_large_topic()


def test_rows_are_made_in_turns_and_then_at_once(large):
    topic = large.cluster.topics["t"]
    assert pauses(large.partition_rows.of(topic, FORM, range(topic.partition_count))) == 3
    assert pauses(large.partition_rows.of(topic, FORM, range(topic.partition_count))) == 0
    assert pauses(large.partition_rows.of(topic, PAGES, range(topic.partition_count))) == 3


def test_a_change_costs_the_run_that_has_it(large):
    topic = large.cluster.topics["t"]
    ended(large.partition_rows.of(topic, FORM, range(topic.partition_count)))
    large.logs.resources.changes.note()
    assert pauses(large.partition_rows.of(topic, FORM, range(topic.partition_count))) == 0, "it was of another topic"
    topic.find(RUN).lead(7)
    large.logs.resources.changes.note()
    assert pauses(large.partition_rows.of(topic, FORM, range(topic.partition_count))) == 1


def test_a_change_between_two_turns_is_in_the_rows_that_follow(large):
    topic = large.cluster.topics["t"]
    steps = large.partition_rows.of(topic, FORM, range(topic.partition_count))
    next(steps)
    for index in (0, topic.partition_count - 1):
        topic.find(index).lead(7)
    large.logs.resources.changes.note()
    first = ended(steps)
    assert b"".join(first.parts) != anew(large.placement, topic, FORM, range(topic.partition_count))
    second = ended(large.partition_rows.of(topic, FORM, range(topic.partition_count)))
    assert b"".join(second.parts) == anew(large.placement, topic, FORM, range(topic.partition_count))
    assert first.parts[1:] == second.parts[1:]


def test_a_topic_that_grows_between_two_turns_is_answered_as_it_was_asked_for(large):
    topic = large.cluster.topics["t"]
    asked = range(topic.partition_count)
    steps = large.partition_rows.of(topic, FORM, asked)
    next(steps)
    at_once(large.cluster.add_partitions, [NewPartitions("t", len(asked) + 60)])
    assert len(ended(steps)) == len(asked)
    assert len(ended(large.partition_rows.of(topic, FORM, range(topic.partition_count)))) == len(asked) + 60


def test_the_least_recently_asked_for_goes(large):
    rows = PartitionRows(large.cluster, large.placement, large.logs.resources.changes, most_rows=2 * (LARGE + 50))
    topic = large.cluster.topics["t"]
    forms = [RowForm(ApiKey.METADATA, version, metadata._row) for version in range(3)]
    for form in (forms[0], forms[1], forms[0], forms[2]):
        ended(rows.of(topic, form, range(topic.partition_count)))
    assert rows.kept_count == 2 * (LARGE + 50)
    assert repr(rows) == "<PartitionRows of 2 topics and forms, 500 rows>"
    assert [pauses(rows.of(topic, forms[n], range(topic.partition_count))) for n in (0, 2, 1)] == [0, 0, 3]


@pytest.mark.parametrize("most_rows", [0, LARGE])
def test_one_topic_is_kept_however_large(large, most_rows):
    rows = PartitionRows(large.cluster, large.placement, large.logs.resources.changes, most_rows)
    topic = large.cluster.topics["t"]
    assert [pauses(rows.of(topic, FORM, range(topic.partition_count))) for _ in range(2)] == [3, 0]


def test_steps_without_a_pause_are_their_answer():
    def steps(count):
        for _ in range(count):
            yield
        return count

    assert begun(steps(0)) == 0
    assert ended(begun(steps(3))) == 3
    assert pauses(begun(steps(3))) == 3
