"""Ctrl-C and SIGTERM before a program is ready for them, and after it has done its work: the process ends at once and says nothing.

Python by default raises KeyboardInterrupt wherever the program happens to be, which inside of an import is a traceback. In the
first process of a container SIGTERM has no effect at all. While modules are imported, settings read and folders opened there is
nothing to clean up that a kill would not leave as well. Code that has something to clean up handles the signals while it runs.

Imported before anything else, hence next to nothing is imported here: `_signal` and `os` are there when Python starts. Does nothing
to a process that is not ours (`own_process`), nor to a signal that is ignored, as shells do it for background jobs.
"""

import _signal  # type: ignore[import-not-found]  # of CPython, without stubs
import gc
import os

TYPE_CHECKING = False  # importing typing would take longer
if TYPE_CHECKING:
    from types import FrameType

SIGNALS = (_signal.SIGINT, _signal.SIGTERM)
COLLECTIONS_AT_START = 50_000, 20, 100
"""The garbage collector begins with this many new objects: imports of a command make fewer, and all of them stay."""
COLLECTIONS_OF_A_SERVER = 20_000, 5, 400
"""Requests leave no cycles behind, so looking for them often only costs time. Looking through 100,000 objects holds the loop for 20 ms."""
_is_ours = False


def own_process() -> None:
    """Call this first in a process that runs a command of ours and nothing else; it opens missing standard streams, too.

    It also has Python look for garbage less often, which by default takes a seventh of the CPU time of a broker's start.
    """
    global _is_ours  # noqa: PLW0603 - of the process, as signals are
    _is_ours = True
    end_at_once()

    from horolog.base.standard_streams import open_missing

    open_missing()
    gc.set_threshold(*COLLECTIONS_AT_START)


def end_at_once() -> None:
    """From now on both signals end the process, with the exit codes that shells give."""
    for number in SIGNALS:
        _handle(number, _end)


def raise_interrupts() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt, for what has something to clean up."""
    _handle(_signal.SIGINT, _raise)


def ignore() -> None:
    """From now on both signals are ignored: all work is done."""
    for number in SIGNALS:
        _handle(number, _signal.SIG_IGN)


def is_ignored(number: int) -> bool:
    """Whether the process ignores this signal, for instance because it was started so."""
    return bool(_signal.getsignal(number) == _signal.SIG_IGN)


def _handle(number: int, handler: object) -> None:
    if _is_ours and not is_ignored(number):
        _signal.signal(number, handler)


def _raise(number: int, frame: "FrameType | None") -> None:
    """End the process in importlib's callback for a finished module, where Python would show the exception and go on."""
    if frame is not None and frame.f_code.co_name == "cb" and frame.f_code.co_filename.startswith("<frozen importlib"):
        _end(number, frame)
    raise KeyboardInterrupt


def _end(number: int, _: object) -> None:
    os._exit(128 + number)
