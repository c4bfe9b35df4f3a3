"""The path by which programs import the names of `pipeline.spark.spark_session`."""

from horolog.pipeline.spark.spark_session import (
    DEFAULTS,
    HIDDEN,
    ON_THIS_MACHINE,
    WORKER_DAEMON,
    activate,
    session,
    settings,
    socket_folder,
    sockets_in,
)

__all__ = [
    "DEFAULTS",
    "HIDDEN",
    "ON_THIS_MACHINE",
    "WORKER_DAEMON",
    "activate",
    "session",
    "settings",
    "socket_folder",
    "sockets_in",
]
