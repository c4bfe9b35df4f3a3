"""The free space on the disks of the data folders: as metrics, and as warnings when there is too little of it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from horolog.broker.base.metrics import Described, Kind, Samples
from horolog.broker.config.settings import Settings
from horolog.broker.handlers.log_dirs import disk_space
from horolog.broker.log.manager import LogManager

log = logging.getLogger(__name__)

SIZE = Described("data_folder_disk_bytes", Kind.GAUGE, "Size of the disk of a data folder.", ("path",))
ROOM = Described(
    "data_folder_room_bytes", Kind.GAUGE, "Free space for the broker on the disk of a data folder.", ("path",)
)
FAMILIES = (SIZE, ROOM)

FULL_BYTES = 64 * 1024
"""With less free space appends fail, or will with the next segment."""
LOOKS_EVERY_MS = 10_000
UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")


class Served(Protocol):
    """A broker, as far as its disks go."""

    logs: LogManager
    settings: Settings


class Room(NamedTuple):
    """One data folder's disk."""

    path: str
    total_bytes: int
    free_bytes: int

    @property
    def is_full(self) -> bool:
        return self.free_bytes < FULL_BYTES

    def is_scarce(self, percent: int) -> bool:
        return percent > 0 and (self.is_full or self.free_bytes * 100 < self.total_bytes * percent)

    def __str__(self) -> str:
        """A sentence about one that is scarce."""
        left = f"{shown(self.free_bytes)} of {shown(self.total_bytes)} are left"
        if self.is_full:
            return f"{self.path}: the disk is full, {left}: free some space; until then appends and changes fail"
        return f"{self.path}: the disk is nearly full, {left}: free some space before appends fail"


def shown(size_bytes: int) -> str:
    size, unit = float(size_bytes), "bytes"
    for larger in UNITS:
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size_bytes} bytes" if unit == "bytes" else f"{size:.1f} {unit}"


def rooms(broker: Served) -> list[Room]:
    """The disks of the folders that can be used, as far as the system reports their size."""
    found = (Room(folder.path, *disk_space(folder)) for folder in broker.logs.folders if folder.fault is None)
    return [one for one in found if one.total_bytes > 0]


def collect(broker: Served) -> Iterator[tuple[Described, Samples]]:
    found = rooms(broker)
    yield SIZE, [((one.path,), one.total_bytes) for one in found]
    yield ROOM, [((one.path,), one.free_bytes) for one in found]


class RoomWatch:
    """Logs once that space has become scarce or has run out, and once that there is space again."""

    def __init__(self, broker: Served) -> None:
        self._broker = broker
        self._told: dict[str, bool] = {}
        """Of the folders that lack room, whether they are full."""

    def __repr__(self) -> str:
        return f"<RoomWatch: {len(self._told)} lack room>"

    def look(self) -> None:
        percent = self._broker.settings.horolog_disk_room_warning_percent
        for one in rooms(self._broker):
            was_full = self._told.get(one.path)
            if not one.is_scarce(percent):
                if was_full is not None:
                    log.info("%s: there is free space again, %s", one.path, shown(one.free_bytes))
                self._told.pop(one.path, None)
            elif was_full is None or (one.is_full and not was_full):
                log.log(logging.ERROR if one.is_full else logging.WARNING, "%s", one)
                self._told[one.path] = one.is_full
