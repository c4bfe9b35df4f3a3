"""Batches of the broker's own, which coordinators keep in internal topics: made as they are stored, and believed.

What `validate.check` would find out about such a batch is known without looking at it. Only a topic that wants other bytes stored
(another codec, an older format, times of its own) has its batch checked, because that makes them.
"""

from collections.abc import Sequence
from dataclasses import replace

from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.producers import ProducerBatch
from horolog.broker.log.validation.validate import check
from horolog.broker.log.validation.validate_set import PLAIN_CODECS, check_size
from horolog.broker.log.validation.validation_result import Validated
from horolog.protocol.records.batch import NOBODY, Entry, encode_own
from horolog.protocol.records.head import TRANSACTIONAL_BIT
from horolog.protocol.records.timestamps import NO_TIMESTAMP

_MAGIC = 2
NEWEST_PRODUCE_VERSION = 13
_FIRST_SEQUENCE = 0  # coordinators number nothing, and the number is not compared
_new_tuple = tuple.__new__  # a third of the cost of a named tuple's own constructor


def own_batch(
    entries: Sequence[Entry],
    next_offset: int,
    config: TopicConfig,
    now_ms: int,
    *,
    leader_epoch: int,
    producer: tuple[int, int] | None = None,
    largest_bytes: int = 0,
) -> Validated:
    """Keys and values as one batch of this time, inside of a producer's transaction if its id and epoch are given.

    Raises Refused if that exceeds both the topic's limit and `largest_bytes`.
    """
    if largest_bytes > config.max_message_bytes:
        config = replace(config, max_message_bytes=largest_bytes)
    is_stored_so = config.compression in PLAIN_CODECS and config.stored_magic is None and not config.log_append_time
    attributes, by = (0, NOBODY) if producer is None else (TRANSACTIONAL_BIT, (*producer, _FIRST_SEQUENCE))
    if not is_stored_so:
        batch = encode_own(entries, 0, now_ms, attributes=attributes, producer=by)
        return check(
            batch, next_offset, config, now_ms, produce_version=NEWEST_PRODUCE_VERSION, leader_epoch=leader_epoch
        )
    batch = encode_own(entries, next_offset, now_ms, attributes=attributes, leader_epoch=leader_epoch, producer=by)
    size_bytes, last_offset = len(batch), next_offset + len(entries) - 1
    check_size(size_bytes, config)
    batches = () if producer is None else (_in_transaction(producer, next_offset, last_offset, now_ms),)
    return _new_tuple(
        Validated,
        (
            batch,
            size_bytes,
            next_offset,
            last_offset,
            len(entries),
            now_ms,
            last_offset,
            now_ms,
            NO_TIMESTAMP,
            (),
            batches,
            _MAGIC,
        ),
    )


def _in_transaction(producer: tuple[int, int], first_offset: int, last_offset: int, now_ms: int) -> ProducerBatch:
    number, epoch = producer
    return ProducerBatch(
        number,
        epoch,
        _FIRST_SEQUENCE,
        _FIRST_SEQUENCE + last_offset - first_offset,
        first_offset,
        last_offset,
        now_ms,
        transactional=True,
    )
