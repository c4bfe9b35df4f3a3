"""Decides about every record set that producers send: the bytes to store, their offsets and times, or why they are refused.

Pure: the clock's time and the next offset come in, a verdict goes out. Old requests (Produce v0-v2) carry sets of v0 and v1
messages and are judged as 0.10 judges them, by `validate_set`; newer ones carry one v2 batch and are judged as 3.9 and 4.3
do, by `validate_batch`. The version of the request never says what a message is: its magic byte does. So v1 messages are
welcome in Produce v0, and a batch in Produce v2.

What goes out never refers to the network's buffer: the bytes were copied once, and corrected where they lie.
"""

from typing import Final

from horolog.broker.log.producers import ProducerBatch
from horolog.broker.log.validation.validate_batch import check_batch
from horolog.broker.log.validation.validate_set import check_set
from horolog.broker.log.validation.validation_result import Mark, RecordError, Refused, Validated
from horolog.broker.topic_settings import TopicConfig
from horolog.protocol.primitives import Buffer
from horolog.protocol.records.head import MAGIC_AT

__all__ = ["Mark", "ProducerBatch", "RecordError", "Refused", "Validated", "check"]

_FIRST_VERSION_WITH_BATCHES: Final = 3
_FIRST_VERSION_WITH_ZSTD: Final = 7


def check(
    records: Buffer, next_offset: int, config: TopicConfig, now_ms: int, *, produce_version: int, leader_epoch: int
) -> Validated:
    """The verdict on what one request brings for one partition; raises Refused."""
    if produce_version >= _FIRST_VERSION_WITH_BATCHES or (len(records) > MAGIC_AT and records[MAGIC_AT] == 2):
        zstd_is_known = produce_version >= _FIRST_VERSION_WITH_ZSTD
        return check_batch(records, next_offset, config, now_ms, zstd_is_known=zstd_is_known, leader_epoch=leader_epoch)
    return check_set(records, next_offset, config, now_ms, leader_epoch=leader_epoch)
