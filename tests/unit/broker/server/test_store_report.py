"""The figures that one broker shows of its store."""

import logging
from types import SimpleNamespace

from horolog.broker.base.store_figures import TAKEOVERS, UploadFigures
from horolog.broker.bucket.lease import Lease
from horolog.broker.bucket.metered_requests import MeteredRequests
from horolog.broker.config.settings import Layers, from_layers
from horolog.broker.server.store_report import Reported, StoreReport


class Reporting:
    def __init__(self, **more):
        self.now = 10.0
        self.lease = Lease(2.0, lambda: self.now)
        self.requests = MeteredRequests(SimpleNamespace(get=lambda key, done: done(None)), lambda: self.now)
        access = SimpleNamespace(fault="503", given_up={"a", "b"}, deletes=SimpleNamespace(reason="403"))
        self.report = StoreReport(self.requests, access, self.lease, lambda: -1500)
        settings = from_layers(Layers(static={key.replace("_", "."): value for key, value in more.items()}))
        uploader = SimpleNamespace(figures=lambda: UploadFigures(4, 300, 1, 20))
        merger, of_bucket = SimpleNamespace(unmerged_bytes=7, unmerged_count=3), SimpleNamespace(uploader=uploader)
        losses = SimpleNamespace(lines=lambda: {"key": "line"})
        self.log_side = SimpleNamespace(merger=merger, of_bucket=of_bucket, losses=losses)
        cluster = SimpleNamespace(opening_count=5, state=SimpleNamespace(nodes=(1, 2, 3)))
        self.report.begin(Reported(lambda: settings, SimpleNamespace(unsafe_bytes=11), cluster, self.log_side))


def test_figures_are_those_of_the_parts():
    made = Reporting()
    made.lease.proved(9.5)
    found = made.report.figures()
    assert (found.fault, found.is_member, found.lease_left_s, found.clock_offset_s) == ("503", True, 1.5, -1.5)
    assert (found.opening_count, found.unsafe_bytes, found.member_count) == (5, 11, 3)
    assert (found.unmerged_bytes, found.unmerged_objects) == (7, 3)
    assert (found.unreadable, found.given_up_objects, found.undeleted) == (("line",), 2, "403")
    assert found.uploads == UploadFigures(4, 300, 1, 20)
    made.log_side.merger = None
    assert made.report.figures()[6:8] == (0, 0)


def test_how_long_ago_the_journal_was_read():
    made, reads = Reporting(), []
    made.now = 14.0
    assert made.report.figures().journal_lag_s == 4.0
    made.report.reading(reads.append)(13.0)
    assert (made.report.figures().journal_lag_s, reads) == (1.0, [13.0])


def test_a_fence_is_counted():
    made = Reporting()
    made.report.fenced_count = 2
    made.report.fenced()
    found = made.report.figures()
    assert (found.is_member, found.fenced_count) == (False, 3)
    assert "fenced 3 times" in repr(made.report)


def test_a_take_over_is_logged_and_observed(caplog):
    made = Reporting()
    with caplog.at_level(logging.INFO):
        made.report.all_served(7, 2.3)
    assert "serving 7 more partitions, 2.3 s after this broker became their leader" in caplog.text
    ((_, took),) = made.report.figures().counted.samples(TAKEOVERS)
    assert took.sum == 2.3


def test_prices_are_those_of_the_settings():
    made = Reporting(horolog_store_price_reads="1000000")
    made.requests.get("k", lambda _: None)
    made.now = 11.0
    assert made.report.figures().dollars_per_day == 86_400
