"""The exit codes of every command: a contract that scripts may rely on, documented in docs/cli.md."""

from enum import IntEnum


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    """The work failed, at least in part; standard error says why."""
    USAGE = 2
    """The arguments are invalid; nothing was done."""
    ALERT = 3
    """The command did its work and found what it watches for: a lag beyond the limit, damage, an unhealthy broker."""
    NOT_FOUND = 4
    """The named topic, partition, group or file does not exist."""
    UNREACHABLE = 5
    """No broker answered in time; a retry may help."""
    BUSY = 6
    """Another process is doing the same; nothing was done, and a later retry is right."""
    INTERRUPTED = 130
    """Ctrl-C, as in shells."""
    BROKEN_PIPE = 141
    """The reader of the output has stopped reading, as in shells."""
    TERMINATED = 143
    """SIGTERM was received, and everything open was closed; as in shells."""
