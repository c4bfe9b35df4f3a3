"""A bar is drawn on a terminal alone, not more often than people can see, and taken away."""

import io

from horolog.commands import progress
from horolog.commands.progress import Progress, progress_line

CLEAR = "\r\x1b[K"


def test_a_bar_is_drawn_and_cleared():
    stream = io.StringIO()
    with Progress("records", 10, stream, 80) as bar:
        bar.advance(5)
    assert "50%" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_bar_is_not_drawn_at_every_step_and_fits_the_line(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    bar = Progress("records", 1000, stream, 30)
    for _ in range(5):
        bar.advance()
        now[0] += 0.75 * progress.REDRAW_SECONDS
    drawn = stream.getvalue().split(CLEAR)[1:]
    assert len(drawn) == 3
    assert all(len(line) == 29 for line in drawn)
    bar.clear()
    bar.clear()
    assert stream.getvalue().count(CLEAR) == 4, "a second call writes nothing"


def test_without_a_stream_it_only_counts():
    with Progress("records", None, None, 80) as bar:
        bar.advance(2)
        bar.advance()
    assert bar.done == 3


def test_what_a_bar_says():
    assert progress_line("records", 50, 200, 2.0).split("  ") == [
        f"{'█' * 6}{'░' * 18}",
        "25%",
        "50 of 200 records",
        "25/s",
        "6 s left",
    ]
    assert progress_line("records", 1500, None, 1.0) == "1,500 records  1,500/s"
    assert progress_line("records", 0, 0, 0.0) == "0 records"
