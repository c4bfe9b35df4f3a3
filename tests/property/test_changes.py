"""The machine of changes against a plain model, with a journal whose answers come late, or after entries of others."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from horolog.broker.cluster.changes import NO_FAILURES, NOT_WRITTEN, NOTHING, Changes, ClusterChange
from horolog.broker.cluster.cluster_state import ClusterState, TopicsCreated, TopicsDeleted, transitions
from horolog.broker.cluster.journal import AppendOutcome
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.cluster_file import StoredTopic
from horolog.protocol.errors import ErrorCode

NAMES = st.sampled_from("abc")
ME = 1
EXISTS = ClusterError(ErrorCode.TOPIC_ALREADY_EXISTS, "there is one")
MISSING = ClusterError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is none")


def made(name, number):
    return TopicsCreated((StoredTopic(name, number.to_bytes(16), 1, {}),))


class ChangesMachine(RuleBasedStateMachine):
    """`entries` is the journal. The machine has at most one question out, which is answered when a rule says so, or never."""

    def __init__(self):
        super().__init__()
        self.changes = Changes(ME, is_shared=True)
        self.entries = []
        self.asked = 0
        self.append = None
        """What the machine waits for: an entry with its number, whose outcome the journal may know already."""
        self.is_decided = None
        self.wants_to_follow = False
        self.open = {}
        """By number of the change, what its caller waits for."""
        self.applied = ClusterState(nodes=(ME,))
        """The state that the steps so far lead to."""
        self.served = set()

    # -- the driver

    def act(self, ready):
        while ready != NOTHING:
            assert (self.append, self.wants_to_follow) == (None, False), "one question at a time"
            if ready.append is not None:
                entry, becomes = ready.append
                assert becomes.number == self.changes.state.number + 1
                self.append, self.is_decided = (entry, becomes.number), None
                return
            if ready.follow:
                self.wants_to_follow = True
                return
            if ready.steps is not None:
                self.carry_out(ready.steps)
                ready = self.changes.carried_out(NO_FAILURES)
                continue
            change, outcome = ready.answer or ready.announce
            change.done(outcome)
            ready = self.changes.go_on()

    def carry_out(self, steps):
        after = self.applied.apply(self.entries[self.applied.number])
        assert steps == transitions(self.applied, after, ME), "every entry is carried out, in its order"
        self.applied = after

    # -- callers

    def ask(self, decide, kind, name):
        self.asked += 1
        number = self.asked
        self.open[number] = kind, name

        def done(outcome):
            self.check(number, outcome)
            del self.open[number]

        self.act(self.changes.ask(ClusterChange(decide, done)))

    def check(self, number, outcome):
        """A refusal holds on the journal as it was read last; a change that was made is in it."""
        kind, name = self.open[number]
        if outcome == NO_FAILURES:
            assert self.changes.state.topics.get(name) is not None if kind == "create" else True
            assert any(self.is_of(entry, number) for entry in self.entries[: self.changes.state.number])
        elif outcome != NOT_WRITTEN:
            assert outcome is (EXISTS if kind == "create" else MISSING)
            assert (name in self.changes.state.topics) is (kind == "create")
            assert kind == "delete" or not any(self.is_of(entry, number) for entry in self.entries)

    def is_of(self, entry, number):
        kind, name = self.open[number]
        return entry == (made(name, number) if kind == "create" else TopicsDeleted((name,)))

    @rule(name=NAMES)
    def create(self, name):
        number = self.asked + 1
        self.ask(lambda state: EXISTS if name in state.topics else made(name, number), "create", name)

    @rule(name=NAMES)
    def delete(self, name):
        self.ask(lambda state: TopicsDeleted((name,)) if name in state.topics else MISSING, "delete", name)

    # -- others, and the journal

    @rule(name=NAMES, is_heard=st.booleans())
    def another_broker_changes(self, name, is_heard):
        self.entries.append(made(name, 1000 + len(self.entries)))
        if is_heard:
            self.act(self.changes.hear())

    @precondition(lambda self: self.append is not None and self.is_decided is None)
    @rule()
    def the_journal_decides(self):
        """Nobody knows it yet: a store has made the entry, or another's was first, and the answer is still on its way."""
        entry, number = self.append
        self.is_decided = AppendOutcome.TAKEN if len(self.entries) >= number else AppendOutcome.WRITTEN
        if self.is_decided is AppendOutcome.WRITTEN:
            self.entries.append(entry)

    @precondition(lambda self: self.append is not None and self.is_decided is not None)
    @rule()
    def the_outcome_is_known(self):
        outcome, self.append = self.is_decided, None
        self.act(self.changes.appended(outcome))

    @precondition(lambda self: self.append is not None and self.is_decided is None)
    @rule()
    def the_disk_takes_nothing(self):
        self.append = None
        self.act(self.changes.appended(AppendOutcome.FAILED))

    @precondition(lambda self: self.wants_to_follow)
    @rule(most=st.integers(0, 3))
    def the_journal_is_read(self, most):
        """As far as it can be read: maybe nothing, though the number was taken."""
        self.wants_to_follow = False
        after = self.changes.state.number
        self.act(self.changes.followed(self.entries[after : after + most]))

    @invariant()
    def the_state_is_that_of_the_journal(self):
        assert self.changes.state == self.applied
        assert self.applied.number <= len(self.entries)

    def teardown(self):
        """Once every question is answered, every caller is, and everything is applied."""
        for _ in range(20 * (self.asked + len(self.entries) + 1)):
            if self.append is not None:
                if self.is_decided is None:
                    self.the_journal_decides()
                self.the_outcome_is_known()
            elif self.wants_to_follow:
                self.the_journal_is_read(100)
            elif self.applied.number < len(self.entries):
                self.act(self.changes.hear())
            else:
                break
        assert (self.open, self.applied.number) == ({}, len(self.entries))
        assert self.changes.is_at_rest


TestChanges = ChangesMachine.TestCase
