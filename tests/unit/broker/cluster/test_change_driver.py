"""The way to change a cluster: one decision after the other, made again where another broker was first."""

import asyncio

import pytest

from horolog.broker.cluster.change_driver import ChangeDriver
from horolog.broker.cluster.cluster_state import (
    BrokerConfigsChanged,
    ClusterState,
    Delete,
    Make,
    ProducerIdsReserved,
    TopicsCreated,
    TopicsDeleted,
)
from horolog.broker.cluster.journal import AppendOutcome
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.cluster_file import StoredTopic
from horolog.protocol.errors import ErrorCode

T = StoredTopic("t", b"t" * 16, 1, {})
U = StoredTopic("u", b"u" * 16, 1, {})
REFUSED = ClusterError(ErrorCode.TOPIC_ALREADY_EXISTS, "there is one")


class SharedJournal:
    """A journal that others write, too; `answer` gives the outcome of an append."""

    def __init__(self):
        self.entries = []
        self.asked = []
        self.kept = []
        self.checked = []
        self.fails = False

    def append(self, entry, becomes, done):
        self.asked.append((entry, becomes.number, done))

    def follow(self, after, done):
        done(self.entries[after:])

    def begin(self, state, *, is_news):
        if is_news:
            self.kept.append(state)
        return not (is_news and self.fails)

    def check(self, state):
        self.checked.append(state)

    def answer(self):
        entry, number, done = self.asked.pop(0)
        if self.fails:
            done(AppendOutcome.FAILED)
        elif number <= len(self.entries):
            done(AppendOutcome.TAKEN)
        else:
            self.entries.append(entry)
            done(AppendOutcome.WRITTEN)


class Bench:
    def __init__(self):
        self.journal = SharedJournal()
        self.steps = []
        self.failures = {}
        self.changes = ChangeDriver(self.journal, 1, self.carry_out, lambda _, done: done(), is_shared=False)
        self.outcomes = []

    def carry_out(self, steps):
        self.steps += steps
        return self.failures

    def make(self, decide):
        self.changes.make(decide, self.outcomes.append)


@pytest.fixture
def bench():
    return Bench()


def test_nothing_is_so_before_it_is_written(bench):
    bench.make(lambda _: TopicsCreated((T,)))
    assert (bench.changes.state.topics, bench.steps, bench.outcomes) == ({}, [], [])
    bench.journal.answer()
    assert bench.changes.state.topics == {"t": T}
    assert bench.steps == [Make(T, (0,))]
    assert bench.outcomes == [{}]


def test_where_another_was_first_the_decision_is_made_again(bench):
    def decide(state):
        return REFUSED if "t" in state.topics else TopicsCreated((T,))

    bench.make(decide)
    bench.journal.entries = [TopicsCreated((U,)), TopicsCreated((T,))]
    bench.journal.answer()
    assert bench.outcomes == [REFUSED]
    assert bench.changes.state.topics == {"t": T, "u": U}
    assert bench.steps == [Make(U, (0,)), Make(T, (0,))]  # what the others did counts here as well


def test_a_decision_that_still_holds_is_written_behind_the_others(bench):
    bench.make(lambda state: ProducerIdsReserved(state.next_producer_id))
    bench.journal.entries = [ProducerIdsReserved(0)]
    bench.journal.answer()
    bench.journal.answer()
    assert bench.journal.entries == [ProducerIdsReserved(0), ProducerIdsReserved(1000)]
    assert (bench.changes.state.number, bench.changes.state.next_producer_id) == (2, 2000)


def test_changes_wait_for_each_other_and_see_what_came_before(bench):
    seen = []

    def decide(state):
        seen.append(set(state.topics))
        return TopicsDeleted(("t",))

    bench.make(lambda _: TopicsCreated((T,)))
    bench.make(decide)
    bench.changes.note(BrokerConfigsChanged("", {"a": "b"}))
    assert (len(bench.journal.asked), seen) == (1, [])
    for _ in range(3):
        bench.journal.answer()
    assert seen == [{"t"}]
    assert bench.outcomes == [{}, {}]
    assert bench.changes.state.broker_configs == {"": {"a": "b"}}


def test_what_is_refused_or_asks_for_nothing_is_not_written(bench):
    bench.make(lambda _: REFUSED)
    bench.make(lambda _: None)
    assert (bench.outcomes, bench.journal.asked) == ([REFUSED, {}], [])


def test_a_refusal_counts_what_others_have_been_answered(bench):
    """A worker that has just started may not have heard of it."""
    bench.journal.entries = [TopicsCreated((T,)), TopicsCreated((U,))]
    bench.make(lambda state: TopicsDeleted(("t",)) if "t" in state.topics else REFUSED)
    bench.make(lambda state: TopicsDeleted(("u",)) if "u" in state.topics else None)
    bench.journal.answer()
    bench.journal.answer()
    assert bench.outcomes == [{}, {}]
    assert bench.changes.state.topics == {}


def test_what_the_disk_does_not_take_has_not_happened(bench):
    bench.journal.fails = True
    bench.make(lambda _: TopicsCreated((T,)))
    bench.journal.answer()
    (error,) = bench.outcomes
    assert (error.code, bench.changes.state) == (ErrorCode.KAFKA_STORAGE_ERROR, ClusterState(nodes=(1,)))


def test_what_is_so_already_counts_although_it_could_not_be_written(bench, caplog):
    bench.journal.fails = True
    bench.changes.note(TopicsCreated((T,)))
    bench.journal.answer()
    assert bench.changes.state.topics == {"t": T}
    assert "the next start writes it again" in caplog.text


def test_what_could_not_be_done_here_is_told(bench):
    bench.failures = {"t": REFUSED}
    bench.make(lambda _: TopicsCreated((T,)))
    bench.journal.answer()
    assert bench.outcomes == [{"t": REFUSED}]


def test_a_change_that_follows_from_another_is_made_before_anybody_waits(bench):
    bench.changes.make(
        lambda _: TopicsCreated((T,)),
        lambda _: bench.changes.note(TopicsDeleted(("t",))),
    )
    bench.journal.answer()
    bench.journal.answer()
    assert bench.changes.state.topics == {}


@pytest.mark.parametrize("is_news", [False, True])
def test_a_start_goes_on_from_what_it_has_found(bench, is_news, caplog):
    found = ClusterState.of([T])
    bench.journal.fails = True
    bench.changes.begin(found, is_news=is_news)
    assert bench.changes.state is found
    assert bench.journal.kept == [found] * is_news
    assert ("the next start writes it again" in caplog.text) is is_news


class Company:
    """The other brokers: told that the journal goes on, and they say when they have it."""

    def __init__(self):
        self.told = []

    def announce(self, number, done):
        self.told.append((number, done))


class TestInCompany:
    @pytest.fixture
    def company(self):
        return Company()

    @pytest.fixture
    def bench(self, company):
        bench = Bench()
        bench.changes = ChangeDriver(bench.journal, 1, bench.carry_out, company.announce, is_shared=True)
        return bench

    def test_a_caller_is_answered_once_the_others_have_applied_its_change(self, bench, company):
        bench.make(lambda _: TopicsCreated((T,)))
        bench.make(lambda _: TopicsCreated((U,)))
        bench.journal.answer()
        assert (bench.changes.state.topics, bench.outcomes) == ({"t": T}, [])
        bench.journal.answer()  # the next one does not wait
        assert [number for number, _ in company.told] == [1, 2]
        company.told[1][1]()
        company.told[0][1]()
        assert bench.outcomes == [{}, {}]

    def test_what_concerns_nobody_else_is_told_at_once(self, bench, company):
        bench.changes.make(lambda _: ProducerIdsReserved(0), bench.outcomes.append, waits=False)
        bench.journal.answer()
        assert bench.outcomes == [{}]
        assert [number for number, _ in company.told] == [1]
        company.told[0][1]()

    def test_what_others_have_changed_is_followed(self, bench, company):
        bench.journal.entries = [TopicsCreated((U,))]
        bench.changes.catch_up()
        assert bench.steps == [Make(U, (0,))]
        bench.make(lambda _: TopicsCreated((T,)))
        bench.journal.entries.append(TopicsDeleted(("u",)))
        bench.changes.catch_up()  # a change is under way, which finds out by itself
        assert len(bench.steps) == 1
        bench.journal.answer()
        bench.journal.answer()
        assert bench.steps[1:] == [Delete("u", U.id), Make(T, (0,))]
        assert bench.changes.state.topics == {"t": T}

    def test_what_could_not_be_written_is_not_so(self, bench, company):
        """Another one may have the number by now."""
        bench.journal.fails = True
        bench.changes.note(TopicsCreated((T,)))
        bench.journal.answer()
        assert (bench.changes.state.topics, company.told) == ({}, [])


def test_the_record_is_compared_with_what_is_known(bench):
    bench.changes.check_record()
    assert not bench.journal.checked, "a start that failed knows nothing of it"
    bench.changes.begin(ClusterState(), is_news=False)
    bench.changes.check_record()
    assert bench.journal.checked == [bench.changes.state]
    bench.changes.make(lambda _: bench.changes.check_record(), lambda _: None)
    assert len(bench.journal.checked) == 1, "not amid a change"


def test_a_broker_alone_may_look_for_changes(bench):
    bench.journal.entries = [TopicsCreated((U,))]
    bench.changes.catch_up()
    assert bench.steps == [Make(U, (0,))]


async def test_a_stop_waits_for_changes_that_are_under_way(bench):
    await bench.changes.drain()
    bench.make(lambda _: TopicsCreated((T,)))
    bench.make(lambda _: TopicsCreated((U,)))
    drained = asyncio.ensure_future(bench.changes.drain())
    for _ in range(2):
        await asyncio.sleep(0)
        assert not drained.done()
        bench.journal.answer()
    await asyncio.wait_for(drained, 60)
    assert bench.outcomes == [{}, {}]
