"""The small files of a data folder and of a partition folder that hold no records: offsets, epochs, ids, log starts."""

from horolog.broker.log.files import checkpoints, leader_epochs, log_starts, meta_properties
from horolog.broker.log.files.checkpoints import CheckpointError
from horolog.broker.log.files.leader_epochs import LeaderEpochs
from horolog.broker.log.files.log_starts import LOG_STARTS
from horolog.broker.log.files.meta_properties import MetaDamaged, MetaProperties

__all__ = [
    "LOG_STARTS",
    "CheckpointError",
    "LeaderEpochs",
    "MetaDamaged",
    "MetaProperties",
    "checkpoints",
    "leader_epochs",
    "log_starts",
    "meta_properties",
]
