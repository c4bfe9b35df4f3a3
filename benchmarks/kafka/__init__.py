"""A real Kafka for measurements and for tests beside it: fetch the jars by Maven, start one node on loopback, stop it.

    with running("3.9.2", **{"log.segment.bytes": "1048576"}) as node:
        ...  # node.address, node.pid, node.data

The jars lie in `$HOROLOG_KAFKA_DIR/VERSION/libs`, without that variable in the user's cache folder. `$HOROLOG_KAFKA_JARS` may name
another folder to look for kafka-clients jars in, for the test that compares message schemas.
"""

from benchmarks.kafka.jars import MissingJarsError, cache_dir, client_jars, fetch, libs, missing_tools
from benchmarks.kafka.node import Node, process_of, running, start, stop

__all__ = [
    "MissingJarsError",
    "Node",
    "cache_dir",
    "client_jars",
    "fetch",
    "libs",
    "missing_tools",
    "process_of",
    "running",
    "start",
    "stop",
]
