"""Pins the files that a read of a folder has planned until they are read: see `horolog.base.pins` for how."""

import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from horolog.base import pins
from horolog.broker.log.storage import parent_of
from horolog.pipeline.base.positions import DataLoss
from horolog.pipeline.options.options import ReadOptions
from horolog.pipeline.reading.offline import Piece, Plan, make_plan
from horolog.pipeline.reading.pushdown import RecordBounds

if TYPE_CHECKING:
    Tasks = list[list[Piece]]

_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}
_TRIES = 5


def plan_and_pin(
    options: ReadOptions,
    wanted: RecordBounds,
    tasks_of: "Callable[[Plan], Tasks]",
    owner_pid: int,
    tell: Callable[[str], None],
) -> "tuple[Plan, Tasks]":
    """A plan, and its tasks with their files pinned; plans again if the broker removes files between the two."""
    for attempt in range(1, _TRIES + 1):
        plan = make_plan(options, wanted)
        tasks = tasks_of(plan)
        if options.place is not None or plan.is_of_prefix or not any(tasks):
            return plan, tasks
        try:
            return plan, _pinned(tasks, owner_pid)
        except FileNotFoundError as error:
            if attempt == _TRIES:
                raise DataLoss(
                    f"{options.path}: {error.filename} is gone: a broker removes files faster than they can be planned"
                ) from error
        except OSError as error:
            tell(_told(options, error))
            return plan, tasks
    raise AssertionError


def _pinned(tasks: "Tasks", owner_pid: int) -> "Tasks":
    data_folder = Path(parent_of(parent_of(next(piece.path for task in tasks for piece in task))))
    folder = pins.folder_of(data_folder)
    pins.sweep(folder, time.time_ns() // 1_000_000)
    links = pins.pin(folder, pins.Owner.of(owner_pid), [[piece.path for piece in task] for task in tasks])
    made = [
        [piece._replace(pinned=known[piece.path]) for piece in task] for task, known in zip(tasks, links, strict=True)
    ]
    shorter = next((one for task in made for one in task if Path(_link(one)).stat().st_size < one.end), None)
    if shorter is not None:  # compacted between plan and pin
        pins.release(Path(_link(shorter)).parent.parent)
        raise FileNotFoundError(errno.ENOENT, "it was compacted", shorter.path)
    return made


def _link(piece: Piece) -> str:
    assert piece.pinned is not None
    return piece.pinned


def _told(options: ReadOptions, error: OSError) -> str:
    why = os.strerror(error.errno) if error.errno else str(error)
    if error.errno in _NOT_ALLOWED:
        why = f"this user has no permission to link files there ({why})"
    return (
        f"horolog: {options.path}: its files are not pinned: {why}; if retention or compaction removes a file before it is read,"
        " the read ends with an error, and you have to start it again (the broker's own user can pin files)"
    )


@contextmanager
def held(tasks: "Tasks") -> Iterator[None]:
    """Release the pins of all tasks at the end."""
    try:
        yield
    finally:
        for task in tasks:
            release(task)


def links_of(pieces: Iterable[Piece]) -> list[str]:
    return [one.pinned for one in pieces if one.pinned is not None]


def release(pieces: Iterable[Piece]) -> None:
    """The task has read its pieces."""
    links = links_of(pieces)
    if links:
        pins.release_task(list(dict.fromkeys(links)))
