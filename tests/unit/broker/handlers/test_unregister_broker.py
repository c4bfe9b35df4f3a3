"""UnregisterBroker: over a store the watch over the members answers; a cluster of one process has no broker that is away."""

import pytest

from horolog.broker.handlers.unregister_broker import handler_of
from horolog.broker.on_record.cluster_errors import still_running
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from tests.support.request_contexts import request_context
from tests.unit.broker.handlers.stand_ins import StandIn


@pytest.mark.parametrize(
    ("error", "response"),
    [
        (None, UnregisterBrokerResponse(error_code=ErrorCode.NONE)),
        (
            still_running(2),
            UnregisterBrokerResponse(
                error_code=ErrorCode.INVALID_REQUEST,
                error_message="broker 2 is running: stop it, and it leaves the cluster",
            ),
        ),
    ],
)
def test_over_a_store_the_watch_answers(error, response):
    class Watch:
        async def unregister(self, node):
            asked.append(node)
            return error

    asked, answers, context = [], [], request_context()
    context.amend(lambda answer: answers.append(answer) or b"")
    handler = handler_of(Watch())
    assert handler.function(None, UnregisterBrokerRequest(broker_id=2), context) is None
    assert (asked, answers) == ([2], [response])


@pytest.mark.parametrize(
    ("node", "code", "message"),
    [
        (0, ErrorCode.INVALID_REQUEST, "broker {} is running: stop it, and it leaves the cluster"),
        (1, ErrorCode.BROKER_ID_NOT_REGISTERED, "Broker ID {} is not currently registered"),
    ],
)
def test_without_a_store_no_broker_is_away(node, code, message):
    broker = StandIn()
    number = broker.placement.me + node
    answer = broker.ask(ApiKey.UNREGISTER_BROKER, 0, broker_id=number)
    assert (answer.error_code, answer.error_message) == (code, message.format(number))
