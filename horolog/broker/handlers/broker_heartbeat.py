"""BrokerHeartbeat, versions 0 to 2, which brokers over a store send each other: whether this one is the incarnation that is asked after.

The answer comes once the journal is applied here as far as the sender has read it, or after a short while. `is_fenced` says that this
broker has not heard from the store for so long that it answers no clients as a leader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from horolog.broker.handlers import Handler
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

if TYPE_CHECKING:
    from horolog.broker.bucket.members_watch import MembersWatch, Pong
    from horolog.broker.handlers.context import BrokerView, RequestContext


def handler_of(watch: MembersWatch) -> Handler:
    """Answers for this broker."""

    def handle(
        _: BrokerView, request: BrokerHeartbeatRequest, context: RequestContext
    ) -> BrokerHeartbeatResponse | None:
        if (request.broker_id, request.broker_epoch) != watch.me:
            return BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)

        def answer(pong: Pong) -> None:
            context.reply(
                BrokerHeartbeatResponse(
                    error_code=ErrorCode.NONE,
                    is_caught_up=watch.state.number >= request.current_metadata_offset,
                    is_fenced=pong.silent_s >= watch.lease.seconds,
                )
            )

        watch.pinged(request.current_metadata_offset, answer)
        return None

    return Handler(0, 2, handle)
