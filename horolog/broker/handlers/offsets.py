"""OffsetCommit 0-10, OffsetFetch 0-10 and OffsetDelete 0: the offsets of groups; `broker.groups` does the work.

A commit is answered when it is written, with `horolog.offsets.commit.sync` when it is on the disk.
"""

from __future__ import annotations

from horolog.broker.groups.commits import CommitRequest
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.protocol.messages.offsets import OffsetDeleteRequest, OffsetFetchRequest


def commit(broker: BrokerView, request: CommitRequest, context: RequestContext) -> None:
    broker.groups.commit(request, context.version, context.reply)


def fetch(broker: BrokerView, request: OffsetFetchRequest, context: RequestContext) -> None:
    broker.groups.fetch_offsets(request, context.version, context.reply)


def delete(broker: BrokerView, request: OffsetDeleteRequest, context: RequestContext) -> None:
    broker.groups.delete_offsets(request, context.reply)
