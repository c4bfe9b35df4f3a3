"""Whether the hot path is compiled, in words for the log: what it costs where it is not, and how to have it compiled."""

from horolog.protocol.records.walk import IS_COMPILED

HOT_PATH = (
    "compiled"
    if IS_COMPILED
    else "plain Python, with a quarter of the speed on batches of varied records: to compile it, install a C compiler and Python's"
    " headers, then run `pip install --force-reinstall --no-deps` for horolog or, in a checkout, `make compiled`"
)
