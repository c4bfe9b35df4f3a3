"""Decides the outcome of each record from the response to its batch: pure."""

from dataclasses import dataclass, field
from enum import Enum, auto

from horolog.client.producing.accumulator import Batch
from horolog.client.values.errors import KafkaError, error_of
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.produce import PartitionProduceResponse

MAX_CORRUPT_ATTEMPTS = 3  # of a batch that arrived damaged: a broker that still cannot read it never will


class Verdict(Enum):
    WRITTEN = auto()
    AGAIN = auto()  # unchanged, after a pause
    WITHOUT = auto()  # the refused records fail, the others are retried
    HALVED = auto()  # in two pieces: it was too large, or the broker does not say which record it refused
    FAILED = auto()
    NEW_PRODUCER = auto()  # again, under a new producer id


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: Verdict
    error: KafkaError | None = None
    refused: dict[int, str | None] = field(default_factory=dict)  # which records, and the broker's reasons


_REFUSALS = frozenset({ErrorCode.INVALID_TIMESTAMP, ErrorCode.INVALID_RECORD})
_CUT_IN_HALVES = _REFUSALS | {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}
_PRODUCER_FORGOTTEN = frozenset({ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH})


def judge(batch: Batch, answer: PartitionProduceResponse, *, transactional: bool = False) -> Judgement:
    code = answer.error_code
    if code in {ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER}:
        return Judgement(Verdict.WRITTEN)
    error = error_of(code, answer.error_message, topic=batch.partition.topic)
    if error.code in _REFUSALS and answer.record_errors:
        count = len(batch.records)
        refused = {
            each.batch_index: each.batch_index_error_message
            for each in answer.record_errors
            if 0 <= each.batch_index < count
        }
        if refused:
            return Judgement(Verdict.WITHOUT, error, refused)
    if error.code in _CUT_IN_HALVES and len(batch.records) > 1:
        return Judgement(Verdict.HALVED, error)
    if error.code in _PRODUCER_FORGOTTEN and not transactional:
        return Judgement(Verdict.NEW_PRODUCER, error)
    if error.code == ErrorCode.CORRUPT_MESSAGE and batch.attempts >= MAX_CORRUPT_ATTEMPTS:
        return Judgement(Verdict.FAILED, error)
    return Judgement(Verdict.AGAIN if error.retriable else Verdict.FAILED, error)


def refuse(batch: Batch, refused: dict[int, str | None]) -> list[Batch]:
    """The rest of a batch without the refused records: one batch, or none."""
    left = [record for index, record in enumerate(batch.records) if index not in refused]
    return [batch.part(left)] if left else []


def halve(batch: Batch) -> list[Batch]:
    middle = len(batch.records) // 2
    return [batch.part(batch.records[:middle]), batch.part(batch.records[middle:])]
