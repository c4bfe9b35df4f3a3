"""The process's file descriptors: raises their limit, and says how many of them connections may use."""

from __future__ import annotations

from horolog.broker.log.storage import default_max_open_files

OWN_DESCRIPTORS = 64
"""For everything else: the event loop, the lock, workers' files, connections on their way to being refused."""

LEAST_CONNECTIONS = 16


def raise_limit() -> None:
    """Raise the limit: many systems start programs with 1,024, and programs that can handle more raise it."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def left_for_connections() -> int:
    """Descriptors that the log does not need; connections beyond them would leave none for a segment or the next connection."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 2**31 - 1
    return max(LEAST_CONNECTIONS, soft - default_max_open_files() - OWN_DESCRIPTORS)
