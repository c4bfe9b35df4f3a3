"""Errors that a user can mend reach them as one line of Spark's, and not as the end of a traceback.

A Python worker sends Spark the traceback of what went wrong, unless its environment says `SPARK_HIDE_TRACEBACK`
(`spark.sql.execution.pyspark.udf.hideTraceback.enabled`); it looks when the error comes. An error whose message says what happened and what
to do needs no traceback, so it is set then, in this worker alone, and taken back when the worker begins with something else. Faults that
nobody foresaw keep their tracebacks.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from horolog.client.errors import KafkaError
from horolog.pipeline.exactly_once import WriteFailed
from horolog.pipeline.object_stores import StoreError
from horolog.pipeline.positions import DataLoss, OptionError
from horolog.pipeline.reaching import Unreachable

TOLD = (OptionError, DataLoss, Unreachable, WriteFailed, StoreError, KafkaError)
"""What has a sentence for a message."""
_HIDE = "SPARK_HIDE_TRACEBACK"
_OURS = "horolog"


@contextmanager
def short_errors() -> Iterator[None]:
    """Around what Spark calls; also as a decorator."""
    if os.environ.get(_HIDE) == _OURS:
        del os.environ[_HIDE]
    try:
        yield
    except TOLD:
        os.environ.setdefault(_HIDE, _OURS)
        raise
