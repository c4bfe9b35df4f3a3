"""UnregisterBroker, version 0: another broker over a store ends to be a member, and its partitions move.

- A broker that has stopped or failed is a member no longer: the request succeeds, and changes nothing. For one that was stopped it does
  so until no leader needs the records that only the WAL of that broker has. From then on its number is as unknown as any other:
  BROKER_ID_NOT_REGISTERED, as in Kafka.
- A member that answers gets INVALID_REQUEST, and stays: stop it, and it gives its partitions away itself.
- One that does not answer within two seconds is fenced. If it goes on later, it registers again.
- Without a store the brokers of a cluster are one process and its workers, which stay.
Not done: unregistering a broker that runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from horolog.broker.base.answers import run
from horolog.broker.handlers import Handler
from horolog.broker.on_record.cluster_errors import ClusterError, not_registered, still_running
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

if TYPE_CHECKING:
    from horolog.broker.bucket.members_watch import MembersWatch
    from horolog.broker.handlers.context import BrokerView, RequestContext


def handle(
    broker: BrokerView,
    request: UnregisterBrokerRequest,
    context: RequestContext,  # noqa: ARG001
) -> UnregisterBrokerResponse:
    """Answers where all brokers are one process and its workers."""
    node = request.broker_id
    return _response(still_running(node) if node in broker.placement.members.nodes else not_registered(node))


def handler_of(watch: MembersWatch) -> Handler:
    """Answers for a broker over a store."""

    def handle_over_store(_: BrokerView, request: UnregisterBrokerRequest, context: RequestContext) -> None:
        async def answer() -> None:
            context.reply(_response(await watch.unregister(request.broker_id)))

        run(answer())

    return Handler(0, 0, handle_over_store)


def _response(error: ClusterError | None) -> UnregisterBrokerResponse:
    if error is None:
        return UnregisterBrokerResponse(error_code=ErrorCode.NONE)
    return UnregisterBrokerResponse(error_code=error.code, error_message=error.message)
