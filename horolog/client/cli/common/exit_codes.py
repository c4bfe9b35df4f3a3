"""The exit codes of every command: a contract that scripts may rely on, documented in docs/cli.md."""

from enum import IntEnum


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    """The work was not done, or not all of it; standard error says why."""
    USAGE = 2
    """The arguments make no sense; nothing was done."""
    ALERT = 3
    """The command did its work and found what it watches for: a lag beyond the limit, damage, an unhealthy broker."""
    NOT_FOUND = 4
    """The topic, partition, group or file that was named does not exist."""
    UNREACHABLE = 5
    """No broker answered, or not in time; trying again may help."""
    BUSY = 6
    """Somebody else is doing the same; nothing was done, and trying again later is right."""
    INTERRUPTED = 130
    """Ctrl-C, as shells have it."""
    BROKEN_PIPE = 141
    """The reader of the output has stopped reading, as shells have it."""
    TERMINATED = 143
    """SIGTERM came, and what was open was closed; as shells have it."""
