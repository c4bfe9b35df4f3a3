"""Shows errors that a user can correct as one line of Spark's, and not as the end of a traceback.

A Python worker sends Spark the traceback of an error, unless its environment has `SPARK_HIDE_TRACEBACK`
(`spark.sql.execution.pyspark.udf.hideTraceback.enabled`) when the error occurs. An error whose message says what happened and what
to do needs no traceback, so the variable is set then, in this worker only, and reset when the worker begins with something else.
Unexpected errors keep their tracebacks.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

_HIDE = "SPARK_HIDE_TRACEBACK"
_OURS = "horolog"
"""The package whose own exceptions have a sentence for a message, and what the variable is set to here."""


@contextmanager
def short_errors() -> Iterator[None]:
    """Around what Spark calls; also as a decorator."""
    if os.environ.get(_HIDE) == _OURS:
        del os.environ[_HIDE]
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] == _OURS:
            os.environ.setdefault(_HIDE, _OURS)
        raise
