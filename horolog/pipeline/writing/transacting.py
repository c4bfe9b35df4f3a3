"""The requests of `exactly_once` to a real cluster, and a task's open transaction: everything but its end.

Versions are those in which an epoch stays when a transaction ends: they mean the same to brokers with and without KIP-890.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from horolog.client.admin.admin_groups import GroupAdmin
from horolog.client.producing.sequences import Sequences
from horolog.client.producing.transaction import Transactions
from horolog.client.values.errors import KafkaError, UnsupportedVersion, check, error_of
from horolog.client.values.types import Committed, TopicPartition
from horolog.client.wire.client import Client
from horolog.client.wire.cluster_view import Node
from horolog.pipeline.writing.exactly_once import OPEN, Owner, State, WriteFailed, driver_id
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.transactions import (
    DescribeTransactionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
)

DRIVER_TIMEOUT_MS = 60_000
_EXPECTED_FROM = 3  # the version of InitProducerId that names the expected owner


class Cluster:
    """Implements `exactly_once.Broker`. `place` is the partition at which offsets of groups are noted."""

    def __init__(self, client: Client, place: TopicPartition | None, timeout_ms: int) -> None:
        self._client = client
        self._place = place
        self._timeout_ms = timeout_ms

    async def take(self, transactional_id: str, owner: Owner | None = None) -> Owner:
        expected = owner or Owner(-1, -1)
        timeout_ms = self._timeout_ms
        if transactional_id.endswith(driver_id("")):
            timeout_ms = min(timeout_ms, DRIVER_TIMEOUT_MS)
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=expected.producer_id,
            producer_epoch=expected.epoch,
        )
        at_least = 0 if owner is None else _EXPECTED_FROM
        try:
            answer = await self._coordinator(transactional_id, request, at_least=at_least)
        except KafkaError as error:
            raise refused_timeout(error, timeout_ms) from error
        return Owner(answer.producer_id, answer.producer_epoch)

    async def note(self, transactional_id: str, owner: Owner, group: str, noted: Committed) -> None:
        assert self._place is not None, "writes without a name note nothing"
        sequences = Sequences()
        sequences.begin(*owner)
        transaction = Transactions(self._client, transactional_id, self._timeout_ms, sequences)
        await transaction.begin()
        await transaction.send_offsets(group, {self._place: noted}, None, None)

    async def end(self, transactional_id: str, owner: Owner, *, commit: bool) -> None:
        await self._coordinator(
            transactional_id,
            EndTxnRequest(
                transactional_id=transactional_id,
                producer_id=owner.producer_id,
                producer_epoch=owner.epoch,
                committed=commit,
            ),
        )

    async def noted(self, group: str) -> Committed | None:
        assert self._place is not None, "writes without a name note nothing"
        found = (await GroupAdmin(self._client).group_offsets(group, [self._place], stable=True)).get(self._place)
        return None if found is None else Committed(found.offset, found.metadata)

    async def states(self, transactional_ids: Sequence[str]) -> Mapping[str, State] | None:
        """Asks each id's coordinator, with one request for all of its ids."""
        by_node: dict[Node, list[str]] = {}
        for each in transactional_ids:
            by_node.setdefault(await self._client.coordinator("transaction", each), []).append(each)
        found: dict[str, State] = {}
        for ids in by_node.values():
            try:
                answer = await self._described(ids)
            except UnsupportedVersion:
                return None
            for each in answer.transaction_states:
                if each.error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                    check(each.error_code)
                    found[each.transactional_id] = State(
                        each.transaction_state, Owner(each.producer_id, each.producer_epoch)
                    )
        return found

    async def _described(self, ids: list[str]) -> Any:
        async def once() -> Any:
            answer = await self._client.attempt(
                DescribeTransactionsRequest(transactional_ids=ids), coordinator_of=("transaction", ids[0])
            )
            for each in answer.transaction_states:
                if error_of(each.error_code).retriable and each.error_code:
                    raise error_of(each.error_code)
            return answer

        return await self._client.retry(once)

    async def open_ids(self) -> Collection[str]:
        view = await self._client.metadata([])
        try:
            answers = await asyncio.gather(*(self._listed(node) for node in view.nodes))
        except UnsupportedVersion:
            return ()
        return [each.transactional_id for answer in answers for each in answer.transaction_states]

    async def _listed(self, node: int) -> Any:
        async def once() -> Any:
            answer = await self._client.attempt(ListTransactionsRequest(state_filters=[OPEN]), node_id=node)
            check(answer.error_code)
            return answer

        return await self._client.retry(once)

    async def _coordinator(self, transactional_id: str, request: Any, **bounds: int) -> Any:
        async def once() -> Any:
            answer = await self._client.attempt(request, coordinator_of=("transaction", transactional_id), **bounds)
            check(answer.error_code)
            return answer

        return await self._client.retry(once)


def refused_timeout(error: KafkaError, timeout_ms: int) -> Exception:
    if error.code != ErrorCode.INVALID_TRANSACTION_TIMEOUT:
        return error
    return WriteFailed(
        f"kafka.transaction.timeout.ms {timeout_ms} is more than the broker's transaction.max.timeout.ms allows:"
        " set it lower, or the broker's higher"
    )


class OpenTransaction:
    """One that a task writes into; the driver ends it, or the task itself if no other task has to agree."""

    def __init__(self, client: Client, transactional_id: str, timeout_ms: int) -> None:
        self.transactional_id = transactional_id
        self._timeout_ms = timeout_ms
        self._sequences = Sequences()
        self._transactions = Transactions(client, transactional_id, timeout_ms, self._sequences)

    @property
    def owner(self) -> Owner:
        return Owner(self._sequences.producer_id, self._sequences.epoch)

    async def begin(self) -> None:
        """Fence the id's earlier owner, and abort its open transaction."""
        try:
            await self._transactions.begin()
        except KafkaError as error:
            raise refused_timeout(error, self._timeout_ms) from error

    async def add(self, partition: TopicPartition) -> None:
        await self._transactions.before_send([partition])

    async def note(self, place: TopicPartition, noted: Committed) -> None:
        await self._transactions.send_offsets(self.transactional_id, {place: noted}, None, None)

    async def commit(self) -> None:
        await self._transactions.end(commit=True)

    async def abort(self) -> None:
        await self._transactions.end(commit=False)
