"""What Spark's Python workers are spared.

After each task a worker has the garbage collector go through every object, of which most belong to imported modules and live as long
as the worker. That takes a fifth of the processor time of tasks that read 32 MB.
"""

import gc
from itertools import count

_tasks = count(1)


def begin_task() -> None:
    """Leave all that the first task has imported out of later collections. Tasks call this before they begin."""
    if next(_tasks) == 2:
        gc.freeze()
