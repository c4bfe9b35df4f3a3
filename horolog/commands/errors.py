"""Errors that end a command: one sentence for people, the next step, and the exit code."""

from horolog.commands.exit_codes import ExitCode


class CommandError(Exception):
    """The command cannot continue. `message` names the fault, `advice` the remedy; together they are one sentence."""

    def __init__(self, message: str, advice: str = "", code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice
        self.code = code

    def __str__(self) -> str:
        return f"{self.message}; {self.advice}" if self.advice else self.message


class UsageError(CommandError):
    """The arguments are contradictory, or one of them is invalid."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message, advice, ExitCode.USAGE)


class NotFoundError(CommandError):
    """The named thing does not exist."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message, advice, ExitCode.NOT_FOUND)


class BusyError(CommandError):
    """Another process is using it."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message, advice, ExitCode.BUSY)


class UnreachableError(CommandError):
    """No broker answered."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message, advice, ExitCode.UNREACHABLE)
