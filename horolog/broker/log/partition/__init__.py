"""One partition: its segments, when they roll and expire, and how much of them is synced."""

from horolog.broker.log.partition import closing, log_start, lookups, retention, rewrite, whole_batches
from horolog.broker.log.partition.aborted import DecidedHere
from horolog.broker.log.partition.condition import SERVING, Condition
from horolog.broker.log.partition.exchange import replace_segments
from horolog.broker.log.partition.expiry import SegmentExpiry
from horolog.broker.log.partition.inventory import HeldSegment, Inventory
from horolog.broker.log.partition.markers import append_marker
from horolog.broker.log.partition.opened import OpenedPartition, Resources
from horolog.broker.log.partition.partition import OffsetOutOfRange, Partition, made
from horolog.broker.log.partition.progress import note_progress
from horolog.broker.log.partition.rare_changes import RareChanges
from horolog.broker.log.partition.whole_batches import WantedBatches

__all__ = [
    "SERVING",
    "Condition",
    "DecidedHere",
    "HeldSegment",
    "Inventory",
    "OffsetOutOfRange",
    "OpenedPartition",
    "Partition",
    "RareChanges",
    "Resources",
    "SegmentExpiry",
    "WantedBatches",
    "append_marker",
    "closing",
    "log_start",
    "lookups",
    "made",
    "note_progress",
    "replace_segments",
    "retention",
    "rewrite",
    "whole_batches",
]
