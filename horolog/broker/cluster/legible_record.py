"""Makes a worker that starts while others serve wait until the cluster's record can be read: those that know it write it again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from horolog.broker.cluster import found_journals, settling
from horolog.broker.log.storage import DataFolderError, Storage, StorageFault
from horolog.broker.on_record.cluster_file import ClusterFile

LOOK_EVERY_S = 0.25
MOST_LOOKS = 40
"""After ten seconds a worker that does not answer counts as hung, and is replaced."""


class SupervisorLink(Protocol):
    """The link, as far as it is needed here."""

    def look_at_the_record(self) -> None: ...


async def until_legible(storage: Storage, data_dirs: Sequence[str], link: SupervisorLink) -> None:
    """Wait until the record can be read, but not for ever: opening it then names the damage."""
    for _ in range(MOST_LOOKS):
        if is_legible(storage, data_dirs):
            return
        link.look_at_the_record()
        await asyncio.sleep(LOOK_EVERY_S)


def is_legible(storage: Storage, data_dirs: Sequence[str]) -> bool:
    """Whether a worker can start from the record on the disk; a disk that does not work is reported when the folder is opened."""
    there = [one for one in data_dirs if storage.is_dir(one)]
    try:
        found = found_journals.find(storage, there)
        if found is None:
            return True
        if found.damages:
            return False
        settling.refuse_what_others_know(ClusterFile(storage, there[0], lambda: there).load(), found)
    except StorageFault:
        return True
    except DataFolderError:
        return False
    return True
