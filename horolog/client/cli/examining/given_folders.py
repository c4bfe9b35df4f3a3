"""The data folders that a command line names: refuses those that `log.dirs` could not name."""

from collections.abc import Iterable

from horolog.broker.log.storage import Storage
from horolog.commands.errors import NotFoundError


def check_given(storage: Storage, folders: Iterable[str], advice: str = "name the data folder above it") -> None:
    """Raise NotFoundError for a path without a folder, and for the folder of one partition; `advice` says which one to give instead."""
    for folder in folders:
        if not storage.is_dir(folder):
            raise NotFoundError(f"{folder} is not a folder", "give the folder that log.dirs names")
        if _is_partition(storage, folder):
            raise NotFoundError(f"{folder} is the folder of one partition", advice)


def _is_partition(storage: Storage, folder: str) -> bool:
    """Whether there are segments and no folders of partitions; other files that end in `.log` may lie anywhere."""
    from horolog.broker.log.recovery import is_segment_file
    from horolog.client.cli.examining.folder_check import partitions_in

    has_segments = any(is_segment_file(name, ".log") for name in storage.list_dir(folder))
    return has_segments and not partitions_in(storage, folder)
