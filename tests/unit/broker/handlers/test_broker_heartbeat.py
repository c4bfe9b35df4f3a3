"""BrokerHeartbeat between brokers over a store."""

from types import SimpleNamespace

from horolog.broker.bucket.members_watch import Pong
from horolog.broker.bucket.names import Wal
from horolog.broker.handlers.broker_heartbeat import handler_of
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from tests.support.request_contexts import request_context

ME = Wal(2, 7)


class Watch:
    """Answers when the test wants it to."""

    me = ME
    lease = SimpleNamespace(seconds=2.0)

    def __init__(self, number):
        self.state = SimpleNamespace(number=number)
        self.asked = []

    def pinged(self, number, done):
        self.asked.append((number, done))


def asked(watch, *, incarnation=7, number=5):
    context, answers = request_context(), []
    context.amend(lambda response: answers.append(response) or b"")
    request = BrokerHeartbeatRequest(broker_id=2, broker_epoch=incarnation, current_metadata_offset=number)
    return answers, handler_of(watch).function(None, request, context)


def test_it_answers_once_the_journal_is_read_so_far():
    watch = Watch(4)
    answers, answer = asked(watch)
    assert answer is None
    ((number, done),) = watch.asked
    assert number == 5
    watch.state.number = 5
    done(Pong(ME, 0.0))
    assert answers[-1] == BrokerHeartbeatResponse(error_code=0, is_caught_up=True, is_fenced=False)


def test_it_says_that_it_is_behind_and_that_its_store_does_not_answer():
    watch = Watch(4)
    answers, _ = asked(watch)
    watch.asked[0][1](Pong(ME, 2.0))
    assert answers[-1] == BrokerHeartbeatResponse(error_code=0, is_caught_up=False, is_fenced=True)


def test_another_incarnation_does_not_run_here():
    watch = Watch(4)
    _, answer = asked(watch, incarnation=6)
    assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
    assert watch.asked == []
