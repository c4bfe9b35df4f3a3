"""The small files beside a log and in the data folder: byte 0 picks the kind, the rest is its content. Each reader refuses with its own family of error."""

from collections.abc import Callable

from horolog.broker.log.files import checkpoints, leader_epochs, meta_properties
from horolog.broker.log.indexes import OffsetIndex, TimeIndex, transaction_index
from horolog.broker.log.indexes.offset_index import last_position_up_to, lookup
from horolog.broker.log.indexes.time_index import first_at_or_after
from horolog.broker.log.integrity import seals
from horolog.broker.log.producers import producers_file, row_file, snapshot_file
from horolog.broker.on_record import cluster_file
from tests.fuzz.targets import place

Reader = Callable[[bytes], object]


class NeverRefused(ValueError):
    """For readers that take any bytes."""


def time_index(data: bytes) -> object:
    whole = data[: len(data) - len(data) % TimeIndex.ENTRY.size]
    return [first_at_or_after(whole, timestamp) is None for timestamp in (-1, 0, 1_600_000_000_000, 2**63 - 1)]


def offset_index(data: bytes) -> object:
    whole = data[: len(data) - len(data) % OffsetIndex.ENTRY.size]
    return [lookup(whole, at) >= 0 and last_position_up_to(whole, at) is not None for at in (0, 1, 1000, 2**31 - 1)]


def aborted(data: bytes) -> object:
    return len(transaction_index.decode(data, 0))


def cluster(data: bytes) -> object:
    stored = cluster_file.parse(data)
    return len(stored.topics), len(stored.damages)


READERS: tuple[tuple[Reader, type[Exception]], ...] = (
    (checkpoints.decode_offsets, checkpoints.CheckpointError),
    (checkpoints.decode_partition_metadata, checkpoints.CheckpointError),
    (checkpoints.decode_clean_shutdown, checkpoints.CheckpointError),
    (leader_epochs.decode, checkpoints.CheckpointError),
    (meta_properties.decode, checkpoints.CheckpointError),
    (snapshot_file.decode, row_file.RowFileError),
    (aborted, transaction_index.TransactionIndexError),
    (seals.decode, seals.SealsDamaged),
    (time_index, NeverRefused),
    (offset_index, NeverRefused),
    (cluster, cluster_file.NewerClusterFile),
    (producers_file.decode, row_file.RowFileError),
)


def target(data: bytes) -> object:
    if not data:
        return None
    number = data[0] % len(READERS)
    read, family = READERS[number]
    try:
        read(data[1:])
    except family as error:
        return number, place(error)
    return number, "fine"
