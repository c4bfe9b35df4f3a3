"""The last hour as lines: joined where points are near, broken where a value is not known."""

from horolog.console.pulse import HOUR_MS, HourSample, Point
from horolog.console.scrapes import Totals
from horolog.console.sparklines import FIGURES, lines_of, path_of

NOW = 10 * HOUR_MS


def points_of(*values, step=10_000):
    return [Point(NOW - (len(values) - 1 - number) * step, value) for number, value in enumerate(values)]


def test_a_path():
    assert path_of(points_of(0.0, 5.0, 10.0), NOW) == "M994.4 100.0 L997.2 52.0 L1000.0 4.0"
    assert path_of(points_of(1.0, None, 1.0, 1.0), NOW).count("M") == 2, "a gap"
    assert path_of(points_of(1.0, 1.0, step=60_000), NOW) == "", "they are too far from each other"
    assert path_of([Point(NOW - HOUR_MS - 1, 9.0), *points_of(0.0, 0.0)], NOW).startswith("M997.2 100.0 L")
    assert path_of([], NOW) == ""


def test_each_figure_has_a_line():
    totals = [Totals(records=number * 100.0, size_bytes=2048.0, cpu_seconds=number * 5.0) for number in range(3)]
    samples = [HourSample(NOW - (2 - number) * 10_000, (), one) for number, one in enumerate(totals)]
    lines = {line.name: line for line in lines_of(samples, NOW)}
    assert list(lines) == [figure.name for figure in FIGURES]
    assert (lines["Records"].now, lines["Size"].now, lines["CPU"].now) == ("10/s", "2.0 KiB", "0.50 cores")
    assert lines["Records"].said == "Records over the last hour: 10/s now, at most 10/s"
    assert (lines["Sent"].now, lines["Sent"].path) == ("", "")
    assert lines["Sent"].said.endswith("not known now, at most not known")
    sent = [HourSample(NOW - 10_000, (), Totals(sent_bytes=0.0)), HourSample(NOW, (), Totals(sent_bytes=20480.0))]
    assert lines_of(sent, NOW)[2].now == "2.0 KiB/s"
    assert lines_of(samples[:1], NOW)[0].now == "", "a rate needs two"
    assert lines_of([], NOW) == []
