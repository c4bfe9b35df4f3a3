"""All partitions of a broker: the data folders, the folder of each partition, opening and deletion."""

from horolog.broker.log.manager import made_elsewhere
from horolog.broker.log.manager.data_folder import DataFolder, doom, partition_of
from horolog.broker.log.manager.data_folders import DataFolders
from horolog.broker.log.manager.folder_checkpoints import FolderCheckpoints
from horolog.broker.log.manager.identity import refuse_another_node
from horolog.broker.log.manager.manager import LogManager
from horolog.broker.log.manager.placing import Placing
from horolog.broker.log.manager.share import Mine, Share, held_by_parent, whole

__all__ = [
    "DataFolder",
    "DataFolders",
    "FolderCheckpoints",
    "LogManager",
    "Mine",
    "Placing",
    "Share",
    "doom",
    "held_by_parent",
    "made_elsewhere",
    "partition_of",
    "refuse_another_node",
    "whole",
]
