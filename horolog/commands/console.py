"""A command's environment: its streams, the terminal, the clock and the time zone."""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, TextIO

from horolog.commands.errors import UsageError
from horolog.commands.progress import Progress
from horolog.commands.tables import Cell, layout

if TYPE_CHECKING:  # a command without times does not need their grammar
    from horolog.client.values.time_ranges import TimeRange
    from horolog.client.values.times import Moment

FALLBACK_WIDTH = 80
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


def system_now_ms() -> int:
    return time.time_ns() // 1_000_000


class Console:
    """The standard streams: results go to `out`, everything about them to `err`."""

    def __init__(
        self,
        out: TextIO | None = None,
        err: TextIO | None = None,
        stdin: TextIO | None = None,
        environ: Mapping[str, str] | None = None,
        now_ms: Callable[[], int] = system_now_ms,
    ) -> None:
        self.out = out or sys.stdout
        self.err = err or sys.stderr
        self.stdin = stdin or sys.stdin
        self.environ = os.environ if environ is None else environ
        self.now_ms = now_ms
        self.command = "horolog"
        """The running command's words, before every message on standard error."""
        self.as_json = False
        """`-o json`: the result is to be written only with `json` or `json_line`."""
        self.usage: Callable[[], str] | None = None
        """Makes the line below an error of usage: the form that the running command expects."""
        self.zone_name: str | None = None
        self._zone: tzinfo | None = None

    # -- results

    def print(self, text: str = "") -> None:
        """One line of the result."""
        self.out.write(text + "\n")

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        """A table, cut to the terminal's width; whole without a terminal."""
        heading, *lines = layout(headings, rows, self.width if is_terminal(self.out) else None)
        self.print(self.style("bold", heading))
        for line in lines:
            self.print(line)

    def json(self, value: Any) -> None:
        """The whole result of a command as one JSON document."""
        from json import dumps

        self.print(dumps(value, ensure_ascii=False, indent=2))

    def json_line(self, value: Any) -> None:
        """One item of a stream of results."""
        from json import dumps

        self.print(dumps(value, ensure_ascii=False, separators=(",", ":")))

    def write_bytes(self, data: bytes) -> None:
        """A part of the result as raw bytes; flushed, for readers who follow it."""
        buffer = getattr(self.out, "buffer", None)
        if buffer is None:  # a text-only stream, as in tests
            self.out.write(data.decode(errors="surrogateescape"))
            return
        self.out.flush()
        buffer.write(data)
        buffer.flush()

    # -- about the result

    def note(self, text: str) -> None:
        """Information for people that is not part of the result."""
        self._say(text)

    def warn(self, text: str) -> None:
        self._say(f"{self.style('yellow', 'warning', self.err)}: {text}")

    def error(self, text: str) -> None:
        self._say(f"{self.style('red', 'error', self.err)}: {text}")

    def usage_error(self, text: str) -> None:
        """Two lines, as for arguments that the parser refuses: the fault, and the expected form."""
        self.error(text)
        if self.usage is not None:
            self.err.write(self.usage() + "\n")
            self.err.flush()

    def _say(self, text: str) -> None:
        self.out.flush()  # keeps the order if both streams are the same terminal
        self.err.write(f"{self.command}: {text}\n")
        self.err.flush()

    def progress(self, what: str, total: int | None = None) -> Progress:
        """A bar on standard error if it is a terminal, else nothing."""
        return Progress(what, total, self.err if is_terminal(self.err) else None, self.width)

    # -- the terminal

    @property
    def width(self) -> int:
        """The terminal's width in columns; COLUMNS wins."""
        named = self.environ.get("COLUMNS", "")
        if named.isdecimal() and int(named) > 0:
            return int(named)
        for stream in (self.out, self.err):
            try:
                return os.get_terminal_size(stream.fileno()).columns or FALLBACK_WIDTH
            except (OSError, ValueError):
                continue
        return FALLBACK_WIDTH

    def style(self, name: str, text: str, stream: TextIO | None = None) -> str:
        """The text in a colour (or bold, or dim) if `stream`, the result's unless said otherwise, is a terminal."""
        return f"\x1b[{_STYLES[name]}m{text}\x1b[0m" if self.colours(stream or self.out) else text

    def colours(self, stream: TextIO) -> bool:
        """NO_COLOR (any value) and TERM=dumb turn colours off."""
        return is_terminal(stream) and not self.environ.get("NO_COLOR") and self.environ.get("TERM") != "dumb"

    # -- time

    @property
    def zone(self) -> tzinfo:
        """The time zone that `--tz` names, else the machine's."""
        from horolog.client.values.times import TimeTextError, local_zone, parse_zone

        if self._zone is None:
            try:
                self._zone = parse_zone(self.zone_name) if self.zone_name else local_zone(self.environ)
            except TimeTextError as error:
                raise UsageError(f"--tz: {error}") from error
        return self._zone

    def time(self, text: str, option: str, *, ends: bool = False) -> "Moment":
        """The moment of `text`, given for `option`; with `ends`, `earliest` and `latest` are allowed too."""
        from horolog.client.values.times import TimeTextError, parse_time

        try:
            return parse_time(text, now_ms=self.now_ms(), zone=self.zone, ends=ends)
        except TimeTextError as error:
            raise UsageError(f"{option}: {error}") from error

    def range(
        self, since: str | None, until: str | None, *, length_ms: int | None = None, ends: bool = False
    ) -> "TimeRange":
        """The range of `--since` and `--until` (or a length); prints how they were understood."""
        from horolog.client.values.time_ranges import parse_range
        from horolog.client.values.times import TimeTextError

        try:
            found = parse_range(since, until, length_ms=length_ms, now_ms=self.now_ms(), zone=self.zone, ends=ends)
        except TimeTextError as error:
            options = [name for name, text in (("--since", since), ("--until", until)) if text is not None]
            raise UsageError(f"{', '.join(options) or '--for'}: {error}") from error
        for name, moment in (("--since", found.since), ("--until", found.until)):
            if moment is not None:
                self.note(f"{name} is {moment.understood}")
        return found

    def show_time(self, timestamp_ms: int) -> str:
        """A record's time for people: ISO 8601 with milliseconds, in the command's time zone."""
        from horolog.client.values.times import format_time

        return format_time(timestamp_ms, self.zone)


def is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False
