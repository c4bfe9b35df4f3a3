"""A progress bar that appears only on a terminal, and leaves nothing behind."""

import time
from types import TracebackType
from typing import Self, TextIO

REDRAW_SECONDS = 0.1
BAR_WIDTH = 24
_CLEAR = "\r\x1b[K"


class Progress:
    """Counts progress; draws itself on `stream` at most ten times a second, and not at all without a stream."""

    def __init__(self, what: str, total: int | None, stream: TextIO | None, width: int) -> None:
        self.what = what
        self.total = total
        self.done = 0
        self._stream = stream
        self._width = width
        self._drawn_at = 0.0
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def advance(self, count: int = 1) -> None:
        self.done += count
        if self._stream is None:
            return
        now = time.monotonic()
        if now - self._drawn_at >= REDRAW_SECONDS:
            self._drawn_at = now
            line = progress_line(self.what, self.done, self.total, now - self._began)
            self._stream.write(_CLEAR + line[: self._width - 1])
            self._stream.flush()

    def clear(self) -> None:
        """Take the bar off the terminal, before other output and at the end."""
        if self._stream is not None and self._drawn_at:
            self._stream.write(_CLEAR)
            self._stream.flush()
            self._drawn_at = 0.0


def progress_line(what: str, done: int, total: int | None, seconds: float) -> str:
    """The text of the bar; pure."""
    rate = f"{done / seconds:,.0f}/s" if seconds > 0 else ""
    if not total:
        return f"{done:,} {what}  {rate}".rstrip()
    share = min(done / total, 1.0)
    filled = round(share * BAR_WIDTH)
    left = f"{(total - done) / (done / seconds):,.0f} s left" if 0 < done < total and seconds > 0 else ""
    return f"{'█' * filled}{'░' * (BAR_WIDTH - filled)} {share:4.0%}  {done:,} of {total:,} {what}  {rate}  {left}".rstrip()
