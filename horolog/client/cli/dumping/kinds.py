"""Decides the kind of a file by its name alone; pure."""

import re
from pathlib import PurePath

from horolog.broker.log.files import LOG_STARTS, checkpoints, meta_properties
from horolog.broker.log.integrity import SEALS
from horolog.broker.log.producers import producers_file
from horolog.broker.log.storage import DAMAGED_SUFFIX, aside_names
from horolog.broker.on_record import cluster_file

OFFSET_CHECKPOINTS = (
    checkpoints.RECOVERY_POINTS,
    checkpoints.HIGH_WATERMARKS,
    checkpoints.LOG_START_OFFSETS,
    checkpoints.CLEANER_OFFSETS,
)
BY_NAME = {
    **dict.fromkeys(OFFSET_CHECKPOINTS, "offset-checkpoint"),
    checkpoints.LEADER_EPOCHS: "leader-epochs",
    checkpoints.PARTITION_METADATA: "partition-metadata",
    checkpoints.CLEAN_SHUTDOWN: "clean-shutdown",
    meta_properties.FILE_NAME: "meta-properties",
    SEALS: "seals",
    producers_file.FILE_NAME: "producers",
    LOG_STARTS: "log-starts",
    cluster_file.FILE_NAME: "cluster",
    f"{cluster_file.FILE_NAME}{DAMAGED_SUFFIX}": "cluster",
    cluster_file.JOURNAL: "journal",
}
OF_WORKERS = {
    "horolog-checkpoint": "worker-checkpoint",
    checkpoints.CLEANER_OFFSETS: "offset-checkpoint",
    checkpoints.CLEAN_SHUTDOWN: "clean-shutdown",
}
"""If several workers serve a folder, each has its own file, with its number after the name."""
_BY_SUFFIX = {
    ".log": "log",
    ".index": "offset-index",
    ".timeindex": "time-index",
    ".txnindex": "transaction-index",
    ".snapshot": "snapshot",
}
_PASSING_SUFFIX = re.compile(r"\.(?:deleted|cleaned|swap|tmp)$")
_DIGITS = re.compile(r"[0-9]{20}")
_INTERNAL = re.compile(r"(__consumer_offsets|__transaction_state)-[0-9]+")
DECODERS = {"__consumer_offsets": "offsets", "__transaction_state": "transactions"}


def kind_of(path: str) -> str | None:
    """The kind of a file; None for names that do not belong to a data folder."""
    name = PurePath(path).name
    if name in BY_NAME:
        return BY_NAME[name]
    whole, _, node = name.rpartition(".")
    if node.isdigit() and whole in OF_WORKERS:
        return OF_WORKERS[whole]
    if aside_names.parse_name(name) is not None:
        return "set-aside"
    return _BY_SUFFIX.get(PurePath(_PASSING_SUFFIX.sub("", name)).suffix)


def base_offset_of(path: str) -> int | None:
    """The base offset in a segment file's name; None for other names."""
    found = _DIGITS.match(PurePath(path).name)
    return int(found[0]) if found is not None else None


def decoder_of(path: str) -> str | None:
    """How the records of an internal topic are read: `offsets`, `transactions`, or None by the name of the folder."""
    found = _INTERNAL.match(PurePath(path).parent.name)
    return DECODERS[found[1]] if found is not None else None
