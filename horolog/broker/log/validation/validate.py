"""Decides about every record set that producers send: the bytes to store, their offsets and times, or why they are refused.

Pure: the inputs include the clock's time and the next offset. Old requests (Produce v0-v2) carry sets of v0 and v1 messages,
which `validate_set` checks as 0.10 does; newer ones carry one v2 batch, which `validate_batch` checks as 3.9 and 4.3 do. The
magic byte decides a message's format, not the version of the request: v1 messages are accepted in Produce v0, and a batch
in Produce v2.

What goes out never refers to bytes that the caller keeps: they were copied once, and corrected where they lie. A writable view is the
exception: its bytes are handed over.
"""

from typing import Final

from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.producers import ProducerBatch
from horolog.broker.log.validation.validate_batch import check_batch
from horolog.broker.log.validation.validate_set import check_set
from horolog.broker.log.validation.validation_result import Mark, RecordError, RefusedSet, Validated
from horolog.protocol.primitives import Buffer
from horolog.protocol.records.head import MAGIC_AT

__all__ = ["Mark", "ProducerBatch", "RecordError", "RefusedSet", "Validated", "check"]

_FIRST_VERSION_WITH_BATCHES: Final = 3
_FIRST_VERSION_WITH_ZSTD: Final = 7


def check(
    records: Buffer, next_offset: int, config: TopicConfig, now_ms: int, *, produce_version: int, leader_epoch: int
) -> Validated:
    """Validate the records of one request for one partition; raises Refused."""
    if produce_version >= _FIRST_VERSION_WITH_BATCHES or (len(records) > MAGIC_AT and records[MAGIC_AT] == 2):
        zstd_is_known = produce_version >= _FIRST_VERSION_WITH_ZSTD
        return check_batch(records, next_offset, config, now_ms, zstd_is_known=zstd_is_known, leader_epoch=leader_epoch)
    return check_set(records, next_offset, config, now_ms, leader_epoch=leader_epoch)
