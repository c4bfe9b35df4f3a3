"""Opens and recovers partitions, and looks after running ones: rescans, scrubs and retries them."""

from horolog.broker.log.recovery.findings import Circumstances, PartitionFolder
from horolog.broker.log.recovery.leftovers import COMPANION_SUFFIXES, is_segment_file
from horolog.broker.log.recovery.opening import open_readable, open_writable, storage_below
from horolog.broker.log.recovery.presence import Presence
from horolog.broker.log.recovery.producer_batches import producer_batch
from horolog.broker.log.recovery.recovery import (
    create_partition,
    offline_partition,
    open_log,
    open_partition,
)
from horolog.broker.log.recovery.rescan import Rescanner, Task
from horolog.broker.log.recovery.retry import Retries
from horolog.broker.log.recovery.scrub import Scrub

__all__ = [
    "COMPANION_SUFFIXES",
    "Circumstances",
    "PartitionFolder",
    "Presence",
    "Rescanner",
    "Retries",
    "Scrub",
    "Task",
    "create_partition",
    "is_segment_file",
    "offline_partition",
    "open_log",
    "open_partition",
    "open_readable",
    "open_writable",
    "producer_batch",
    "storage_below",
]
