"""Initialize 0, Read 0, Write 0-1, Delete 0 and ReadShareGroupStateSummary 0-1: the states of share partitions that this broker keeps.

Brokers ask each other; the state is kept by the broker that FindCoordinator names for it. A request without a group or without partitions
gets an empty response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from horolog.broker.coordination.keyed_queue import gather
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.share.records import SharePartitionKey
from horolog.broker.share.state import StateRead, StateSummary, StateUpdate
from horolog.broker.share.state_batches import StateBatch
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.share_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStatePartition,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStatePartition,
    ReadStateResult,
    ReadStateTopicResult,
    ShareStateBatch,
    ShareStateCode,
    ShareStateCodes,
    StateSummaryTopic,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStatePartition,
)
from horolog.protocol.messages.share_state import StateSummary as StateSummaryResult

Ask = Callable[[SharePartitionKey, Any, Callable[[Any], None]], None]
"""Asks the keeper for one partition of a request; the callback gets the result of that partition."""


def initialize(broker: BrokerView, request: InitializeShareGroupStateRequest, context: RequestContext) -> None:
    def ask(key: SharePartitionKey, one: InitializeStatePartition, done: Callable[[object], None]) -> None:
        broker.shares.states.initialize(key, one.state_epoch, one.start_offset, partial(_tell_code, key, done))

    _answer(request, ask, partial(_reply, context, InitializeShareGroupStateResponse, ShareStateCodes))


def write(broker: BrokerView, request: WriteShareGroupStateRequest, context: RequestContext) -> None:
    def ask(key: SharePartitionKey, one: WriteStatePartition, done: Callable[[object], None]) -> None:
        batches = [
            StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in one.state_batches
        ]
        written = StateUpdate(one.state_epoch, one.leader_epoch, one.start_offset, one.delivery_complete_count, batches)
        broker.shares.states.write(key, written, partial(_tell_code, key, done))

    _answer(request, ask, partial(_reply, context, WriteShareGroupStateResponse, ShareStateCodes))


def delete(broker: BrokerView, request: DeleteShareGroupStateRequest, context: RequestContext) -> None:
    def ask(key: SharePartitionKey, _: object, done: Callable[[object], None]) -> None:
        broker.shares.states.delete(key, partial(_tell_code, key, done))

    _answer(request, ask, partial(_reply, context, DeleteShareGroupStateResponse, ShareStateCodes))


def read(broker: BrokerView, request: ReadShareGroupStateRequest, context: RequestContext) -> None:
    def ask(key: SharePartitionKey, one: ReadStatePartition, done: Callable[[object], None]) -> None:
        broker.shares.states.read(key, one.leader_epoch, lambda found: done(_read_result(key, found)))

    _answer(request, ask, partial(_reply, context, ReadShareGroupStateResponse, ReadStateTopicResult))


def read_summary(broker: BrokerView, request: ReadShareGroupStateSummaryRequest, context: RequestContext) -> None:
    def ask(key: SharePartitionKey, _: object, done: Callable[[object], None]) -> None:
        broker.shares.states.read_summary(key, lambda found: done(_summary_result(key, found)))

    _answer(request, ask, partial(_reply, context, ReadShareGroupStateSummaryResponse, StateSummaryTopic))


def _answer(request: Any, ask: Ask, reply: Callable[[list[tuple[bytes, Any]]], None]) -> None:
    """Ask for every partition, and reply with the results of all, each with its topic."""
    keys = [
        (SharePartitionKey(request.group_id, topic.topic_id, one.partition), one)
        for topic in (request.topics if request.group_id else ())
        for one in topic.partitions
    ]

    def collect(results: list[Any]) -> None:
        reply([(key.topic_id, result) for (key, _), result in zip(keys, results, strict=True)])

    gather([partial(ask, key, one) for key, one in keys], collect)


def _reply(context: RequestContext, response: Any, topic: Any, results: Iterable[tuple[bytes, Any]]) -> None:
    by_topic: dict[bytes, list[Any]] = {}
    for topic_id, result in results:
        by_topic.setdefault(topic_id, []).append(result)
    context.reply(response(results=[topic(topic_id=one, partitions=parts) for one, parts in by_topic.items()]))


def _message(code: ErrorCode) -> str | None:
    return code.message if code else None


def _tell_code(key: SharePartitionKey, done: Callable[[object], None], code: ErrorCode) -> None:
    done(ShareStateCode(partition=key.partition, error_code=code, error_message=_message(code)))


def _read_result(key: SharePartitionKey, found: StateRead | ErrorCode) -> ReadStateResult:
    if isinstance(found, ErrorCode):
        return ReadStateResult(partition=key.partition, error_code=found, error_message=_message(found))
    batches = [
        ShareStateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
        for first, last, state, count in found.batches
    ]
    return ReadStateResult(
        partition=key.partition,
        state_epoch=found.state_epoch,
        start_offset=found.start_offset,
        state_batches=batches,
    )


def _summary_result(key: SharePartitionKey, found: StateSummary | ErrorCode) -> StateSummaryResult:
    if isinstance(found, ErrorCode):
        return StateSummaryResult(partition=key.partition, error_code=found, error_message=_message(found))
    state_epoch, leader_epoch, start_offset, complete_count = found
    return StateSummaryResult(
        partition=key.partition,
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=complete_count,
    )
