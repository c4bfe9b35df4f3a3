"""Ctrl-C and SIGTERM before a program is ready for them, and after it has done its work: the process ends at once and says nothing.

Python's own way raises KeyboardInterrupt wherever the program happens to be, which inside of an import is a traceback; and as the
first process of a container SIGTERM has no effect at all. While modules are imported, settings read and folders opened there is
nothing to clean up that a kill would not leave as well. What has something to clean up takes the signals for as long as it runs.

Imported before anything else, hence next to nothing is imported here: `_signal` and `os` are there when Python starts. Does nothing
to a process that is not ours (`own_process`), nor to a signal that is ignored, as shells have it for what runs behind.
"""

import _signal  # type: ignore[import-not-found]  # of CPython, without stubs
import os

TYPE_CHECKING = False  # typing would be much to import
if TYPE_CHECKING:
    from types import FrameType

SIGNALS = (_signal.SIGINT, _signal.SIGTERM)
_is_ours = False


def own_process() -> None:
    """To be called first of all by what runs a command of ours and nothing else."""
    global _is_ours  # noqa: PLW0603 - of the process, as signals are
    _is_ours = True
    end_at_once()


def end_at_once() -> None:
    """From now on both signals end the process, with the exit codes that shells give."""
    for number in SIGNALS:
        _handle(number, _end)


def raise_interrupts() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt, for what has something to clean up."""
    _handle(_signal.SIGINT, _raise)


def ignore() -> None:
    """From now on neither counts: all is done."""
    for number in SIGNALS:
        _handle(number, _signal.SIG_IGN)


def is_ignored(number: int) -> bool:
    """Whether whoever started the process wants it to go on in spite of this signal."""
    return bool(_signal.getsignal(number) == _signal.SIG_IGN)


def _handle(number: int, handler: object) -> None:
    if _is_ours and not is_ignored(number):
        _signal.signal(number, handler)


def _raise(number: int, frame: "FrameType | None") -> None:
    """In the callback that importlib has for a module it is done with Python would show the exception and go on."""
    if frame is not None and frame.f_code.co_name == "cb" and frame.f_code.co_filename.startswith("<frozen importlib"):
        _end(number, frame)
    raise KeyboardInterrupt


def _end(number: int, _: object) -> None:
    os._exit(128 + number)
