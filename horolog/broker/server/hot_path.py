"""Whether the hot path is compiled, in words for the log: what it costs where it is not, and how to have it compiled."""

from horolog.protocol.records.walk import IS_COMPILED

HOT_PATH = (
    "compiled"
    if IS_COMPILED
    else "plain Python, with a quarter of the speed on batches of varied records: where a C compiler and Python's headers are,"
    " `pip install --force-reinstall --no-deps` of horolog or, in a checkout, `make compiled` compiles it"
)
