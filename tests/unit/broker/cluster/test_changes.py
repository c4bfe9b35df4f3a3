"""The machine that makes one change after the other: what it asks for, step by step, without a disk or another broker."""

import pytest

from horolog.broker.cluster.changes import NO_FAILURES, NOT_WRITTEN, NOTHING, Changes, ClusterChange, Ready
from horolog.broker.cluster.cluster_state import Delete, Make, TopicsCreated, TopicsDeleted
from horolog.broker.cluster.journal import AppendOutcome
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.cluster_file import StoredTopic
from horolog.protocol.errors import ErrorCode

T = StoredTopic("t", b"t" * 16, 1, {})
U = StoredTopic("u", b"u" * 16, 1, {})
MADE, REMOVED = TopicsCreated((T,)), TopicsDeleted(("t",))
REFUSED = ClusterError(ErrorCode.TOPIC_ALREADY_EXISTS, "there is one")


def nobody(_outcome):
    raise AssertionError("the machine calls nobody")


def change(decide, **fields):
    return ClusterChange(decide, nobody, **fields)


CREATE = change(lambda state: REFUSED if "t" in state.topics else MADE)


@pytest.fixture
def changes():
    return Changes(1, is_shared=True)


def asked_for(ready):
    """The fields that are set."""
    return [name for name, value in zip(ready._fields, ready, strict=True) if value is not None and value is not False]


def test_a_change_is_written_carried_out_and_announced(changes):
    ready = changes.ask(CREATE)
    assert asked_for(ready) == ["append"]
    assert (ready.append[0], ready.append[1].number, changes.state.number) == (MADE, 1, 0)
    assert changes.appended(AppendOutcome.WRITTEN) == Ready(steps=[Make(T, (0,))])
    assert changes.state.number == 1
    failures = {"t": REFUSED}
    assert changes.carried_out(failures) == Ready(announce=(CREATE, failures))
    assert (changes.go_on(), changes.is_at_rest) == (NOTHING, True)


def test_the_next_change_begins_when_the_one_before_is_over(changes):
    changes.ask(CREATE)
    second = change(lambda state: REMOVED if "t" in state.topics else None)
    assert changes.ask(second) == NOTHING
    assert repr(changes) == "<Changes: 0 made, 1 waiting, appending>"
    changes.appended(AppendOutcome.WRITTEN)
    assert changes.go_on() == NOTHING
    changes.carried_out(NO_FAILURES)
    assert changes.go_on().append[0] == REMOVED


def test_a_refusal_is_given_once_the_journal_has_nothing_new(changes):
    refusing = change(lambda _: REFUSED)
    assert changes.ask(refusing) == Ready(follow=True)
    assert changes.followed(()) == Ready(answer=(refusing, REFUSED))


def test_what_asks_for_nothing_is_answered_without_failures(changes):
    idle = change(lambda _: None)
    assert changes.ask(idle) == Ready(follow=True)
    assert changes.followed(()) == Ready(answer=(idle, NO_FAILURES))


def test_a_decision_is_made_again_on_what_others_have_left(changes):
    changes.ask(CREATE)
    assert changes.appended(AppendOutcome.TAKEN) == Ready(follow=True)
    assert changes.followed([TopicsCreated((U,)), MADE]) == Ready(steps=[Make(U, (0,))])
    assert set(changes.state.topics) == {"u"}, "each entry is carried out on its own state"
    assert changes.carried_out(NO_FAILURES) == Ready(steps=[Make(T, (0,))])
    assert changes.carried_out(NO_FAILURES) == Ready(follow=True)
    assert changes.followed(()) == Ready(answer=(CREATE, REFUSED))


def test_a_change_whose_number_is_taken_is_not_over_before_it_is_decided_again(changes):
    """Also if what took it cannot be read yet."""
    changes.ask(CREATE)
    changes.appended(AppendOutcome.TAKEN)
    assert changes.followed(()).append[0] == MADE


def test_a_refusal_that_others_have_made_void_is_decided_again(changes):
    deleting = change(lambda state: REMOVED if "t" in state.topics else REFUSED)
    changes.ask(deleting)
    changes.followed([MADE])
    assert changes.carried_out(NO_FAILURES).append[0] == REMOVED


def test_news_are_read_at_once_or_when_there_is_time(changes):
    assert changes.hear() == Ready(follow=True)
    assert changes.hear() == NOTHING, "while they are read"
    assert changes.followed([MADE]) == Ready(steps=[Make(T, (0,))])
    assert changes.carried_out(NO_FAILURES) == Ready(follow=True), "what was heard meanwhile may be newer"
    assert changes.followed(()) == NOTHING
    changes.ask(change(lambda _: REMOVED))
    assert changes.hear() == NOTHING
    assert changes.appended(AppendOutcome.WRITTEN) == Ready(steps=[Delete("t", T.id)])
    changes.carried_out(NO_FAILURES)
    assert changes.go_on() == Ready(follow=True)


@pytest.mark.parametrize("is_so", [False, True])
@pytest.mark.parametrize("is_shared", [False, True])
def test_what_cannot_be_written_holds_only_if_it_was_so_and_nobody_else_writes(is_so, is_shared):
    changes = Changes(1, is_shared=is_shared)
    asked = CREATE._replace(is_so=is_so)
    changes.ask(asked)
    ready = changes.appended(AppendOutcome.FAILED)
    if is_so and not is_shared:
        assert ready == Ready(steps=[Make(T, (0,))])
        assert changes.carried_out(NO_FAILURES).announce == (asked._replace(waits=False), NO_FAILURES)
    else:
        assert ready == Ready(answer=(asked, NOT_WRITTEN))
        assert changes.state.number == 0


def test_answers_come_in_the_order_of_the_questions(changes):
    changes.ask(CREATE)
    with pytest.raises(AssertionError):
        changes.followed(())
    with pytest.raises(AssertionError):
        changes.carried_out(NO_FAILURES)
