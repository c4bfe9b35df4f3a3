"""Transactional producers of both kinds, with offsets of a group in their transactions; unanswered requests are sent again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.produce import ProduceRequest
from horolog.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from horolog.protocol.wire import Message
from tests.simulation.model import Attempt, Outcome, PartitionModel, TopicModel
from tests.simulation.offsets import TRANSACTIONAL_GROUP, OffsetKey
from tests.simulation.producers import Actor, note_answer, produce_request, transactional

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

TIMEOUT_MS = 20_000
TRY_AGAIN = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
}


class TransactionalProducer(Actor):
    """One program: transactions one after the other, each of a few writes."""

    def __init__(self, simulation: Simulation, name: str, *, newer: bool) -> None:
        super().__init__(simulation, name)
        self._newer = newer
        self._number = 0
        self._begin_anew()

    def _begin_anew(self) -> None:
        """The program starts, or starts again: whatever was open is left to the coordinator."""
        self._id = self._epoch = -1
        self._waiting = False
        self._again: Callable[[], None] | None = None
        self._sequences: dict[PartitionModel, int] = {}
        self._begin_next()

    def _begin_next(self) -> None:
        self._number += 1
        self._transaction = f"{self.name}.{self._number}"
        self.simulation.outcomes[self._transaction] = Outcome.OPEN
        self._writes = 0
        self._added: set[object] = set()
        self._offsets: dict[OffsetKey, int] = {}
        self._doomed = False

    def step(self) -> None:
        if self._waiting:
            return
        if self._again is not None:
            if self.chance.random() < 0.1:
                self._begin_anew()
            else:
                self._again()
        elif self._id < 0:
            self._initialize()
        elif self._doomed or self.chance.random() < 0.08:
            self._end(commit=False)
        elif self._writes and self.chance.random() < 0.35:
            self._end(commit=True)
        elif self._writes and self.chance.random() < 0.2:
            self._commit_offset()
        else:
            self._write()

    @property
    def is_free(self) -> bool:
        """Whether it waits for nothing, and its transaction may be committed."""
        return not self._waiting and self._again is None and self._id >= 0 and not self._doomed

    def write_more(self) -> None:
        """And end nothing, unless there is something else to be done before."""
        if self.is_free:
            self._write()
        else:
            self.step()

    def commit(self) -> bool:
        """Ask for it; False where there is nothing to commit now."""
        if not self.is_free or not self._writes:
            return False
        self._end(commit=True)
        return True

    def _ask(
        self,
        request: Message,
        version: int,
        answered: Callable[[Any], bool],
        sending: Callable[[], None] = lambda: None,
    ) -> None:
        """Ask until there is an answer that `answered` does not want to have again; `sending` is called each time."""

        def send() -> None:
            self._waiting = True
            sending()
            self.client.send(request, version, done)

        def done(answer: Any) -> None:
            if self._again is not send:
                return
            self._waiting = False
            if answer is not None and answered(answer):
                self._again = None

        self._again = send
        send()

    def _settled(self, code: int) -> bool:
        """Whether a code is an answer: others are asked again, and some end the producer's life."""
        if code in TRY_AGAIN:
            return False
        if code != ErrorCode.NONE:
            self.world.note("fenced", self.name, code)
            self._begin_anew()
        return True

    def _initialize(self) -> None:
        def answered(answer: Any) -> bool:
            self.world.note("transactional id", self.name, answer.error_code, answer.producer_epoch)
            if not self._settled(answer.error_code):
                return False
            if not answer.error_code:
                self._id, self._epoch, self._sequences = answer.producer_id, answer.producer_epoch, {}
            return True

        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=TIMEOUT_MS)
        self._ask(request, 4, answered)

    def _write(self) -> None:
        topic, partition = self.simulation.transactional_partition()
        if not self._newer and partition not in self._added:
            self._add(partition)
            return
        version = 12 if self._newer else 11
        sequence = self._sequences.get(partition, 0)
        attempt, request = self._batch(topic, partition, sequence, version)
        records = attempt.records

        def answered(answer: Any) -> bool:
            code = note_answer(self.simulation, partition, attempt, -1, answer)
            if code in self.simulation.produced_again:
                return False
            self._sequences[partition] = sequence + len(records)
            self._doomed = self._doomed or code != ErrorCode.NONE
            return True

        self._ask(request, version, answered, partial(self.simulation.sent_again, attempt))

    def _batch(
        self, topic: TopicModel, partition: PartitionModel, sequence: int, version: int
    ) -> tuple[Attempt, ProduceRequest]:
        """Records that are about to be sent."""
        records = self.make_records(with_times=True, with_headers=False, keyed=False)
        data = transactional(records, self._id, self._epoch, sequence)
        attempt = Attempt(self.simulation.next_attempt(), self.name, records, self._transaction)
        partition.attempt(attempt)
        self._writes += 1
        self.world.note("produce transactional", attempt.number, partition, self._transaction)
        return attempt, produce_request(partition, data, -1, version, topic.id, self.name)

    def _add(self, partition: PartitionModel) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self._id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=partition.topic, partitions=[partition.index])],
        )

        def answered(answer: Any) -> bool:
            code = answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            self.world.note("partition added", partition, code)
            if not code:
                self._added.add(partition)
            return self._settled(code)

        self._ask(request, 3, answered)

    def _commit_offset(self) -> None:
        topic, partition = self.simulation.transactional_partition()
        key = OffsetKey(TRANSACTIONAL_GROUP, topic, partition.index)
        if not self._newer and TRANSACTIONAL_GROUP not in self._added:
            self._add_group()
            return
        asked = TxnOffsetCommitRequestPartition(partition_index=partition.index)

        def number() -> None:
            """Of two transactions that commit, the one whose offset stands later in the log counts: one that comes again is a later one."""
            asked.committed_offset = self.simulation.offsets.next_offset(key)

        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=TRANSACTIONAL_GROUP,
            producer_id=self._id,
            producer_epoch=self._epoch,
            generation_id=-1,
            topics=[TxnOffsetCommitRequestTopic(name=partition.topic, partitions=[asked])],
        )

        def answered(answer: Any) -> bool:
            code = answer.topics[0].partitions[0].error_code
            self.world.note("offset in transaction", self._transaction, asked.committed_offset, code)
            if code in TRY_AGAIN:
                return False
            if code:
                self._doomed = True
            else:
                self._offsets[key] = asked.committed_offset
            return True

        self._ask(request, 5 if self._newer else 3, answered, number)

    def _add_group(self) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.name, producer_id=self._id, producer_epoch=self._epoch, group_id=TRANSACTIONAL_GROUP
        )

        def answered(answer: Any) -> bool:
            if not answer.error_code:
                self._added.add(TRANSACTIONAL_GROUP)
            return self._settled(answer.error_code)

        self._ask(request, 3, answered)

    def _end(self, *, commit: bool) -> None:
        name, offsets, outcomes = self._transaction, dict(self._offsets), self.simulation.outcomes
        if commit:
            outcomes[name] = Outcome.ASKED
            self.simulation.offsets.asked(offsets)
        request = EndTxnRequest(
            transactional_id=self.name, producer_id=self._id, producer_epoch=self._epoch, committed=commit
        )

        def answered(answer: Any) -> bool:
            code = int(answer.error_code)
            self.world.note("transaction ends", name, commit, code)
            if not self._settled(code):
                return False
            if code == ErrorCode.NONE:
                self.world.counts["commit" if commit else "abort"] += 1
                outcomes[name] = Outcome.COMMITTED if commit else Outcome.ABORTED
                if commit:
                    self.simulation.offsets.committed(offsets)
                if self._newer:
                    if (self._id, self._epoch) != (answer.producer_id, answer.producer_epoch):
                        self._sequences = {}
                    self._id, self._epoch = answer.producer_id, answer.producer_epoch
                self._begin_next()
            return True

        self._ask(request, 5 if self._newer else 4, answered)
