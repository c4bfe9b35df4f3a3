"""Verifies that bytes are those that were written, and deals with those that are not."""

from horolog.broker.log.integrity import losses, seals, set_aside
from horolog.broker.log.integrity.block_sums import BLOCK_BYTES, BlockSums, blocks_in, extend_from
from horolog.broker.log.integrity.rescan_queue import BeingRescanned, RescanQueue
from horolog.broker.log.integrity.scanning import CHUNK_BYTES, Batch, Damage, scan
from horolog.broker.log.integrity.seals import (
    NEVER_MODIFIED,
    SEALS,
    Contents,
    IndexSum,
    Seal,
    SealsDamaged,
    fingerprint,
)
from horolog.broker.log.integrity.surveying import FileFacts, Survey, survey

__all__ = [
    "BLOCK_BYTES",
    "CHUNK_BYTES",
    "NEVER_MODIFIED",
    "SEALS",
    "Batch",
    "BeingRescanned",
    "BlockSums",
    "Contents",
    "Damage",
    "FileFacts",
    "IndexSum",
    "RescanQueue",
    "Seal",
    "SealsDamaged",
    "Survey",
    "blocks_in",
    "extend_from",
    "fingerprint",
    "losses",
    "scan",
    "seals",
    "set_aside",
    "survey",
]
