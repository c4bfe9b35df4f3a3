"""Spares Spark's Python workers the garbage collection of imported modules.

After each task a worker runs the garbage collector over every object, most of which belong to imported modules and live as long
as the worker. That takes a fifth of the processor time of tasks that read 32 MB.
"""

import gc
from itertools import count

_tasks = count(1)


def begin_task() -> None:
    """Exclude everything that the first task has imported from later collections. Tasks call this before they begin."""
    if next(_tasks) == 2:
        gc.freeze()
